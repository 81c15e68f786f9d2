package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/integrations/schedule"
	"pawl/internal/steward/task"
)

// TestS5_AMissedSlotIsCountedOnce follows a nightly schedule with a catch-up window of an hour. Temporal counts a
// missed slot again at every look, until an action succeeds.
func TestS5_AMissedSlotIsCountedOnce(t *testing.T) {
	night := func(day int) time.Time { return time.Date(2026, 11, day, 2, 0, 0, 0, time.UTC) }
	between := func(from, to time.Time, _ int) (n int, err error) {
		for day := 1; day < 31; day++ {
			if at := night(day); at.After(from) && !at.After(to) {
				n++
			}
		}
		return n, nil
	}
	type look struct {
		at      time.Time
		counted int         // Temporal's count
		taken   []time.Time // the times of the last actions
		paused  bool
		made    time.Time
		missed  int
	}
	made := night(1).Add(-time.Hour)
	for name, looks := range map[string][]look{
		"all are taken": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(2).Add(6 * time.Hour), taken: []time.Time{night(1), night(2)}},
		},
		"one is missed, and counted again with the next": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(2).Add(7 * time.Hour), counted: 1, taken: []time.Time{night(1)}, missed: 1},
			{at: night(2).Add(8 * time.Hour), counted: 3, taken: []time.Time{night(1)}},
			{at: night(3).Add(time.Minute), counted: 4, taken: []time.Time{night(1), night(3)}},
			{at: night(3).Add(9 * time.Hour), counted: 4, taken: []time.Time{night(1), night(3)}},
			{at: night(4).Add(9 * time.Hour), counted: 5, taken: []time.Time{night(1), night(3)}, missed: 1},
		},
		"two are missed, and each is counted twice before anybody looks": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(4).Add(30 * time.Minute), counted: 4, taken: []time.Time{night(1), night(4)}, missed: 2},
			{at: night(4).Add(90 * time.Minute), counted: 4, taken: []time.Time{night(1), night(4)}},
		},
		"the steward looks before Temporal does": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(2).Add(7 * time.Hour), taken: []time.Time{night(1)}},
			{at: night(2).Add(8 * time.Hour), counted: 2, taken: []time.Time{night(1)}, missed: 1},
		},
		"one is taken, and the next is missed": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(3).Add(7 * time.Hour), counted: 2, taken: []time.Time{night(1), night(2)}, missed: 1},
		},
		"a slot taken late is not missed": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(3).Add(5 * time.Hour), counted: 1, taken: []time.Time{night(1), night(3)}, missed: 1},
		},
		"a pause misses nothing": {
			{at: night(1).Add(time.Minute), taken: []time.Time{night(1)}},
			{at: night(9).Add(9 * time.Hour), taken: []time.Time{night(1)}, paused: true},
			{at: night(10).Add(9 * time.Hour), counted: 3, taken: []time.Time{night(1)}, missed: 1},
		},
		"a schedule that is made anew counts from zero": {
			{at: night(2).Add(7 * time.Hour), counted: 4, missed: 2},
			{at: night(5).Add(time.Hour), made: night(4).Add(time.Hour)},
			{at: night(5).Add(7 * time.Hour), counted: 2, made: night(4).Add(time.Hour), missed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := task.Slots{}
			for i, l := range looks {
				d := sdk.ScheduleDescription{Schedule: sdk.Schedule{State: &sdk.ScheduleState{Paused: l.paused}}}
				d.Info.NumActionsMissedCatchupWindow, d.Info.CreatedAt = l.counted, made
				if !l.made.IsZero() {
					d.Info.CreatedAt = l.made
				}
				for _, at := range l.taken {
					d.Info.RecentActions = append(d.Info.RecentActions, sdk.ScheduleActionResult{ScheduleTime: at})
				}
				n, now, err := schedule.Since(known, schedule.At{ScheduleDescription: &d, Time: l.at, CatchUp: time.Hour}, between)
				require.NoError(t, err)
				require.Equal(t, l.missed, n, "look %d", i)
				known = now
			}
		})
	}
}
