package rules_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func TestE1_PermissionsByRoleAndPhase(t *testing.T) {
	given := spec.Spec{Permissions: map[string][]string{"writer": {"canExecuteTasks"}, "reviewer": {}, "ideator": {"canExecuteTasks", "canEditSource"}}}
	for _, c := range []struct {
		name, role, phase string
		spec              spec.Spec
		denied            string
	}{
		{"a writer writes", "writer", "modify", spec.Spec{}, ""},
		{"a fixer fixes", "fixer", "fix", spec.Spec{}, ""},
		{"an ideator looks", "ideator", "ideate", spec.Spec{}, ""},
		{"a planner plans", "planner", "plan", spec.Spec{}, ""},
		{"an ideator does not write", "ideator", "modify", spec.Spec{}, "the role ideator is not permitted canEditSource"},
		{"unless it may", "ideator", "modify", given, ""},
		{"a writer that may not edit", "writer", "modify", given, "the role writer is not permitted canEditSource"},
		{"looks", "writer", "ideate", given, ""},
		{"a reviewer that may do nothing", "reviewer", "review", given, "the role reviewer is not permitted canExecuteTasks"},
		{"nobody", "", "ideate", spec.Spec{}, "no role was given, so canExecuteTasks is not permitted"},
		{"a role that there is not", "janitor", "ideate", spec.Spec{}, "the role janitor is not permitted canExecuteTasks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := rules.PermitPhase(c.spec, c.role, c.phase)
			if c.denied == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.denied)
			require.ErrorIs(t, err, fault.New(fault.PermissionDenied, ""))
			require.ErrorIs(t, err, fault.Enforcement)
		})
	}
}

// TestE5_AnEndIsMatchedByWhatItComesOf: the contract's table has one code for all budgets, but errors.Is still tells
// the wall clock and the steps of a cycle from the others.
func TestE5_AnEndIsMatchedByWhatItComesOf(t *testing.T) {
	for cause, end := range map[fault.Code]rules.End{
		fault.WallClockExceeded: rules.BudgetEnd(loop.WallClock), fault.CycleTermination: rules.StepsEnd(10), "": rules.BudgetEnd(loop.ActiveTime),
	} {
		err := fmt.Errorf("wrapped: %w", end.Fault())
		require.ErrorIs(t, err, fault.New(fault.BudgetExhausted, ""))
		require.Equal(t, cause != "", errors.Is(err, fault.Enforcement))
		require.Equal(t, cause != "", errors.Is(err, fault.New(cause, "")))
		e := end.Event(loop.Usage{})
		require.Equal(t, []string{string(fault.BudgetExhausted), string(cause)}, []string{e.ErrorCode, e.Cause})
		require.NotEmpty(t, e.Recovery)
	}
	require.Nil(t, rules.Verified.Fault())
	require.ErrorIs(t, rules.NotPermitted.Fault(), fault.Enforcement)
}

func TestE5_EnforcementErrorsMatchAsAFamilyAndOneByOne(t *testing.T) {
	family := []fault.Code{fault.PermissionDenied, fault.WallClockExceeded, fault.ReviewMissing, fault.ReviewRejected, fault.CycleTermination}
	for _, code := range family {
		err := fmt.Errorf("wrapped: %w", fault.New(code, "x"))
		require.ErrorIs(t, err, fault.Enforcement)
		for _, other := range family {
			require.Equal(t, code == other, errors.Is(err, fault.New(other, "")))
		}
	}
	for _, k := range fault.Table {
		require.Equal(t, k.Family != "", errors.Is(fault.New(k.Code, "x"), fault.Enforcement), k.Code)
	}
	for _, code := range []fault.Code{fault.ReviewMissing, fault.ReviewRejected, fault.HashMismatch, fault.BaseMoved} {
		require.ErrorIs(t, fault.New(code, "x"), fault.ReviewGating, "E3: another hash is one of them")
	}
	require.NotErrorIs(t, fault.New(fault.PermissionDenied, "x"), fault.ReviewGating)
	require.NotErrorIs(t, errors.New("x"), fault.Enforcement)
	require.NotErrorIs(t, fault.New("NO_SUCH_CODE", ""), fault.Enforcement)
}

func TestE1_ARoleThatCannotBeCalledIsToldBeforeTheLoopStarts(t *testing.T) {
	require.Empty(t, rules.Unpermitted(spec.Spec{}))
	require.Empty(t, rules.Unpermitted(spec.Spec{Permissions: map[string][]string{"ideator": {spec.CanExecuteTasks, spec.CanEditSource}, "writer": {spec.CanEditSource, spec.CanExecuteTasks}}}))
	require.Equal(t, []string{
		"permissions.reviewer lacks canExecuteTasks, so the loop ends (PERMISSION_DENIED) when it would call that role",
		"permissions.writer lacks canExecuteTasks and canEditSource, so the loop ends (PERMISSION_DENIED) when it would call that role",
	}, rules.Unpermitted(spec.Spec{Permissions: map[string][]string{"writer": {}, "reviewer": {spec.CanEditSource}}}))
}
