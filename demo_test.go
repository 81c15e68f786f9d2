package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's first command shows each case handled, and leaves nothing behind.
func TestDemo(t *testing.T) {
	w := newWorldOfItsOwn(t, "")
	t.Parallel()
	s := w.pawl("demo")
	require.Equal(t, 0, s.code, s.err)
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
