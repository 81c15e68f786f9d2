package loop

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// branches carries out what is decided about branches between two iterations (limits.backtrack). The loop's own branch
// in git only ever grows: to continue from an earlier commit, the loop commits its files again.
func (l *improve) branches(ctx workflow.Context) error {
	for {
		var err error
		switch turn := l.law().Turn(l.State()); turn.Do {
		case rules.Stay:
			return nil
		case rules.Fork:
			b := l.State().Forked(turn.From)
			err = l.goOnFrom(ctx, turn.From.Commit, loop.Event{Type: loop.BranchBegun, Branch: &b, Reason: turn.Reason})
		case rules.Compare:
			err = l.compare(ctx)
		case rules.Replace:
			l.replaceHead(ctx, *l.State().Best)
		case rules.Return:
			err = l.returnToHead(ctx, turn.Reason)
		}
		if err == nil {
			err = l.refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// goOnFrom brings back the files of a commit, and records why.
func (r *run) goOnFrom(ctx workflow.Context, commit string, event loop.Event) error {
	return r.append(ctx, api.SettleName, "go on from "+short(commit), []loop.Event{event}, func(e api.Entry) any {
		return api.Settle{Entry: e, Revert: &api.Revert{Commit: r.State().Head, Parent: commit, GoOn: true}}
	})
}

// replaceHead makes the branch, with its last measurement, the head for good.
func (l *improve) replaceHead(ctx workflow.Context, metric metric.Decimal) {
	b := *l.State().Exploring()
	l.Emit(ctx, loop.Event{Type: loop.BranchKept, Branch: &b, Metric: &metric, Reason: fmt.Sprintf("%s, and %s was the best", metric, b.Best)})
}

// returnToHead gives up the branch that is explored, if there is one.
func (r *run) returnToHead(ctx workflow.Context, cause string) error {
	b := r.State().Exploring()
	if b == nil {
		return nil
	}
	return r.goOnFrom(ctx, b.Head, loop.Event{Type: loop.BranchGivenUp, Branch: b, Reason: cause})
}

// compare measures branch and earlier head in turn, until a verdict is shown, or one can't be measured any more.
func (l *improve) compare(ctx workflow.Context) error {
	b, pairs := *l.State().Exploring(), stats.Pairs{}
	for n, failures := 0, 0; ; n++ {
		j := l.State().Sampler.Compare(l.law().Sampling(), pairs)
		if j.Final() || failures == failuresInARow {
			if !j.Final() {
				j.Do = stats.Inconclusive
			}
			l.Emit(ctx, loop.Event{
				Type: loop.BranchCompared, Branch: &b, Metric: &j.Mean, Reason: j.Do,
				Judgement: &loop.Judgement{Passed: j.Do == stats.Keep, Iteration: l.State().Iteration, Metric: &j.Mean, Samples: &j},
			})
			if j.Do == stats.Keep {
				l.replaceHead(ctx, j.Mean)
			}
			return nil
		}
		input, side, arm := l.newVerify(), stats.Trunk, stats.Baseline
		input.At = b.Head
		if j.Do == stats.MeasureCandidate {
			input.At, side, arm = l.State().Head, stats.Branch, stats.Head
		}
		input.Key.Name, input.Key.Sample, input.Clean, input.Alone = "branch", n, true, !l.spec.Verify.Shares()
		out, err := l.measure(ctx, input)
		if err != nil {
			return err
		}
		if cause := measurement(out).Reason(); cause != "" {
			failures++
			l.Emit(ctx, loop.Event{Type: loop.Warned, Step: "branch", Reason: "the " + side + " could not be measured: " + explain(cause, out)})
			continue
		}
		pairs.Add(arm, *out.Metric)
		l.took(ctx, side, out)
	}
}
