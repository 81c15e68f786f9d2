package program

import (
	"encoding/json"
	"strings"
)

// Metering is how a program is made to speak to pawl's meter instead of to its provider. The zero one is that of a program
// that can't be.
type Metering struct {
	Base string // the variable with its provider's base URL
	At   string // the base URL where that variable is not set
	Keys []Key  // the variables with a key for which each request is paid, those first that count first
	// Args are the arguments that it needs besides: {base} in them is the base URL, {key} the name of the variable.
	Args []string
	// Elsewhere are variables and parts of arguments by which a person has it speak to another provider than that of Base.
	Elsewhere []string
	// Chosen are the settings in the user's home by which it chooses how to sign in, and Choice is what they say where it
	// signs in with one of Keys. Nil where it takes a key that is there.
	Chosen []Settings
	Choice string
}

// Key is a variable with a key. Where the file Yields of the home is there, the program signs in with that instead; "" for
// none.
type Key struct{ Name, Yields string }

// Route is where the meter of a program sends its requests, and which variables have a key.
type Route struct {
	Upstream string
	Keys     []string
	Args     []string // as Metering.Args, with the variable's name in them
}

// Direction returns the route of a program with an environment and arguments, or why it has none, as the rest of a
// sentence that begins with its name. Of the user's home read returns a file, nil where it is not there.
func (m Metering) Direction(env map[string]string, args []string, read func(file string) []byte) (r Route, why string) {
	if m.Base == "" {
		return r, "can't be led to pawl's meter"
	}
	for _, word := range m.Elsewhere {
		if env[word] != "" || strings.Contains(strings.Join(args, "\x00"), word) {
			return r, "is told to speak to another provider (" + word + ")"
		}
	}
	for _, key := range m.Keys {
		if env[key.Name] != "" && (len(r.Keys) > 0 || key.Yields == "" || read(key.Yields) == nil) {
			r.Keys = append(r.Keys, key.Name)
		}
	}
	if len(r.Keys) == 0 {
		return Route{}, "signs in with an account of its own, and no key is in its environment"
	}
	if len(m.Chosen) > 0 && !m.chosen(read) {
		return Route{}, "is not set to sign in with a key"
	}
	if r.Upstream = env[m.Base]; r.Upstream == "" {
		r.Upstream = m.At
	}
	for _, arg := range m.Args {
		r.Args = append(r.Args, strings.ReplaceAll(arg, "{key}", r.Keys[0]))
	}
	return r, ""
}

// chosen reports whether one of the settings says the choice.
func (m Metering) chosen(read func(string) []byte) bool {
	for _, s := range m.Chosen {
		var all any
		if json.Unmarshal([]byte(s.Of(read(s.File))), &all) == nil && within(all, m.Choice) {
			return true
		}
	}
	return false
}

// within reports whether a text is one of the values of a JSON document.
func within(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case map[string]any:
		for _, inner := range v {
			if within(inner, text) {
				return true
			}
		}
	}
	return false
}
