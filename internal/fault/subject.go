package fault

import (
	"errors"
	"strings"

	"pawl/internal/lib/shell"
)

// Subject is what a fault is about. An advice names it by placeholders: {word}, and {show}, {diff} and {approve} for
// commands.
type Subject struct {
	word, show, diff, approve string
}

// anyLoop is the subject of a fault that does not know its loop.
var anyLoop = Subject{"loop", "pawl show", "pawl diff", "pawl approve ID"}

// Loop returns a loop as the subject of faults.
func Loop(id string) Subject {
	id = shell.Join(id)
	return Subject{"loop", "pawl show " + id, "pawl diff " + id, "pawl approve " + id}
}

// Steward returns a steward as the subject of faults.
func Steward(name string) Subject {
	name = shell.Join(name)
	return Subject{"steward", "pawl steward show " + name, anyLoop.diff, anyLoop.approve}
}

// About returns an error whose fault, if it has one, is about the subject.
func About(subject Subject, err error) error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.About(subject)
	}
	return err
}

// fill returns an advice with the subject in place of the placeholders.
func (s Subject) fill(advice string) string {
	return strings.NewReplacer("{word}", s.word, "{show}", s.show, "{diff}", s.diff, "{approve}", s.approve).Replace(advice)
}
