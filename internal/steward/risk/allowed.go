package risk

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/shell"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
)

// Allowed reports whether a plan may use a command, and why it may not (S6). It may use a command of the charter's
// defaults without changes, because a person has written it there. In any other command, each simple command has to
// begin with the words of an entry of allow. If allow has no entries, only the commands of the defaults may be used:
// a missing list does not allow everything.
//
// A command is not allowed if its words alone do not say what it does: if sh and bash parse it differently, or if it
// has substitutions and variables, assignments before a command, functions and loops, or redirections other than to
// /dev/null or to another descriptor.
func Allowed(c charter.Charter, command string) (ok bool, reason string) {
	var defaults spec.Spec
	if json.Unmarshal(c.Defaults, &defaults) == nil && slices.Contains(Commands(defaults), command) {
		return true, ""
	}
	if len(c.Allow) == 0 {
		return false, "the charter has no list of commands (allow), so only those of its defaults may be used"
	}
	commands, reason := shell.Simple(command)
	if reason != "" {
		return false, reason
	}
	for _, words := range commands {
		if !slices.ContainsFunc(c.Allow, func(entry string) bool { return shell.Starts(words, entry) }) {
			part := "it" // the whole command, which whoever shows the reason names
			if len(commands) > 1 {
				part = strconv.Quote(strings.ReplaceAll(strings.Join(words, " "), "\x01", ""))
			}
			return false, part + " does not begin with an entry of allow"
		}
	}
	return true, ""
}
