package adapter_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	require.NoError(t, err)
	return b
}

func open(t testing.TB, use string) *adapter.Stream {
	t.Helper()
	a, ok := adapter.Lookup(use)
	require.True(t, ok)
	return a.Stream()
}

// TestRecordedStreams compares the readers with the real output of the programs. The numbers are those of the
// scripted model: 1200 tokens in and 80 out per call.
func TestRecordedStreams(t *testing.T) {
	usage := func(tools, in, out int64, cost string) loop.Usage {
		return loop.Usage{AgentCalls: 1, ToolCalls: tools, InputTokens: in, OutputTokens: out, CostUSD: metric.MustDecimal(cost)}
	}
	for _, c := range []struct {
		use, file string
		usage     loop.Usage
		end       adapter.End
		tools     string // the tools, in order
	}{
		{"claude", "claude-stream", usage(2, 3600, 240, "0.0144"), adapter.End{Text: "Changed hello to goodbye in hello.txt."}, "Read Edit"},
		{"claude", "claude-partial", usage(2, 3600, 240, "0.0144"), adapter.End{Text: "Changed hello to goodbye in hello.txt."}, "Read Edit"},
		{"claude", "claude-max-turns", usage(0, 4800, 320, "0.0192"), adapter.End{Failure: "error_max_turns: Reached maximum number of turns (4)"}, ""},
		{"claude", "claude-max-budget", usage(5, 6000, 400, "0.024"), adapter.End{Failure: "it reached its budget", Exhausted: loop.CostUSD}, "Bash Bash Bash Bash Bash"},
		{"claude", "claude-error", usage(0, 0, 0, "0"), adapter.End{Failure: "API Error: 400 scripted 400", Text: "API Error: 400 scripted 400"}, ""},
		{"claude", "claude-interrupted-waiting", usage(0, 0, 0, "0"), adapter.End{Failure: "it ended without saying how"}, ""},
		{"claude", "claude-2.1.330", usage(2, 3600, 240, "0.0144"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "Read Edit"},
		{"claude", "claude-2.1.330-nested-subagent", usage(8, 9672, 2, "0.029046"), adapter.End{Failure: "it ended without saying how"}, "Agent Agent"},
		{"opencode", "opencode-1.18.33", usage(2, 3600, 300, "0.0072"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "read edit"},
		{"pi", "pi-0.73.1", usage(2, 3600, 300, "0.0072"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "read edit"},
		{"qwen", "qwen-0.24.4", usage(2, 3600, 300, "0"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "read_file edit"},
		{"codex", "codex-0.169.0", usage(2, 3600, 240, "0"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "command_execution file_change"},
		{"gemini", "gemini-0.61.0", usage(2, 3600, 240, "0"), adapter.End{Text: "raise the number by one\n\nThat should do."}, "read_file replace"},
		{"codex", "codex-exec", usage(2, 3600, 240, "0"), adapter.End{Text: "Changed hello to goodbye in hello.txt."}, "command_execution file_change"},
		{"gemini", "gemini-stream", usage(2, 3600, 240, "0"), adapter.End{Text: "Changed hello to goodbye in hello.txt."}, "read_file replace"},
	} {
		t.Run(c.file, func(t *testing.T) {
			text := recorded(t, c.file)
			s := open(t, c.use)
			events := append(s.Feed(text), s.Close()...)
			require.Equal(t, c.usage, s.Usage())
			require.Equal(t, c.end, s.End())
			require.Equal(t, c.tools, strings.Join(tools(events), " "))
			require.Equal(t, c.end.Failure != "it ended without saying how", slices.ContainsFunc(events, is(adapter.Ended)))
			if c.file != "claude-max-turns" {
				require.Equal(t, adapter.Started, events[0].Kind)
				session, _, _ := s.Session()
				require.NotEmpty(t, session)
			}
			// The events are the same however the bytes are split, and the usage never falls.
			for _, n := range []int{1, 7, 4096} {
				again := open(t, c.use)
				var pieces []adapter.Event
				for chunk := range slices.Chunk(text, n) {
					pieces = append(pieces, again.Feed(chunk)...)
				}
				require.Equal(t, events, append(pieces, again.Close()...))
			}
			var last int64
			for _, e := range events {
				if e.Kind == adapter.Usage {
					require.GreaterOrEqual(t, e.Usage.InputTokens, last)
					last = e.Usage.InputTokens
				}
			}
		})
	}
}

func is(kind adapter.Kind) func(adapter.Event) bool {
	return func(e adapter.Event) bool { return e.Kind == kind }
}

func tools(events []adapter.Event) (names []string) {
	for _, e := range events {
		if e.Kind == adapter.ToolCall {
			names = append(names, e.Tool)
		}
	}
	return names
}

// TestClaudeIsKnownWhileItWorks: live budgets depend on this. Before the result, tool calls, tokens and cost must be
// what the result will say.
func TestClaudeIsKnownWhileItWorks(t *testing.T) {
	lines := strings.SplitAfter(string(recorded(t, "claude-partial")), "\n")
	s := open(t, "claude")
	for _, l := range lines {
		if strings.Contains(l, `"type":"result"`) {
			break
		}
		s.Feed([]byte(l))
	}
	require.Equal(t, loop.Usage{AgentCalls: 1, ToolCalls: 2, InputTokens: 3600, OutputTokens: 240, CostUSD: metric.MustDecimal("0.0144")}, s.Usage())

	s = open(t, "claude")
	s.Feed(recorded(t, "claude-interrupted"))
	require.Equal(t, int64(33600), s.Usage().InputTokens)
	require.Equal(t, "0.1344", s.Usage().CostUSD.String())
	require.Equal(t, "error_during_execution: [ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use", s.End().Failure)
}

func TestClaudeWordsForHowItEnded(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		end  adapter.End
	}{
		"a tool that was denied is no failure": {`{"type":"result","subtype":"success","result":"x","permission_denials":[{"tool_name":"Bash"},{"tool_name":"Bash"}],"terminal_reason":"completed"}`, adapter.End{Denied: []string{"Bash"}, Text: "x"}},
		"a hook that stopped it":               {`{"type":"result","subtype":"success","result":"x","terminal_reason":"hook_stopped"}`, adapter.End{Failure: "it ended with hook_stopped", Text: "x"}},
		"success that is an error":             {`{"type":"result","subtype":"success","is_error":true,"result":"Request timed out"}`, adapter.End{Failure: "Request timed out", Text: "Request timed out", Refusal: &result.Refusal{Class: result.ProviderDown, Said: "Request timed out"}}},
		"an error without words":               {`{"type":"result","subtype":"success","is_error":true}`, adapter.End{Failure: "an error without a message"}},
		"an error as Qwen Code has it":         {`{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: 401 invalid x-api-key]"}}`, adapter.End{Failure: "error_during_execution: [API Error: 401 invalid x-api-key]", Refusal: &result.Refusal{Class: result.AuthMissing, Said: "error_during_execution: [API Error: 401 invalid x-api-key]"}}},
		"a cost that is no number":             {`{"type":"result","subtype":"success","result":"x","total_cost_usd":""}`, adapter.End{Text: "x"}},
		"words of another type":                {`{"type":"result","subtype":"success","result":{"a":1},"usage":"x","permission_denials":7}`, adapter.End{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "claude")
			s.Feed([]byte(c.line))
			s.Close()
			require.Equal(t, c.end, s.End())
		})
	}
}

func TestOtherProgramsThatFail(t *testing.T) {
	for name, c := range map[string]struct{ use, text, failure string }{
		"codex, a turn that failed":       {"codex", `{"type":"error","message":"first"}` + "\n" + `{"type":"turn.failed","error":{"message":"401 Unauthorized"}}`, "401 Unauthorized"},
		"codex, cut off":                  {"codex", `{"type":"turn.started"}`, "it ended without saying how"},
		"gemini, an error in the result":  {"gemini", `{"type":"result","status":"error","error":{"message":"no stream"}}`, "no stream"},
		"gemini, an error before success": {"gemini", `{"type":"result","status":"success","error":{"message":"cut"}}`, "cut"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.use)
			s.Feed([]byte(c.text + "\n"))
			require.Equal(t, c.failure, s.End().Failure)
		})
	}
}

func TestStreamsTakeAnything(t *testing.T) {
	s := open(t, "claude")
	garbage := "not JSON\n\n{\"type\":\"nobody-knows\"}\n{broken\n[1,2]\nnull\n\xff\xfe\n[pawl: 12 bytes left out here]\n{\"type\":[1]}\n"
	require.Empty(t, s.Feed([]byte(garbage)))
	require.Empty(t, s.Feed([]byte("{\"type\":\"user\",\"message\":\""+strings.Repeat("x", 5<<20))))
	require.Empty(t, s.Feed([]byte("\"}\n")))
	text := recorded(t, "claude-stream")
	require.NotEmpty(t, s.Feed(text), "what follows is read again")
	require.Equal(t, int64(3600), s.Usage().InputTokens)
	s.Feed([]byte(`{"type":"assistant","message":{"id":"m9","usage":{"input_tokens":-5,"output_tokens":9223372036854775807}}}` + "\n"))
	require.Positive(t, s.Usage().OutputTokens)
	require.LessOrEqual(t, s.Usage().OutputTokens, int64(1e12), "numbers that nobody can have spent are capped")
}

func TestAToolCallCountsOnce(t *testing.T) {
	s := open(t, "claude")
	s.Feed([]byte(`{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"Bash"}}}
{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash"},{"type":"tool_use","id":"b","name":"Read"},{"type":"server_tool_use","id":"c","name":"web_search"}]}}
{"type":"assistant","parent_tool_use_id":"b","message":{"id":"sub","content":[{"type":"tool_use","id":"d","name":"Grep"},{"type":"text","text":"of an agent's agent"}],"usage":{"input_tokens":10}}}
`))
	require.Equal(t, int64(4), s.Usage().ToolCalls)
	require.Equal(t, int64(10), s.Usage().InputTokens)
	require.Empty(t, s.End().Text)
}

func TestA2_OverABudgetIsMoreThanUsedUp(t *testing.T) {
	left := map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(3), loop.Tokens: loop.Count(100), loop.CostUSD: metric.MustDecimal("0.05")}
	for name, c := range map[string]struct {
		u    loop.Usage
		over loop.Resource
	}{
		"nothing":          {loop.Usage{}, ""},
		"all of it":        {loop.Usage{ToolCalls: 3, InputTokens: 60, OutputTokens: 40, CostUSD: metric.MustDecimal("0.05")}, ""},
		"one call more":    {loop.Usage{ToolCalls: 4}, loop.ToolCalls},
		"one token more":   {loop.Usage{InputTokens: 60, OutputTokens: 41}, loop.Tokens},
		"a little dearer":  {loop.Usage{CostUSD: metric.MustDecimal("0.0500001")}, loop.CostUSD},
		"not what is free": {loop.Usage{ActiveMs: 1e9, AgentCalls: 9}, ""},
	} {
		require.Equal(t, c.over, adapter.Over(left, c.u), name)
	}
	require.Empty(t, adapter.Over(nil, loop.Usage{ToolCalls: 1e9}))
}

