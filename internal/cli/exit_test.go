package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// L11: the caller gets every code of the table as an exit code of the contract.
func TestL11_EveryFaultHasAnExitCodeOfTheContract(t *testing.T) {
	known := map[int]bool{}
	for code := range exitMeanings {
		known[code] = true
	}
	for _, kind := range fault.Table {
		err := fmt.Errorf("while doing something: %w", fault.New(kind.Code, "it happened"))
		require.Equal(t, kind.Exit, exitCode(err), kind.Code)
		require.True(t, known[kind.Exit], "%s exits with %d, which --help does not explain", kind.Code, kind.Exit)
	}
}

func TestErrorsMapToExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":             {nil, 0},
		"something unknown":   {errors.New("disk full"), 1},
		"wrong usage":         {usage("what?"), 2},
		"an invalid spec":     {fmt.Errorf("loading: %w", spec.Problems{{Key: "goal"}}), 2},
		"a refused message":   {fault.New(fault.HashMismatch, "no"), 2},
		"a loop that failed":  {ended(loop.Failed, fault.PhaseTimeout), 3},
		"an unknown failure":  {ended(loop.Failed, "SOMETHING"), 3},
		"an open gate":        {&leaving{code: exitGate}, 4},
		"a signal":            {errInterrupted, 5},
		"a cancelled context": {fmt.Errorf("waiting: %w", context.Canceled), 5},
		"a halted loop":       {ended(loop.Halted, fault.Cancelled), 5},
		"a budget used up":    {ended(loop.Halted, fault.BudgetExhausted), 6},
		"a completed loop":    {ended(loop.Completed, ""), 0},
		"an iteration limit":  {ended(loop.Completed, fault.MaxIterations), 0},
		"a precondition":      {ended(loop.Failed, fault.PreconditionFailed), 2},
		"an unreachable host": {fault.New(fault.EngineUnreachable, "x"), 1},
	} {
		require.Equal(t, c.want, exitCode(c.err), name)
	}
}

func TestOnlyLoopsBegunSinceThisProcessStartedHoldIt(t *testing.T) {
	began := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	records := []hostrecord.Record{
		{Loop: "old", OpenedAt: began.Add(-time.Hour)}, {Loop: "new", OpenedAt: began.Add(time.Minute)},
		{Loop: "again", OpenedAt: began.Add(-time.Hour)}, {Loop: "again", OpenedAt: began.Add(time.Minute)},
	}
	for id, want := range map[string]bool{"old": true, "new": false, "again": false, "unknown": true} {
		require.Equal(t, want, older(records, id, began), id)
	}
}
