package loop

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// A judgement finds in caches what the code of earlier kept changes wrote there. Such code can leave a forged result, and
// be removed by a later change. So what a loop proposes is judged once more before, from scratch: in a judge that is
// made anew, in the user's caches without what the loop has written.

// scratchTries is how often a command may fail from scratch. Tests can be flaky.
const scratchTries = 2

// retrial is a command that judges the head from scratch. run returns why it does not pass, "" if it does.
type retrial struct {
	name, command string
	run           func(ctx workflow.Context, trial trialRun) (out api.Outcome, cause string, err error)
}

// trialRun is one run of a retrial, from 0. At is the base if that is the control, "" for the head.
type trialRun struct {
	try int
	at  string
}

// scratchDue reports whether the head has to be judged from scratch before it is proposed.
func (r *run) scratchDue() bool {
	return rules.ScratchDue(r.State(), r.spec)
}

// scratched turns a step into one from scratch.
func scratched(s *api.Step, trial trialRun) {
	s.Key.Name, s.Key.Sample, s.Scratch, s.At = "scratch-"+s.Key.Name, trial.try, true, trial.at
}

// fromScratch judges the head from scratch and records the result. It records that it could not be judged if the loop's
// time is used up, or the machine does not keep caches apart. v has what the commands measure. With controlled, the base
// is judged as well where the head fails.
func (r *run) fromScratch(ctx workflow.Context, v *loop.Scratch, controlled bool, commands []retrial) error {
	spent := r.iteration.phaseSpent
	defer func() { r.iteration.phaseSpent = spent }() // it takes no time from the phase
	v.Head = r.State().Head
	var err error
	if v.Judged, v.Reason, v.Unproven, err = r.retry(ctx, controlled, commands); err != nil {
		return err
	}
	v.Passed = v.Judged && v.Reason == ""
	r.Emit(ctx, loop.Event{Type: loop.JudgedFromScratch, Scratch: v})
	return nil
}

// retry runs commands from scratch until the head fails. It returns why the head does not pass, or could not be judged.
// If only commands fail that fail on the base too, the head is unproven.
func (r *run) retry(ctx workflow.Context, controlled bool, commands []retrial) (judged bool, cause string, unproven bool, err error) {
	doubt := ""
	for _, c := range commands {
		judged, cause, err := r.retryOne(ctx, c, "", 0, scratchTries)
		if err != nil || !judged {
			return false, cause, false, err
		}
		if cause == "" {
			continue
		}
		if !controlled {
			return true, cause, false, nil
		}
		judgedBase, fails, err := r.retryOne(ctx, c, r.State().Base, scratchTries, 1)
		if err != nil {
			return false, "", false, err
		}
		if judgedBase && fails != "" {
			doubt = cmp.Or(doubt, cause+". The base fails from scratch as well")
			continue
		}
		if judgedBase {
			judgedBase, fails, err = r.retryOne(ctx, c, "", scratchTries+1, 1)
		}
		if err != nil || !judgedBase || fails != "" {
			return err == nil, cause, false, err
		}
	}
	return true, doubt, doubt != "", nil
}

// retryOne runs a command from scratch, as often as it fails, on the commit at, the head for "".
func (r *run) retryOne(ctx workflow.Context, c retrial, commit string, first, tries int) (judged bool, cause string, err error) {
	for try := range tries {
		if spent := rules.StepExhausted(r.State(), false); spent != "" {
			return false, fmt.Sprintf("the budget %s is used up", spent), nil
		}
		out, said, err := c.run(ctx, trialRun{first + try, commit})
		if s, ok := errors.AsType[*stopped](err); ok && s.end.Budget != "" {
			return false, s.end.Reason, nil
		}
		if f := wire.Decode(err); f != nil && f.Code == fault.PreconditionFailed { // such as setup.command
			cause = "from scratch " + f.What
			if r.rules >= 6 && f.Step == fault.Setup { // it had its tries
				return true, cause, nil
			}
			continue
		}
		if err != nil {
			return false, "", err
		}
		if out.Unlayered {
			return false, "this machine does not keep the caches of a loop apart from yours", nil
		}
		if said == "" {
			return true, "", nil
		}
		cause = fmt.Sprintf("the %s command passed before, and fails from scratch (%s): `%s`%s", c.name, said, c.command, where(out))
	}
	return true, cause, nil
}

