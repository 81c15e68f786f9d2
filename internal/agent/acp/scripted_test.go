package acp

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	protocol "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

// scripted is an agent whose turn is a function. It speaks the protocol through the same library.
type scripted struct {
	protocol.Agent
	conn     *protocol.AgentSideConnection
	turn     func(ctx context.Context, a *scripted) (protocol.PromptResponse, error)
	signedIn bool // otherwise it requires a key first
	modes    []protocol.SessionModeId
	mode     protocol.SessionModeId
	model    string
	asked    string
	stop     chan struct{}
}

func (a *scripted) run(in io.Reader, out io.Writer) {
	a.stop = make(chan struct{})
	ready := make(chan struct{})
	a.conn = protocol.NewAgentSideConnection(a, out, Heard{Reader: in, From: ready})
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(ready)
	<-a.conn.Done()
}

func (a *scripted) Initialize(context.Context, protocol.InitializeRequest) (protocol.InitializeResponse, error) {
	return protocol.InitializeResponse{
		ProtocolVersion: protocol.ProtocolVersionNumber, AgentInfo: &protocol.Implementation{Name: "scripted", Version: "1"},
		AuthMethods: []protocol.AuthMethod{{Agent: &protocol.AuthMethodAgent{Id: "browser", Name: "x"}}, {Agent: &protocol.AuthMethodAgent{Id: "api-key", Name: "y"}}},
	}, nil
}

func (a *scripted) Authenticate(_ context.Context, r protocol.AuthenticateRequest) (protocol.AuthenticateResponse, error) {
	a.signedIn = r.MethodId == "api-key" && a.model != "no key"
	return protocol.AuthenticateResponse{}, nil
}

func (a *scripted) NewSession(context.Context, protocol.NewSessionRequest) (protocol.NewSessionResponse, error) {
	if !a.signedIn {
		return protocol.NewSessionResponse{}, protocol.NewAuthRequired(nil)
	}
	r := protocol.NewSessionResponse{SessionId: "s1"}
	if len(a.modes) > 0 {
		r.Modes = &protocol.SessionModeState{CurrentModeId: a.modes[0]}
		for _, m := range a.modes {
			r.Modes.AvailableModes = append(r.Modes.AvailableModes, protocol.SessionMode{Id: m, Name: string(m)})
		}
	}
	return r, nil
}

func (a *scripted) SetSessionMode(_ context.Context, r protocol.SetSessionModeRequest) (protocol.SetSessionModeResponse, error) {
	a.mode = r.ModeId
	return protocol.SetSessionModeResponse{}, nil
}

func (a *scripted) Prompt(ctx context.Context, r protocol.PromptRequest) (protocol.PromptResponse, error) {
	a.asked = r.Prompt[0].Text.Text
	return a.turn(ctx, a)
}

func (a *scripted) Cancel(context.Context, protocol.CancelNotification) error {
	close(a.stop)
	return nil
}

func (a *scripted) tell(t *testing.T, u protocol.SessionUpdate) {
	require.NoError(t, a.conn.SessionUpdate(context.Background(), protocol.SessionNotification{SessionId: "s1", Update: u}))
}

// may asks whether a tool may be used, once or for good, and returns which option was taken, "" for none.
func (a *scripted) may(t *testing.T, kind protocol.ToolKind, command string) string {
	return a.asks(t, kind, command, []protocol.PermissionOption{
		{OptionId: "always", Kind: protocol.PermissionOptionKindAllowAlways, Name: "a"}, {OptionId: "once", Kind: protocol.PermissionOptionKindAllowOnce, Name: "b"},
		{OptionId: "no", Kind: protocol.PermissionOptionKindRejectOnce, Name: "c"},
	})
}

func (a *scripted) asks(t *testing.T, kind protocol.ToolKind, command string, options []protocol.PermissionOption) string {
	id := protocol.ToolCallId(string(kind) + command)
	call := protocol.ToolCallUpdate{ToolCallId: id, Kind: &kind}
	if command != "" {
		call.RawInput = map[string]any{"command": command}
	}
	r, err := a.conn.RequestPermission(context.Background(), protocol.RequestPermissionRequest{SessionId: "s1", ToolCall: call, Options: options})
	require.NoError(t, err)
	if r.Outcome.Selected == nil {
		return ""
	}
	return string(r.Outcome.Selected.OptionId)
}

func ended(usage *protocol.Usage, why protocol.StopReason) (protocol.PromptResponse, error) {
	return protocol.PromptResponse{StopReason: why, Usage: usage}, nil
}

