package loop

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// setups are the runs of setup.command, as far as activities reported them.
type setups struct {
	passed bool // in this run: something ran in a tree
	failed int  // in a row
}

// setupFailed returns the fault of an activity whose tree could not be set up, nil for any other error.
func (r *run) setupFailed(err error) *fault.Error {
	f := wire.Decode(err)
	if r.rules < 6 || f == nil || f.Step != fault.Setup {
		return nil
	}
	return f
}

// setUp does something that may set up a tree, until that is possible.
func (r *run) setUp(ctx workflow.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			r.setups = setups{passed: true}
		}
		failed := r.setupFailed(err)
		if failed == nil {
			return err
		}
		if err := r.afterSetup(ctx, failed, true); err != nil {
			return err
		}
	}
}

// afterSetup waits after a setup that failed. After nil, it runs again in a fresh tree. None of that takes time from the
// phase. mayAsk says that a person may be asked.
func (r *run) afterSetup(ctx workflow.Context, failed *fault.Error, mayAsk bool) error {
	if r.apart != nil {
		r.apart.setup = failed
		return errApart
	}
	r.setups.failed++
	s, now := r.State(), workflow.Now(ctx).UTC()
	f := rules.SetupFailure{Said: failed.What, Times: r.setups.failed, Asks: mayAsk}
	f.Passed = r.setups.passed || s.Baseline != nil || s.KnownTests != nil || len(s.Iterations) > 0

	next := f.After(now)
	switch {
	case next.Ask != "":
		return r.askAboutSetup(ctx, next.Ask)
	case !next.Again:
		r.setups.failed = 0
		return failed
	case next.Until.IsZero():
		return nil
	}
	return r.sleep(ctx, loop.Sleep{Step: fault.Setup, Reason: f.Brief(), Since: now, Until: next.Until, Times: f.Times})
}

// askAboutSetup asks a person whether a setup that keeps failing runs again.
func (r *run) askAboutSetup(ctx workflow.Context, cause string) error {
	a, err := r.wait(ctx, loop.Gate{
		Kind: loop.GateQuestion, Summary: cause, Choices: []string{rules.Retry, rules.HaltLoop}, Answers: []string{loop.MessageAnswer},
	})
	if err != nil {
		return err
	}
	if a.Choice == rules.HaltLoop {
		return stop(rules.Interrupted.Because("halted by " + cmp.Or(a.By, "a person") + ": " + cause))
	}
	r.setups.failed = 0
	return nil
}
