package schedule

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Reader reads the schedules of a namespace.
type Reader struct {
	Client    sdk.Client
	Namespace string
	Now       func() time.Time
}

// Missed returns, by the name of each schedule of c, how many slots were missed because they came later than the
// catch-up window allows: those known before, and those missed since. The second map says up to which time slots are
// counted. It leaves out a schedule that Temporal does not have.
//
// Temporal's own count is not the number of missed slots. Whenever its scheduler wakes, it looks at all slots since its
// last action, and counts those that are too late each time again, until an action succeeds (service/worker/scheduler,
// server 1.32). So that count only says that slots were missed. The schedule's own times limit how many these can be.
func (r Reader) Missed(ctx context.Context, c charter.Charter, known map[string]int, slots map[string]task.Slots) (map[string]int, map[string]task.Slots, error) {
	missed, upTo := map[string]int{}, map[string]task.Slots{}
	for _, s := range c.Schedules {
		id := idOf(c.Name, s.Name)
		d, err := r.Client.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
		if gone(err) || err == nil && !own(d) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("asking for the schedule %s: %w", s.Name, err)
		}
		n, now, err := Since(slots[s.Name], At{d, r.Now(), catchUp(s)}, func(from, to time.Time, enough int) (int, error) {
			return r.between(ctx, id, from, to, enough)
		})
		if err != nil {
			return nil, nil, fmt.Errorf("asking for the slots of the schedule %s: %w", s.Name, err)
		}
		missed[s.Name], upTo[s.Name] = known[s.Name]+n, now
	}
	return missed, upTo, nil
}

// At is Temporal's description of a schedule at a time.
type At struct {
	*sdk.ScheduleDescription
	Time    time.Time
	CatchUp time.Duration
}

// Since returns how many slots were missed since before, and the new state of the count. between returns how many slots
// there are after from and not after to; it may stop counting at enough.
func Since(before task.Slots, d At, between func(from, to time.Time, enough int) (int, error)) (n int, now task.Slots, err error) {
	now = task.Slots{Counted: d.Info.NumActionsMissedCatchupWindow, Until: before.Until}
	for _, from := range []time.Time{d.Info.CreatedAt, d.Info.LastUpdateAt} { // earlier slots do not belong to this schedule
		now.Until = later(now.Until, from)
	}
	more := now.Counted - before.Counted
	if more < 0 { // the schedule was deleted and created again
		more = now.Counted
	}
	if more == 0 {
		if d.Schedule.State != nil && d.Schedule.State.Paused { // no slot is missed during a pause
			now.Until = later(now.Until, d.Time)
		}
		for _, taken := range d.Info.RecentActions { // Temporal looks at no earlier slot again
			now.Until = later(now.Until, taken.ScheduleTime)
		}
		return 0, now, nil
	}
	from, to := now.Until, d.Time.Add(-d.CatchUp)
	if !to.After(from) {
		return 0, now, nil
	}
	taken := 0
	for _, t := range d.Info.RecentActions {
		if t.ScheduleTime.After(from) && !t.ScheduleTime.After(to) {
			taken++
		}
	}
	all, err := between(from, to, more+taken)
	if err != nil {
		return 0, task.Slots{}, err
	}
	now.Until = to
	return min(more, max(all-taken, 0)), now, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}

// between counts the slots of a schedule after from and not after to, until it has enough. Temporal lists a thousand.
func (r Reader) between(ctx context.Context, id string, from, to time.Time, enough int) (n int, err error) {
	for n < enough {
		list, err := r.Client.WorkflowService().ListScheduleMatchingTimes(ctx, &workflowservice.ListScheduleMatchingTimesRequest{
			Namespace: r.Namespace, ScheduleId: id, StartTime: timestamppb.New(from), EndTime: timestamppb.New(to),
		})
		if err != nil {
			return 0, err
		}
		times := list.GetStartTime()
		if len(times) == 0 || !times[len(times)-1].AsTime().After(from) {
			break
		}
		n, from = n+len(times), times[len(times)-1].AsTime()
	}
	return n, nil
}
