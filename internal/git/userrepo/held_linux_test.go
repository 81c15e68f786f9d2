package userrepo_test

import (
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/git/userrepo"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/test/harness/gittest"
	"pawl/test/harness/world"
)

// TestE6_APushGoesWholeToTheRepositoryThatItWas exchanges a repository for a copy while it takes a push. git names the
// folder for new objects by its path.
func TestE6_APushGoesWholeToTheRepositoryThatItWas(t *testing.T) {
	world.Slow(t, "it pushes 48 MiB; TestE6_AHeldRepositoryIsTheOneThatItWas holds one as well")
	t.Parallel()
	for _, kind := range []string{"with a working tree", "bare"} {
		t.Run(kind, func(t *testing.T) {
			b, _ := landBed(t)
			repo, objects := filepath.Join(t.TempDir(), "repo"), ".git/objects"
			if kind == "bare" {
				objects = "objects"
				gittest.Git(t, b.Dir, "clone", "-q", "--bare", b.User, repo)
			} else {
				require.NoError(t, os.Rename(b.User, repo))
			}
			large := make([]byte, 48<<20)
			_, _ = rand.New(rand.NewSource(1)).Read(large)
			gittest.Write(t, filepath.Join(b.Dir, "large"), string(large))
			blob := gittest.Git(t, b.Store.Dir(), "hash-object", "-w", filepath.Join(b.Dir, "large"))
			tree, err := b.Store.Git().Command("mktree").Input("100644 blob " + blob + "\tlarge\n").Run(ctx)
			require.NoError(t, err)
			commit := gittest.Git(t, b.Store.Dir(), "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-p", b.Base, "-m", "large", strings.TrimSpace(string(tree)))

			other := repo + ".other"
			require.NoError(t, exec.Command("cp", "-a", repo, other).Run())
			f, err := dirfd.Open(repo)
			require.NoError(t, err)
			held := userrepo.Held(f)
			defer held.Close()
			pushed := make(chan error, 1)
			go func() { pushed <- userrepo.Push(ctx, b.Store, held, commit+":refs/pawl-ledger/x") }()
			for {
				incoming, err := filepath.Glob(filepath.Join(repo, objects, "*incoming*", "*"))
				require.NoError(t, err)
				if len(incoming) > 0 {
					// The copy would take what comes in.
					require.NoError(t, os.MkdirAll(filepath.Join(other, objects, filepath.Base(filepath.Dir(incoming[0])), "pack"), 0o700))
					break
				}
				require.Empty(t, pushed, "the push has ended, and nothing came in before")
			}
			require.NoError(t, unix.Renameat2(unix.AT_FDCWD, repo, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE))
			require.NoError(t, <-pushed)
			require.Equal(t, commit, gittest.Git(t, other, "rev-parse", "refs/pawl-ledger/x"))
			gittest.Git(t, other, "fsck", "--connectivity-only")
			require.Empty(t, gittest.Git(t, repo, "for-each-ref", "refs/pawl-ledger/"))
		})
	}
}

