package userrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

// shared returns a bare repository with two commits on main, its URL, and a store.
func shared(t *testing.T) (s *store.Store, bare, url, first, second string) {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	bare = filepath.Join(dir, "bare.git")
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch=main", work)
	for _, n := range []string{"1", "2"} {
		gittest.Write(t, filepath.Join(work, "n"), n)
		gittest.Git(t, work, "add", "n")
		gittest.Git(t, work, "commit", "--quiet", "-m", n)
	}
	gittest.Git(t, dir, "clone", "--quiet", "--bare", work, bare)
	s, err := store.Open(ctx, filepath.Join(dir, "store.git"))
	require.NoError(t, err)
	return s, bare, "file://" + bare, gittest.Git(t, work, "rev-parse", "HEAD~1"), gittest.Git(t, work, "rev-parse", "HEAD")
}

func TestP0_InspectAt(t *testing.T) {
	t.Parallel()
	s, bare, url, _, head := shared(t)
	got, err := userrepo.InspectAt(ctx, s, userrepo.At(url), "", "refs/heads/pawl/x")
	require.NoError(t, err)
	assert.Equal(t, []string{url, "main", head}, []string{got.Path, got.Branch, got.Head})
	assert.Empty(t, got.Loops)

	gittest.Git(t, bare, "branch", "pawl/x", "main")
	gittest.Git(t, bare, "update-ref", "refs/pawl-ledger/y", "main")
	got, err = userrepo.InspectAt(ctx, s, userrepo.At(url), "refs/heads/main", "refs/heads/pawl/x")
	require.NoError(t, err)
	assert.Equal(t, []string{"x", "y"}, got.Loops)

	for name, c := range map[string]struct{ url, base, ref, code string }{
		"no branch":         {url, "other", "", userrepo.NoSuchBranch},
		"not a branch":      {url, "a..b", "", userrepo.NoSuchBranch},
		"in the way":        {url, "", "refs/heads/pawl/x/y", userrepo.NameInTheWay},
		"no repository":     {url + "x", "", "", userrepo.NoSuchRepository},
		"nobody there":      {"git://127.0.0.1:1/x", "", "", userrepo.Unreachable},
		"no such host":      {"http://nothing.invalid/x", "", "", userrepo.Unreachable},
		"no ssh to be had":  {"ssh://127.0.0.1:1/x", "", "", userrepo.Unreachable},
		"a program instead": {"ext::sh -c 'touch hacked'", "", "", userrepo.Unreachable},
	} {
		_, err := userrepo.InspectAt(ctx, s, userrepo.At(c.url), c.base, c.ref)
		var pre *userrepo.Precondition
		if assert.ErrorAs(t, err, &pre, name) {
			assert.Equal(t, c.code, pre.Code, "%s: %v", name, err)
			assert.NotContains(t, pre.What, "\n")
		}
	}
	_, err = os.Stat(filepath.Join(s.Dir(), "hacked"))
	assert.ErrorIs(t, err, os.ErrNotExist)

	gittest.Git(t, bare, "symbolic-ref", "HEAD", "refs/heads/gone")
	_, err = userrepo.InspectAt(ctx, s, userrepo.At(url), "", "")
	var pre *userrepo.Precondition
	require.ErrorAs(t, err, &pre)
	assert.Equal(t, userrepo.NoCommit, pre.Code)
}

// TestMoveIsACompareAndSwap tests what fences two hosts, and what applies a proposal.
func TestMoveIsACompareAndSwap(t *testing.T) {
	t.Parallel()
	s, bare, url, first, second := shared(t)
	_, err := userrepo.Fetch(ctx, s, userrepo.At(url), "main")
	require.NoError(t, err)
	at := func() string { return gittest.Git(t, bare, "rev-parse", "refs/heads/x") }

	require.NoError(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", first, ""))
	require.NoError(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", first, ""), "once more")
	require.NoError(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, first))
	require.NoError(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, first), "once more")
	require.NoError(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", first, second), "backwards, since it is where it was said to be")
	for _, from := range []string{"", second} {
		var elsewhere *store.Fenced
		require.ErrorAs(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, from), &elsewhere)
		require.Equal(t, first, elsewhere.Have)
		require.Equal(t, first, at())
	}

	require.NoError(t, userrepo.MayPush(ctx, s, userrepo.At(url), second, "refs/heads/new"))
	require.Equal(t, "refs/heads/main\nrefs/heads/x", gittest.Git(t, bare, "for-each-ref", "--format=%(refname)"), "asking makes nothing")
	hook := filepath.Join(bare, "hooks", "update")
	gittest.Write(t, hook, "#!/bin/sh\necho not here >&2; exit 1\n")
	require.NoError(t, os.Chmod(hook, 0o755))
	var refused *userrepo.Refused
	require.ErrorAs(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, first), &refused)
	require.Contains(t, refused.Error(), "a hook there refuses it")
	require.Contains(t, refused.Error(), "it says: not here")
	var pre *userrepo.Precondition
	require.ErrorAs(t, userrepo.LandAt(ctx, s, userrepo.Landing{Repo: userrepo.At(url), Branch: "x", From: first, To: second}), &pre)
	require.Contains(t, pre.What, "it says: not here")
	require.Equal(t, first, at())

	gittest.Write(t, hook, "#!/bin/sh\nprintf 'POLICY: see \\033[1mhttps://ann:hush@example.com/p\\n\\n  ask Ann\\n' >&2; exit 1\n")
	require.ErrorAs(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, first), &refused)
	require.True(t, strings.HasPrefix(refused.Said, `POLICY: see \033[1mhttps://example.com/p / ask Ann`), refused.Said)
	gittest.Write(t, hook, "#!/bin/sh\nseq 1 5000 >&2; exit 1\n")
	require.ErrorAs(t, userrepo.Move(ctx, s, userrepo.At(url), "refs/heads/x", second, first), &refused)
	require.LessOrEqual(t, len(refused.Said), 510)
}

func TestFetchLedgerBringsTheCodeAlong(t *testing.T) {
	t.Parallel()
	s, bare, url, first, second := shared(t)
	tree := gittest.Git(t, bare, "rev-parse", first+"^{tree}")
	entry := gittest.Git(t, bare, "commit-tree", "-m", "ledger", "-p", second, tree)
	gittest.Git(t, bare, "update-ref", "refs/pawl-ledger/x", entry)
	got, err := userrepo.FetchLedger(ctx, s, userrepo.At(url), "refs/pawl-ledger/x")
	require.NoError(t, err)
	require.Equal(t, entry, got)
	in, err := s.Contains(ctx, got, second)
	require.NoError(t, err)
	require.True(t, in)
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"unable to access 'https://ann:hush@example.com/x/': no":    "unable to access 'https://example.com/x/': no",
		"https://hush@example.com/x and ssh://git:hush@h/x":         "https://example.com/x and ssh://h/x",
		"https://ann:hu@sh@example.com/x":                           "https://example.com/x",
		"https://example.com/x@y":                                   "https://example.com/x@y",
		"git@example.com:x":                                         "git@example.com:x",
		strings.Repeat("x", 100) + " http://127.0.0.1:8080/a@b?c@d": strings.Repeat("x", 100) + " http://127.0.0.1:8080/a@b?c@d",
	} {
		assert.Equal(t, want, git.Redact(in))
	}
}
