package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func TestP55_AGuardThatFailedIsRunAgain(t *testing.T) {
	course := rules.ImproveOf(spec.Spec{}, rules.NewestVersion)
	failed := &api.Failing{Signature: "a", Units: []string{"example.com/shop/cart"}}
	usual := rules.GuardFailure{InTime: true, Files: []string{"cart/cart.go"}, Failing: failed}
	with := func(change func(*rules.GuardFailure)) rules.GuardFailure {
		f := usual
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		of   rules.GuardFailure
		want bool
	}{
		"a test fails":                        {usual, true},
		"its output shows no test":            {with(func(f *rules.GuardFailure) { f.Failing = nil }), true},
		"it was run again":                    {with(func(f *rules.GuardFailure) { f.Retried = 1 }), false},
		"there is no time":                    {with(func(f *rules.GuardFailure) { f.InTime = false }), false},
		"it took too long":                    {with(func(f *rules.GuardFailure) { f.Final = true }), false},
		"it could not be built":               {with(func(f *rules.GuardFailure) { f.Failing = &api.Failing{Broken: true} }), false},
		"it failed so before the rework":      {with(func(f *rules.GuardFailure) { f.Before = "a" }), false},
		"it failed otherwise":                 {with(func(f *rules.GuardFailure) { f.Before = "b" }), true},
		"the change touches the test":         {with(func(f *rules.GuardFailure) { f.Files = []string{"cart/cart_test.go"} }), false},
		"the change touches another test":     {with(func(f *rules.GuardFailure) { f.Files = []string{"list/list_test.go"} }), true},
		"the change touches the test's file":  {of("tests/test_cart.py", "tests/test_cart.py"), false},
		"the change touches the test's class": {of("com.example.CartTest", "src/test/java/com/example/CartTest.java"), false},
		"the test's file by its full path":    {of("/w/judge/tests/cart.test.js", "tests/cart.test.js"), false},
		"a test of the root package":          {of(api.RootUnit, "cart_test.go"), false},
		"code of the root package":            {of(api.RootUnit, "cart.go"), true},
		"a hidden file of the root":           {of(api.RootUnit, ".gitignore"), true},
		"a test of another package":           {of(api.RootUnit, "list/list_test.go"), true},
		"another file of that name":           {of("tests/cart.py", "src/other.py"), true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, course.RetriesGuard(c.of))
			require.Equal(t, c.want, rules.DeliverOf(spec.Spec{}, rules.NewestVersion).RetriesGuard(c.of))
		})
	}
	require.False(t, rules.ImproveOf(spec.Spec{}, 5).RetriesGuard(usual), "a running loop keeps its rules")
	require.False(t, rules.DeliverOf(spec.Spec{}, 5).RetriesGuard(usual))
	zero := 0
	letter := rules.ImproveOf(spec.Spec{Guard: spec.Guard{Retries: &zero}}, rules.NewestVersion)
	require.False(t, letter.RetriesGuard(usual))
}

// of is a failing test's unit, and the file that the change touched.
func of(unit, file string) rules.GuardFailure {
	return rules.GuardFailure{InTime: true, Files: []string{file}, Failing: &api.Failing{Units: []string{unit}}}
}
