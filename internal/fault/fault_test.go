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
		require.NotEmpty(t, row.Recovery(), row.Code)
		require.NotContains(t, row.Recovery(), "was kept", "%s may end a loop that kept nothing", row.Code)
		require.Contains(t, []int{1, 2, 3, 5, 6}, row.Exit, row.Code)
		require.Equal(t, row.Recovery(), fault.Recovery(row.Code))
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

func TestAnAdviceNamesWhatItIsAbout(t *testing.T) {
	closed := fault.New(fault.GateClosed, "no gate is open")
	require.Equal(t, "See `pawl show` for what the loop waits for, if anything.", closed.Advice())
	require.Equal(t, "See `pawl show 'a b'` for what the loop waits for, if anything.", closed.About(fault.Loop("a b")).Advice())
	require.Equal(t, "See `pawl steward show shop` for what the steward waits for, if anything.", closed.About(fault.Steward("shop")).Advice())
	missing := fmt.Errorf("applying: %w", fault.New(fault.ReviewMissing, "nobody has approved it"))
	require.Contains(t, fault.About(fault.Loop("x"), missing).Error(), "(`pawl diff x`) and approve exactly its hash (`pawl approve x --hash …`)")

	exact := closed.AdviseAbout("Ask the {word}: `{show}`.")
	require.Equal(t, "Ask the loop: `pawl show`.", exact.Advice())
	require.Equal(t, "Ask the loop: `pawl show`.", exact.Settled().Do, "what is sent has no placeholder")
	require.Equal(t, "Ask the loop: `pawl show x`.", exact.About(fault.Loop("x")).About(fault.Loop("y")).Advice(), "the first one to know decides")
	literal := closed.Advise("Commit it: git add '{show}'.")
	require.Equal(t, "Commit it: git add '{show}'.", literal.About(fault.Loop("x")).Advice(), "a file may have such a name")
	other := fault.New(fault.Cancelled, "cancelled")
	require.Empty(t, other.About(fault.Loop("x")).Do, "an advice that names nothing stays the table's")
	require.Equal(t, errNone, fault.About(fault.Loop("x"), errNone))
	for _, row := range fault.Table {
		require.NotContains(t, row.Recovery(), "{", row.Code)
	}
}

var errNone = errors.New("none")
