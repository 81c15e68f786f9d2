package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/task"
)

func TestA6_APauseBeginsWhereItWasAskedForOrSooner(t *testing.T) {
	at := []string{loop.PauseNow, loop.PauseStep, loop.PauseIteration}
	for i, asked := range at {
		for j, place := range at {
			s := loop.State{PauseRequested: true, PauseAt: asked}
			require.Equal(t, i <= j, rules.PauseDue(s, place), "asked for at %q, at %q", asked, place)
		}
		require.False(t, rules.PauseDue(loop.State{PauseAt: asked}, loop.PauseIteration), "nobody asked")
	}
}

func TestA6_OfTwoPausesTheSoonerOneCounts(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"", "", ""}, {"", "step", ""}, {"", "iteration", ""},
		{"step", "", ""}, {"step", "step", "step"}, {"step", "iteration", "step"},
		{"iteration", "", ""}, {"iteration", "step", "step"}, {"iteration", "iteration", "iteration"},
	} {
		s := loop.State{Status: loop.Running}
		for _, choice := range []string{c.first, c.second} {
			reply, err := rules.Answer(s, valid, loop.MessagePause, loop.Message{Choice: choice, By: "by " + choice})
			require.NoError(t, err)
			s = loop.Fold(s, reply.Events)
		}
		require.True(t, s.PauseRequested)
		require.Equal(t, c.want, s.PauseAt, "%q, then %q", c.first, c.second)
		require.Equal(t, "by "+c.want, s.PausedBy)
	}
}

func TestA6_APauseThatHasNotBegunCanBeWithdrawn(t *testing.T) {
	for _, choice := range []string{"step", "iteration"} {
		s := loop.State{Status: loop.Running, PauseRequested: true, PauseAt: choice, PausedBy: "ann"}
		reply, err := rules.Answer(s, valid, loop.MessageContinue, loop.Message{})
		require.NoError(t, err)
		after := loop.Fold(s, reply.Events)
		require.False(t, after.PauseRequested)
		require.Empty(t, after.PauseAt+after.PausedBy)
	}
	_, err := rules.Answer(loop.State{Status: loop.Running, PauseRequested: true}, valid, loop.MessageContinue, loop.Message{})
	require.Equal(t, fault.LoopNotPaused, fault.CodeOf(err), "its step is being interrupted")
}

func TestA6_APauseSomewhereElseIsRefused(t *testing.T) {
	_, err := rules.Answer(loop.State{Status: loop.Running}, valid, loop.MessagePause, loop.Message{Choice: "tomorrow"})
	require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
	require.Contains(t, err.(*fault.Error).Advice(), "step or iteration")
}

// TestA6_ABreakpointIsNoIterationBoundary: a breakpoint within the iteration does not use up a pause that was
// requested for the boundary.
func TestA6_ABreakpointIsNoIterationBoundary(t *testing.T) {
	for choice, stays := range map[string]bool{"": false, "step": false, "iteration": true} {
		s := loop.State{Status: loop.Running, PauseRequested: true, PauseAt: choice, PausedBy: "ann"}
		s = loop.Fold(s, []loop.Event{{Type: loop.AutonomyPaused, Reason: "breakpoint"}, {Type: loop.AutonomyResumed}})
		require.Equal(t, stays, s.PauseRequested, choice)
		require.Equal(t, stays, s.PausedBy == "ann", choice)
	}
}

func TestAPersonMayPauseALoopThatItsStewardHasPaused(t *testing.T) {
	s := loop.State{Steward: "crew", Status: loop.Paused, PausedBy: loop.StewardName("crew"), Gate: &loop.Gate{Kind: loop.GatePause}}
	reply, err := rules.Answer(s, valid, loop.MessagePause, loop.Message{By: loop.StewardName("crew")})
	require.NoError(t, err)
	require.Empty(t, reply.Events, "the steward has paused it already")
	reply, err = rules.Answer(s, valid, loop.MessagePause, loop.Message{By: "ann"})
	require.NoError(t, err)
	s = loop.Fold(s, reply.Events)
	require.True(t, s.PauseRequested, "it pauses for ann when the steward lets it go on")
	require.Equal(t, "ann", rules.Child(s, "gate_opened").Gate.By)
}

func TestAStewardIsToldWhatItsLoopHasSpent(t *testing.T) {
	s := loop.New("climb", "improve")
	s.Usage = loop.Usage{InputTokens: 100, OutputTokens: 20, ToolCalls: 3, ActiveMs: 50}
	require.Equal(t, task.Usage{Tokens: 120, OutputTokens: 20, ToolCalls: 3, ActiveMs: 50}, rules.Child(s, "ended").Result.Usage)
}

// Its answer may end the loop, as an approval does.
func TestAPauseWhileAGateIsOpenIsNotPromisedAtOnce(t *testing.T) {
	s := loop.State{Status: loop.Waiting, Gate: &loop.Gate{ID: "diff-7", Kind: loop.GateDiff}}
	for choice, want := range map[string]string{loop.PauseNow: "pausing if the loop goes on", loop.PauseStep: "pausing before the next step"} {
		reply, err := rules.Answer(s, valid, loop.MessagePause, loop.Message{Choice: choice})
		require.NoError(t, err)
		require.Equal(t, want, reply.Text)
	}
	reply, err := rules.Answer(loop.State{Status: loop.Running}, valid, loop.MessagePause, loop.Message{})
	require.NoError(t, err)
	require.Equal(t, "pausing", reply.Text)
}

func TestAPauseThatHasNotBegunIsNotCalledAPause(t *testing.T) {
	for status, says := range map[loop.Status]string{loop.Waiting: "a pause is requested already", loop.Paused: "already paused"} {
		reply, err := rules.Answer(loop.State{Status: status, PauseRequested: true}, valid, "pause", loop.Message{})
		require.NoError(t, err)
		require.Equal(t, says, reply.Text)
		require.Empty(t, reply.Events)
	}
}
