package baseline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/activities/baseline"
	"pawl/activities/command"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestMain(m *testing.M) { actest.Main(m) }

var measured = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func key() baseline.Key {
	return baseline.Key{
		Contract:    ledger.Contract{Base: "b", Spec: spec.Spec{Goal: "g"}, Sealed: []loop.Seal{{Path: "a", Blob: "1"}}},
		Environment: []string{"PATH=/bin", "LANG=C", "PWD=/a"},
		Host:        "h", Build: "v", Rules: 6,
	}
}

func TestABaselineCountsOnlyWhereEverythingIsTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*baseline.Key)
		same   bool
	}{
		"nothing":                   {func(*baseline.Key) {}, true},
		"the order of variables":    {func(k *baseline.Key) { slices.Reverse(k.Environment) }, true},
		"the shell's folder":        {func(k *baseline.Key) { k.Environment[2] = "PWD=/b" }, true},
		"who starts the loop":       {func(k *baseline.Key) { k.Contract.Spec.Session = map[string]string{"user": "me"} }, true},
		"who approves the contract": {func(k *baseline.Key) { k.Contract.Spec.Approvals.Plan = spec.Auto }, true},
		"the commit":                {func(k *baseline.Key) { k.Contract.Base = "c" }, false},
		"the spec":                  {func(k *baseline.Key) { k.Contract.Spec.Verify.Command = "x" }, false},
		"a sealed file":             {func(k *baseline.Key) { k.Contract.Sealed[0].Blob = "2" }, false},
		"a variable":                {func(k *baseline.Key) { k.Environment[1] = "LANG=D" }, false},
		"another variable":          {func(k *baseline.Key) { k.Environment = append(k.Environment, "GOFLAGS=-v") }, false},
		"a variable less":           {func(k *baseline.Key) { k.Environment = k.Environment[1:] }, false},
		"the host":                  {func(k *baseline.Key) { k.Host = "i" }, false},
		"the build":                 {func(k *baseline.Key) { k.Build = "w" }, false},
		"the rules":                 {func(k *baseline.Key) { k.Rules = 7 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := key()
			c.change(&k)
			require.Equal(t, c.same, k.Name() == key().Name())
		})
	}
}

// keeps keeps a measurement of a loop's base under the key.
func keeps(t *testing.T, l *actest.Loop, k baseline.Key) {
	t.Helper()
	dir := filepath.Join(l.Home.Dir, "validate", "0000.0-verify")
	gittest.Write(t, filepath.Join(dir, "stdout"), "7\n")
	gittest.Write(t, filepath.Join(dir, "progress"), "12")
	out := api.Measured{Outcome: api.Outcome{ElapsedMs: 12, Log: dir}, Metric: new(metric.MustDecimal("7"))}
	require.NoError(t, os.MkdirAll(l.Home.Dir, 0o700))
	require.NoError(t, baseline.Keep(l.Home, k, measured, []baseline.Step{{Key: api.Key{Name: "verify"}, Dir: dir, Result: &out}}))
	require.Equal(t, dir, out.Log, "the result of validate stays as it is")
	require.Zero(t, out.Recalled)
}

func TestABaselineCountsForLessThanAnHour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age  time.Duration
		used bool
	}{
		"at once":                {0, true},
		"shortly before":         {time.Hour - time.Second, true},
		"an hour":                {time.Hour, false},
		"the clock was set back": {-time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := actest.Begin(t, spec.Deny)
			ws, err := l.Workspace(t.Context(), l.Opened.Ref)
			require.NoError(t, err)
			k := key()
			k.Contract.Base = l.Opened.Base
			keeps(t, l, k)
			kept := filepath.Join(l.Home.Baselines(), k.Name())
			info, err := os.Stat(filepath.Join(kept, "kept.json"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

			require.NoError(t, baseline.Recall(t.Context(), ws, k, measured.Add(c.age)))
			dir := filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "0000.0-verify")
			if !c.used {
				require.NoDirExists(t, dir)
				require.NoDirExists(t, kept, "nobody needs it any more")
				return
			}
			in := api.Verify{Step: l.Step(0), Command: "echo 8"}
			in.Key, in.Head = api.Key{Name: "verify"}, l.Opened.Base
			env := actest.Environment(l.Activities)
			env.RegisterActivity(l.Verify)
			verify := func() (out api.Measured) {
				v, err := env.ExecuteActivity(l.Verify, in)
				require.NoError(t, err)
				require.NoError(t, v.Get(&out))
				return out
			}
			out := verify()
			require.Equal(t, "7", out.Metric.String(), "the command does not run")
			require.True(t, measured.Equal(out.Recalled))
			require.Equal(t, dir, out.Log)
			require.FileExists(t, filepath.Join(dir, "stdout"), "it is evidence")
			require.NoFileExists(t, filepath.Join(dir, command.ProgressFile), "it has cost the loop nothing")
			require.DirExists(t, kept, "another loop may use it too")

			in.Key.Name, in.Key.Sample = "verify", 1
			out = verify()
			require.Equal(t, "8", out.Metric.String(), "what was not kept is measured")
			require.Zero(t, out.Recalled)
		})
	}
}

func TestAStepThatTheLoopHasStays(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	keeps(t, l, key())
	result := filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "0000.0-verify", command.ResultFile)
	gittest.Write(t, result, "{}")
	require.NoError(t, baseline.Recall(t.Context(), ws, key(), measured))
	text, err := os.ReadFile(result)
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
}

func TestADamagedBaselineIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	keeps(t, l, key())
	path := filepath.Join(l.Home.Baselines(), key().Name(), "0000.0-verify", command.ResultFile)
	var result map[string]json.RawMessage
	require.NoError(t, durable.ReadJSON(path, &result))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	gittest.Write(t, path, string(text[:len(text)/2]))
	require.Error(t, baseline.Recall(t.Context(), ws, key(), measured))
	require.NoDirExists(t, filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "0000.0-verify"))
}
