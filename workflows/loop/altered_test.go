package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	loopworkflow "pawl/workflows/loop"
)

// altering is a world in which a command of that name changes the file a of the commits that it judges.
func altering(t *testing.T, name string, from int, script map[int][]try) *world {
	w := newWorld(t, script)
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := w.step(ctx, in)
		if in.Key.Name == name && in.Key.Iteration >= from {
			require.True(t, in.Intact)
			out.Altered, out.Failure, out.Metric = []string{"a"}, "it exits 0, but changes files of the commit, so it judged other code: a", nil
		}
		return out, err
	}
	return w
}

func TestP0_ACommandThatChangesTheCommitEndsTheLoopBeforeItStarts(t *testing.T) {
	limited := map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1}}
	for _, name := range []string{"verify", "guard"} {
		p := play(t, altering(t, name, 0, nil), specOf(limited), nil)
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
		require.Contains(t, p.result.Reason, "the "+name+" command fails on the unchanged code (it exits 0, but changes files of the commit")
		require.Contains(t, p.result.Recovery, "commit what it writes")
		require.Empty(t, p.agents)
	}

	w := altering(t, "guard", 0, nil)
	w.kind = loopworkflow.Deliver
	p := play(t, w, specOfDelivery(limited), nil)
	require.Equal(t, string(fault.PreconditionFailed), p.err.Type(), "a delivery too: it could mend nothing")
	require.Empty(t, p.agents)
}

func TestP55_AChangeThatACommandChangesAgainIsNotKept(t *testing.T) {
	limited := map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1}}
	script := map[int][]try{1: {{Says: "x", Metric: "20"}}}
	p := play(t, altering(t, "guard", 1, script), specOf(limited), nil)
	require.Equal(t, []string{"1 no 10 guard-fail"}, p.course())
	require.Contains(t, p.agents[1].Repair, "changes files of the commit, so it judged other code: a")
	require.Contains(t, p.events(loop.RepairAttempted)[0].Reason, "changes files of the commit")
	require.Contains(t, p.final.Iterations[0].Why(), "changes files of the commit", "the next call is told, too")

	p = play(t, altering(t, "verify", 1, script), specOf(limited), nil)
	require.Equal(t, []string{"1 no 10 error:verify-crash"}, p.course())
	require.Contains(t, p.final.Iterations[0].Why(), "changes files of the commit")

	for _, name := range []string{"verify", "guard"} { // in a trial
		m := newTeam(t, map[int]float64{1: 5, 2: 6})
		m.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := m.step(ctx, in)
			if in.Key.Name == name && in.Key.Iteration > 0 {
				out.Altered, out.Failure, out.Metric = []string{"a"}, "it exits 0, but changes files of the commit", nil
			}
			return out, err
		}
		p = play(t, m.world, atOnce(2, 2, nil), nil)
		require.NotEmpty(t, p.candidates(loop.CandidateJudged))
		for _, i := range p.final.Iterations {
			require.Equal(t, "it exits 0, but changes files of the commit", i.Why(), name)
		}
	}
}
