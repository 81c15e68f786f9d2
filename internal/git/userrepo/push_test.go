package userrepo_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

func TestFetchCopies(t *testing.T) {
	t.Parallel()
	user, base := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, user, "tag", "v1")
	gittest.Git(t, user, "branch", "other")
	before := gittest.BytesOf(t, user)
	b := gittest.BedFor(t, user, base)
	assert.Equal(t, before, gittest.BytesOf(t, user))

	assert.NoFileExists(t, filepath.Join(b.Store.Dir(), "objects", "info", "alternates"))
	assert.NotContains(t, b.StoreGit("for-each-ref"), "v1")
	inodes := map[uint64]bool{}
	for _, dir := range []string{filepath.Join(user, ".git", "objects"), filepath.Join(b.Store.Dir(), "objects")} {
		for name, is := range gittest.Listing(t, dir) {
			var st syscall.Stat_t
			require.NoError(t, syscall.Stat(filepath.Join(dir, name), &st))
			if is != "dir" {
				assert.False(t, inodes[st.Ino], "a hard link")
				inodes[st.Ino] = true
			}
		}
	}
	require.NoError(t, os.RemoveAll(user))
	b.StoreGit("fsck", "--strict")

	_, err := userrepo.Fetch(ctx, b.Store, userrepo.At(user), "main")
	var ge *git.Error
	require.ErrorAs(t, err, &ge)
	assert.Equal(t, 128, ge.ExitCode)
	assert.Equal(t, "fetch", ge.Args[0])
	assert.NotEmpty(t, ge.Stderr)
}

func TestFetchFollowsABranchThatWasRewritten(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	gittest.Git(t, b.User, "commit", "-q", "--amend", "-m", "another base")
	got, err := userrepo.Fetch(ctx, b.Store, userrepo.At(b.User), "refs/heads/main")
	require.NoError(t, err)
	assert.Equal(t, gittest.Git(t, b.User, "rev-parse", "main"), got)
	got, err = userrepo.Fetch(ctx, b.Store, userrepo.At("file://"+b.User), "main")
	require.NoError(t, err)
	assert.Equal(t, gittest.Git(t, b.User, "rev-parse", "main"), got)
}

func TestFetchFromAShallowClone(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Write(t, user+"/a.txt", "2")
	gittest.Git(t, user, "commit", "-qam", "second")
	shallow := filepath.Join(t.TempDir(), "shallow")
	gittest.Git(t, user, "clone", "-q", "--depth=1", "file://"+user, shallow)
	s, err := userrepo.Inspect(ctx, userrepo.At(shallow), "", loopRef)
	require.NoError(t, err)
	b := gittest.BedFor(t, shallow, s.Head)
	desk := b.Tree("desk", s.Head)
	assert.Equal(t, "1", gittest.Git(t, desk.Dir, "rev-list", "--count", "HEAD"))
	gittest.Write(t, desk.Dir+"/a.txt", "3")
	b.Commit(desk, s.Head)
	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(shallow), b.Branch))
}

func TestAddressesAreNeitherOptionsNorCommands(t *testing.T) {
	b := gittest.NewBed(t, gittest.SomeFiles)
	canary := filepath.Join(b.Dir, "canary")
	gittest.Write(t, filepath.Join(os.Getenv("HOME"), ".gitconfig"), "[protocol \"ext\"]\n\tallow = always\n")
	t.Cleanup(func() { _ = os.Remove(filepath.Join(os.Getenv("HOME"), ".gitconfig")) })
	// A transport helper is a program that git finds by name.
	gittest.Write(t, b.Dir+"/bin/git-remote-evil", "#!/bin/sh\ntouch "+canary+"\n")
	require.NoError(t, os.Chmod(b.Dir+"/bin/git-remote-evil", 0o755))
	t.Setenv("PATH", b.Dir+"/bin:"+os.Getenv("PATH"))
	for _, address := range []string{"evil::x", "evil://x", "--upload-pack=touch " + canary, "ext::touch " + canary, "", "a\x00b"} {
		_, err := userrepo.Fetch(ctx, b.Store, userrepo.At(address), "main")
		assert.Error(t, err, address)
		assert.Error(t, userrepo.Push(ctx, b.Store, userrepo.At(address), b.Branch), address)
	}
	assert.NoFileExists(t, canary)
	for _, spec := range []string{"+" + b.Branch, ":" + b.Branch, "--mirror", b.Branch + ":", "main:main"} {
		assert.Error(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), spec), spec)
	}
	for _, branch := range []string{"--all", "a b", "", "HEAD"} {
		_, err := userrepo.Fetch(ctx, b.Store, userrepo.At(b.User), branch)
		assert.Error(t, err, branch)
	}
}

func TestPushAddsTheLoopsRefsAndNothingElse(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	gittest.Git(t, b.User, "config", "receive.autogc", "true")
	gittest.Git(t, b.User, "config", "receive.unpackLimit", "1")
	gittest.Git(t, b.User, "config", "gc.autoPackLimit", "1")
	gittest.Git(t, b.User, "config", "gc.autoDetach", "false")
	gittest.Git(t, b.User, "repack", "-q")
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, b.Base)
	ledger, err := gittest.Append(b.Store, store.Entry{Ref: "refs/pawl-ledger/x", Code: head, Files: map[string][]byte{"state.json": []byte("{}")}, Author: gittest.Who, Time: gittest.When})
	require.NoError(t, err)
	before := gittest.BytesOf(t, b.User)

	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch, ledger+":refs/pawl-ledger/x"))
	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch, ledger+":refs/pawl-ledger/x"), "once more")

	assert.Equal(t, head, gittest.Git(t, b.User, "rev-parse", "refs/heads/pawl/x"))
	assert.Equal(t, ledger, gittest.Git(t, b.User, "rev-parse", "refs/pawl-ledger/x"))
	for path, is := range gittest.BytesOf(t, b.User) {
		if !strings.HasPrefix(path, ".git/objects/") && !strings.Contains(path, "/pawl") && is != "dir" {
			assert.Equal(t, before[path], is, path)
		}
		delete(before, path)
	}
	assert.Empty(t, before, "nothing is gone")
	gittest.Git(t, b.User, "fsck", "--strict")
}