func TestEveryAgentOfTheSpecHasAnAdapter(t *testing.T) {
	for _, use := range agents.Uses() {
		a, ok := adapter.Lookup(use)
		require.True(t, ok, use)
		require.Equal(t, a.Name != spec.UseCommand, a.Streams())
		require.Equal(t, a.Streams(), a.Stream() != nil)
	}
	_, ok := adapter.Lookup("nobody")
	require.False(t, ok)
}

func TestHowAgentsAreCalled(t *testing.T) {
	argv := func(c adapter.Call) string {
		a, ok := adapter.Lookup(c.Agent.Use)
		require.True(t, ok)
		return strings.Join(a.Argv(c), " ")
	}
	const streamed = "--setting-sources  --strict-mcp-config --output-format stream-json --verbose --include-partial-messages"
	for name, c := range map[string]struct {
		call adapter.Call
		want string
	}{
		"a command is its own":                                    {adapter.Call{Agent: spec.Agent{Use: "command", Command: spec.Argv{Shell: "./a.sh"}}}, "sh -c ./a.sh"},
		"with arguments behind it":                                {adapter.Call{Agent: spec.Agent{Use: "command", Command: spec.Argv{List: []string{"a", "b"}}, Args: []string{"c"}}}, "a b c"},
		"or as $1 of the shell":                                   {adapter.Call{Agent: spec.Agent{Use: "command", Command: spec.Argv{Shell: "./a.sh $1"}, Args: []string{"c"}}}, "sh -c ./a.sh $1 agent c"},
		"claude with every tool":                                  {adapter.Call{Agent: spec.Agent{Use: "claude"}, MayEdit: true, Tools: []string{"*"}}, "claude -p --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch --disallowedTools Agent,Task,Workflow,ScheduleWakeup,CronCreate " + streamed},
		"claude with agents of its own, which the contract names": {adapter.Call{Agent: spec.Agent{Use: "claude"}, MayEdit: true, Tools: []string{"*", "Task"}}, "claude -p --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch --disallowedTools Workflow,ScheduleWakeup,CronCreate " + streamed},
		"opencode":                       {adapter.Call{Agent: spec.Agent{Use: "opencode", Model: "p/m"}, MayEdit: true, Tools: []string{"*"}}, "opencode run -m p/m --pure --format json"},
		"opencode that may only look":    {adapter.Call{Agent: spec.Agent{Use: "opencode"}, Tools: []string{"*"}}, "opencode run --agent plan --pure --format json"},
		"pi":                             {adapter.Call{Agent: spec.Agent{Use: "pi", Model: "p/m/1"}, MayEdit: true, Tools: []string{"*"}}, "pi -p --mode json --provider p --model m/1 --no-session -ne -ns -np"},
		"pi with some tools":             {adapter.Call{Agent: spec.Agent{Use: "pi", Model: "m"}, MayEdit: true, Tools: []string{"read", "edit"}}, "pi -p --mode json --model m --tools read,grep,find,ls,edit,write --no-session -ne -ns -np"},
		"pi that may only look":          {adapter.Call{Agent: spec.Agent{Use: "pi"}, Tools: []string{"*"}}, "pi -p --mode json --tools read,grep,find,ls --no-session -ne -ns -np"},
		"qwen":                           {adapter.Call{Agent: spec.Agent{Use: "qwen", Args: []string{"--auth-type", "openai"}}, MayEdit: true, Tools: []string{"*"}}, "qwen --auth-type openai --exclude-tools agent,workflow,create_sub_session,team_create,send_message,loop_wakeup,cron_create --safe-mode --approval-mode yolo --output-format stream-json"},
		"qwen that may only look":        {adapter.Call{Agent: spec.Agent{Use: "qwen"}, Tools: []string{"*"}}, "qwen --exclude-tools edit,write_file,notebook_edit,run_shell_command,exec,monitor,agent,workflow,create_sub_session,team_create,send_message,loop_wakeup,cron_create --safe-mode --approval-mode plan --output-format stream-json"},
		"claude with some tools":         {adapter.Call{Agent: spec.Agent{Use: "claude", Model: "m", Args: []string{"--effort", "low"}}, MayEdit: true, Tools: []string{"Read", "Bash(go test:*)", "Bash(ls)"}, Session: "s"}, "claude -p --model m --permission-mode default --allowedTools Read,Bash(go test:*),Bash(ls) --effort low --tools Read,Bash --disallowedTools mcp__* --session-id s " + streamed},
		"claude that may only look":      {adapter.Call{Agent: spec.Agent{Use: "claude", Args: []string{"--tools", "Bash"}}, Tools: []string{"*"}}, "claude -p --tools Bash --permission-mode default --tools Read,Glob,Grep,LS,WebFetch,WebSearch,TodoWrite --allowedTools Read,Glob,Grep,LS,WebFetch,WebSearch,TodoWrite --disallowedTools mcp__* " + streamed},
		"and only with what is given":    {adapter.Call{Agent: spec.Agent{Use: "claude"}, Tools: []string{"Read", "Bash", "Edit"}}, "claude -p --permission-mode default --tools Read --allowedTools Read --disallowedTools mcp__* " + streamed},
		"claude told what is left":       {adapter.Call{Agent: spec.Agent{Use: "claude", Command: spec.Argv{List: []string{"/opt/claude"}}}, MayEdit: true, Tools: []string{"*"}, Budget: map[loop.Resource]metric.Decimal{loop.CostUSD: metric.MustDecimal("0.5")}}, "/opt/claude -p --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch --disallowedTools Agent,Task,Workflow,ScheduleWakeup,CronCreate --max-budget-usd 0.5 " + streamed},
		"codex":                          {adapter.Call{Agent: spec.Agent{Use: "codex", Model: "m", Args: []string{"-c", "a=1"}}, MayEdit: true, Tools: []string{"*"}}, "codex exec -m m -c a=1 -c features.multi_agent=false --json --sandbox workspace-write --ephemeral --ignore-user-config --ignore-rules -"},
		"codex that may only look":       {adapter.Call{Agent: spec.Agent{Use: "codex"}, Tools: []string{"*"}}, "codex exec -c features.multi_agent=false --json --sandbox read-only --ephemeral --ignore-user-config --ignore-rules -"},
		"gemini":                         {adapter.Call{Agent: spec.Agent{Use: "gemini", Model: "m"}, MayEdit: true, Tools: []string{"*"}, Dir: "/x"}, "gemini -m m --skip-trust --policy /x/tools.toml --approval-mode yolo --output-format stream-json"},
		"gemini that may only look":      {adapter.Call{Agent: spec.Agent{Use: "gemini"}, Tools: []string{"*"}, Dir: "/x"}, "gemini --skip-trust --policy /x/tools.toml --approval-mode default --output-format stream-json"},
		"claude with classes of tools":   {adapter.Call{Agent: spec.Agent{Use: "claude"}, MayEdit: true, Tools: []string{"read", "edit", "shell(go test *)"}}, "claude -p --permission-mode default --allowedTools Read,Glob,Grep,LS,TodoWrite,Edit,Write,NotebookEdit,Bash(go test:*) --tools Read,Glob,Grep,LS,TodoWrite,Edit,Write,NotebookEdit,Bash --disallowedTools mcp__* " + streamed},
		"claude with servers":            {adapter.Call{Agent: spec.Agent{Use: "claude", Args: []string{"--mcp-config", `{"mcpServers":{"b":{}}}`, `{"mcpServers":{"a":{}}}`}}, MayEdit: true, Tools: []string{"Read", "mcp"}}, `claude -p --permission-mode default --allowedTools Read,mcp__a,mcp__b --mcp-config {"mcpServers":{"b":{}}} {"mcpServers":{"a":{}}} --tools Read ` + streamed},
		"claude without servers":         {adapter.Call{Agent: spec.Agent{Use: "claude"}, MayEdit: true, Tools: []string{"Read", "mcp"}}, "claude -p --permission-mode default --allowedTools Read --tools Read --disallowedTools mcp__* " + streamed},
		"claude with every class":        {adapter.Call{Agent: spec.Agent{Use: "claude"}, MayEdit: true, Tools: []string{"*", "subagents"}}, "claude -p --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch " + streamed},
		"codex that has no tool to edit": {adapter.Call{Agent: spec.Agent{Use: "codex"}, MayEdit: true, Tools: []string{"read", "shell"}}, `codex exec -c web_search="disabled" -c sandbox_workspace_write.network_access=false -c features.multi_agent=false --json --sandbox read-only --ephemeral --ignore-user-config --ignore-rules -`},
		"codex with the network":         {adapter.Call{Agent: spec.Agent{Use: "codex"}, MayEdit: true, Tools: []string{"read", "shell", "edit", "network", "subagents"}}, `codex exec -c sandbox_workspace_write.network_access=true --json --sandbox workspace-write --ephemeral --ignore-user-config --ignore-rules -`},
		"qwen with classes of tools":     {adapter.Call{Agent: spec.Agent{Use: "qwen"}, MayEdit: true, Tools: []string{"read", "edit", "subagents"}}, "qwen --exclude-tools run_shell_command,exec,monitor,web_fetch,web_search --safe-mode --approval-mode yolo --output-format stream-json"},
	} {
		require.Equal(t, c.want, argv(c.call), name)
	}
}