// guardFromScratch returns the guard as a retrial, none if there is no guard command.
func (r *run) guardFromScratch() []retrial {
	if r.spec.Guard.Command == "" {
		return nil
	}
	return []retrial{{"guard", r.spec.Guard.Command, func(ctx workflow.Context, trial trialRun) (api.Outcome, string, error) {
		out, err := r.runGuard(ctx, func(s *api.Step) { scratched(s, trial) })
		return out, unless(out.OK(), out.Ending()), err
	}}}
}

// reproduce judges the head from scratch by guard and verify. The loop ends if that fails, and proposes nothing.
func (l *improve) reproduce(ctx workflow.Context) error {
	if !l.scratchDue() || l.State().HaltRequested != "" {
		return nil
	}
	if err := l.returnToHead(ctx, "the loop is over"); err != nil {
		return err
	}
	l.over = true
	v, head := loop.Scratch{}, rules.FromScratch{}
	err := l.fromScratch(ctx, &v, l.law().Controlled(), append(l.guardFromScratch(), retrial{"verify", l.spec.Verify.Command, func(ctx workflow.Context, trial trialRun) (api.Outcome, string, error) {
		input := l.newVerify()
		input.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
		scratched(&input.Step, trial)
		out, err := l.measure(ctx, input)
		if cause := measurement(out).Reason(); err != nil || out.Unlayered || cause != "" {
			return out.Outcome, explain(cause, out), err
		}
		if trial.at != "" {
			return out.Outcome, l.law().ControlFails(l.State(), head, rules.FromScratch{Metric: out.Metric, Further: out.Metrics}), nil
		}
		v.Metric, head = out.Metric, rules.FromScratch{Metric: out.Metric, Further: out.Metrics}
		return out.Outcome, l.law().Reproduced(l.State(), *out.Metric, out.Metrics), nil
	}}))
	if err == nil && v.Failed(l.State().Head) {
		return stop(rules.NotReproducedBy(l.State(), v.Reason))
	}
	return err
}

// unreproduced judges the head from scratch before it is proposed. It returns why it does not pass, "" if it does.
func (l *deliver) unreproduced(ctx workflow.Context) (string, error) {
	if !l.scratchDue() {
		return "", nil
	}
	commands := l.guardFromScratch()
	if l.spec.TestRequired() && l.spec.Test.Command != "" {
		commands = append(commands, retrial{"test", l.spec.Test.Command, func(ctx workflow.Context, trial trialRun) (api.Outcome, string, error) {
			input := l.newTest(l.State().Attempt)
			scratched(&input.Step, trial)
			out, err := l.tested(ctx, input)
			if err != nil || out.Unlayered {
				return out.Outcome, "", err
			}
			return out.Outcome, unless(l.law().TestsPass(l.testVerdict(out, *out.Tests)), out.Ending()), nil
		}})
	}
	v := loop.Scratch{}
	if l.spec.Verify.Command != "" {
		commands = append(commands, retrial{"verify", l.spec.Verify.Command, func(ctx workflow.Context, trial trialRun) (api.Outcome, string, error) {
			input := l.newVerify()
			scratched(&input.Step, trial)
			out, err := l.measure(ctx, input)
			if err != nil || out.Unlayered {
				return out.Outcome, "", err
			}
			v.Metric = out.Metric
			judged := l.verifyVerdict(out)
			return out.Outcome, unless(judged.Passed, judged.Why), nil
		}})
	}
	if err := l.fromScratch(ctx, &v, false, commands); err != nil || !v.Failed(v.Head) {
		return "", err
	}
	return v.Reason, nil
}
