package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop/rules"
)

// held creates what this host has of two loops that have ended and one that has not.
func held(t *testing.T, b *bench) home.Home {
	h, err := home.Open()
	require.NoError(t, err)
	for _, r := range []hostrecord.Record{
		{Ref: "old", Store: filepath.Join(h.Dir, "gone.git"), Closed: true},
		{Ref: "older", Store: filepath.Join(h.Dir, "gone.git"), Closed: true},
		{Ref: "running", Store: filepath.Join(h.Dir, "other.git")},
	} {
		r.Loop, r.Repo, r.Ledger = r.Ref, b.dir, "refs/pawl-ledger/"+r.Ref
		for _, folder := range []string{hostrecord.Steps(h, r.Ref), r.Desk(h), hostrecord.Admin(h, r.Ref, "desk")} {
			require.NoError(t, os.MkdirAll(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte("0123456789"), 0o600))
		}
		require.NoError(t, hostrecord.Write(h, r))
	}
	return h
}

func refs(t *testing.T, h home.Home) string {
	records, err := hostrecord.List(h)
	require.NoError(t, err)
	var all []string
	for _, r := range records {
		all = append(all, r.Ref)
	}
	return strings.Join(all, " ")
}

func TestCleanShowsFirstAndRemovesWhenItIsTold(t *testing.T) {
	b := newBench(t, newFake())
	h := held(t, b)
	require.Equal(t, 0, b.run(nil, "clean"), b.stderr.String())
	require.Contains(t, b.stdout.String(), h.Loop("old"))
	require.Contains(t, b.stdout.String(), "stays   running: everything (it has not ended)")
	require.Contains(t, b.stderr.String(), "nothing was removed; pass --yes to remove it")
	require.Equal(t, "old older running", refs(t, h))

	b.atTerminal()
	require.Equal(t, 5, b.run(strings.NewReader("n\n"), "clean"))
	require.Equal(t, "old older running", refs(t, h))
	require.Equal(t, 0, b.run(strings.NewReader("y\n"), "clean", "old"))
	require.Contains(t, b.stderr.String(), "pawl: removed\n")
	require.NoDirExists(t, hostrecord.Record{Ref: "old"}.Desk(h))
	require.NoDirExists(t, hostrecord.Steps(h, "old"))
	require.DirExists(t, hostrecord.Record{Ref: "older"}.Desk(h), "which nobody named")

	b = newBenchIn(t, b)
	require.Equal(t, 0, b.run(nil, "clean", "--yes", "--json"), b.stderr.String())
	var out cli.Cleaned
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &out))
	require.True(t, out.Removed)
	require.Equal(t, []cli.Keeping{{Loop: "running", What: "everything", Why: "it has not ended"}}, out.Kept)
	require.Equal(t, "running", refs(t, h))
	require.DirExists(t, hostrecord.Record{Ref: "running"}.Desk(h))
	require.Equal(t, 2, b.run(nil, "clean", "nobody"))
}

// Halted while it opened, a loop has left nothing.
func TestCleanOfALoopThatNeverOpenedSaysThatNothingIsHere(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "clean", "loop-1", "--yes"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "stays   loop-1: everything (it has not ended)")

	f.end(rules.Interrupted.Because("enough"))
	b = newBenchIn(t, b)
	require.Equal(t, 0, b.run(nil, "clean", "loop-1", "--yes"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "nothing of loop-1 is on this host")
	require.Equal(t, 2, b.run(nil, "clean", "loop-2", "--yes"))
}

// newBenchIn is another command line on the same host.
func newBenchIn(t *testing.T, old *bench) *bench {
	at := os.Getenv("PAWL_HOME")
	b := newBench(t, old.temporal)
	t.Setenv("PAWL_HOME", at)
	return b
}

// TestE6_CleanRemovesFromTheHomeThatItWas renames $PAWL_HOME and puts a forged copy in its place.
func TestE6_CleanRemovesFromTheHomeThatItWas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors of folders have no names here")
	}
	b := newBench(t, newFake())
	h := held(t, b) // it is open from now on
	away := home.Home{Dir: h.Dir + ".away"}
	require.NoError(t, os.Rename(h.Dir, away.Dir))
	require.NoError(t, os.CopyFS(h.Dir, os.DirFS(away.Dir)))
	require.Equal(t, 0, b.run(nil, "clean", "--yes", "old"), b.stderr.String())
	require.NoDirExists(t, hostrecord.Record{Ref: "old"}.Desk(away))
	require.NoDirExists(t, hostrecord.Steps(away, "old"))
	require.DirExists(t, hostrecord.Record{Ref: "old"}.Desk(h), "which is the copy")
	require.DirExists(t, hostrecord.Steps(h, "old"))
}

func TestCleanLeavesRecordsToAWorkerThatRuns(t *testing.T) {
	b := newBench(t, newFake())
	h := held(t, b)
	lock, err := os.Create(h.WorkerLock())
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	require.Equal(t, 0, b.run(nil, "clean", "--yes"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "stays   old: store (a worker runs on this host)")
	require.NoDirExists(t, hostrecord.Steps(h, "old"))
	require.Equal(t, "old older running", refs(t, h))
}

// TestCleanSaysWhyALedgerStays: the reason for a ledger differs from that for a store which another loop needs.
func TestCleanSaysWhyALedgerStays(t *testing.T) {
	b := newBench(t, newFake())
	h := held(t, b)
	require.Equal(t, 0, b.run(nil, "clean", "--refs", "old"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "stays   old: store (the loop older uses it too)")
	require.Contains(t, b.stdout.String(), "stays   old: ledger (it stays with its store: the loop older uses it too)")
	require.NoDirExists(t, filepath.Join(h.Dir, "gone.git"), "looking makes no store")
}
