package userrepo_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

func TestARefIsDroppedOnlyWhereItWasSeenAndIsNotCheckedOut(t *testing.T) {
	t.Parallel()
	dir, there, ctx := t.TempDir(), filepath.Join(t.TempDir(), "there"), t.Context()
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	gittest.Git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one")
	gittest.Git(t, dir, "branch", "pawl/x")
	const ref = "refs/heads/pawl/x"
	at, err := userrepo.RefAt(ctx, userrepo.At(dir), ref)
	require.NoError(t, err)
	require.Len(t, at, 40)
	none, err := userrepo.RefAt(ctx, userrepo.At(dir), "refs/pawl-ledger/x")
	require.NoError(t, err)
	require.Empty(t, none)

	var pre *userrepo.Precondition
	gittest.Git(t, dir, "checkout", "-q", "pawl/x")
	require.ErrorAs(t, userrepo.Drop(ctx, userrepo.At(dir), ref, at), &pre)
	gittest.Git(t, dir, "checkout", "-q", "main")
	gittest.Git(t, dir, "worktree", "add", "-q", there, "pawl/x")
	require.ErrorAs(t, userrepo.Drop(ctx, userrepo.At(dir), ref, at), &pre)
	gittest.Git(t, dir, "worktree", "remove", "--force", there)

	require.Error(t, userrepo.Drop(ctx, userrepo.At(dir), ref, "1111111111111111111111111111111111111111"), "somebody has moved it")
	require.NoError(t, userrepo.Drop(ctx, userrepo.At(dir), ref, at))
	none, err = userrepo.RefAt(ctx, userrepo.At(dir), ref)
	require.NoError(t, err)
	require.Empty(t, none)
}
