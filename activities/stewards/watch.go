package stewards

import (
	"context"
	"time"

	"pawl/activities/hosted"
	"pawl/internal/act"
	"pawl/internal/charter"
	"pawl/internal/health"
	"pawl/internal/loop"
	"pawl/internal/schedule"
)

// schedules counts the slots that Temporal skipped because they came later than the catch-up window allows. Schedules
// that can't be read now are read the next time.
func (v *validation) schedules(ctx context.Context) error {
	if len(v.in.Charter.Schedules) == 0 {
		return nil
	}
	m := v.ws.Machine
	missed, slots, err := schedule.Reader{Client: m.Temporal(ctx), Namespace: m.Namespace, Now: time.Now}.Missed(ctx, v.in.Charter, v.in.Missed, v.in.Slots)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		m.Logger.Warn("the schedules of a steward can't be read", "steward", v.ws.Loop, "error", err)
		return nil
	}
	v.out.Missed, v.out.Slots = missed, slots
	return nil
}

// health runs the health checks of the charter. A command runs in the user's repository, if it is on this host, like
// the commands of `notify`.
func (v *validation) health(ctx context.Context) error {
	dir, leave := v.ws.Machine.Workplace(v.in.Ref)
	defer leave()
	for _, t := range v.in.Charter.Triggers {
		if t.From != charter.Health {
			continue
		}
		ill := health.Check(ctx, t, hosted.Notifying(), dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.out.Health = append(v.out.Health, act.Health{Name: t.Name, Ill: loop.Clip(hosted.Said(ill), 2000)})
	}
	return nil
}
