package repo_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

func TestOpenStoreMakesABareRepositoryOnceForAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "with space\n", "store")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := repo.OpenStore(ctx, dir)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, "true", git(t, dir, "rev-parse", "--is-bare-repository"))
	assert.Empty(t, git(t, dir, "for-each-ref"))
	assert.Equal(t, "/loop-results.tsv\n/loop-stop\n/loop-results.tsv.lock\n", read(t, filepath.Join(dir, "info", "exclude")))
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), fi.Mode().Perm())

	write(t, filepath.Join(dir, "config"), "[core]\n\tbare = true\n\thooksPath = /evil\n")
	_, err = repo.OpenStore(ctx, dir)
	require.NoError(t, err)
	assert.NotContains(t, read(t, filepath.Join(dir, "config")), "evil", "its config is pawl's")
}

func TestOpenStoreClearsAwayAnAttemptThatDied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	write(t, filepath.Join(dir+".new", "junk"), "")
	_, err := repo.OpenStore(ctx, dir)
	require.NoError(t, err)
	assert.NoDirExists(t, dir+".new")
	assert.NoFileExists(t, filepath.Join(dir, "junk"))
}

func TestSetRefIsACompareAndSwap(t *testing.T) {
	b := newBed(t, someFiles)
	other := b.storeGit("commit-tree", "-m", "other", b.base+"^{tree}")
	const ref = "refs/heads/pawl/other"
	var fenced *repo.Fenced

	require.NoError(t, b.store.SetRef(ctx, ref, b.base, ""))
	require.NoError(t, b.store.SetRef(ctx, ref, b.base, ""), "already there")
	require.ErrorAs(t, b.store.SetRef(ctx, ref, other, other), &fenced)
	assert.Equal(t, repo.Fenced{Ref: ref, Want: other, Have: b.base}, *fenced)
	require.ErrorAs(t, b.store.SetRef(ctx, ref, other, ""), &fenced)
	require.NoError(t, b.store.SetRef(ctx, ref, other, b.base))
	got, err := b.store.Ref(ctx, ref)
	require.NoError(t, err)
	assert.Equal(t, other, got)
	require.NoError(t, b.store.SetRef(ctx, ref, "", other))
	require.NoError(t, b.store.SetRef(ctx, ref, "", other), "already gone")
	got, err = b.store.Ref(ctx, ref)
	require.NoError(t, err)
	assert.Empty(t, got)

	for _, bad := range []string{"HEAD", "refs/heads/..", "refs/heads/a b", "--stdin"} {
		assert.Error(t, b.store.SetRef(ctx, bad, b.base, ""), bad)
		_, err := b.store.Ref(ctx, bad)
		assert.Error(t, err, bad)
	}
	assert.Error(t, b.store.SetRef(ctx, ref, "main", ""), "only object IDs")
}

func TestRefReadsPackedRefsAndReportsDamage(t *testing.T) {
	b := newBed(t, someFiles)
	b.storeGit("pack-refs", "--all")
	require.NoFileExists(t, filepath.Join(b.store.Dir(), b.branch))
	got, err := b.store.Ref(ctx, b.branch)
	require.NoError(t, err)
	assert.Equal(t, b.base, got)
	got, err = b.store.Ref(ctx, "refs/heads/pawl") // a folder, and a prefix of a packed ref
	require.NoError(t, err)
	assert.Empty(t, got)
	got, err = b.store.Ref(ctx, b.branch+"/below")
	require.NoError(t, err)
	assert.Empty(t, got)

	write(t, filepath.Join(b.store.Dir(), b.branch), "")
	_, err = b.store.Ref(ctx, b.branch)
	assert.Error(t, err, "what a power cut leaves is not an absent ref")
}

// A git that was killed leaves its lock on the ref.
func TestALeftLockDoesNotStopTheLoop(t *testing.T) {
	b := newBed(t, someFiles)
	lock := filepath.Join(b.store.Dir(), b.branch+".lock")
	write(t, lock, "")
	c := b.storeGit("commit-tree", "-p", b.base, "-m", "c", b.base+"^{tree}")
	require.NoError(t, b.store.SetRef(ctx, b.branch, c, b.base))
	write(t, lock, "")
	_, err := b.store.Commit(ctx, b.commitInput(b.storeGit("rev-parse", b.base+"^{tree}"), c))
	require.NoError(t, err)
}

