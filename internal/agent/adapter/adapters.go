package adapter

import (
	"slices"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

// Adapter is one agent program: how it is called, and what its output means.
type Adapter struct {
	agents.Program
	// Live are the budgets whose use its stream reports while it runs. The use of the others is only known at its
	// end.
	Live []loop.Resource
	Late bool                // its stream reports a tool only at the tool's end
	Argv func(Call) []string // the argument vector of a call; the prompt goes to stdin

	env   func(Call) []string          // the environment that tells it about tools; nil for none
	files func(Call) map[string]string // the files that tell it about tools, by their names in Call.Dir; nil for none
	read  func() reader                // nil if its stdout is not a stream
}

// Call is one call of an agent.
type Call struct {
	Agent   spec.Agent // the agent of the role
	MayEdit bool       // the role may change source
	Tools   []string   // the approved tools, in the form of approvals.tools
	Session string     // an ID for the session, if the program accepts one
	Self    string     // pawl's own program, which is the client of some agents
	Dir     string     // the folder for the files of the call, which the agent can read
	Budget  map[loop.Resource]metric.Decimal
}

// adapters has the adapters by the name of their program.
var adapters = map[string]Adapter{
	agents.Command: {Argv: commandArgv},
	agents.Claude: {
		Live: []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD},
		Argv: claudeArgv, read: func() reader { return &claude{open: map[string]*message{}} },
	},
	agents.OpenCode: {
		Live: []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD}, Late: true,
		Argv: opencodeArgv, env: opencodeEnv, read: func() reader { return &opencode{} },
	},
	agents.Pi: {Live: []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD}, Argv: piArgv, read: func() reader { return &pi{} }},
	agents.Qwen: {
		Live: []loop.Resource{loop.ToolCalls, loop.Tokens}, Argv: qwenArgv,
		read: func() reader { return &qwen{claude{within: true, open: map[string]*message{}}} },
	},
	agents.ACP:    {Live: []loop.Resource{loop.ToolCalls, loop.CostUSD}, Argv: acpArgv, env: acpEnv, read: func() reader { return &acp{} }},
	agents.Codex:  {Live: []loop.Resource{loop.ToolCalls}, Argv: codexArgv, read: func() reader { return &codex{} }},
	agents.Gemini: {Live: []loop.Resource{loop.ToolCalls}, Argv: geminiArgv, files: geminiFiles, read: func() reader { return &gemini{} }},
}

// Lookup returns the adapter for a value of agent.use; ok is false if there is none.
func Lookup(use string) (a Adapter, ok bool) {
	a, ok = adapters[use]
	a.Program, _ = agents.Lookup(use)
	return a, ok
}

// Streams reports whether the program's stdout is a stream of events.
func (a Adapter) Streams() bool { return a.read != nil }

// Stream returns a reader for the output of one call, nil if that is not a stream.
func (a Adapter) Stream() *Stream {
	if a.read == nil {
		return nil
	}
	r := a.read()
	return &Stream{reader: r, spent: r.usage()}
}

// Env returns the environment of a call besides Program.Env, whatever the spec says.
func (a Adapter) Env(c Call) []string {
	if a.env == nil {
		return nil
	}
	return a.env(c)
}

// Files returns the files that a call needs, by their names in Call.Dir.
func (a Adapter) Files(c Call) map[string]string {
	if a.files == nil {
		return nil
	}
	return a.files(c)
}

// commandArgv returns the command of the spec with the arguments behind it. A command for the shell gets them as $1,
// $2, ….
func commandArgv(c Call) []string {
	argv := slices.Clone(c.Agent.Command.Args())
	if c.Agent.Command.Shell != "" && len(c.Agent.Args) > 0 {
		argv = append(argv, "agent")
	}
	return append(argv, c.Agent.Args...)
}

// started returns the words that start a command: those of the spec, else the program's name.
func started(c Call) []string {
	if argv := c.Agent.Command.Args(); len(argv) > 0 {
		return slices.Clone(argv)
	}
	return []string{c.Agent.Use}
}

// begin returns the words that start the program, further ones, and the model behind its option.
func (c Call) begin(option string, words ...string) []string {
	argv := append(started(c), words...)
	if c.Agent.Model != "" {
		argv = append(argv, option, c.Agent.Model)
	}
	return argv
}

// held returns how the program can be limited to the approved tools.
func (c Call) held() agents.Tools {
	p, _ := agents.Lookup(c.Agent.Use)
	return p.Tools
}

// approved returns the approved tools. For a role that may not edit it leaves out those that edit.
func (c Call) approved() agents.Approved {
	a := agents.Approve(c.Tools)
	if c.MayEdit {
		return a
	}
	return agents.Approved{Classes: list.Filter([]agents.Class{agents.Looks, agents.Network}, a.May)}
}

// all reports whether every tool is approved.
func (c Call) all() bool { return slices.Contains(c.Tools, "*") }
