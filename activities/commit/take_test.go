package commit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// aside commits the content of a candidate's desk, on no branch, and records it.
func aside(l *actest.Loop, n int, content map[string]string) loop.Candidate {
	l.Helper()
	desk := l.Restore(n, l.Head)
	require.Equal(l, l.Opened.Desk+"."+string(rune('0'+n)), desk)
	for path, text := range content {
		gittest.Write(l.T, filepath.Join(desk, path), text)
	}
	in := api.Commit{Ref: l.Opened.Ref, Ledger: l.Ledger, Head: l.Head, Iteration: n, Desk: n, Description: "a candidate", Time: actest.When, Aside: true}
	out, err := l.Commit(l.Context(), in)
	require.NoError(l, err)
	again, err := l.Commit(l.Context(), in)
	require.NoError(l, err)
	require.Equal(l, out, again, "a retry makes the same commit")
	c := loop.Candidate{N: n, Desk: n, Base: l.Head, Made: true, Commit: out.Commit, Tree: out.Tree}
	l.Append(loop.Event{Type: loop.CandidateMade, Candidate: &c})
	return c
}

func take(l *actest.Loop, c loop.Candidate) api.Taken {
	l.Helper()
	out, err := l.Take(l.Context(), api.Take{Ref: l.Opened.Ref, Iteration: 1, Head: l.Head, Base: c.Base, Commit: c.Commit, Time: actest.When})
	require.NoError(l, err)
	return out
}

func TestP4_CandidatesAreMadeBesideTheBranchAndTakenOntoItsHead(t *testing.T) {
	l := actest.Begin(t, spec.Allow)
	one := aside(l, 1, map[string]string{"work/a": "one\n", "work/one": "1\n"})
	two := aside(l, 2, map[string]string{"work/b": "two\n"})
	three := aside(l, 3, map[string]string{"work/a": "three\n"})
	outside := aside(l, 4, map[string]string{"outside": "x\n"})
	require.Empty(t, outside.Commit, "what violates a policy is not committed, and stays on its desk")
	require.Equal(t, l.Opened.Base, gittest.Git(t, l.Store(), "rev-parse", "pawl/x"), "no branch has one of them")
	kept := gittest.Git(t, l.Store(), "rev-list", "refs/pawl-ledger/x")
	for _, c := range []loop.Candidate{one, two, three} {
		require.Contains(t, kept, c.Commit, "the ledger keeps them")
	}

	l.Iterate()
	require.Empty(t, take(l, one).Conflict)
	first := l.CommitDesk("")
	require.Equal(t, one.Tree, first.Tree, "on the head that it was made from it is as it was made")
	require.Empty(t, take(l, two).Conflict)
	second := l.CommitDesk("")
	require.NotEqual(t, two.Tree, second.Tree)
	require.Equal(t, []string{"work/b"}, second.Files, "alone what it has changed")
	require.Equal(t, "one\n", gittest.Git(t, l.Store(), "show", l.Head+":work/a")+"\n")
	require.Equal(t, "work/a", take(l, three).Conflict)
	require.Equal(t, "one\n", gittest.Read(t, l.Opened.Desk+"/work/a"), "the desk is as it was")

	loops := filepath.Dir(l.Opened.Desk)
	_, err := l.Close(t.Context(), api.Close{Entry: api.Entry{Ref: l.Opened.Ref, Ledger: l.Ledger}, Base: l.Opened.Base, Head: l.Head})
	require.NoError(t, err)
	left, err := os.ReadDir(loops)
	require.NoError(t, err)
	for _, e := range left {
		require.False(t, strings.HasPrefix(e.Name(), "desk"), "%s is given up with the loop", e.Name())
	}
}