func TestPushTellsARefusalFromAFailure(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*gittest.Bed, string) {
		b := gittest.NewBed(t, gittest.SomeFiles)
		desk := b.Tree("desk", b.Base)
		gittest.Write(t, desk.Dir+"/a.txt", "better\n")
		return b, b.Commit(desk, b.Base)
	}
	for name, c := range map[string]struct {
		do string
		by func(t *testing.T, b *gittest.Bed, head string)
	}{
		"another host's ledger": {"the ref has been moved there", func(t *testing.T, b *gittest.Bed, _ string) {
			gittest.Git(t, b.User, "update-ref", b.Branch, gittest.Git(t, b.User, "commit-tree", "-p", b.Base, "-m", "other", b.Base+"^{tree}"))
		}},
		"checked out": {"check out another branch there", func(t *testing.T, b *gittest.Bed, _ string) {
			gittest.Git(t, b.User, "checkout", "-q", "-b", "pawl/x")
		}},
		"a name in the way": {"", func(t *testing.T, b *gittest.Bed, _ string) {
			gittest.Git(t, b.User, "branch", "pawl")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, head := setup(t)
			c.by(t, b, head)
			err := userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch)
			var r *userrepo.Refused
			require.ErrorAs(t, err, &r)
			assert.Equal(t, c.do, r.Do, r.Error())
			assert.Equal(t, b.Branch, r.Ref)
		})
	}
	b, _ := setup(t)
	var r *userrepo.Refused
	var ge *git.Error
	err := userrepo.Push(ctx, b.Store, userrepo.At(filepath.Join(b.Dir, "nowhere")), b.Branch)
	require.ErrorAs(t, err, &ge)
	require.False(t, assert.ObjectsAreEqual(r, err))
	err = userrepo.Push(ctx, b.Store, userrepo.At(b.User), "refs/heads/pawl/absent")
	require.ErrorAs(t, err, &ge)
}

func TestACancelledCallSaysSo(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := userrepo.Fetch(done, b.Store, userrepo.At(b.User), "main")
	require.ErrorIs(t, err, done.Err())
	_, err = b.Store.Entries(done, b.Base)
	require.ErrorIs(t, err, done.Err())
}

// A cancelled fetch ends the processes that it started.
func TestACancelledFetchLeavesNoProcess(t *testing.T) {
	b := gittest.NewBed(t, gittest.SomeFiles)
	pidFile := filepath.Join(b.Dir, "pid")
	ssh := filepath.Join(b.Dir, "ssh")
	gittest.Write(t, ssh, "#!/bin/sh\ntrap '' TERM\necho $$ >"+pidFile+".new\nmv "+pidFile+".new "+pidFile+"\nwhile :; do sleep 0.05; done\n")
	require.NoError(t, os.Chmod(ssh, 0o755))
	t.Setenv("GIT_SSH_COMMAND", ssh)
	hanging, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := userrepo.Fetch(hanging, b.Store, userrepo.At("ssh://nowhere.invalid/x"), "main")
		done <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(pidFile); return err == nil }, time.Minute, time.Millisecond)
	cancel()
	err := <-done
	require.ErrorIs(t, err, hanging.Err())
	pid, err := strconv.Atoi(strings.TrimSpace(gittest.Read(t, pidFile)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, time.Millisecond)
	_, err = userrepo.Fetch(ctx, b.Store, userrepo.At(b.User), "main")
	require.NoError(t, err, "no lock is left")
}

// TestA7_NoHookRunsOnEitherSideOfAPush plants hooks and programs that git could run in both repositories.
func TestA7_NoHookRunsOnEitherSideOfAPush(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	canary := filepath.Join(t.TempDir(), "canary")
	other := filepath.Join(t.TempDir(), "other")
	gittest.Git(t, b.Dir, "clone", "--quiet", "--bare", b.User, other)
	for _, dir := range []string{filepath.Join(b.User, ".git"), b.Store.Dir()} {
		for _, hook := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-push", "pre-auto-gc"} {
			gittest.Write(t, filepath.Join(dir, "hooks", hook), "#!/bin/sh\ntouch '"+canary+"'\nexit 1\n")
			require.NoError(t, os.Chmod(filepath.Join(dir, "hooks", hook), 0o755))
		}
		for key, value := range map[string]string{"core.fsmonitor": filepath.Join(dir, "hooks", "update"), "core.alternateRefsCommand": "touch '" + canary + "'; :", "uploadpack.packObjectsHook": filepath.Join(dir, "hooks", "update")} {
			gittest.Git(t, dir, "config", key, value)
		}
		gittest.Write(t, filepath.Join(dir, "objects", "info", "alternates"), filepath.Join(other, "objects")+"\n")
	}
	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch))
	require.NoFileExists(t, canary)
	_, err := userrepo.Fetch(ctx, b.Store, userrepo.At(b.User), "main")
	require.NoError(t, err)
	require.NoFileExists(t, canary)
	require.Equal(t, b.Base, gittest.Git(t, b.User, "rev-parse", b.Branch))
}
