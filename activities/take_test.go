package activities_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// aside commits what a candidate's desk has, off the branch, and records it.
func (l *opened) aside(n int, content map[string]string) loop.Candidate {
	l.Helper()
	desk, err := l.a.RestoreSide(ctx, l.o.Ref, n, l.head)
	require.NoError(l, err)
	require.Equal(l, l.o.Desk+"."+string(rune('0'+n)), desk)
	for path, text := range content {
		write(l.T, filepath.Join(desk, path), text)
	}
	in := act.Commit{Ref: l.o.Ref, Ledger: l.ledger, Head: l.head, Iteration: n, Desk: n, Description: "a candidate", Time: when, Aside: true}
	out, err := l.a.Commit(ctx, in)
	require.NoError(l, err)
	again, err := l.a.Commit(ctx, in)
	require.NoError(l, err)
	require.Equal(l, out, again, "a retry makes the same commit")
	c := loop.Candidate{N: n, Desk: n, Base: l.head, Made: true, Commit: out.Commit, Tree: out.Tree}
	l.record(loop.Event{Type: loop.CandidateMade, Candidate: &c})
	return c
}

func (l *opened) take(c loop.Candidate) act.Taken {
	l.Helper()
	out, err := l.a.Take(ctx, act.Take{Ref: l.o.Ref, Iteration: 1, Head: l.head, Base: c.Base, Commit: c.Commit, Time: when})
	require.NoError(l, err)
	return out
}

func TestP4_CandidatesAreMadeBesideTheBranchAndTakenOntoItsHead(t *testing.T) {
	l := begun(t, spec.Allow)
	one := l.aside(1, map[string]string{"work/a": "one\n", "work/one": "1\n"})
	two := l.aside(2, map[string]string{"work/b": "two\n"})
	three := l.aside(3, map[string]string{"work/a": "three\n"})
	outside := l.aside(4, map[string]string{"outside": "x\n"})
	require.Empty(t, outside.Commit, "what violates a policy is not committed, and stays on its desk")
	require.Equal(t, l.o.Base, git(t, storeOf(t), "rev-parse", "pawl/x"), "no branch has one of them")
	kept := git(t, storeOf(t), "rev-list", "refs/pawl-ledger/x")
	for _, c := range []loop.Candidate{one, two, three} {
		require.Contains(t, kept, c.Commit, "the ledger keeps them")
	}

	l.begin()
	require.Empty(t, l.take(one).Conflict)
	first := l.commit("")
	require.Equal(t, one.Tree, first.Tree, "on the head that it was made from it is as it was made")
	require.Empty(t, l.take(two).Conflict)
	second := l.commit("")
	require.NotEqual(t, two.Tree, second.Tree)
	require.Equal(t, []string{"work/b"}, second.Files, "alone what it has changed")
	require.Equal(t, "one\n", git(t, storeOf(t), "show", l.head+":work/a")+"\n")
	require.Equal(t, "work/a", l.take(three).Conflict)
	require.Equal(t, "one\n", string(must(os.ReadFile(l.o.Desk+"/work/a"))), "the desk is as it was")

	loops := filepath.Dir(l.o.Desk)
	_, err := l.a.Close(ctx, act.Close{Entry: act.Entry{Ref: l.o.Ref, Ledger: l.ledger}, Base: l.o.Base, Head: l.head})
	require.NoError(t, err)
	left, err := os.ReadDir(loops)
	require.NoError(t, err)
	for _, e := range left {
		require.False(t, strings.HasPrefix(e.Name(), "desk"), "%s is given up with the loop", e.Name())
	}
}
