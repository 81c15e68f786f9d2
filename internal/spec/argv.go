package spec

import (
	"encoding/json"
	"errors"
)

// Argv is a program with its arguments: a list of strings, which runs as it is, or one string, which the shell runs.
// It is written in the form in which it was read. At most one of the two fields is set.
type Argv struct {
	List  []string
	Shell string
}

// Args returns the program and its arguments; nil if there is no command.
func (a Argv) Args() []string {
	if a.Shell != "" {
		return []string{"sh", "-c", a.Shell}
	}
	return a.List
}

// IsZero reports whether there is no command.
func (a Argv) IsZero() bool { return a.Shell == "" && len(a.List) == 0 }

// MarshalJSON writes a string or a list, in the form in which it was read.
func (a Argv) MarshalJSON() ([]byte, error) {
	if a.Shell != "" {
		return json.Marshal(a.Shell)
	}
	return json.Marshal(a.List)
}

// UnmarshalJSON reads a string or a list of strings.
func (a *Argv) UnmarshalJSON(data []byte) error {
	*a = Argv{}
	if json.Unmarshal(data, &a.Shell) != nil && json.Unmarshal(data, &a.List) != nil {
		return errors.New("a command is a list of strings, or one string for the shell")
	}
	return nil
}
