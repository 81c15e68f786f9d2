package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/git/store"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// says appends an event to the loop's ledger as Temporal would.
func says(l *actest.Loop, env *testsuite.TestActivityEnvironment, text string) (out api.Appended, err error) {
	l.Helper()
	value, err := env.ExecuteActivity(l.Record, api.Record{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: text})})
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

func damagedLoop(t *testing.T) (l *actest.Loop, env *testsuite.TestActivityEnvironment, log func() string, record hostrecord.Record) {
	t.Helper()
	l, _, buffer := actest.BeginLogged(t)
	env = actest.Environment(l.Activities)
	env.RegisterActivity(l.Record)
	record, err := hostrecord.Read(l.Home, l.Opened.Ref)
	require.NoError(t, err)
	return l, env, buffer.String, record
}

func TestAStoreThatIsLostIsMadeAgainFromTheRepository(t *testing.T) {
	t.Parallel()
	l, env, log, r := damagedLoop(t)
	out, err := says(l, env, "pushed with this")
	require.NoError(t, err)
	l.Ledger = out.Ledger
	require.NoError(t, os.RemoveAll(r.Store))
	again, err := says(l, env, "after the damage")
	require.NoError(t, err)
	require.NotEqual(t, out.Ledger, again.Ledger)
	require.Contains(t, log(), "a store was damaged and is mended")

	want := "the store " + r.Store + " is gone; it is mended"
	require.Equal(t, []string{want}, again.Mended, "the loop is told, to record it")
	l.Ledger = again.Ledger
	told, err := says(l, env, want)
	require.NoError(t, err)
	require.Empty(t, told.Mended, "now the ledger has it")
	require.Len(t, repairlog.Lines(l.Home.Loop(l.Opened.Ref)), 1, "and this host still knows it")
}

// A repair along the way is reported too, because nothing else shows it.
func TestWhatIsWrittenAgainIsNamed(t *testing.T) {
	t.Parallel()
	l, env, log, r := damagedLoop(t)
	out, err := says(l, env, "one")
	require.NoError(t, err)
	l.Ledger = out.Ledger
	require.Empty(t, out.Mended)

	require.NoError(t, os.Truncate(hostrecord.Heads(l.Home, l.Opened.Ref), 9))
	out, err = says(l, env, "two")
	require.NoError(t, err)
	l.Ledger = out.Ledger
	heads := "the note of where its ledger and branch are could not be read: it is written again"
	require.Equal(t, []string{heads}, out.Mended)
	require.Equal(t, out.Ledger, hostrecord.Noted(l.Home, l.Opened.Ref)[r.Ledger])

	other := r
	other.Ref = "other"
	require.NoError(t, hostrecord.Write(l.Home, other))
	require.NoError(t, os.Truncate(filepath.Join(r.Store, "config"), 0))
	_, err = store.Open(t.Context(), r.Store) // like `pawl show`
	require.NoError(t, err)
	out, err = says(l, env, heads)
	require.NoError(t, err)
	require.Len(t, out.Mended, 1)
	require.Contains(t, out.Mended[0], "config of the store "+r.Store)
	require.Equal(t, out.Mended, repairlog.Untold(l.Home.Loop("other")), "it has the same store")
	require.Contains(t, log(), "config of the store")
}

func TestADeskThatIsGoneIsMadeAgainAndNamed(t *testing.T) {
	t.Parallel()
	l, env, _, _ := damagedLoop(t)
	env.RegisterActivity(l.Test)
	in := api.Test{Step: l.Step(1), Command: "true"}
	l.RunTest(env, in)
	require.Empty(t, repairlog.Lines(l.Home.Loop(l.Opened.Ref)), "the first one was made, and none was lost")
	require.NoError(t, os.RemoveAll(hostrecord.Record{Ref: l.Opened.Ref, Short: hostrecord.ShortName(l.Home, l.Opened.Ref)}.Judge(l.Home)))
	l.Stop()
	in.Step = l.Step(2)
	l.RunTest(env, in)
	require.Equal(t, []string{"the judge could not be used (the tree was missing or replaced): it is made again"}, repairlog.Untold(l.Home.Loop(l.Opened.Ref)))
}

func TestWhatOnlyALostStoreHadEndsTheLoopWithWhatToDo(t *testing.T) {
	t.Parallel()
	l, env, _, r := damagedLoop(t)
	out, err := says(l, env, "pushed with this")
	require.NoError(t, err)
	pushed := out.Ledger
	require.NoError(t, os.Rename(filepath.Join(r.Repo, ".git"), filepath.Join(r.Repo, "away")))
	l.Ledger = pushed
	out, err = says(l, env, "it could not be pushed")
	require.NoError(t, err)
	require.NotEmpty(t, out.PushRefused)
	require.NoError(t, os.Rename(filepath.Join(r.Repo, "away"), filepath.Join(r.Repo, ".git")))
	require.NoError(t, os.RemoveAll(r.Store))
	l.Ledger = out.Ledger
	_, err = says(l, env, "after the damage")
	var app *temporal.ApplicationError
	require.True(t, errors.As(err, &app), "%v", err)
	require.Equal(t, "LEDGER_DAMAGED", app.Type())
	require.Contains(t, app.Message(), "pawl start --id x --ledger "+pushed)
}

