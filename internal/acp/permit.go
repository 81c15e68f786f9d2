package acp

import (
	"strings"

	protocol "github.com/coder/acp-go-sdk"

	"pawl/internal/program"
	"pawl/internal/shell"
)

// Rules are what a contract approves of an agent's tools.
type Rules struct {
	May    []program.Class
	Begins []string // what the commands of the shell begin with, where it is not approved whole
	Any    bool     // also what belongs to no class
}

// classes are those of the protocol's kinds of tools.
var classes = map[protocol.ToolKind]program.Class{
	protocol.ToolKindRead: program.Looks, protocol.ToolKindSearch: program.Looks,
	protocol.ToolKindEdit: program.Edits, protocol.ToolKindDelete: program.Edits, protocol.ToolKindMove: program.Edits,
	protocol.ToolKindExecute: program.Shell,
	protocol.ToolKindFetch:   program.Network,
}

// Allow answers an agent's question whether it may use a tool. input is what the tool is called with.
func (r Rules) Allow(kind protocol.ToolKind, input any) bool {
	class, known := classes[kind]
	switch {
	case kind == protocol.ToolKindThink:
		return true
	case kind == protocol.ToolKindSwitchMode: // to one that asks less
		return false
	case !known:
		return r.Any
	}
	for _, may := range r.May {
		if may == class {
			return true
		}
	}
	command := commandOf(input)
	return class == program.Shell && command != "" && shell.Begins(command, r.Begins)
}

// commandOf is the command of a tool that executes one, "" where it is not known: a title need not be what is run.
func commandOf(input any) string {
	fields, ok := input.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range []string{"command", "cmd"} {
		switch c := fields[name].(type) {
		case string:
			return c
		case []any:
			var words []string
			for _, w := range c {
				text, ok := w.(string)
				if !ok {
					return ""
				}
				words = append(words, text)
			}
			if len(words) == 3 && strings.HasSuffix(words[0], "sh") && (words[1] == "-c" || words[1] == "-lc") {
				return words[2]
			}
			for i, w := range words {
				words[i] = shell.Quote(w)
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

// choose returns the option of a question by which it is answered, "" where there is none of that kind. Nothing is
// allowed for longer than once: the next question is answered by the contract, too.
func choose(options []protocol.PermissionOption, allow bool) protocol.PermissionOptionId {
	kinds := []protocol.PermissionOptionKind{protocol.PermissionOptionKindRejectOnce, protocol.PermissionOptionKindRejectAlways}
	if allow {
		kinds = []protocol.PermissionOptionKind{protocol.PermissionOptionKindAllowOnce, protocol.PermissionOptionKindAllowAlways}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.OptionId
			}
		}
	}
	return ""
}
