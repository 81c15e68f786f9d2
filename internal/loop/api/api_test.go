package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/constants"
)

func TestAnOutcomeSaysHowItsStepEnded(t *testing.T) {
	for _, c := range []struct {
		out  api.Outcome
		want string
	}{
		{api.Outcome{}, "ok"},
		{api.Outcome{ExitCode: 3}, "exit 3"},
		{api.Outcome{Signal: "SIGSEGV"}, "was ended by SIGSEGV"},
		{api.Outcome{Failure: "the agent says so", ExitCode: 1}, "the agent says so"},
		{api.Outcome{TimedOut: true, ElapsedMs: 1500, Signal: "SIGKILL"}, "took too long and was ended after 1.5s"},
		{api.Outcome{Interrupted: true, TimedOut: true}, "interrupted"},
		{api.Outcome{Exhausted: loop.CostUSD, Interrupted: true}, "ended because the budget costUSD is used up"},
		{api.Outcome{StartError: "no such file", ExitCode: 127}, "can't be started: no such file"},
	} {
		require.Equal(t, c.want, c.out.Ending())
		require.Equal(t, c.want == "ok", c.out.OK(), c.want)
	}
}

func TestAnInterruptedCallKeepsOnlyWhatItSpent(t *testing.T) {
	c := api.Called{Outcome: api.Outcome{ExitCode: 1, Log: "x"}, Idea: "an idea", Description: "done"}
	c.Cut(loop.Usage{ActiveMs: 700, ToolCalls: 2})
	require.Equal(t, api.Called{Outcome: api.Outcome{Interrupted: true, ElapsedMs: 700}, Usage: loop.Usage{ActiveMs: 700, ToolCalls: 2}}, c)
}

func TestEventsAreFilledInWithWhatOnlyTheActivityKnows(t *testing.T) {
	proposal := &loop.Proposal{Hash: "h"}
	out := api.Appended{Head: "c0ffee", Proposal: proposal}
	for _, kind := range constants.Of[loop.Type](t, "internal/loop/event.go", "Type") {
		filled := api.Fill(loop.Event{Type: kind.Value, Head: "before"}, out)
		switch kind.Value {
		case loop.ChangeReverted, loop.BranchBegun, loop.BranchGivenUp:
			require.Equal(t, "c0ffee", filled.Head, kind.Value)
			require.True(t, api.Reverts(kind.Value), kind.Value)
		case loop.ProposalMade:
			require.Same(t, proposal, filled.Proposal)
		default:
			require.Equal(t, loop.Event{Type: kind.Value, Head: "before"}, filled, kind.Value)
			require.False(t, api.Reverts(kind.Value), kind.Value)
		}
	}
}

func TestATranscriptIsFoundByItsRecordedName(t *testing.T) {
	file, digest, ok := api.TranscriptIn(api.Transcript("/logs/3.1/modify", "cafe"))
	require.True(t, ok)
	require.Equal(t, []string{"/logs/3.1/modify/transcript.txt", "cafe"}, []string{file, digest})
	for _, other := range []string{"/logs/3.1/modify@sha256:cafe", "/logs/transcript.txt", ""} {
		_, _, ok := api.TranscriptIn(other)
		require.False(t, ok, other)
	}
}

func TestAViolationSaysWhere(t *testing.T) {
	for want, v := range map[string]api.Violation{
		"secrets: src/a.go:12, a token":      {Rule: "secrets", Path: "src/a.go", Line: 12, Detail: "a token"},
		"maxFiles: the change, 9 files":      {Rule: "maxFiles", Detail: "9 files"},
		"binary: logo.png, a binary file":    {Rule: "binary", Path: "logo.png", Detail: "a binary file"},
		"maxLines: the change, 3 lines more": {Rule: "maxLines", Line: 4, Detail: "3 lines more"},
	} {
		require.Equal(t, want, v.String())
	}
}

func TestAGuardIsBlindOnlyWhereThereWasCodeToBreak(t *testing.T) {
	for want, all := range map[bool][]api.Canaried{
		true:  {{Files: 2}, {Files: 1, Hollow: true}},
		false: {{}, {Files: 2, Seen: true}, {Files: 2, Outcome: api.Outcome{Interrupted: true}}},
	} {
		for _, c := range all {
			require.Equal(t, want, c.Blind(), "%+v", c)
		}
	}
}

func TestAChildIsAStewardsByNameAndPlan(t *testing.T) {
	child := func(steward, approved string) stewardapi.ChildRead {
		return stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Result: &task.ChildResult{Steward: steward, Approved: approved}}}
	}
	require.True(t, child("shop", "plan cafe, approved by ann").Of("shop", "cafe"))
	require.True(t, child("shop", "").Of("shop", "cafe"), "nobody said which plan")
	require.False(t, child("shop", "plan beef").Of("shop", "cafe"))
	require.False(t, child("other", "plan cafe").Of("shop", "cafe"))
	require.False(t, stewardapi.ChildRead{Found: true}.Of("shop", "cafe"), "it has not said whose it is")
}

// The table of attributes is complete: a step runs under a limit, a running loop goes before a new one, and agents
// are last.
func TestEnvelopesKnowEveryStep(t *testing.T) {
	for _, name := range []string{api.CallName, api.CheckName, api.VerifyName, api.GuardName, api.TestName, api.CanaryName} {
		require.True(t, api.Of(name).Step, name)
	}
	for _, name := range []string{api.CommitName, api.TakeName, api.SettleName, api.RecordName, api.ProposeName, api.CloseName} {
		require.False(t, api.Of(name).Step, name)
		require.Less(t, api.Of(name).Urgency, api.Of(api.VerifyName).Urgency, name)
	}
	require.Equal(t, api.Of(api.CallName).Urgency, api.Of(api.OpenName).Urgency)
	require.Zero(t, api.Of("unknown"))
	require.Equal(t, "pawl@h1/agents", api.AgentQueue("h1"))
}
