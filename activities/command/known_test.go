package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/command"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/actest"
)

// TestL2_WhatFailedOnTheUnchangedCodeIsToldApart compares test runs with one in which a test already failed.
func TestL2_WhatFailedOnTheUnchangedCodeIsToldApart(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	tap := func(lines string, exit int) string { return fmt.Sprintf("printf '%s'; exit %d", lines, exit) }
	step := func(n int) api.Step {
		s := l.Step(0)
		s.Key.Attempt = n
		return s
	}
	before, _ := l.RunTest(env, api.Test{Step: step(0), Command: tap(`not ok 1 - docker\nok 2 - a\n1..2\n`, 1)})
	require.Equal(t, []string{"docker"}, before.Tests.Failing)
	require.False(t, before.Tests.Excused || before.Tests.Progress)
	for i, c := range []struct {
		name              string
		command           string
		excused, progress bool
		known             []string
	}{
		{"as before", tap(`not ok 1 - docker\nok 2 - a\n1..2\n`, 1), true, false, []string{"docker"}},
		{"and one more passes", tap(`not ok 1 - docker\nok 2 - a\nok 3 - b\n1..3\n`, 1), true, true, []string{"docker"}},
		{"and one more fails", tap(`not ok 1 - docker\nok 2 - a\nnot ok 3 - b\n1..3\n`, 1), false, false, []string{"docker"}},
		{"another fails", tap(`ok 1 - docker\nnot ok 2 - a\n1..2\n`, 1), false, true, nil},
		{"a passed test is gone", tap(`not ok 1 - docker\n1..1\n`, 1), false, false, []string{"docker"}},
		{"no test fails, but the command does", tap(`ok 1 - docker\nok 2 - a\n1..2\n`, 1), false, true, nil},
		{"the tests are fixed", tap(`ok 1 - docker\nok 2 - a\n1..2\n`, 0), false, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := l.RunTest(env, api.Test{Step: step(i + 1), Command: c.command, Known: before.Log})
			require.Equal(t, c.excused, out.Tests.Excused)
			require.Equal(t, c.progress, out.Tests.Progress)
			require.Equal(t, c.known, out.Tests.Known)
		})
	}
	out, _ := l.RunTest(env, api.Test{Step: step(20), Command: tap(`not ok 1 - docker\n1..1\n`, 1), Known: before.Log + "-gone"})
	require.False(t, out.Tests.Excused, "the host that had the report is gone: everything counts")
}

// TestARunThatNamesNoTestSaysWhatItPrintedFirst, so that people see why it failed.
func TestARunThatNamesNoTestSaysWhatItPrintedFirst(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	for i, c := range []struct{ name, command, want string }{
		{"errors come first", "echo '> x test'; printf '\n \x1b[31mpython: No module named pytest\x1b[0m\nmore\n' >&2; exit 1", "python: No module named pytest"},
		{"an output without errors", `printf '
cannot load x
more
'; exit 1`, "cannot load x"},
		{"nothing", `exit 1`, ""},
		{"a test is named", `printf 'not ok 1 - a
1..1
'; echo warning >&2; exit 1`, ""},
		{"a run that passed", `echo warning >&2`, ""},
		{"a long line", `printf '%0300d' 0 >&2; exit 1`, strings.Repeat("0", 200)},
		{"a credential", `echo ghp_` + strings.Repeat("q7Zp2X", 6) + ` >&2; exit 1`, "[a GitHub token]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := l.Step(0)
			step.Key.Attempt = i
			out, _ := l.RunTest(env, api.Test{Step: step, Command: c.command})
			require.Equal(t, c.want, out.Tests.Printed)
		})
	}
}

// TestAGuardThatNamesFailuresHasFailed, whatever its exit code, unless it names them on the unchanged code as well.
func TestAGuardThatNamesFailuresHasFailed(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	const good, bad, worse = `printf 'ok 1 - a\nok 2 - b\n1..2\n'`, `printf 'ok 1 - a\nnot ok 2 - b\n1..2\n'`, `printf 'not ok 1 - a\nnot ok 2 - b\n1..2\n'`
	before := map[string]api.Tested{}
	for i, command := range []string{good, bad} {
		in := api.Test{Step: l.Step(0), Command: command, Strict: true}
		in.Key.Attempt = i
		before[command], _ = l.RunTest(env, in)
	}
	for i, c := range []struct {
		command string
		base    string // "" for rules before version 6
		ok      bool
	}{{good, good, true}, {bad, good, false}, {bad, "", true}, {bad, bad, true}, {worse, bad, false}} {
		in := api.Guard{Step: l.Step(0), Command: c.command}
		in.Key.Attempt = 10 + i
		test := api.Test{Step: l.Step(0), Command: c.command, Fewer: true}
		test.Key.Attempt = 20 + i
		if c.base != "" {
			in.Known = before[c.base].Tested
			test.Known, test.Strict = before[c.base].Log, true
		}
		value, err := env.ExecuteActivity(l.Guard, in)
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		require.Equal(t, c.ok, out.OK(), "%s after %s", c.command, c.base)
		tested, _ := l.RunTest(env, test)
		require.Equal(t, c.ok, tested.OK(), "%s after %s", c.command, c.base)
		if !c.ok {
			require.Contains(t, out.Failure, "it exits 0, but its output names more failures than on the unchanged code: ")
			require.Contains(t, command.EvidenceIn(out.Log), "not ok 2 - b", "the agent sees what failed")
		}
		if c.command == bad {
			require.Equal(t, "exits 0 but names failures: 1 failed, 1 passed (tap)", out.Tested.String())
		}
	}
}

