package draft

import (
	"slices"
	"strings"

	"pawl/internal/seal"
)

// choose returns the first of the commands whose programs are all here, or the first where there is none. What is
// missing is noted with what was taken instead; what is what the command is for.
func (t tree) choose(what string, options ...string) string {
	options = slices.DeleteFunc(options, func(command string) bool { return command == "" })
	if len(options) == 0 {
		return ""
	}
	chosen := slices.IndexFunc(options, func(command string) bool { return t.lacks(command) == "" })
	if chosen == 0 {
		return options[0]
	}
	note := absent(t.lacks(options[0]))
	if chosen < 0 {
		t.miss(note + ", and it is needed for " + what + " (" + options[0] + "): pawl validate fails until it is installed")
		return options[0]
	}
	t.miss(note + ", so this proposes " + options[chosen] + " for " + what + " and not " + options[0])
	return options[chosen]
}

// absent says of a program that it is not here.
func absent(program string) string {
	if strings.Contains(program, "/") {
		return program + " is not there"
	}
	return program + " is not on the PATH"
}

// lacks is the first program of a command that is not here, "" where all are. Of make it is also one that the
// target calls.
func (t tree) lacks(command string) string {
	for _, name := range append(seal.Programs(command), seal.Called(command, t.read)...) {
		if !t.program(name) {
			return name
		}
	}
	return ""
}

func (t tree) miss(note string) {
	if !slices.Contains(*t.missing, note) {
		*t.missing = append(*t.missing, note)
	}
}

// either returns the first of the programs that is here, else the first of them.
func (t tree) either(names ...string) string {
	for _, name := range names {
		if t.program(name) {
			return name
		}
	}
	return names[0]
}

// hints say what the trees of a loop lack that this repository may need.
func (t tree) hints() (all []string) {
	if t.has[".gitmodules"] {
		all = append(all, "This repository has submodules, and a loop's trees do not have their files. If the commands need them, let setup fetch them: "+
			"git submodule update --init (relative URLs work only if the repository's origin is a URL)")
	}
	return all
}
