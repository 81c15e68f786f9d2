package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/steward/task"
)

// refusing lets the provider refuse the world's agent for its first calls.
func refusing(w *world, times int, class result.Class, refused func() api.Refused) {
	refuse := w.stepping
	if refuse == nil {
		refuse = w.step
	}
	left := times
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := refuse(ctx, in)
		if in.Call == nil || left == 0 || err != nil {
			return out, err
		}
		left--
		r := refused()
		return stepped{
			ElapsedMs: 90_000, Failure: r.Said, Log: out.Log, Ledger: out.Ledger, Class: class, Refused: &r,
			Usage: loop.Usage{AgentCalls: 1, ToolCalls: 2, InputTokens: 1000},
		}, nil
	}
}

// in returns a time that far from now, on the workflow's clock.
func in(env **testsuite.TestWorkflowEnvironment, d time.Duration) func() api.Refused {
	return func() api.Refused {
		return api.Refused{Status: 429, Said: "rate limit five_hour", Until: (*env).Now().Add(d).UTC()}
	}
}

func TestARateLimitThatEndsIsSleptThrough(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	var asleep loop.State
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 2, result.RateLimited, in(&env, 4*time.Hour))
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1, "steps": 2, "activeTime": "2m", "phaseTimeout": "2m", "silence": "5m"}}), func(e *testsuite.TestWorkflowEnvironment) {
		env = e
		at(t, e, 5*time.Hour, func(s loop.State) { asleep = s })
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 11"}, p.course(), "no iteration is lost")
	require.Len(t, p.agents, 3, "it is called once for each time that it may be let in")
	require.Equal(t, []int{0, 1, 2}, []int{p.agents[0].Key.Repeat, p.agents[1].Key.Repeat, p.agents[2].Key.Repeat})
	for _, call := range p.agents {
		require.Equal(t, int64(5*time.Minute/time.Millisecond), call.SilenceMs)
		require.Equal(t, int64(2*time.Minute/time.Millisecond)-100, call.LimitMs, "what it waited for is no active time")
	}
	require.Equal(t, int64(1), p.result.Usage.AgentCalls, "the others count as none")
	require.Equal(t, int64(5), p.result.Usage.ToolCalls, "what they did counts")
	require.Equal(t, int64(2000), p.result.Usage.InputTokens)
	require.Less(t, p.result.Usage.ActiveMs, int64(1000))

	require.Equal(t, loop.Sleeping, asleep.Status)
	require.Nil(t, asleep.Gate)
	require.Equal(t, result.RateLimited, asleep.Sleep.Class)
	require.Equal(t, 2, asleep.Sleep.Times)
	require.Equal(t, "writer", asleep.Sleep.Role)
	require.Contains(t, asleep.PauseReason, "rate limit five_hour")
	require.Equal(t, asleep.Sleep.Until, asleep.RateLimit.Until)
	require.Nil(t, p.final.Sleep)
	require.Nil(t, p.final.RateLimit)
	var slept []string
	for _, e := range p.ledger {
		if e.Type == loop.SleepBegun || e.Type == loop.SleepEnded || e.Type == loop.StepEnded && e.Role != "" {
			slept = append(slept, string(e.Type)+" "+e.Outcome)
		}
	}
	require.Equal(t, []string{"step_ended rate-limited", "sleep_begun rate-limited", "sleep_ended ", "step_ended rate-limited", "sleep_begun rate-limited", "sleep_ended ", "step_ended "}, slept)
}

func TestADeliverySleepsToo(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	d := deliver(t, nil)
	d.stepping, d.committing = d.step, d.commit
	refusing(d.world, 1, result.RateLimited, in(&env, time.Hour))
	p := play(t, d.world, specOfDelivery(nil), func(e *testsuite.TestWorkflowEnvironment) { env = e })
	require.Nil(t, p.err)
	require.Equal(t, loop.Completed, p.final.Status)
	require.Contains(t, p.types(), loop.SleepBegun)
	require.NotContains(t, p.types(), loop.RepairAttempted)
	require.Len(t, d.asked, 2)
	require.Equal(t, 1, d.asked[1].Attempt)
	require.Equal(t, []int64{600000, 600000}, d.limits["writer"], "the phase has all of its time")
}

