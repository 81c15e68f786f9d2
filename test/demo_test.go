package test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The second demo delivers: a plan, a change that breaks another test, its fix, a review, and a proposal
// that applies.
func TestL_DemoDeliver(t *testing.T) {
	w := newWorldOfItsOwn(t, "")
	t.Parallel()
	s := w.pawl("demo", "deliver")
	require.Equal(t, 0, s.code, s.err)
	shows(t, "README.md", "go run . demo deliver", s.err)
	at := 0
	for _, text := range []string{
		"→ plan", "the plan ", "  test        go test -json ./...", "  criteria    1. A meeting within", "→ write", "→ test",
		"tests: 1 failed, 6 passed; failing: example.com/calendar/interval TestMergeJoinsWhatTouches", "→ fix", "→ test",
		"tests: 7 passed; fixed: example.com/calendar/interval TestMergeJoinsWhatTouches", "→ verify",
		"reviewed: APPROVED, 3 of 3 criteria met", "→ complete", "delivered",
	} {
		i := strings.Index(s.err[at:], text)
		require.GreaterOrEqual(t, i, 0, "%q does not follow in\n%s", text, s.err)
		at += i
	}
	for _, absent := range []string{"baseline", "discard", "higher is better"} {
		require.NotContains(t, s.err, absent, "that is Improve's")
	}
	require.Contains(t, s.out, "Delivered: 1 iteration, 1 fix")
	require.Contains(t, s.out, "approved by reviewer: 1 file")
	require.Contains(t, s.out, "pawl apply demo-deliver-1")
	w.nothingRuns()

	repo := filepath.Join(w.home, "demo", "1", "repo")
	require.Empty(t, w.git("-C", repo, "status", "--porcelain"))
	s = w.pawl("apply", "demo-deliver-1")
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, w.git("-C", repo, "show", "HEAD:interval/interval.go"), "max(merged[n-1].End, next.End)")
	s = w.pawl("show", "demo-deliver-1")
	require.Contains(t, s.out, "7 passed")
	s = w.pawl("log", "demo-deliver-1", "--verify")
	require.Equal(t, 0, s.code, "a plan changes the contract before it is approved: %s", s.out)
}

// The README's first command shows each case handled, and leaves nothing behind.
func TestDemo(t *testing.T) {
	w := newWorldOfItsOwn(t, "")
	t.Parallel()
	s := w.pawl("demo")
	require.Equal(t, 0, s.code, s.err)
	shows(t, "README.md", "go run . demo", s.err)
	for _, text := range []string{
		"baseline", "kept", "discarded", "guard-fail", "error:verify-crash", "policy:scope", "not-atomic", "no-change",
		"best metric by iteration", "Temporal UI http://127.0.0.1:", "the guard command failed", "a rule was broken, so nothing was run",
	} {
		require.Contains(t, s.err, text)
	}
	require.Contains(t, s.out, "Loop complete: 10 iterations, 4 kept, best metric: 23575.8 (baseline: 34051.6, delta: -10475.8)")
	require.Contains(t, s.out, "Discarded: 6 iterations")
	require.Contains(t, s.out, "refs/pawl-ledger/demo-1:loop-results.tsv")
	w.nothingRuns()
	require.NotContains(t, s.err+s.out, "\x1b")

	demo := filepath.Join(w.home, "demo", "1", "repo")
	require.Empty(t, w.git("-C", demo, "status", "--porcelain"))
	require.Len(t, strings.Split(w.git("-C", demo, "show", "refs/pawl-ledger/demo-1:loop-results.tsv"), "\n"), 11)
	s = w.pawl("show", "demo-1")
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.out, "completed")
}