func TestA1_AnAgentsQuestionsAreAnsweredByTheContract(t *testing.T) {
	var said []string
	a := &scripted{signedIn: true, modes: []protocol.SessionModeId{"agent", "read-only"}, turn: func(_ context.Context, a *scripted) (protocol.PromptResponse, error) {
		for _, q := range []struct {
			kind    protocol.ToolKind
			command string
		}{
			{protocol.ToolKindRead, ""}, {protocol.ToolKindEdit, ""}, {protocol.ToolKindFetch, ""}, {protocol.ToolKindOther, ""}, {protocol.ToolKindSwitchMode, ""},
			{protocol.ToolKindExecute, "go test ./..."}, {protocol.ToolKindExecute, "go test && rm -rf ."}, {protocol.ToolKindExecute, ""},
		} {
			said = append(said, a.may(t, q.kind, q.command))
		}
		return ended(nil, protocol.StopReasonEndTurn)
	}}
	rules := Rules{agents.Approved{Classes: []agents.Class{agents.Looks, agents.Edits}, Commands: []string{"go test"}}}
	s, text := told(t, t.Context(), Options{Rules: rules, Tools: -1, Prompt: "go"}, a.run)
	require.Equal(t, []string{"once", "once", "no", "no", "no", "once", "no", "no"}, said, text)
	require.Equal(t, []string{"fetch", "other", "switch_mode", "execute"}, s.End().Denied)
	require.Equal(t, "go", a.asked)
	require.Equal(t, protocol.SessionModeId("read-only"), a.mode, "the one in which it asks")
	require.Equal(t, int64(8), s.Usage().ToolCalls, "what it only asked for is a call, too")
	require.Equal(t, 5, strings.Count(text, `"tool_ended"`), "a call that is denied is over")
}

// An agent that is allowed one command for good would not ask about the next.
func TestA1_NothingIsAllowedForGoodThatTheContractApprovesInPart(t *testing.T) {
	var said []string
	a := &scripted{signedIn: true, modes: []protocol.SessionModeId{"agent"}, turn: func(_ context.Context, a *scripted) (protocol.PromptResponse, error) {
		for kind, command := range map[protocol.ToolKind]string{protocol.ToolKindEdit: "", protocol.ToolKindExecute: "go test ./..."} {
			said = append(said, string(kind)+" "+a.asks(t, kind, command, []protocol.PermissionOption{
				{OptionId: "always", Kind: protocol.PermissionOptionKindAllowAlways, Name: "a"}, {OptionId: "no", Kind: protocol.PermissionOptionKindRejectOnce, Name: "c"},
			}))
		}
		return ended(nil, protocol.StopReasonEndTurn)
	}}
	rules := Rules{agents.Approved{Classes: []agents.Class{agents.Edits}, Commands: []string{"go test"}}}
	s, text := told(t, t.Context(), Options{Rules: rules, Tools: -1, Prompt: "go"}, a.run)
	require.ElementsMatch(t, []string{"edit always", "execute no"}, said, text)
	require.Equal(t, []string{"execute"}, s.End().Denied)
}

func TestA2_ATurnThatIsOverItsBudgetIsCancelledAndItsUsageKept(t *testing.T) {
	cost := metric.MustDecimal("0.5")
	for name, c := range map[string]struct {
		options Options
		deed    func(a *scripted)
		want    loop.Resource
		calls   int64
	}{
		"tool calls": {Options{Tools: 2}, func(a *scripted) {
			for _, id := range []protocol.ToolCallId{"a", "b", "c"} {
				a.tell(t, protocol.StartToolCall(id, "runs", protocol.WithStartKind(protocol.ToolKindExecute)))
			}
		}, loop.ToolCalls, 3},
		"what it costs": {Options{Tools: -1, Cost: &cost}, func(a *scripted) {
			a.tell(t, protocol.SessionUpdate{UsageUpdate: &protocol.SessionUsageUpdate{SessionUpdate: "usage_update", Cost: &protocol.Cost{Amount: 0.6, Currency: "USD"}}})
		}, loop.CostUSD, 0},
	} {
		a := &scripted{signedIn: true, turn: func(_ context.Context, a *scripted) (protocol.PromptResponse, error) {
			c.deed(a)
			<-a.stop
			return ended(&protocol.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 20}, protocol.StopReasonCancelled)
		}}
		c.options.Rules = everything
		s, text := told(t, t.Context(), c.options, a.run)
		require.Equal(t, c.want, s.End().Exhausted, "%s: %s", name, text)
		require.Equal(t, []int64{c.calls, 10, 10}, []int64{s.Usage().ToolCalls, s.Usage().InputTokens, s.Usage().OutputTokens}, name)
	}
}

func TestATurnThatPawlInterruptsIsCancelled(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	a := &scripted{signedIn: true, turn: func(_ context.Context, a *scripted) (protocol.PromptResponse, error) {
		interrupt()
		<-a.stop
		return ended(&protocol.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}, protocol.StopReasonCancelled)
	}}
	s, text := told(t, ctx, Options{Rules: everything, Tools: -1}, a.run)
	require.Equal(t, int64(15), s.Usage().InputTokens+s.Usage().OutputTokens, text)
	require.Equal(t, "it ended with cancelled", s.End().Failure)
}

func TestATurnThatAProviderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want result.Class
	}{
		"a status":           {&protocol.RequestError{Code: 429, Message: "quota"}, result.RateLimited},
		"a status of theirs": {&protocol.RequestError{Code: 503, Message: "no"}, result.ProviderDown},
		"in words":           {&protocol.RequestError{Code: -32603, Message: "Internal error", Data: map[string]any{"codexErrorInfo": "usageLimitExceeded"}}, result.RateLimited},
		"its sign-in":        {protocol.NewAuthRequired(nil), result.AuthMissing},
		"something else":     {&protocol.RequestError{Code: -32602, Message: "no such model"}, ""},
	} {
		a := &scripted{signedIn: true, turn: func(context.Context, *scripted) (protocol.PromptResponse, error) {
			return protocol.PromptResponse{}, c.err
		}}
		s, text := told(t, t.Context(), Options{Rules: everything, Tools: -1}, a.run)
		require.NotEmpty(t, s.End().Failure, text)
		if c.want == "" {
			require.Nil(t, s.End().Refusal, name)
		} else {
			require.NotNil(t, s.End().Refusal, "%s: %s", name, text)
			require.Equal(t, c.want, s.End().Refusal.Class, name)
		}
	}
}

func TestAnAgentThatIsNotSignedInIsGivenItsKeyOnce(t *testing.T) {
	works := func(context.Context, *scripted) (protocol.PromptResponse, error) {
		return ended(nil, protocol.StopReasonEndTurn)
	}
	s, text := told(t, t.Context(), Options{Rules: everything, Tools: -1}, (&scripted{turn: works}).run)
	require.Empty(t, s.End().Failure, text)
	s, text = told(t, t.Context(), Options{Rules: everything, Tools: -1}, (&scripted{turn: works, model: "no key"}).run)
	require.NotNil(t, s.End().Refusal, text)
	require.Equal(t, result.AuthMissing, s.End().Refusal.Class)
}

func TestATurnThatEndsOtherwise(t *testing.T) {
	for _, why := range []protocol.StopReason{protocol.StopReasonMaxTokens, protocol.StopReasonRefusal, protocol.StopReasonMaxTurnRequests} {
		a := &scripted{signedIn: true, turn: func(context.Context, *scripted) (protocol.PromptResponse, error) { return ended(nil, why) }}
		s, _ := told(t, t.Context(), Options{Rules: everything, Tools: -1}, a.run)
		require.Equal(t, "it ended with "+string(why), s.End().Failure)
	}
	s, text := told(t, t.Context(), Options{Rules: everything, Tools: -1}, func(io.Reader, io.Writer) {}) // it ends at once
	require.NotEmpty(t, s.End().Failure, text)
	require.False(t, s.Begun())
}

func TestTheArgumentsOfTheClient(t *testing.T) {
	a, _ := adapter.Lookup(agents.ACP)
	argv := a.Argv(call())
	require.Equal(t, []string{"/bin/pawl", adapter.ACPCommand}, argv[:2])
	o, err := read(argv[2:])
	require.NoError(t, err)
	require.Equal(t, agents.Approved{Classes: []agents.Class{agents.Looks, agents.Edits}, Commands: []string{"go test"}}, o.Approved)
	require.Equal(t, []string{"gemini", "--acp", "--debug"}, o.Argv)
	require.Equal(t, "m", o.Model)
	require.Equal(t, int64(7), o.Tools)
	require.Equal(t, "0.25", o.Cost.String())
	_, err = read([]string{"--approve", "read"})
	require.ErrorContains(t, err, "needs the command of an agent")
}

func call() adapter.Call {
	return adapter.Call{
		Agent: spec.Agent{Use: agents.ACP, Model: "m", Command: spec.Argv{List: []string{"gemini", "--acp"}}, Args: []string{"--debug"}},
		Tools: []string{"read", "edit", "shell(go test *)"}, MayEdit: true, Self: "/bin/pawl",
		Budget: map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(7), loop.CostUSD: metric.MustDecimal("0.25")},
	}
}

func TestTheModeIsOneInWhichTheAgentAsksPawl(t *testing.T) {
	works := func(context.Context, *scripted) (protocol.PromptResponse, error) {
		return ended(nil, protocol.StopReasonEndTurn)
	}
	codex := []protocol.SessionModeId{"agent", "agent-full-access", "read-only", "workspace-write"}
	for _, c := range []struct {
		modes []protocol.SessionModeId
		rules Rules
		want  protocol.SessionModeId
	}{
		{codex, everything, "workspace-write"},
		{codex, Rules{}, "read-only"},
		{[]protocol.SessionModeId{"auto", "plan", "default", "yolo"}, everything, "default"},
		{[]protocol.SessionModeId{"default", "yolo"}, Rules{}, ""},
		{[]protocol.SessionModeId{"other"}, Rules{}, ""},
	} {
		a := &scripted{signedIn: true, turn: works, modes: c.modes}
		told(t, t.Context(), Options{Rules: c.rules, Tools: -1}, a.run)
		require.Equal(t, c.want, a.mode, c.modes)
	}
}