func TestAPersonSendsASleepingLoopOn(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 1, result.RateLimited, in(&env, 4*time.Hour))
	var begun time.Time
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) {
		env, begun = e, e.Now()
		at(t, e, time.Hour, func(loop.State) { e.SignalWorkflow("continue", map[string]string{"by": "ann"}) })
	})
	require.Equal(t, []string{"1 yes 11"}, p.course())
	require.WithinDuration(t, begun.Add(time.Hour), p.ledger[len(p.ledger)-1].Time, time.Minute)
	require.Len(t, p.agents, 2)
}

func TestASleepingLoopIsPausedAndHalted(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, nil)
	refusing(w, 9, result.RateLimited, in(&env, 4*time.Hour))
	var states []string
	note := func(s loop.State) { states = append(states, fmt.Sprint(s.Status, " ", s.Sleep != nil)) }
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) {
		env = e
		at(t, e, time.Hour, func(loop.State) { e.SignalWorkflow("pause", nil) })
		at(t, e, 2*time.Hour, func(s loop.State) { note(s); e.SignalWorkflow("continue", nil) })
		at(t, e, 3*time.Hour, func(s loop.State) { note(s); e.SignalWorkflow("halt", nil) })
	})
	require.Equal(t, []string{"paused true", "sleeping true"}, states, "a pause that ends is not the end of the sleep")
	require.Len(t, p.agents, 1)
	require.Equal(t, loop.Halted, p.final.Status)
	require.Nil(t, p.final.Sleep)
}

func TestASleepEndsWithTheWallClock(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, nil)
	refusing(w, 9, result.RateLimited, in(&env, 10*time.Hour))
	var begun time.Time
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1, "wallClock": "2h"}}), func(e *testsuite.TestWorkflowEnvironment) {
		env, begun = e, e.Now()
	})
	require.Equal(t, "BUDGET_EXHAUSTED", p.result.ErrorCode)
	require.Len(t, p.agents, 1)
	require.WithinDuration(t, begun.Add(2*time.Hour), p.ledger[len(p.ledger)-1].Time, time.Minute)
}

func TestAProviderThatFailsIsAskedAgainAndThenAPersonIs(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 7, result.ProviderDown, func() api.Refused { return api.Refused{Status: 529, Said: "overloaded"} })
	var asked loop.State
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) {
		at(t, e, 4*time.Hour, func(s loop.State) {
			asked = s
			e.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"verify": map[string]any{"command": "other"}}})
			e.SignalWorkflow("answer", map[string]string{"choice": "retry", "by": "ann"})
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 11"}, p.course())
	require.Len(t, p.agents, 8)
	var waits []time.Duration
	for _, e := range p.ledger {
		if e.Type == loop.SleepBegun {
			waits = append(waits, e.Sleep.Until.Sub(e.Sleep.Since))
		}
	}
	require.Equal(t, []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}, waits)
	require.Equal(t, loop.GateQuestion, asked.Gate.Kind)
	require.Contains(t, asked.Gate.Summary, "529 overloaded, refused 7 times in a row")
	require.Equal(t, []string{"answer"}, asked.Gate.Answers, "no command is at fault, so that none can be amended")
	require.Contains(t, p.types(), loop.MessageRefused)
}