// A loop whose ledger nobody has any more is over. It does not try for ever to append to it.
func TestALedgerThatIsNowhereEndsTheLoop(t *testing.T) {
	t.Parallel()
	l, env, _, r := damagedLoop(t)
	out, err := says(l, env, "pushed with this")
	require.NoError(t, err)
	l.Ledger = out.Ledger
	for _, ref := range []string{r.Ledger, r.Branch} {
		gittest.Git(t, r.Repo, "update-ref", "-d", ref)
	}
	require.NoError(t, os.RemoveAll(r.Store))
	require.NoError(t, os.Rename(filepath.Join(r.Repo, ".git"), filepath.Join(r.Repo, "away")))
	_, err = says(l, env, "while the repository is away")
	var app *temporal.ApplicationError
	require.True(t, errors.As(err, &app), "%v", err)
	require.NotEqual(t, "LEDGER_DAMAGED", app.Type(), "the repository may have it")
	require.NoError(t, os.Rename(filepath.Join(r.Repo, "away"), filepath.Join(r.Repo, ".git")))
	_, err = says(l, env, "after the damage")
	require.True(t, errors.As(err, &app), "%v", err)
	require.Equal(t, "LEDGER_DAMAGED", app.Type(), app.Message())
	require.True(t, app.NonRetryable())
	require.Contains(t, app.Message(), "neither the store nor the repository has refs/pawl-ledger/x")
}

// A loop does not try for ever to bring its trees to a commit that nobody has any more. One byte is another one in an object
// of its last commit, which is in no other repository yet.
func TestACommitThatIsLostEndsTheLoopThatStandsOnIt(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]string{"the commit": "x^{commit}", "its folder": "x^{tree}", "its file": "x:work/a"} {
		t.Run(name, func(t *testing.T) {
			l, env, log, r := damagedLoop(t)
			env.RegisterActivity(l.Test)
			out, err := says(l, env, "pushed with this")
			require.NoError(t, err)
			pushed := out.Ledger
			l.Ledger = pushed
			require.NoError(t, os.Rename(filepath.Join(r.Repo, ".git"), filepath.Join(r.Repo, "away")))
			l.Iterate()
			gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
			l.CommitDesk("")
			require.NoError(t, os.Rename(filepath.Join(r.Repo, "away"), filepath.Join(r.Repo, ".git")))

			id := strings.TrimSpace(gittest.Git(t, r.Store, "rev-parse", l.Head+strings.TrimPrefix(of, "x")))
			l.Stop() // it makes the judge ahead
			at := []string{filepath.Join(r.Store, "objects", id[:2], id[2:])}
			if _, err := os.Stat(at[0]); err != nil {
				at, err = filepath.Glob(filepath.Join(r.Store, "objects", "pack", "*.pack"))
				require.NoError(t, err)
			}
			for _, file := range at {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				b[len(b)/2] ^= 1
				require.NoError(t, os.Chmod(file, 0o600))
				require.NoError(t, os.WriteFile(file, b, 0o600))
			}
			require.NoError(t, os.RemoveAll(hostrecord.Record{Ref: l.Opened.Ref, Short: hostrecord.ShortName(l.Home, l.Opened.Ref)}.Judge(l.Home)))

			_, err = env.ExecuteActivity(l.Test, api.Test{Step: l.Step(1), Command: "true"})
			var app *temporal.ApplicationError
			require.True(t, errors.As(err, &app), "%v", err)
			require.Equal(t, "LEDGER_DAMAGED", app.Type(), app.Message())
			require.True(t, app.NonRetryable())
			require.Contains(t, app.Message(), "pawl start --id x --ledger "+pushed)
			require.Contains(t, log(), "a store was damaged and is mended")
			require.Regexp(t, "it is mended, but the last commits of these refs are lost: .*refs/pawl-ledger/x", repairlog.Untold(l.Home.Loop(l.Opened.Ref))[0])
		})
	}
}

func TestARefThatIsEmptiedIsPutBack(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"refs/pawl-ledger/x", "refs/heads/pawl/x"} {
		t.Run(ref, func(t *testing.T) {
			l, env, log, r := damagedLoop(t)
			out, err := says(l, env, "it has a ledger")
			require.NoError(t, err)
			require.NoError(t, os.Truncate(filepath.Join(r.Store, ref), 0))
			l.Ledger = out.Ledger
			_, err = says(l, env, "after the damage")
			require.NoError(t, err)
			_, err = l.Mend(t.Context(), r, false)
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(r.Store, ref))
			require.NoError(t, err)
			require.Len(t, string(b), 41)
			require.Contains(t, log(), "a store was damaged and is mended")
		})
	}
}

func TestASoundStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	l, env, log, r := damagedLoop(t)
	_, err := says(l, env, "it has a ledger")
	require.NoError(t, err)
	what, err := l.Mend(t.Context(), r, true)
	require.NoError(t, err)
	require.Empty(t, what)
	require.NotContains(t, log(), "damaged")
}

// If the user moves the branch in the repository, that is reported once, with what to do.
func TestABranchThatSomebodyMovedIsSaidOnce(t *testing.T) {
	t.Parallel()
	l, env, _, r := damagedLoop(t)
	out, err := says(l, env, "the branch is there")
	require.NoError(t, err)
	require.Empty(t, out.PushRefused)
	gittest.Git(t, r.Repo, "commit", "--quiet", "--allow-empty", "-m", "mine")
	gittest.Git(t, r.Repo, "update-ref", "refs/heads/pawl/x", "HEAD")
	var said []string
	for range 4 {
		l.Ledger = out.Ledger
		out, err = says(l, env, "go on")
		require.NoError(t, err)
		if out.PushRefused != "" {
			said = append(said, out.PushRefused)
		}
	}
	require.Len(t, said, 1)
	require.Contains(t, said[0], "Somebody has moved the branch pawl/x there")
	require.Contains(t, said[0], "git branch -m pawl/x pawl/x-moved")
}
