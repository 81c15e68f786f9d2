package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
)

func TestL11_EveryCodeHasItsRowOnce(t *testing.T) {
	seen := map[fault.Code]bool{}
	for _, row := range fault.Table {
		require.False(t, seen[row.Code], row.Code)
		seen[row.Code] = true
		require.NotEmpty(t, row.Meaning, row.Code)
		require.NotEmpty(t, row.Recovery, row.Code)
		require.NotContains(t, row.Recovery, "was kept", "%s may end a loop that kept nothing", row.Code)
		require.Contains(t, []int{1, 2, 3, 5, 6}, row.Exit, row.Code)
		require.Equal(t, row.Recovery, fault.Recovery(row.Code))
	}
	for i, code := range []fault.Code{
		fault.LoopNotFound, fault.LoopAlreadyRunning, fault.LoopNotPaused, fault.MaxIterations, fault.MaxFixAttempts, fault.GuardBlocked,
		fault.TestFailed, fault.PhaseTimeout, fault.InvalidTransition, fault.Cancelled, fault.AgentFailed,
	} {
		require.Equal(t, code, fault.Table[i].Code, "the eleven of the phase machine come first")
	}
	_, known := fault.Lookup("NO_SUCH_CODE")
	require.False(t, known)
	require.Empty(t, fault.Recovery("NO_SUCH_CODE"))
}

func TestAFaultSaysWhatHappenedAndWhatToDo(t *testing.T) {
	f := fault.New(fault.GateClosed, "no gate is open on %s", "x")
	require.Equal(t, "no gate is open on x\n"+fault.Recovery(fault.GateClosed), f.Error())
	require.Equal(t, "no gate is open on x\nWait.", f.Advise("Wait.").Error())
	require.Equal(t, fault.Recovery(fault.GateClosed), f.Advice(), "advising makes another one")
	require.Equal(t, "odd", fault.New("NO_SUCH_CODE", "odd").Error())
}

func TestE5_FaultsAreMatchedByCodeByCauseAndByFamily(t *testing.T) {
	wrapped := fmt.Errorf("applying: %w", fault.New(fault.HashMismatch, "another hash"))
	require.ErrorIs(t, wrapped, fault.New(fault.HashMismatch, ""))
	require.NotErrorIs(t, wrapped, fault.New(fault.ReviewMissing, ""))
	require.ErrorIs(t, wrapped, fault.ReviewGating)
	require.ErrorIs(t, wrapped, fault.Enforcement, "a family within a family")
	require.Equal(t, fault.HashMismatch, fault.CodeOf(wrapped))
	require.Empty(t, fault.CodeOf(errors.New("none")))

	spent := fault.New(fault.BudgetExhausted, "out of time")
	require.NotErrorIs(t, spent, fault.Enforcement)
	spent.Cause = fault.WallClockExceeded
	require.ErrorIs(t, spent, fault.Enforcement)
	require.ErrorIs(t, spent, fault.New(fault.WallClockExceeded, ""))
	require.ErrorIs(t, spent, fault.New(fault.BudgetExhausted, ""))
	require.Equal(t, fault.WallClockExceeded, spent.Advise("x").Cause)
}