func TestASignInThatIsMissingIsAskedFor(t *testing.T) {
	for choice, course := range map[string][]string{"retry": {"1 yes 11"}, "halt": {"1 no 10 interrupted"}} {
		w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
		refusing(w, 1, result.AuthMissing, func() api.Refused { return api.Refused{Status: 401, Said: "authentication_failed"} })
		var asked loop.State
		p := play(t, w, specOf(map[string]any{
			"agent": map[string]any{"use": "claude", "command": []string{"claude"}, "ideas": false}, "limits": map[string]any{"iterations": 1},
		}), func(e *testsuite.TestWorkflowEnvironment) {
			at(t, e, time.Minute, func(s loop.State) {
				asked = s
				e.SignalWorkflow("answer", map[string]string{"choice": choice})
			})
		})
		require.Equal(t, course, p.course())
		require.Equal(t, loop.Waiting, asked.Status)
		require.Contains(t, asked.Gate.Summary, "claude can't sign in to its provider (401 authentication_failed): set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN")
		require.Equal(t, choice == "halt", p.final.Status == loop.Halted)
	}
}

func TestALimitThatNeverEndsIsAPersonsMatter(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 21, result.RateLimited, in(&env, time.Hour))
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) {
		env = e
		at(t, e, 30*time.Hour, func(s loop.State) {
			require.Contains(t, s.Gate.Summary, "does not end")
			e.SignalWorkflow("answer", map[string]string{"choice": "retry"})
		})
	})
	require.Equal(t, []string{"1 yes 11"}, p.course())
	require.Len(t, p.agents, 22)
}

// The loop has fewer iterations than the failures in a row that end a loop.
func TestALoopWhoseAgentAlwaysFailedHasNotCompleted(t *testing.T) {
	two := specOf(map[string]any{"limits": map[string]any{"iterations": 2}})
	p := play(t, newWorld(t, map[int][]try{1: {{Fails: true}}, 2: {{Failure: "API Error: 400 no such model"}}}), two, nil)
	require.Equal(t, "ALO_AGENT_FAILED", p.err.Type())
	require.Equal(t, loop.Failed, p.final.Status)
	require.Contains(t, p.result.Reason, "the agent failed in every iteration: the agent failed (API Error: 400 no such model)")
	p = play(t, newWorld(t, map[int][]try{1: {{Fails: true}}, 2: {{Says: "worse", Metric: "9"}}}), two, nil)
	require.Nil(t, p.err)
	require.Equal(t, loop.Completed, p.final.Status, "one of them was judged")
}

// The steward lets its loop continue before the time, because a person told it to.
func TestAStewardEndsTheSleepOfItsLoop(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 1, result.RateLimited, in(&env, 4*time.Hour))
	var told []string
	var begun time.Time
	by := map[string]string{"by": "steward shop"}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}, "session": map[string]string{"steward": "shop"}}), func(e *testsuite.TestWorkflowEnvironment) {
		env, begun = e, e.Now()
		e.OnSignalExternalWorkflow(mock.Anything, "shop", mock.Anything, task.ChildSignal, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
			told = append(told, arg.(task.ChildEvent).Event)
			if arg.(task.ChildEvent).Event == task.ChildSleeps {
				require.Equal(t, begun.Add(4*time.Hour+time.Second).Unix(), arg.(task.ChildEvent).Result.RateLimit.Until.Unix())
			}
			return nil
		})
		at(t, e, time.Minute, func(loop.State) { e.SignalWorkflow("pause", map[string]string{"by": "steward shop", "choice": "step"}) })
		at(t, e, time.Hour, func(s loop.State) { require.Equal(t, loop.Paused, s.Status); e.SignalWorkflow("continue", by) })
	})
	require.Equal(t, []string{"1 yes 11"}, p.course())
	require.Contains(t, told, task.ChildSleeps)
	require.WithinDuration(t, begun.Add(time.Hour), p.ledger[len(p.ledger)-1].Time, time.Minute)
	require.Len(t, p.agents, 2)
}

// The agent changed nothing because it was not allowed to.
func TestToolsThatWereWithheldAreNamed(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "raise it", Nothing: true}}})
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := w.step(ctx, in)
		out.Class, out.Withheld = result.Done, []string{"Edit"}
		return out, err
	}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
	require.Equal(t, []string{"1 no 10 no-change"}, p.course())
	require.Equal(t, "the agent was not allowed to use Edit: raise it", p.final.Iterations[0].Description)
}
