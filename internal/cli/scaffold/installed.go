package scaffold

import (
	"cmp"
	"slices"
	"strings"

	"pawl/internal/judge/evaluator"
	"pawl/internal/lib/list"
)

// choose returns the first command whose programs are all installed. If there is none, it returns the first command.
// If the first command lacks a program, choose notes what is missing and what is proposed instead. purpose says in words
// what the command is for.
func (t tree) choose(purpose string, options ...string) string {
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
		t.miss(note + ", and it is needed for " + purpose + " (" + options[0] + "): pawl validate fails until it is installed")
		return options[0]
	}
	t.miss(note + ", so this proposes " + options[chosen] + " for " + purpose + " and not " + options[0])
	return options[chosen]
}

// absent returns a text that says that a program is missing.
func absent(program string) string {
	if strings.Contains(program, "/") {
		return program + " does not exist"
	}
	return program + " is not on the PATH"
}

// lacks returns the first program of a command that is not installed, "" if all are. For make and the like it
// includes the programs that the target calls.
func (t tree) lacks(command string) string {
	needs := append(evaluator.NeedsOf(command).Programs, evaluator.Called(command, t.read)...)
	lacking, _ := list.First(needs, func(name string) bool { return !t.program(name) })
	return lacking
}

func (t tree) miss(note string) {
	if !slices.Contains(*t.missing, note) {
		*t.missing = append(*t.missing, note)
	}
}

// either returns the first of the programs that is installed. If none is, it returns the first name.
func (t tree) either(names ...string) string {
	installed, _ := list.First(names, t.program)
	return cmp.Or(installed, names[0])
}
