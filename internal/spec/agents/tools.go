package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// Class is a class of tools that a contract approves, whatever a program calls them (A1).
type Class string

// The classes of tools.
const (
	Looks     Class = "read"      // look at files
	Edits     Class = "edit"      // change files
	Shell     Class = "shell"     // run commands; shell(go test *) is those alone that begin with go test
	Network   Class = "network"   // fetch pages and search the web
	MCP       Class = "mcp"       // tools of the MCP servers that agent.args names
	Subagents Class = "subagents" // agents of its own, and work that it takes up again later
)

// Classes lists the classes, in the order in which people see them.
var Classes = []Class{Looks, Edits, Shell, Network, MCP, Subagents}

// Tools says how a program is restricted to the tools that a contract approves. If it has no tools of a class here,
// it has none when pawl calls it, and approving the class grants nothing.
type Tools struct {
	Has      map[Class][]string // its own names for them
	Always   []Class            // it can't be kept from using these, so a list has to approve them
	Patterns bool               // its shell can be restricted to some commands
	Own      bool               // a list may name tools of its own
	Asks     bool               // it is restricted as far as it asks before it uses a tool
	Tells    bool               // it reports which tools it was not allowed to use
	By       string             // what restricts it, for people; "" for nothing
}

// Approved are the entries of approvals.tools, parsed.
type Approved struct {
	All      bool     // "*": every class but subagents
	Classes  []Class  // the classes that are named
	Commands []string // how an allowed shell command may begin, if the shell is not approved as a whole
	Own      []string // names of a program's own tools
}

// Approve parses the entries of approvals.tools. An entry that is no class is the name of a program's own tool.
func Approve(entries []string) (a Approved) {
	for _, entry := range entries {
		class, commands, _ := ReadEntry(entry)
		switch {
		case entry == "*":
			a.All = true
		case commands != "":
			a.Commands = append(a.Commands, commands)
		case class != "":
			a.Classes = append(a.Classes, class)
		default:
			a.Own = append(a.Own, entry)
		}
	}
	if a.May(Shell) {
		a.Commands = nil
	}
	return a
}

// ReadEntry parses one entry of approvals.tools: its class, "" for the name of a program's own tool, and for shell(go
// test *) how the commands begin. The error says what is wrong with the brackets of a class.
func ReadEntry(entry string) (class Class, commands string, err error) {
	name, inside, bracketed := strings.Cut(entry, "(")
	switch {
	case !slices.Contains(Classes, Class(name)):
		return "", "", nil
	case !bracketed:
		return Class(name), "", nil
	case Class(name) != Shell:
		return "", "", fmt.Errorf("has brackets, which only %s takes", Shell)
	}
	commands, closed := strings.CutSuffix(inside, " *)")
	if commands = strings.Join(strings.Fields(commands), " "); !closed || commands == "" || strings.ContainsAny(commands, "*?()[]{}$`\"'\\;&|<>,:") {
		return "", "", fmt.Errorf("names no commands by the words that they begin with")
	}
	return Shell, commands, nil
}

// May reports whether a class is approved whole. "*" does not mean subagents: what those spend is not all told.
func (a Approved) May(c Class) bool {
	return a.All && c != Subagents || slices.Contains(a.Classes, c)
}

// Withheld are the program's own names for the tools that are not approved, in the order of Classes.
func (t Tools) Withheld(a Approved) (withheld []string) {
	for _, c := range Classes {
		if !a.May(c) && (c != Shell || len(a.Commands) == 0) {
			withheld = append(withheld, t.Has[c]...)
		}
	}
	return withheld
}

// Names are the entries with the program's own names in place of classes, each once.
func (t Tools) Names(entries []string) (items []string) {
	for _, entry := range entries {
		names := []string{entry}
		switch class, commands, _ := ReadEntry(entry); {
		case commands != "":
			names = []string{t.Has[Shell][0] + "(" + commands + ":*)"}
		case class != "":
			names = t.Has[class]
		}
		for _, name := range names {
			if !slices.Contains(items, name) {
				items = append(items, name)
			}
		}
	}
	return items
}

// Keeps says why the program can't be held to the entries of approvals.tools, and what it could be held to; "" where it
// can be, and where nothing holds it, of which the contract tells (Unheld).
func (p Program) Keeps(entries []string) (text, want string) {
	a, t := Approve(entries), p.Tools
	if t.By == "" || len(entries) == 0 {
		return "", ""
	}
	if len(a.Own) > 0 && !t.Own {
		return fmt.Sprintf("has %q, and %s can be held to classes of tools alone", a.Own[0], p.Name), ClassNames() + `, or ["*"] for all of its tools`
	}
	if len(a.Commands) > 0 && !t.Patterns {
		return "is some commands alone, and the shell of " + p.Name + " can't be held to those", string(Shell) + ", or another agent"
	}
	for _, c := range t.Always {
		if !a.May(c) {
			return fmt.Sprintf("is without %s, and %s can't be kept from that", c, p.Name), string(c) + " as well, or another agent"
		}
	}
	return "", ""
}

// Unheld says what a contract approves or not that nothing holds the program to, for whoever approves it.
func (p Program) Unheld(entries []string) (lines []string) {
	a, t := Approve(entries), p.Tools
	switch {
	case !a.All && t.Asks:
		lines = append(lines, "the agent is held to these tools as far as it asks before it uses one, and by the sandbox")
	case !a.All && t.By == "":
		lines = append(lines, "nothing holds "+p.named()+" to these tools but the sandbox")
	case !a.All && a.May(Shell) && !(a.May(Edits) && a.May(Network)) && p.Name != Codex: // whose own sandbox does
		lines = append(lines, "the shell of "+p.Name+" does what the sandbox lets it, whatever the other tools")
	}
	if p.Name == Claude && !a.All && (len(a.Commands) > 0 || slices.ContainsFunc(a.Own, func(entry string) bool { return strings.HasPrefix(entry, "Bash(") })) {
		lines = append(lines, "claude also runs commands that only look, such as ls, cat and git status")
	}
	if slices.Contains(a.Classes, Subagents) && len(t.Has[Subagents]) > 0 && p.Name != Claude {
		lines = append(lines, "what agents of "+p.Name+" spend is counted by pawl's meter alone")
	}
	return lines
}

// Servers returns the names of the MCP servers that arguments of Claude Code configure as JSON. Approved is each by its
// name, so that of those in a file nobody knows: hasOther reports whether there are such.
func Servers(args []string) (servers []string, hasOther bool) {
	inside := false
	for _, arg := range args {
		value, joined := strings.CutPrefix(arg, "--mcp-config=")
		switch {
		case arg == "--mcp-config":
			inside = true
			continue
		case strings.HasPrefix(arg, "-") && !joined:
			inside = false
			continue
		case !inside && !joined:
			continue
		}
		var config struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		if json.Unmarshal([]byte(value), &config) != nil {
			hasOther = true
		}
		servers = slices.AppendSeq(servers, maps.Keys(config.Servers))
	}
	slices.Sort(servers)
	return slices.Compact(servers), hasOther
}

func (p Program) named() string {
	if p.Name == Command {
		return "the command"
	}
	return p.Name
}

// ClassNames are the names of all classes, for people.
func ClassNames() string {
	return strings.Join(list.Map(Classes, func(c Class) string { return string(c) }), ", ")
}
