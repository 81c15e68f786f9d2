package hostrecord_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/fsutil/durable"
)

func record(loop, ref string) hostrecord.Record {
	return hostrecord.Record{Loop: loop, Ref: ref, FirstRun: "run-" + ref, Store: "/stores/x.git", Ledger: "refs/pawl-ledger/" + ref, Keep: []string{"cache/**"}}
}

func hostWith(t *testing.T, records ...hostrecord.Record) home.Home {
	t.Helper()
	h := home.Home{Dir: filepath.Join(t.TempDir(), "with a [bracket]")}
	for _, r := range records {
		require.NoError(t, hostrecord.Write(h, r))
	}
	return h
}

func damage(t *testing.T, h home.Home, ref, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(h.Loop(ref), "workspace.json"), []byte(content), 0o600))
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	h := hostWith(t, record("x", "x"))
	got, err := hostrecord.Read(h, "x")
	require.NoError(t, err)
	require.Equal(t, record("x", "x"), got)
	_, err = hostrecord.Read(h, "y")
	require.ErrorIs(t, err, fs.ErrNotExist)
	fi, err := os.Stat(h.Loop("x"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), fi.Mode().Perm())
}

func TestATornRecordIsNoRecordAndIsNoticed(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "zeroes": "\x00\x00\x00", "cut off": `{"loop": "x", "re`, "of another loop": `{"loop": "y", "ref": "y"}`, "with nothing in it": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := hostWith(t, record("x", "x"), record("z", "z"))
			damage(t, h, "x", content)
			_, err := hostrecord.Read(h, "x")
			require.ErrorIs(t, err, durable.ErrTorn)
			records, err := hostrecord.List(h)
			require.NoError(t, err)
			require.Equal(t, []hostrecord.Record{record("z", "z")}, records)
			torn, err := hostrecord.Torn(h)
			require.NoError(t, err)
			require.Equal(t, []string{"x"}, torn)
			require.NoError(t, hostrecord.Drop(h, "x"))
			_, err = hostrecord.Read(h, "x")
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

func TestAHostListsItsLoops(t *testing.T) {
	h := hostWith(t)
	records, err := hostrecord.List(h)
	require.NoError(t, err)
	require.Empty(t, records, "before its first")

	for _, r := range []hostrecord.Record{record("x", "x.2"), record("x", "x"), record("a", "a")} {
		require.NoError(t, hostrecord.Write(h, r))
	}
	require.NoError(t, os.MkdirAll(h.Loop("folder"), 0o700))
	require.NoError(t, os.WriteFile(h.Loop("file"), nil, 0o600))
	records, err = hostrecord.List(h)
	require.NoError(t, err)
	require.Equal(t, []hostrecord.Record{record("a", "a"), record("x", "x"), record("x", "x.2")}, records)
	torn, err := hostrecord.Torn(h)
	require.NoError(t, err)
	require.Empty(t, torn, "a folder that has no record yet has none that is torn")
}

func TestTheLatestLoopOfANameWasOpenedLastOrHasTheHighestNumber(t *testing.T) {
	h := hostWith(t, record("x", "x"), record("x", "x.2"), record("x", "x.10"), record("x", "x.9"), record("y", "y"))
	got, ok := hostrecord.Latest(h, "x")
	require.True(t, ok)
	require.Equal(t, "x.10", got.Ref)

	again := record("x", "x.2") // a run continues from its ledger
	again.OpenedAt = time.Now()
	require.NoError(t, hostrecord.Write(h, again))
	got, ok = hostrecord.Latest(h, "x")
	require.True(t, ok)
	require.Equal(t, "x.2", got.Ref)
	records, err := hostrecord.Of(h, "x")
	require.NoError(t, err)
	var refs []string
	for _, r := range records {
		refs = append(refs, r.Ref)
	}
	require.Equal(t, []string{"x.2", "x.10", "x.9", "x"}, refs)
	_, ok = hostrecord.Latest(h, "z")
	require.False(t, ok)
}

func TestWhatIsAnnouncedIsKnownUntilItIsRetracted(t *testing.T) {
	h := hostWith(t)
	announced, err := hostrecord.Announced(h)
	require.NoError(t, err)
	require.Empty(t, announced)

	x, y := hostrecord.Record{Loop: "x", FirstRun: "run-x"}, hostrecord.Record{Loop: "y", FirstRun: "run-y"}
	require.NoError(t, hostrecord.Announce(h, x))
	require.NoError(t, hostrecord.Announce(h, y))
	opening := filepath.Join(h.Dir, "opening")
	require.NoError(t, os.WriteFile(filepath.Join(opening, ".new-1.json"), nil, 0o600), "a draft that a crash left")
	announced, err = hostrecord.Announced(h)
	require.NoError(t, err)
	require.Equal(t, []hostrecord.Record{x, y}, announced)

	require.NoError(t, os.WriteFile(filepath.Join(opening, "run-y.json"), nil, 0o600))
	hostrecord.Retract(h, x)
	announced, err = hostrecord.Announced(h)
	require.NoError(t, err)
	require.Equal(t, []hostrecord.Record{{FirstRun: "run-y"}}, announced, "a torn one has its file's name")
}

func TestALoopsProcessesAreMarkedByItsRunAndItsStore(t *testing.T) {
	a, b := record("x", "x"), record("x", "x")
	b.Store = "/elsewhere/x.git"
	require.NotEqual(t, a.Token(), b.Token(), "another PAWL_HOME on the same machine may have the loop since")
	require.Contains(t, a.Token(), a.FirstRun)
}

func TestTheRepositoryOfARecordIsKnownByItsFolders(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	clone := func(path string) { require.NoError(t, os.MkdirAll(filepath.Join(path, ".git"), 0o700)) }
	clone(repo)
	for _, r := range []hostrecord.Record{{Repo: repo}, {Repo: "file://" + repo, Remote: true}} {
		hold := func() error {
			f, err := r.Hold()
			if err == nil {
				defer f.Close()
				here, herr := home.Identify(f.Here())
				there, terr := home.Identify(repo)
				require.NoError(t, errors.Join(herr, terr))
				require.Equal(t, there, here)
			}
			return err
		}
		require.NoError(t, hold(), "one that was never noted")
		require.NoError(t, r.Locate(nil))
		require.NoError(t, hold())
		require.NoError(t, os.Rename(repo, repo+".away"))
		require.ErrorIs(t, hold(), fs.ErrNotExist)
		clone(repo)
		require.ErrorIs(t, hold(), hostrecord.ErrReplaced, "another one")
		require.NoError(t, os.RemoveAll(repo))
		require.NoError(t, os.Rename(repo+".away", repo))
		require.NoError(t, hold())
		require.NoError(t, os.Rename(repo+"/.git", dir+"/away"))
		clone(repo)
		require.ErrorIs(t, hold(), hostrecord.ErrReplaced, "another one in the same working tree")
		require.NoError(t, os.RemoveAll(repo+"/.git"))
		require.NoError(t, os.Rename(dir+"/away", repo+"/.git"))
	}
	elsewhere := hostrecord.Record{Repo: "https://example.com/x.git", Remote: true}
	require.NoError(t, elsewhere.Locate(nil))
}

func TestTheCommandThatResumesIsThatOfTheKind(t *testing.T) {
	r := record("x", "x.2")
	require.Equal(t, "pawl start --id x --ledger", r.Resuming())
	r.Kind = "steward"
	require.Equal(t, "pawl steward up --ledger", r.Resuming())
}
