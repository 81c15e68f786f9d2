package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/wire"
)

// A judgement finds in caches what the code of earlier kept changes wrote there. Such code can leave a forged result, and
// be removed by a later change. So what a loop proposes is judged once more before, from scratch: in a judge that is
// made anew, in the user's caches without what the loop has written.

// scratchTries is how often a command may fail from scratch. Tests can be flaky.
const scratchTries = 2

// retrial is a command that judges the head from scratch. run returns why it does not pass, "" if it does.
type retrial struct {
	name, command string
	run           func(ctx workflow.Context, try int) (out act.Outcome, why string, err error)
}

// scratchDue reports whether the head has to be judged from scratch before it is proposed.
func (r *run) scratchDue() bool {
	return govern.ScratchDue(r.State(), r.spec)
}

// scratched turns a step into one from scratch.
func scratched(s *act.Step, try int) {
	s.Key.Name, s.Key.Sample, s.Scratch = "scratch-"+s.Key.Name, try, true
}

// fromScratch judges the head from scratch and records the result. It records that it could not be judged if the loop's
// time is used up, or the machine does not keep caches apart. v has what the commands measure.
func (r *run) fromScratch(ctx workflow.Context, v *loop.Scratch, commands []retrial) error {
	spent := r.iteration.phaseSpent
	defer func() { r.iteration.phaseSpent = spent }() // it takes no time from the phase
	v.Head = r.State().Head
	var err error
	if v.Judged, v.Reason, err = r.retry(ctx, commands); err != nil {
		return err
	}
	v.Passed = v.Judged && v.Reason == ""
	r.Emit(ctx, loop.Event{Type: loop.JudgedFromScratch, Scratch: v})
	return nil
}

// retry runs commands from scratch until one fails. It returns why the head does not pass, or could not be judged.
func (r *run) retry(ctx workflow.Context, commands []retrial) (judged bool, why string, err error) {
	for _, c := range commands {
		for try := range scratchTries {
			if spent := govern.StepExhausted(r.State(), false); spent != "" {
				return false, fmt.Sprintf("the budget %s is used up", spent), nil
			}
			out, said, err := c.run(ctx, try)
			if s, is := errors.AsType[*stopped](err); is && s.end.Budget != "" {
				return false, s.end.Reason, nil
			}
			if f := wire.Decode(err); f != nil && f.Code == fault.PreconditionFailed { // such as setup.command
				why = "from scratch " + f.What
				continue
			}
			if err != nil {
				return false, "", err
			}
			if out.Unlayered {
				return false, "this machine does not keep the caches of a loop apart from yours", nil
			}
			why = ""
			if said != "" {
				why = fmt.Sprintf("the %s command passed before, and fails from scratch (%s): `%s`%s", c.name, said, c.command, where(out))
			}
			if why == "" {
				break
			}
		}
		if why != "" {
			return true, why, nil
		}
	}
	return true, "", nil
}

// guardFromScratch returns the guard as a retrial, none if there is no guard command.
func (r *run) guardFromScratch() []retrial {
	if r.spec.Guard.Command == "" {
		return nil
	}
	return []retrial{{"guard", r.spec.Guard.Command, func(ctx workflow.Context, try int) (act.Outcome, string, error) {
		out, err := r.runGuard(ctx, func(s *act.Step) { scratched(s, try) })
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
	v := loop.Scratch{}
	err := l.fromScratch(ctx, &v, append(l.guardFromScratch(), retrial{"verify", l.spec.Verify.Command, func(ctx workflow.Context, try int) (act.Outcome, string, error) {
		in := l.newVerify()
		in.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
		scratched(&in.Step, try)
		out, err := l.measure(ctx, in)
		if why := measurement(out).Reason(); err != nil || out.Unlayered || why != "" {
			return out.Outcome, explain(why, out), err
		}
		v.Metric = out.Metric
		return out.Outcome, l.law().Reproduced(l.State(), *out.Metric, out.Metrics), nil
	}}))
	if err == nil && v.Failed(l.State().Head) {
		return stop(govern.NotReproduced.Because(v.Reason))
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
		commands = append(commands, retrial{"test", l.spec.Test.Command, func(ctx workflow.Context, try int) (act.Outcome, string, error) {
			in := l.newTest(l.State().Attempt)
			scratched(&in.Step, try)
			out, err := l.tested(ctx, in)
			if err != nil || out.Unlayered {
				return out.Outcome, "", err
			}
			return out.Outcome, unless(l.law().TestsPass(l.testVerdict(out, *out.Tests)), out.Ending()), nil
		}})
	}
	v := loop.Scratch{}
	if l.spec.Verify.Command != "" {
		commands = append(commands, retrial{"verify", l.spec.Verify.Command, func(ctx workflow.Context, try int) (act.Outcome, string, error) {
			in := l.newVerify()
			scratched(&in.Step, try)
			out, err := l.measure(ctx, in)
			if err != nil || out.Unlayered {
				return out.Outcome, "", err
			}
			v.Metric = out.Metric
			judged := l.verifyVerdict(out)
			return out.Outcome, unless(judged.Passed, judged.Why), nil
		}})
	}
	if err := l.fromScratch(ctx, &v, commands); err != nil || !v.Failed(v.Head) {
		return "", err
	}
	return v.Reason, nil
}
