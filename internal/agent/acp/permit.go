package acp

import (
	"strings"

	protocol "github.com/coder/acp-go-sdk"

	"pawl/internal/lib/shell"
	"pawl/internal/spec/agents"
)

// Rules say which of an agent's tools a contract approves.
type Rules struct{ agents.Approved }

// classes has the class of each kind of tool in the protocol.
var classes = map[protocol.ToolKind]agents.Class{
	protocol.ToolKindRead: agents.Looks, protocol.ToolKindSearch: agents.Looks,
	protocol.ToolKindEdit: agents.Edits, protocol.ToolKindDelete: agents.Edits, protocol.ToolKindMove: agents.Edits,
	protocol.ToolKindExecute: agents.Shell,
	protocol.ToolKindFetch:   agents.Network,
}

// Allow reports whether an agent may use a tool. input is the input of the tool.
func (r Rules) Allow(kind protocol.ToolKind, input any) bool {
	if r.always(kind) {
		return true
	}
	command := commandOf(input)
	return classes[kind] == agents.Shell && command != "" && shell.Begins(command, r.Commands)
}

// always reports whether the contract approves every use of such a tool.
func (r Rules) always(kind protocol.ToolKind) bool {
	class, known := classes[kind]
	switch {
	case kind == protocol.ToolKindThink:
		return true
	case kind == protocol.ToolKindSwitchMode: // it could switch to a mode that asks less
		return false
	case !known:
		return r.All
	}
	return r.May(class)
}

// commandOf returns the command of a tool that executes one, "" if it is unknown. The title of the tool may differ
// from the command.
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
			return shell.Join(words...)
		}
	}
	return ""
}

// approving returns the option that allows a tool, "" if there is none or the contract does not approve it. It prefers
// an option that counts once, so that the contract answers the next question too. One that counts for good must allow no
// more than the contract.
func (r Rules) approving(options []protocol.PermissionOption, kind protocol.ToolKind, input any) protocol.PermissionOptionId {
	switch {
	case !r.Allow(kind, input):
		return ""
	case r.always(kind):
		return choose(options, protocol.PermissionOptionKindAllowOnce, protocol.PermissionOptionKindAllowAlways)
	}
	return choose(options, protocol.PermissionOptionKindAllowOnce)
}

// choose returns the first option of the first kind that there is, "" if there is none.
func choose(options []protocol.PermissionOption, kinds ...protocol.PermissionOptionKind) protocol.PermissionOptionId {
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.OptionId
			}
		}
	}
	return ""
}
