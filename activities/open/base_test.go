package open_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/store"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestARetryKeepsTheBaseOfAnAttemptThatWasKilled opens a loop again that was killed after each of the refs that Open makes,
// and whose user has committed since.
func TestARetryKeepsTheBaseOfAnAttemptThatWasKilled(t *testing.T) {
	t.Parallel()
	for _, missing := range [][]string{{"refs/heads/pawl/y"}, {}} {
		l := actest.Begin(t, spec.Deny)
		s := l.Spec
		s.Name = "y"
		in := api.Open{Loop: "y", FirstRun: "second", Spec: s}
		first, err := l.Open(t.Context(), in)
		require.NoError(t, err)
		objects, err := store.Open(t.Context(), l.Store())
		require.NoError(t, err)
		for _, ref := range missing {
			require.NoError(t, objects.SetRef(t.Context(), ref, "", first.Base))
		}
		gittest.Write(t, l.User+"/work/a", "of the user\n")
		gittest.Git(t, l.User, "commit", "-qam", "since")
		again, err := l.Open(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, first.Base, again.Base)
		for _, ref := range []string{"refs/heads/pawl/y", "refs/pawl/base/y"} {
			at, err := objects.Ref(t.Context(), ref)
			require.NoError(t, err)
			require.Equal(t, first.Base, at, ref)
		}
	}
}
