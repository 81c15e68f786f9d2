package loop_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clockOf returns a steward's loop with an hour of wall clock, and a function that applies events to it, at a minute
// after its beginning.
func clockOf(steward string) (s *loop.State, happens func(minute int, e loop.Event)) {
	now := loop.New("x", "improve")
	s = &now
	happens = func(minute int, e loop.Event) {
		e.Seq, e.Time = s.Seq+1, began.Add(time.Duration(minute)*time.Minute)
		*s = s.Apply(e)
	}
	hour := map[loop.Resource]metric.Decimal{loop.WallClock: loop.Count(time.Hour.Milliseconds())}
	happens(0, loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Limits: hour, Steward: steward}})
	return s, happens
}

func minutes(b loop.Budget) float64 { return b[loop.WallClock].Used.Float() / 60_000 }

func TestTheWallClockDoesNotCountAPauseOfItsSteward(t *testing.T) {
	for _, c := range []struct {
		name, steward, by string
		counted           float64
	}{
		{"its own steward", "crew", "steward crew", 15},
		{"another steward", "crew", "steward other", 45},
		{"a person", "crew", "ann", 45},
		{"nobody", "crew", "", 45},
		{"a loop without a steward", "", "steward ", 45},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, happens := clockOf(c.steward)
			happens(10, loop.Event{Type: loop.AutonomyPaused, Reason: "pause", By: c.by})
			happens(20, loop.Event{Type: loop.GateEscalated})
			happens(40, loop.Event{Type: loop.AutonomyResumed, By: c.by})
			happens(45, loop.Event{Type: loop.StepEnded})
			require.Equal(t, c.counted, minutes(s.Budget))
			require.Equal(t, c.counted+5, minutes(s.Clocked(began.Add(50*time.Minute))))
		})
	}
}

func TestTheWallClockStandsWhileItsStewardHasPausedTheLoop(t *testing.T) {
	s, happens := clockOf("crew")
	happens(10, loop.Event{Type: loop.AutonomyPaused, Reason: "pause", By: "steward crew"})
	require.Equal(t, 10.0, minutes(s.Clocked(began.Add(time.Hour))))
	happens(70, loop.Event{Type: loop.LoopResumed, Opened: &loop.Opened{}}) // another run continues: the pause is over
	require.Equal(t, 10.0, minutes(s.Budget))
	happens(75, loop.Event{Type: loop.StepEnded})
	require.Equal(t, 15.0, minutes(s.Budget))
}

// Events happen in any order, and clocks disagree. The test computes the expected time itself.
func TestTheWallClockNeverDecreasesAndCountsNoPauseOfItsSteward(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		s, happens := clockOf("crew")
		minute, counted, stopped, backwards := 0, 0, false, random.IntN(2) == 0
		for range 40 {
			before, step := s.Budget, random.IntN(10)
			if backwards && random.IntN(5) == 0 {
				step = -random.IntN(minute + 1)
			}
			minute += step
			if !stopped {
				counted += step
			}
			e := []loop.Event{
				{Type: loop.AutonomyPaused, Reason: "pause", By: "steward crew"},
				{Type: loop.AutonomyPaused, Reason: "pause", By: "ann"},
				{Type: loop.AutonomyPaused, Reason: "breakpoint"},
				{Type: loop.AutonomyResumed, By: "steward crew"},
				{Type: loop.LoopResumed, Opened: &loop.Opened{}},
				{Type: loop.StepEnded},
			}[random.IntN(6)]
			happens(minute, e)
			switch {
			case e.Type == loop.AutonomyPaused && e.By == "steward crew":
				stopped = true
			case e.Type == loop.AutonomyResumed || e.Type == loop.LoopResumed:
				stopped = false
			}
			require.GreaterOrEqual(t, minutes(s.Budget), minutes(before))
			if !backwards {
				require.Equal(t, float64(counted), minutes(s.Budget))
			}
		}
	}
}
