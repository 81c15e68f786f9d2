package loop

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/task"
)

// refused handles a call that the provider refused: the loop sleeps until it works again, or asks a person if nobody
// knows when. After nil the call is made again. refusals counts those in a row; a person's answer resets it.
func (r *run) refused(ctx workflow.Context, call *api.Call, out api.Outcome, refusals *int) error {
	if r.apart != nil {
		r.apart.call, r.apart.refused = call, out
		return errApart
	}
	p := rules.AfterRefusal(r.caller(call), out.Class, *out.Refused, *refusals, workflow.Now(ctx).UTC())
	if p.Ask == "" {
		return r.sleep(ctx, loop.Sleep{
			Class: out.Class, Status: out.Refused.Status, Reason: cmp.Or(out.Refused.Said, string(out.Class)), Role: call.Role,
			Since: workflow.Now(ctx).UTC(), Until: p.Until, Times: *refusals,
		})
	}
	a, err := r.wait(ctx, loop.Gate{
		Kind: loop.GateQuestion, Summary: p.Ask, Choices: []string{rules.Retry, rules.HaltLoop}, Answers: []string{loop.MessageAnswer},
	})
	if err != nil {
		return err
	}
	if a.Choice == rules.HaltLoop {
		return stop(rules.Interrupted.Because("halted by " + cmp.Or(a.By, "a person") + ": " + p.Ask))
	}
	*refusals = 0
	return nil
}

// worthTelling is how long a sleep must be for the loop's steward to be told, so that the task sleeps too.
const worthTelling = 2 * time.Minute

// sleep waits on a durable timer until the end of the sleep, or until a person wakes the loop. Only limits.wallClock
// keeps counting. A pause begins at once; the rest of the sleep follows it.
func (r *run) sleep(ctx workflow.Context, s loop.Sleep) error {
	r.Emit(ctx, loop.Event{Type: loop.SleepBegun, Step: s.Step, Reason: s.Reason, Outcome: string(s.Class), Role: s.Role, Sleep: &s})
	if s.Step == "" && s.Until.Sub(s.Since) >= worthTelling {
		r.report(ctx, task.ChildSleeps)
	}
	if err := r.record(ctx, "asleep until "+s.Until.Format(time.RFC3339)+": "+loop.Clip(s.Reason, 100), false); err != nil {
		return err
	}
	for r.State().Sleep != nil {
		end := r.State().Sleep.Until
		left := end.Sub(workflow.Now(ctx))
		if remaining := r.State().Clocked(workflow.Now(ctx))[loop.WallClock].Remaining; remaining != nil {
			left = min(left, time.Duration(remaining.Float())*time.Millisecond)
		}
		if left <= 0 {
			break
		}
		timerCtx, stopTimer := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: afterSleep(s)})
		err := workflow.Await(ctx, func() bool {
			current := r.State()
			return timer.IsReady() || current.HaltRequested != "" || rules.PauseDue(current, loop.PauseStep) || current.Sleep == nil || !current.Sleep.Until.Equal(end)
		})
		stopTimer()
		if err != nil {
			return err
		}
		if err := r.waitIfPaused(ctx, loop.PauseStep); err != nil {
			return err
		}
	}
	r.Emit(ctx, loop.Event{Type: loop.SleepEnded, Step: s.Step})
	r.publishSoon(ctx)
	r.show(ctx)
	return nil
}

// afterSleep says what follows a sleep.
func afterSleep(s loop.Sleep) string {
	if s.Step != "" {
		return "asleep, " + s.Step + " runs again then"
	}
	return fmt.Sprintf("asleep (%s), the %s is called again then", s.Class, s.Role)
}
