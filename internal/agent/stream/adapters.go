package stream

import (
	"slices"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Adapter is one agent program: how it is called, and what its output means.
type Adapter struct {
	Use string
	// Version is the one that was measured; docs/agents.md says what.
	Version string
	// Live are the budgets that its stream tells the use of while it runs. The others are known
	// only when it has ended.
	Live []loop.Resource
	// Keys are the variables in which the program looks for its own credentials. They are taken
	// from the worker's environment, as no other secret is.
	Keys []string
	// Env is what it is told beside what the spec says; the spec's agent.env wins.
	Env []string

	argv func(Call) []string
	read func() reader // nil: its stdout is no stream
}

// Call is one call of an agent.
type Call struct {
	Agent   spec.Agent // the role's own
	MayEdit bool       // the role may change source
	Tools   []string   // the tools that are approved; "*" for all
	Session string     // an ID for the session, where the program takes one
	Budget  map[loop.Resource]evidence.Decimal
}

// Adapters are the programs. A further one is a further row, with its reader.
var Adapters = []Adapter{
	{
		Use: spec.UseCommand, argv: commandArgv,
	},
	{
		Use: spec.UseClaude, Version: "2.1.329",
		Live: []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD},
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Env: []string{
			"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		},
		argv: claudeArgv, read: func() reader { return &claude{open: map[string]*message{}} },
	},
	{
		Use: spec.UseCodex, Version: "0.169.0",
		Live: []loop.Resource{loop.ToolCalls},
		Keys: []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		argv: codexArgv, read: func() reader { return &codex{} },
	},
	{
		Use: spec.UseGemini, Version: "0.61.0",
		Live: []loop.Resource{loop.ToolCalls},
		Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		argv: geminiArgv, read: func() reader { return &gemini{} },
	},
}

// Lookup returns the adapter for a value of agent.use; ok is false where there is none.
func Lookup(use string) (a Adapter, ok bool) {
	i := slices.IndexFunc(Adapters, func(a Adapter) bool { return a.Use == use })
	if i < 0 {
		return Adapter{}, false
	}
	return Adapters[i], true
}

// Streams reports whether the program's stdout is a stream of events.
func (a Adapter) Streams() bool { return a.read != nil }

// Stream returns a reader for the output of one call, nil where that is no stream.
func (a Adapter) Stream() *Stream {
	if a.read == nil {
		return nil
	}
	r := a.read()
	return &Stream{reader: r, spent: r.usage()}
}

// Argv returns the argument vector of a call. The prompt goes to stdin.
func (a Adapter) Argv(c Call) []string { return a.argv(c) }

// commandArgv is the command as the spec has it, with the arguments behind it; to one for the
// shell they are $1, $2, ….
func commandArgv(c Call) []string {
	argv := slices.Clone(c.Agent.Command.Args())
	if c.Agent.Command.Shell != "" && len(c.Agent.Args) > 0 {
		argv = append(argv, "agent")
	}
	return append(argv, c.Agent.Args...)
}

// program returns the words that start a command: those of the spec, else the program's name.
func program(c Call) []string {
	if argv := c.Agent.Command.Args(); len(argv) > 0 {
		return slices.Clone(argv)
	}
	return []string{c.Agent.Use}
}

// all reports whether every tool is approved.
func (c Call) all() bool { return slices.Contains(c.Tools, "*") }