func TestFetchCopies(t *testing.T) {
	user, base := userRepo(t, someFiles)
	git(t, user, "tag", "v1")
	git(t, user, "branch", "other")
	before := bytesOf(t, user)
	b := bedFor(t, user, base)
	assert.Equal(t, before, bytesOf(t, user))

	assert.NoFileExists(t, filepath.Join(b.store.Dir(), "objects", "info", "alternates"))
	assert.NotContains(t, b.storeGit("for-each-ref"), "v1")
	inodes := map[uint64]bool{}
	for _, dir := range []string{filepath.Join(user, ".git", "objects"), filepath.Join(b.store.Dir(), "objects")} {
		for name, is := range listing(t, dir) {
			var st syscall.Stat_t
			require.NoError(t, syscall.Stat(filepath.Join(dir, name), &st))
			if is != "dir" {
				assert.False(t, inodes[st.Ino], "a hard link")
				inodes[st.Ino] = true
			}
		}
	}
	require.NoError(t, os.RemoveAll(user))
	b.storeGit("fsck", "--strict")

	_, err := b.store.Fetch(ctx, user, "main")
	var ge *repo.GitError
	require.ErrorAs(t, err, &ge)
	assert.Equal(t, 128, ge.ExitCode)
	assert.Equal(t, "fetch", ge.Args[0])
	assert.NotEmpty(t, ge.Stderr)
}

func TestFetchFollowsABranchThatWasRewritten(t *testing.T) {
	b := newBed(t, someFiles)
	git(t, b.user, "commit", "-q", "--amend", "-m", "another base")
	got, err := b.store.Fetch(ctx, b.user, "refs/heads/main")
	require.NoError(t, err)
	assert.Equal(t, git(t, b.user, "rev-parse", "main"), got)
	got, err = b.store.Fetch(ctx, "file://"+b.user, "main")
	require.NoError(t, err)
	assert.Equal(t, git(t, b.user, "rev-parse", "main"), got)
}

func TestFetchFromAShallowClone(t *testing.T) {
	user, _ := userRepo(t, someFiles)
	write(t, user+"/a.txt", "2")
	git(t, user, "commit", "-qam", "second")
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, user, "clone", "-q", "--depth=1", "file://"+user, shallow)
	s, err := repo.Inspect(ctx, shallow, "", loopRef)
	require.NoError(t, err)
	assert.True(t, s.Shallow)
	b := bedFor(t, shallow, s.Head)
	desk := b.tree("desk", s.Head)
	assert.Equal(t, "1", git(t, desk.Dir, "rev-list", "--count", "HEAD"))
	write(t, desk.Dir+"/a.txt", "3")
	b.commit(desk, s.Head)
	require.NoError(t, b.store.Push(ctx, shallow, b.branch))
}

func TestAddressesAreNeitherOptionsNorCommands(t *testing.T) {
	b := newBed(t, someFiles)
	canary := filepath.Join(b.dir, "canary")
	write(t, filepath.Join(os.Getenv("HOME"), ".gitconfig"), "[protocol \"ext\"]\n\tallow = always\n")
	t.Cleanup(func() { _ = os.Remove(filepath.Join(os.Getenv("HOME"), ".gitconfig")) })
	// A transport helper is a program by name.
	write(t, b.dir+"/bin/git-remote-evil", "#!/bin/sh\ntouch "+canary+"\n")
	require.NoError(t, os.Chmod(b.dir+"/bin/git-remote-evil", 0o755))
	t.Setenv("PATH", b.dir+"/bin:"+os.Getenv("PATH"))
	for _, address := range []string{"evil::x", "evil://x", "--upload-pack=touch " + canary, "ext::touch " + canary, "", "a\x00b"} {
		_, err := b.store.Fetch(ctx, address, "main")
		assert.Error(t, err, address)
		assert.Error(t, b.store.Push(ctx, address, b.branch), address)
	}
	assert.NoFileExists(t, canary)
	for _, spec := range []string{"+" + b.branch, ":" + b.branch, "--mirror", b.branch + ":", "main:main"} {
		assert.Error(t, b.store.Push(ctx, b.user, spec), spec)
	}
	for _, branch := range []string{"--all", "a b", "", "HEAD"} {
		_, err := b.store.Fetch(ctx, b.user, branch)
		assert.Error(t, err, branch)
	}
}

func TestPushAddsTheLoopsRefsAndNothingElse(t *testing.T) {
	b := newBed(t, someFiles)
	git(t, b.user, "config", "receive.autogc", "true")
	git(t, b.user, "config", "receive.unpackLimit", "1")
	git(t, b.user, "config", "gc.autoPackLimit", "1")
	git(t, b.user, "config", "gc.autoDetach", "false")
	git(t, b.user, "repack", "-q")
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/a.txt", "better\n")
	head := b.commit(desk, b.base)
	ledger, err := b.store.Append(ctx, repo.Entry{Ref: "refs/pawl-ledger/x", Code: head, Files: map[string][]byte{"state.json": []byte("{}")}, Author: who, Time: when})
	require.NoError(t, err)
	before := bytesOf(t, b.user)

	require.NoError(t, b.store.Push(ctx, b.user, b.branch, ledger+":refs/pawl-ledger/x"))
	require.NoError(t, b.store.Push(ctx, b.user, b.branch, ledger+":refs/pawl-ledger/x"), "once more")

	assert.Equal(t, head, git(t, b.user, "rev-parse", "refs/heads/pawl/x"))
	assert.Equal(t, ledger, git(t, b.user, "rev-parse", "refs/pawl-ledger/x"))
	for path, is := range bytesOf(t, b.user) {
		if !strings.HasPrefix(path, ".git/objects/") && !strings.Contains(path, "/pawl") && is != "dir" {
			assert.Equal(t, before[path], is, path)
		}
		delete(before, path)
	}
	assert.Empty(t, before, "nothing is gone")
	git(t, b.user, "fsck", "--strict")
}

