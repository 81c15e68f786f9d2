package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
)

// answers lets the world's agents answer by their place in the chain: each agent in places gives these refusals
// first.
func answers(w *world, places map[int][]refusal) {
	next := w.stepping
	if next == nil {
		next = w.step
	}
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := next(ctx, in)
		if in.Call == nil || err != nil {
			return out, err
		}
		left := places[in.Call.Substitute]
		if len(left) == 0 {
			out.Class = result.Done
			return out, nil
		}
		places[in.Call.Substitute] = left[1:]
		r := left[0].as()
		return stepped{ElapsedMs: 90_000, Failure: r.Said, Ledger: out.Ledger, Class: left[0].class, Refused: &r, Usage: loop.Usage{AgentCalls: 1}}, nil
	}
}

type refusal struct {
	class result.Class
	as    func() api.Refused
}

func with(chain ...string) map[string]any {
	var fallback []any
	for _, use := range chain[1:] {
		fallback = append(fallback, map[string]any{"use": use})
	}
	return map[string]any{"use": chain[0], "ideas": false, "fallback": fallback, "command": nil}
}

func relayed(p played) (all []string) {
	for _, e := range p.ledger {
		switch {
		case e.Type == loop.AgentReplaced:
			all = append(all, fmt.Sprintf("%s->%s %s", e.Agent, e.Note, e.Outcome))
		case e.Type == loop.StepEnded && e.Role != "":
			all = append(all, e.Agent+" "+e.Outcome)
		case e.Type == loop.SleepBegun, e.Type == loop.GateOpened && e.Gate.Kind == loop.GateQuestion:
			all = append(all, string(e.Type))
		}
	}
	return all
}

// Of three agents the first two are refused. In the next iteration, the agent whose limit has a known end is not
// asked before that end.
func TestAnotherAgentMakesACallThatIsRefused(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}, 2: {{Says: "more", Metric: "12"}}})
	answers(w, map[int][]refusal{
		0: {{result.RateLimited, in(&env, 4*time.Hour)}}, 1: {{result.AuthMissing, func() api.Refused { return api.Refused{Status: 401, Said: "who are you"} }}},
	})
	p := play(t, w, specOf(map[string]any{"agent": with("claude", "codex", "gemini"), "limits": map[string]any{"iterations": 2}}), func(e *testsuite.TestWorkflowEnvironment) { env = e })
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 11", "2 yes 12"}, p.course())
	require.Equal(t, []string{
		"claude rate-limited", "claude->codex rate-limited", "codex auth-missing", "codex->gemini auth-missing", "gemini done",
		"gemini done",
	}, relayed(p))
	require.Equal(t, "gemini", p.final.Iterations[0].Agent)
	require.Len(t, p.final.Refusing, 2)
	require.Equal(t, int64(2), p.result.Usage.AgentCalls, "those that were refused count as none")
}

// The loop sleeps until the first of them may work again, and calls that one.
func TestWhereAllAreRefusedTheLoopSleeps(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	answers(w, map[int][]refusal{0: {{result.RateLimited, in(&env, 4*time.Hour)}}, 1: {{result.RateLimited, in(&env, time.Hour)}}})
	var asleep loop.State
	p := play(t, w, specOf(map[string]any{"agent": with("claude", "codex"), "limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) {
		env = e
		at(t, e, 30*time.Minute, func(s loop.State) { asleep = s })
	})
	require.Nil(t, p.err)
	require.Equal(t, loop.Sleeping, asleep.Status)
	require.WithinDuration(t, asleep.Sleep.Since.Add(time.Hour), asleep.Sleep.Until, time.Minute)
	require.Equal(t, []string{"claude rate-limited", "claude->codex rate-limited", "codex rate-limited", "sleep_begun", "codex done"}, relayed(p))
}

// The spec has a chain, and the limit lasts a minute.
func TestALimitThatIsSoonOverIsSleptThroughAllTheSame(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	answers(w, map[int][]refusal{0: {{result.RateLimited, in(&env, time.Minute)}}})
	p := play(t, w, specOf(map[string]any{"agent": with("claude", "codex"), "limits": map[string]any{"iterations": 1}}), func(e *testsuite.TestWorkflowEnvironment) { env = e })
	require.Equal(t, []string{"claude rate-limited", "sleep_begun", "claude done"}, relayed(p))
}

// The writer's provider refuses, so an agent of the first reviewer's vendor writes.
func TestAReviewerIsOfAnotherVendorAlsoAfterAFallback(t *testing.T) {
	for name, c := range map[string]struct {
		refused  map[int][]refusal
		reviewer int
		writers  []string
	}{
		"the writer writes":  {nil, 0, []string{"anthropic"}},
		"another one writes": {map[int][]refusal{0: {{result.ProviderDown, func() api.Refused { return api.Refused{Status: 529} }}}}, 1, []string{"openai"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := deliver(t, nil)
			d.stepping, d.committing = d.step, d.commit
			answers(d.world, c.refused)
			agent := with("claude", "codex")
			agent["roles"] = map[string]any{"reviewer": map[string]any{"use": "codex", "fallback": []any{map[string]any{"use": "gemini"}}}}
			p := play(t, d.world, specOfDelivery(map[string]any{"agent": agent, "reviewer": map[string]any{"otherVendor": true}}), nil)
			require.Nil(t, p.err)
			require.Equal(t, c.writers, p.final.Writers)
			last := d.asked[len(d.asked)-1]
			require.Equal(t, "reviewer", last.Role)
			require.Equal(t, c.reviewer, last.Substitute)
		})
	}
}