// TestAPushFindsTheObjectsOfALinkedWorkingTree: a folder that is only called objects is none.
func TestAPushFindsTheObjectsOfALinkedWorkingTree(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, b.User, "worktree", "add", "-q", "--detach", linked)
	require.NoError(t, os.MkdirAll(filepath.Join(linked, "objects"), 0o755))
	f, err := dirfd.Open(linked)
	require.NoError(t, err)
	held := userrepo.Held(f)
	defer held.Close()
	require.NoError(t, userrepo.Push(ctx, b.Store, held, l.To+":refs/pawl-ledger/x"))
	require.Equal(t, l.To, gittest.Git(t, b.User, "rev-parse", "refs/pawl-ledger/x"))
	gittest.Git(t, b.User, "fsck", "--connectivity-only")
	left, err := os.ReadDir(filepath.Join(linked, "objects"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestAHeldRepositoryIsTheOneThatItWas does all that a loop does to the user's repository after the folder above it was
// renamed and a forged copy has taken its place, between the check and the call: the worst moment.
func TestE6_AHeldRepositoryIsTheOneThatItWas(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	above := filepath.Join(b.Dir, "above")
	require.NoError(t, os.Mkdir(above, 0o700))
	repo := filepath.Join(above, "repo")
	require.NoError(t, os.Rename(b.User, repo))
	f, err := dirfd.Open(repo)
	require.NoError(t, err)
	held := userrepo.Held(f)
	defer held.Close()

	canary := filepath.Join(b.Dir, "canary")
	truly := gittest.Forge(t, repo, canary)
	forged := gittest.BytesOf(t, repo)

	s, err := userrepo.Inspect(ctx, held, "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, b.Base, s.Head)
	got, err := userrepo.Fetch(ctx, b.Store, held, "main")
	require.NoError(t, err)
	assert.Equal(t, b.Base, got)
	require.NoError(t, userrepo.FetchTags(ctx, b.Store, held, "refs/heads/main"))
	require.NoError(t, userrepo.FetchAs(ctx, b.Store, held, map[string]string{"refs/heads/main": "refs/x/main"}))

	require.NoError(t, userrepo.Push(ctx, b.Store, held, l.To+":refs/heads/pawl/held"))
	assert.Equal(t, l.To, gittest.Git(t, truly, "rev-parse", "refs/heads/pawl/held"))
	refs, err := userrepo.Refs(ctx, b.Store, held, "refs/heads/pawl/*")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"refs/heads/pawl/held": l.To}, refs)
	require.NoError(t, userrepo.Move(ctx, b.Store, held, "refs/heads/pawl/held", b.Base, l.To))
	require.NoError(t, userrepo.Drop(ctx, held, "refs/heads/pawl/held", b.Base))
	at, err := userrepo.RefAt(ctx, held, "refs/heads/pawl/held")
	require.NoError(t, err)
	assert.Empty(t, at)

	l.Repo = held
	_, err = userrepo.Tip(ctx, held, "main")
	require.NoError(t, err)
	require.NoError(t, userrepo.Land(ctx, b.Store, l))
	assert.Equal(t, l.To, gittest.Git(t, truly, "rev-parse", "refs/heads/main"))
	assert.Empty(t, gittest.Git(t, truly, "status", "--porcelain"))

	folder, err := userrepo.OpenFolder(ctx, held)
	require.NoError(t, err)
	require.NoError(t, folder.Write("x", []byte("x"), userrepo.Absent))
	require.NoError(t, folder.Close())
	assert.FileExists(t, filepath.Join(truly, ".pawl", "x"))
	assert.Contains(t, gittest.Read(t, filepath.Join(truly, ".git", "info", "exclude")), ".pawl")

	assert.Equal(t, forged, gittest.BytesOf(t, repo), "nothing is done to the copy")
	assert.NoFileExists(t, canary, "and nothing of it runs")
}

// TestE6_TheStoreIsTheOneThatItWas renames pawl's own folder and puts a forged copy in its place.
func TestE6_TheStoreIsTheOneThatItWas(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	pawls := filepath.Dir(b.Store.Dir())
	require.NoError(t, dirfd.Keep(pawls))
	canary := filepath.Join(t.TempDir(), "canary")
	away := gittest.Forge(t, b.Store.Dir(), canary)
	forged := gittest.Listing(t, b.Store.Dir())

	require.NoError(t, b.Store.SetRef(ctx, "refs/heads/pawl/held", l.To, ""))
	assert.Equal(t, l.To, gittest.Git(t, away, "rev-parse", "refs/heads/pawl/held"))
	at, err := b.Store.Ref(ctx, "refs/heads/pawl/held")
	require.NoError(t, err)
	assert.Equal(t, l.To, at)
	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), "refs/heads/pawl/held"))
	assert.Equal(t, l.To, gittest.Git(t, b.User, "rev-parse", "refs/heads/pawl/held"))
	assert.Equal(t, forged, gittest.Listing(t, b.Store.Dir()))
	assert.NoFileExists(t, canary)
}

// TestE6_ARepositoryThatAFileURLNamesIsTheOneThatItWas is the same for a bare repository at a file:// URL, whose own
// hooks run like those of any URL.
func TestE6_ARepositoryThatAFileURLNamesIsTheOneThatItWas(t *testing.T) {
	t.Parallel()
	s, bare, _, first, second := shared(t)
	above := filepath.Join(t.TempDir(), "above")
	require.NoError(t, os.Mkdir(above, 0o700))
	repo := filepath.Join(above, "repo")
	require.NoError(t, os.Rename(bare, repo))
	url := "file://" + repo
	own := filepath.Join(t.TempDir(), "own")
	gittest.Write(t, filepath.Join(repo, "hooks", "post-receive"), "#!/bin/sh\ntouch '"+own+"'\n")
	require.NoError(t, os.Chmod(filepath.Join(repo, "hooks", "post-receive"), 0o755))
	f, err := dirfd.Open(repo)
	require.NoError(t, err)
	held := userrepo.HeldAt(url, f)
	defer held.Close()

	canary := filepath.Join(t.TempDir(), "canary")
	truly := gittest.Forge(t, repo, canary)
	forged := gittest.Listing(t, repo)

	source, err := userrepo.InspectAt(ctx, s, held, "", "refs/heads/pawl/x")
	require.NoError(t, err)
	assert.Equal(t, url, source.Path)
	got, err := userrepo.Fetch(ctx, s, held, "main")
	require.NoError(t, err)
	assert.Equal(t, second, got)
	require.NoError(t, userrepo.FetchTags(ctx, s, held, "refs/heads/main"))
	require.NoError(t, userrepo.MayPush(ctx, s, held, second, "refs/heads/pawl/held"))
	require.NoError(t, userrepo.Push(ctx, s, held, first+":refs/heads/pawl/held"))
	assert.Equal(t, first, gittest.Git(t, truly, "rev-parse", "refs/heads/pawl/held"))
	assert.FileExists(t, own, "its own hook")
	require.NoError(t, userrepo.Move(ctx, s, held, "refs/heads/pawl/held", second, first))
	require.NoError(t, userrepo.LandAt(ctx, s, userrepo.Landing{Repo: held, Branch: "pawl/held", From: second, To: first}))
	assert.Equal(t, first, gittest.Git(t, truly, "rev-parse", "refs/heads/pawl/held"))
	assert.Equal(t, forged, gittest.Listing(t, repo), "nothing is done to the copy")
	assert.NoFileExists(t, canary, "and nothing of it runs")
}
