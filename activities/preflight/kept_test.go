package preflight_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/activities/preflight"
	"pawl/internal/exec/sandbox"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
	"pawl/test/harness/tier"
)

// shelter skips a test on a machine without a sandbox for files.
func shelter(t *testing.T) {
	t.Helper()
	if sandbox.Probe().Files != sandbox.ByNothing {
		return
	}
	if tier.Nightly {
		t.Fatal("this machine has no sandbox for files")
	}
	t.Skip("this machine has no sandbox for files")
}

// project makes a repository, and the document of a spec for a metric loop on it.
func project(t *testing.T, verify, guard string) (user string, h home.Home, s spec.Spec) {
	t.Helper()
	dir := t.TempDir()
	user = filepath.Join(dir, "user")
	gittest.Write(t, user+"/src/a.py", "def f():\n    return 2\n")
	gittest.Write(t, user+"/was/a.py", "def f():\n    return 2\n")
	gittest.Git(t, user, "init", "-q", "-b", "main")
	gittest.Git(t, user, "add", "-A")
	gittest.Git(t, user, "commit", "-qm", "base")
	s, err := spec.Parse(fmt.Appendf(nil, `{"name": "x", "goal": "g", "repo": {"path": %q}, "scope": ["src/**"], "verify": {"command": %q}, "guard": {"command": %q},
		"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user, verify, guard))
	require.NoError(t, err)
	h, err = home.At(filepath.Join(dir, "home"))
	require.NoError(t, err)
	return user, h, s
}

const counts, notices = "cat src/* | wc -c", "diff -r src was"

// measures opens a loop and measures its unchanged code, as its workflow does first.
func measures(t *testing.T, h home.Home, s spec.Spec) (api.Measured, api.Outcome, api.Canaried) {
	t.Helper()
	a := activities.New(h, "host", "pawl", "default", false)
	t.Cleanup(a.Stop)
	opened, err := a.Open(t.Context(), api.Open{Loop: "x", FirstRun: "first", Spec: s})
	require.NoError(t, err)
	step := func(name string) api.Step {
		return api.Step{Ref: opened.Ref, Key: api.Key{Name: name}, Head: opened.Base, LimitMs: 60_000, Intact: true}
	}
	env := actest.Environment(a)
	do := func(activity, in, out any) {
		t.Helper()
		env.RegisterActivity(activity)
		v, err := env.ExecuteActivity(activity, in)
		require.NoError(t, err)
		require.NoError(t, v.Get(out))
	}
	var v api.Measured
	do(a.Verify, api.Verify{Step: step("verify"), Command: s.Verify.Command, Unchanged: true}, &v)
	var g api.Outcome
	do(a.Guard, api.Guard{Step: step("guard"), Command: s.Guard.Command}, &g)
	var c api.Canaried
	do(a.Canary, api.Canary{Step: step("canary"), Spec: s, Guard: s.Guard.Command, Hollow: true}, &c)
	return v, g, c
}

// TestALoopTakesOverWhatValidateMeasured: of the same contract in the same environment, and only then.
func TestALoopTakesOverWhatValidateMeasured(t *testing.T) {
	shelter(t)
	for name, c := range map[string]struct {
		between func(t *testing.T, user string, h home.Home, s *spec.Spec)
		taken   bool
	}{
		"nothing changed": {func(*testing.T, string, home.Home, *spec.Spec) {}, true},
		"who approves":    {func(_ *testing.T, _ string, _ home.Home, s *spec.Spec) { s.Approvals.Plan = spec.Auto }, true},
		"a commit": {func(t *testing.T, user string, _ home.Home, _ *spec.Spec) {
			gittest.Write(t, user+"/new", "")
			gittest.Git(t, user, "add", "-A")
			gittest.Git(t, user, "commit", "-qm", "next")
		}, false},
		"the spec":        {func(_ *testing.T, _ string, _ home.Home, s *spec.Spec) { s.Goal = "another" }, false},
		"the environment": {func(t *testing.T, _ string, _ home.Home, _ *spec.Spec) { t.Setenv("LC_TIME", "xx") }, false},
		"the host": {func(t *testing.T, _ string, h home.Home, _ *spec.Spec) {
			gittest.Write(t, filepath.Join(h.Dir, "host-id"), "another\n")
		}, false},
		"the age": {func(t *testing.T, _ string, h home.Home, _ *spec.Spec) {
			all, err := filepath.Glob(filepath.Join(h.Baselines(), "*", "kept.json"))
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.NoError(t, durable.WriteJSON(all[0], map[string]any{"time": time.Now().Add(-time.Hour)}))
		}, false},
		"it lies in reach": {func(_ *testing.T, _ string, h home.Home, s *spec.Spec) { s.Sandbox.Use = spec.Off }, false},
	} {
		t.Run(name, func(t *testing.T) {
			user, h, s := project(t, counts, notices)
			f, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
			require.NoError(t, err)
			require.Empty(t, f.Problems)
			c.between(t, user, h, &s)
			v, g, canary := measures(t, h, s)
			require.Equal(t, "22", v.Metric.String())
			require.True(t, g.OK())
			require.True(t, canary.Seen)
			for _, out := range []api.Outcome{v.Outcome, g, canary.Outcome} {
				require.Equal(t, c.taken, !out.Recalled.IsZero())
			}
		})
	}
}

// delivers makes the spec one of a delivery with tests.
func delivers(test string) func(*testing.T, home.Home, *spec.Spec) {
	return func(_ *testing.T, _ home.Home, s *spec.Spec) {
		s.Kind, s.Test.Command, s.Verify.Command = "deliver", test, ""
	}
}

// untested makes the spec one of a delivery that needs no tests.
func untested(t *testing.T, h home.Home, s *spec.Spec) {
	delivers("")(t, h, s)
	s.Test.Required = new(bool)
}

// TestADeliveryTakesOverWhatValidateFound: how its guard and its tests end on the unchanged code.
func TestADeliveryTakesOverWhatValidateFound(t *testing.T) {
	shelter(t)
	t.Parallel()
	_, h, s := project(t, counts, notices)
	delivers("echo 'not ok 1 - a'; exit 1")(t, h, &s)
	f, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
	require.NoError(t, err)
	require.Empty(t, f.Problems)

	a := activities.New(h, "host", "pawl", "default", false)
	t.Cleanup(a.Stop)
	opened, err := a.Open(t.Context(), api.Open{Loop: "x", FirstRun: "first", Spec: s})
	require.NoError(t, err)
	step := func(name string) api.Step {
		return api.Step{Ref: opened.Ref, Key: api.Key{Name: name}, Head: opened.Base, LimitMs: 60_000}
	}
	env := actest.Environment(a)
	env.RegisterActivity(a.Test)
	env.RegisterActivity(a.Guard)
	v, err := env.ExecuteActivity(a.Test, api.Test{Step: step("test"), Command: s.Test.Command})
	require.NoError(t, err)
	var tested api.Tested
	require.NoError(t, v.Get(&tested))
	require.False(t, tested.Recalled.IsZero())
	require.Equal(t, 1, tested.ExitCode)
	require.Equal(t, []string{"a"}, tested.Tests.Failing)
	guard := api.Guard{Step: step("guard"), Command: s.Guard.Command}
	guard.Intact = true
	v, err = env.ExecuteActivity(a.Guard, guard)
	require.NoError(t, err)
	var guarded api.Outcome
	require.NoError(t, v.Get(&guarded))
	require.False(t, guarded.Recalled.IsZero())
}

// TestADeliveryIsToldThatItsTestsDoNotSeeTheCode: its contract shows what validate found, and a delivery tries no canary.
func TestADeliveryIsToldThatItsTestsDoNotSeeTheCode(t *testing.T) {
	shelter(t)
	for test, misses := range map[string]string{
		"echo 'ok 1 - a'": "a syntax error in your code",
		"python3 -m compileall -q src && echo 'ok 1 - a'": "functions that always fail",
		"diff -r src was && echo 'ok 1 - a'":              "",
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			_, h, s := project(t, counts, "")
			delivers(test)(t, h, &s)
			_, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
			require.NoError(t, err)
			a := activities.New(h, "host", "pawl", "default", false)
			t.Cleanup(a.Stop)
			opened, err := a.Open(t.Context(), api.Open{Loop: "x", FirstRun: "first", Spec: s})
			require.NoError(t, err)
			env := actest.Environment(a)
			env.RegisterActivity(a.Test)
			v, err := env.ExecuteActivity(a.Test, api.Test{
				Step:    api.Step{Ref: opened.Ref, Key: api.Key{Name: "test"}, Head: opened.Base, LimitMs: 60_000},
				Command: s.Test.Command,
			})
			require.NoError(t, err)
			var tested api.Tested
			require.NoError(t, v.Get(&tested))
			require.False(t, tested.Recalled.IsZero())
			require.Equal(t, misses, tested.Outcome.Tested.Misses)
		})
	}
}

// TestValidateKeepsNothingThatIsNotSure: a loop has to find it out for itself.
func TestValidateKeepsNothingThatIsNotSure(t *testing.T) {
	shelter(t)
	for name, c := range map[string]struct {
		verify, guard string
		change        func(t *testing.T, h home.Home, s *spec.Spec)
		kept          bool
	}{
		"sure":          {counts, notices, nil, true},
		"a problem":     {counts, "false", nil, false},
		"no number":     {"true", notices, nil, false},
		"a blind guard": {counts, "true", nil, false},
		"files changed": {counts + "; echo >> was/a.py", notices, nil, false},
		"no sandbox":    {counts, notices, func(_ *testing.T, _ home.Home, s *spec.Spec) { s.Sandbox.Use = spec.Off }, false},
		"much noise": {"od -An -N2 -tu2 /dev/urandom", notices, func(_ *testing.T, _ home.Home, s *spec.Spec) {
			s.Verify.MinDelta, _ = metric.ParseThreshold("1")
		}, false},
		"a delivery":                {counts, notices, delivers(notices), true},
		"a delivery without tests":  {counts, notices, untested, true},
		"a delivery of no command":  {counts, "", untested, false},
		"tests known to fail":       {counts, notices, delivers("exit 3"), true},
		"tests without a program":   {counts, notices, delivers("exit 127"), false},
		"a delivery's failed guard": {counts, "false", delivers(notices), true},
		"another loop is measuring": {counts, notices, func(t *testing.T, h home.Home, _ *spec.Spec) {
			lock, err := durable.TryLock(h.JudgeSlot())
			require.NoError(t, err)
			t.Cleanup(func() { lock.Close() })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, h, s := project(t, c.verify, c.guard)
			if c.change != nil {
				c.change(t, h, &s)
			}
			_, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
			require.NoError(t, err)
			kept, err := filepath.Glob(filepath.Join(h.Baselines(), "*"))
			require.NoError(t, err)
			require.Equal(t, c.kept, len(kept) > 0)
		})
	}
}

// TestCommandsCanNotReachWhatIsKept, even if the spec names the place and allows to write there.
func TestCommandsCanNotReachWhatIsKept(t *testing.T) {
	shelter(t)
	t.Parallel()
	_, h, s := project(t, counts, notices)
	require.NoError(t, os.MkdirAll(h.Baselines(), 0o700))
	forged := filepath.Join(h.Baselines(), "forged")
	s.Verify.Command = "{ echo 1 > " + forged + "; } 2>/dev/null; " + counts
	s.Sandbox.Allow = []string{h.Baselines(), h.Dir}
	f, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
	require.NoError(t, err)
	require.NotNil(t, f.Verify, "%v", f.Problems)
	require.NoFileExists(t, forged)
}