// TestTestsThatVanishAreNamed, although as many pass as on the unchanged code: it is said, and decides nothing.
func TestTestsThatVanishAreNamed(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	run := func(n int, command string, known *loop.Tested) (out api.Outcome) {
		in := api.Guard{Step: l.Step(0), Command: command, Known: known}
		in.Key.Attempt, in.Intact = n, true
		value, err := env.ExecuteActivity(l.Guard, in)
		require.NoError(t, err)
		require.NoError(t, value.Get(&out))
		return out
	}
	const two = `printf 'ok 1 - a\nok 2 - b in 3ms\n1..2\n'`
	base := run(0, two, nil)
	base.Tested.Log = base.Log
	for i, c := range []struct{ command, gone string }{
		{two, ""},
		{`printf 'ok 1 - a\nok 2 - b in 9ms\n1..2\n'`, ""},
		{`printf 'ok 1 - b in 3ms\nok 2 - a\nok 3 - c\n1..3\n'`, ""},
		{`printf 'ok 1 - a\nok 2 - c\nok 3 - d\n1..3\n'`, `: b in 3ms`},
		{`printf 'ok 1 - c\nok 2 - d\n1..2\n'`, `: a, b in 3ms`},
	} {
		out := run(i+1, c.command, base.Tested)
		require.True(t, out.OK(), c.command)
		want := c.gone
		if want != "" {
			want = "tests that passed on the unchanged code are no longer among those that pass" + want
		}
		require.Equal(t, want, out.Vanished, c.command)
	}
	other := run(7, `printf '  2 passing (3ms)\n'`, base.Tested)
	require.True(t, other.OK())
	require.Equal(t, "the tests are reported by mocha, on the unchanged code by tap; whether the same ones ran is not known", other.Vanished)
	lost := *base.Tested
	lost.Log += "-gone"
	require.Empty(t, run(9, `printf 'ok 1 - c\nok 2 - d\n1..2\n'`, &lost).Vanished, "the host of the baseline is gone")
}

// TestL2_FewerTestsAreAFailure: a change that deletes a test, or leaves one out, does not pass.
func TestL2_FewerTestsAreAFailure(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	step := func(n int) api.Step {
		s := l.Step(0)
		s.Key.Attempt = n
		return s
	}
	two, one := `printf 'ok 1 - a\nok 2 - b\n1..2\n'`, `printf 'ok 1 - a\n1..1\n'`
	before, _ := l.RunTest(env, api.Test{Step: step(0), Command: two})
	for i, c := range []struct {
		command string
		fewer   bool
		ok      bool
	}{{two, false, true}, {one, false, false}, {one, true, true}, {"true", false, false}, {`printf 'ok 1 - a\nok 2 - c\nok 3 - d\n1..3\n'`, false, true}} {
		out, _ := l.RunTest(env, api.Test{Step: step(i + 1), Command: c.command, Known: before.Log, Fewer: c.fewer})
		require.Equal(t, c.ok, out.OK(), c.command)
		if !c.ok {
			require.Contains(t, out.Failure, "fewer tests pass than on the unchanged code: ")
		}
	}
	for i, c := range []struct {
		command string
		tests   int
		ok      bool
		passed  int
	}{{two, 0, true, 2}, {two, 2, true, 2}, {one, 2, false, 1}, {one, 0, true, 1}, {"true", 0, true, 0}} {
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step(10 + i), Command: c.command, Tests: c.tests})
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		require.Equal(t, c.ok, out.OK(), c.command)
		require.Equal(t, c.passed, out.Tests)
	}
}

// TestAFailingTestOfAGoModulesRootIsNamedSo: its package has the module's path, which shows no folder.
func TestAFailingTestOfAGoModulesRootIsNamedSo(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	for i, c := range []struct {
		tested string
		units  []string
	}{
		{"example.com/shop", []string{"example.com/shop", api.RootUnit}},
		{"example.com/shop/cart", []string{"example.com/shop/cart"}},
	} {
		in := api.Guard{Step: l.Step(0), Command: fmt.Sprintf(`printf '// a shop\nmodule example.com/shop\n\ngo 1.24\n' >go.mod; printf -- '--- FAIL: TestA (0.00s)\nFAIL\nFAIL\t%s\t0.1s\nFAIL\n'; exit 1`, c.tested)}
		in.Key.Attempt = i
		value, err := env.ExecuteActivity(l.Guard, in)
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		require.Equal(t, c.units, out.Failing.Units)
	}
}
