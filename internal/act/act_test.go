package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/task"
	"pawl/test/constants"
)

func TestAnOutcomeSaysHowItsStepEnded(t *testing.T) {
	for _, c := range []struct {
		out  act.Outcome
		want string
	}{
		{act.Outcome{}, "ok"},
		{act.Outcome{ExitCode: 3}, "exit 3"},
		{act.Outcome{Signal: "SIGSEGV"}, "was ended by SIGSEGV"},
		{act.Outcome{Failure: "the agent says so", ExitCode: 1}, "the agent says so"},
		{act.Outcome{TimedOut: true, ElapsedMs: 1500, Signal: "SIGKILL"}, "took too long and was ended after 1.5s"},
		{act.Outcome{Interrupted: true, TimedOut: true}, "interrupted"},
		{act.Outcome{Exhausted: loop.CostUSD, Interrupted: true}, "ended because the budget costUSD is used up"},
		{act.Outcome{StartError: "no such file", ExitCode: 127}, "can't be started: no such file"},
	} {
		require.Equal(t, c.want, c.out.Ending())
		require.Equal(t, c.want == "ok", c.out.OK(), c.want)
	}
}

func TestAnInterruptedCallKeepsOnlyWhatItSpent(t *testing.T) {
	c := act.Called{Outcome: act.Outcome{ExitCode: 1, Log: "x"}, Idea: "an idea", Description: "done"}
	c.Cut(loop.Usage{ActiveMs: 700, ToolCalls: 2})
	require.Equal(t, act.Called{Outcome: act.Outcome{Interrupted: true, ElapsedMs: 700}, Usage: loop.Usage{ActiveMs: 700, ToolCalls: 2}}, c)
}

func TestEventsAreFilledInWithWhatOnlyTheActivityKnows(t *testing.T) {
	proposal := &loop.Proposal{Hash: "h"}
	out := act.Appended{Head: "c0ffee", Proposal: proposal}
	for _, kind := range constants.Of[loop.Type](t, "internal/loop/event.go", "Type") {
		filled := act.Fill(loop.Event{Type: kind.Value, Head: "before"}, out)
		switch kind.Value {
		case loop.ChangeReverted, loop.BranchBegun, loop.BranchGivenUp:
			require.Equal(t, "c0ffee", filled.Head, kind.Value)
			require.True(t, act.Reverts(kind.Value), kind.Value)
		case loop.ProposalMade:
			require.Same(t, proposal, filled.Proposal)
		default:
			require.Equal(t, loop.Event{Type: kind.Value, Head: "before"}, filled, kind.Value)
			require.False(t, act.Reverts(kind.Value), kind.Value)
		}
	}
}

func TestATranscriptIsFoundByItsRecordedName(t *testing.T) {
	file, digest, ok := act.TranscriptIn(act.Transcript("/logs/3.1/modify", "cafe"))
	require.True(t, ok)
	require.Equal(t, []string{"/logs/3.1/modify/transcript.txt", "cafe"}, []string{file, digest})
	for _, other := range []string{"/logs/3.1/modify@sha256:cafe", "/logs/transcript.txt", ""} {
		_, _, ok := act.TranscriptIn(other)
		require.False(t, ok, other)
	}
}

func TestAViolationSaysWhere(t *testing.T) {
	for want, v := range map[string]act.Violation{
		"secrets: src/a.go:12, a token":      {Rule: "secrets", Path: "src/a.go", Line: 12, Detail: "a token"},
		"maxFiles: the change, 9 files":      {Rule: "maxFiles", Detail: "9 files"},
		"binary: logo.png, a binary file":    {Rule: "binary", Path: "logo.png", Detail: "a binary file"},
		"maxLines: the change, 3 lines more": {Rule: "maxLines", Line: 4, Detail: "3 lines more"},
	} {
		require.Equal(t, want, v.String())
	}
}

func TestAGuardIsBlindOnlyWhereThereWasCodeToBreak(t *testing.T) {
	for want, all := range map[bool][]act.Canaried{
		true:  {{Files: 2}, {Files: 1, Hollow: true}},
		false: {{}, {Files: 2, Seen: true}, {Files: 2, Outcome: act.Outcome{Interrupted: true}}},
	} {
		for _, c := range all {
			require.Equal(t, want, c.Blind(), "%+v", c)
		}
	}
}

func TestAChildIsAStewardsByNameAndPlan(t *testing.T) {
	child := func(steward, approved string) act.ChildRead {
		return act.ChildRead{Found: true, Event: task.ChildEvent{Result: &task.ChildResult{Steward: steward, Approved: approved}}}
	}
	require.True(t, child("shop", "plan cafe, approved by ann").Of("shop", "cafe"))
	require.True(t, child("shop", "").Of("shop", "cafe"), "nobody said which plan")
	require.False(t, child("shop", "plan beef").Of("shop", "cafe"))
	require.False(t, child("other", "plan cafe").Of("shop", "cafe"))
	require.False(t, act.ChildRead{Found: true}.Of("shop", "cafe"), "it has not said whose it is")
}

// The table of attributes is complete: a step runs under a limit, a running loop goes before a new one, and agents
// are last.
func TestEnvelopesKnowEveryStep(t *testing.T) {
	for _, name := range []string{act.CallName, act.CheckName, act.VerifyName, act.GuardName, act.TestName, act.CanaryName} {
		require.True(t, act.Of(name).Step, name)
	}
	for _, name := range []string{act.CommitName, act.TakeName, act.SettleName, act.RecordName, act.ProposeName, act.CloseName} {
		require.False(t, act.Of(name).Step, name)
		require.Less(t, act.Of(name).Urgency, act.Of(act.VerifyName).Urgency, name)
	}
	require.Equal(t, act.Of(act.CallName).Urgency, act.Of(act.OpenName).Urgency)
	require.Zero(t, act.Of("unknown"))
	require.Equal(t, "pawl@h1/agents", act.AgentQueue("h1"))
}