func TestPushTellsARefusalFromAFailure(t *testing.T) {
	setup := func(t *testing.T) (*bed, string) {
		b := newBed(t, someFiles)
		desk := b.tree("desk", b.base)
		write(t, desk.Dir+"/a.txt", "better\n")
		return b, b.commit(desk, b.base)
	}
	for name, c := range map[string]struct {
		kind string
		do   func(t *testing.T, b *bed, head string)
	}{
		"another host's ledger": {repo.RefusedNonFastForward, func(t *testing.T, b *bed, _ string) {
			git(t, b.user, "update-ref", b.branch, git(t, b.user, "commit-tree", "-p", b.base, "-m", "other", b.base+"^{tree}"))
		}},
		"checked out": {repo.RefusedCheckedOut, func(t *testing.T, b *bed, _ string) {
			git(t, b.user, "checkout", "-q", "-b", "pawl/x")
		}},
		"a hook": {repo.RefusedHook, func(t *testing.T, b *bed, _ string) {
			hook := filepath.Join(b.user, ".git", "hooks", "pre-receive")
			write(t, hook, "#!/bin/sh\necho not today >&2\nexit 1\n")
			require.NoError(t, os.Chmod(hook, 0o755))
		}},
		"a name in the way": {repo.RefusedOther, func(t *testing.T, b *bed, _ string) {
			git(t, b.user, "branch", "pawl")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, head := setup(t)
			c.do(t, b, head)
			err := b.store.Push(ctx, b.user, b.branch)
			var r *repo.Refused
			require.ErrorAs(t, err, &r)
			assert.Equal(t, c.kind, r.Kind, r.Error())
			assert.Equal(t, b.branch, r.Ref)
			if c.kind == repo.RefusedHook {
				assert.Contains(t, r.Stderr, "not today")
			}
		})
	}
	b, _ := setup(t)
	var r *repo.Refused
	var ge *repo.GitError
	err := b.store.Push(ctx, filepath.Join(b.dir, "nowhere"), b.branch)
	require.ErrorAs(t, err, &ge)
	require.False(t, assert.ObjectsAreEqual(r, err))
	err = b.store.Push(ctx, b.user, "refs/heads/pawl/absent")
	require.ErrorAs(t, err, &ge)
}

func TestACancelledCallSaysSo(t *testing.T) {
	b := newBed(t, someFiles)
	done, cancel := contextWithCancel()
	cancel()
	_, err := b.store.Fetch(done, b.user, "main")
	require.ErrorIs(t, err, done.Err())
	_, err = b.store.Files(done, b.base)
	require.ErrorIs(t, err, done.Err())
}

// A fetch that hangs takes what it started with it.
func TestACancelledFetchLeavesNoProcess(t *testing.T) {
	b := newBed(t, someFiles)
	pidFile := filepath.Join(b.dir, "pid")
	ssh := filepath.Join(b.dir, "ssh")
	write(t, ssh, "#!/bin/sh\ntrap '' TERM\necho $$ >"+pidFile+".new\nmv "+pidFile+".new "+pidFile+"\nwhile :; do sleep 0.05; done\n")
	require.NoError(t, os.Chmod(ssh, 0o755))
	t.Setenv("GIT_SSH_COMMAND", ssh)
	hanging, cancel := contextWithCancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.store.Fetch(hanging, "ssh://nowhere.invalid/x", "main")
		done <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(pidFile); return err == nil }, time.Minute, time.Millisecond)
	cancel()
	err := <-done
	require.ErrorIs(t, err, hanging.Err())
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, pidFile)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, time.Millisecond)
	_, err = b.store.Fetch(ctx, b.user, "main")
	require.NoError(t, err, "no lock is left")
}

func TestVersion(t *testing.T) {
	v, err := repo.Version(ctx)
	require.NoError(t, err)
	assert.Regexp(t, `^\d+\.\d+`, v)
	git := filepath.Join(t.TempDir(), "git")
	write(t, git, "#!/bin/sh\necho git version 2.20.1\n")
	require.NoError(t, os.Chmod(git, 0o755))
	t.Setenv("PATH", filepath.Dir(git)+":"+os.Getenv("PATH"))
	_, err = repo.Version(ctx)
	require.ErrorContains(t, err, "git 2.20.1 is too old; install 2.34 or later")
	require.NotEmpty(t, repo.Failed(err))
	t.Setenv("PATH", t.TempDir())
	_, err = repo.Version(ctx)
	require.ErrorContains(t, err, "install")
}
