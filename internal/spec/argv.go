package spec

import (
	"encoding/json"
	"errors"
)

// Argv is a program with its arguments: a list of strings, which is run as it stands, or one
// string, which the shell runs. It is written back in the form that it was given in. At most
// one of the two fields is set.
type Argv struct {
	List  []string
	Shell string
}

// Args is the argument vector to execute; nil when nothing was given.
func (a Argv) Args() []string {
	if a.Shell != "" {
		return []string{"sh", "-c", a.Shell}
	}
	return a.List
}

// IsZero says whether no command was given.
func (a Argv) IsZero() bool { return a.Shell == "" && len(a.List) == 0 }

// MarshalJSON writes a string or a list, as it was given.
func (a Argv) MarshalJSON() ([]byte, error) {
	switch {
	case a.Shell != "":
		return json.Marshal(a.Shell)
	case a.List != nil:
		return json.Marshal(a.List)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a string or a list of strings.
func (a *Argv) UnmarshalJSON(data []byte) error {
	*a = Argv{}
	if json.Unmarshal(data, &a.Shell) == nil {
		return nil
	}
	a.Shell = ""
	if json.Unmarshal(data, &a.List) == nil {
		return nil
	}
	return errors.New("a command is a list of strings, or one string for the shell")
}