// TestA1_WhatIsNotApprovedIsDeniedByTheProgramsOwnRules checks the rules that programs get besides their arguments.
func TestA1_WhatIsNotApprovedIsDeniedByTheProgramsOwnRules(t *testing.T) {
	rules := func(use string, edits bool, tools ...string) string {
		a, ok := adapter.Lookup(use)
		require.True(t, ok)
		c := adapter.Call{Agent: spec.Agent{Use: use}, MayEdit: edits, Tools: tools}
		return strings.Join(a.Env(c), "\n") + strings.Join(slices.Collect(maps.Values(a.Files(c))), "\n")
	}
	deny := func(names string) string {
		return "[[rule]]\ntoolName = [" + names + "]\ndecision = \"deny\"\npriority = 999\n\n"
	}
	require.Equal(t, `OPENCODE_PERMISSION={"task":"deny"}`, rules("opencode", true, "*"))
	require.Equal(t, `OPENCODE_PERMISSION={"bash":"deny","edit":"deny","task":"deny"}`, rules("opencode", false, "*"))
	require.Equal(t, `OPENCODE_PERMISSION={"bash":{"*":"deny","go test":"allow","go test *":"allow"},"task":"deny","webfetch":"deny","websearch":"deny"}`, rules("opencode", true, "read", "edit", "shell(go test *)"))
	require.Equal(t, `OPENCODE_PERMISSION={"bash":"deny","edit":"deny","task":"deny","webfetch":"deny","websearch":"deny"}`, rules("opencode", false, "read", "edit", "shell(go test *)"))
	require.Equal(t, deny(`"invoke_agent"`), rules("gemini", true, "*"))
	require.Equal(t, deny(`"replace", "write_file", "web_fetch", "google_web_search", "invoke_agent"`)+`[[rule]]
toolName = ["run_shell_command", "list_background_processes", "read_background_output"]
decision = "allow"
priority = 999
commandPrefix = "go test"

[[rule]]
toolName = ["run_shell_command", "list_background_processes", "read_background_output"]
decision = "deny"
priority = 998

`, rules("gemini", true, "read", "shell(go test *)"))
	require.Empty(t, rules("claude", true, "read"))
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"claude-partial", "codex-exec", "gemini-stream", "claude-interrupted", "claude-2.1.330-nested-subagent", "opencode-1.18.33", "pi-0.73.1", "qwen-0.24.4"} {
		f.Add(recorded(f, name), 3)
	}
	f.Add([]byte(`{"type":"result","total_cost_usd":1e400,"modelUsage":{"m":{"inputTokens":-9}}}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		for _, use := range agents.Uses() {
			a, ok := adapter.Lookup(use)
			require.True(t, ok, use)
			if !a.Streams() {
				continue
			}
			whole, pieces := a.Stream(), a.Stream()
			events := append(whole.Feed(text), whole.Close()...)
			var again []adapter.Event
			for chunk := range slices.Chunk(text, max(1, n%1000)) {
				again = append(again, pieces.Feed(chunk)...)
			}
			require.Equal(t, events, append(again, pieces.Close()...))
			u := whole.Usage()
			require.True(t, u.ToolCalls >= 0 && u.InputTokens >= 0 && u.OutputTokens >= 0 && u.CostUSD.Sign() >= 0)
			require.True(t, u.InputTokens <= 1e12 && u.OutputTokens <= 1e12)
			for _, e := range events {
				require.LessOrEqual(t, len(e.Text), 16<<10)
			}
		}
	})
}

// TestEveryAgentHasARecordedStream requires a recording of a real call for each program that agent.use names. The
// call must have ended well, with tool calls, tokens and a text.
func TestEveryAgentHasARecordedStream(t *testing.T) {
	for _, use := range agents.Uses() {
		a, _ := adapter.Lookup(use)
		if !a.Streams() || use == agents.ACP { // the recorded turns of ACP are in internal/agent/acp
			continue
		}
		files, err := filepath.Glob(filepath.Join("testdata", use+"-[0-9]*.jsonl"))
		require.NoError(t, err)
		well := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := a.Stream()
			s.Feed(text)
			end, u := s.End(), s.Usage()
			return s.Begun() && s.Ended() && end.Failure == "" && end.Text != "" && u.ToolCalls > 0 && u.InputTokens > 0 && u.OutputTokens > 0
		})
		require.True(t, well, "no recorded stream testdata/%s-VERSION.jsonl is that of a call that used a tool and went well", use)
	}
}
