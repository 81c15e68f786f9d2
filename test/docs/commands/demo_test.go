package commands_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// The second demo delivers: a plan, a change that breaks another test, its fix, a review, and a proposal that can be
// applied.
func TestL_DemoDeliver(t *testing.T) {
	world.Slow(t, "internal/cli/demo plays it by hand")
	w := world.Alone(t, "")
	t.Parallel()
	s := w.Pawl("demo", "deliver")
	require.Equal(t, 0, s.Code, s.Err)
	at := 0
	for _, text := range []string{
		"→ plan", "the plan ", "  test        go test -json ./...", "  criteria    3, which the reviewer", "→ write", "→ test",
		"tests: 1 failed, 6 passed; failing: example.com/calendar/interval TestMergeJoinsWhatTouches", "→ fix", "→ test",
		"tests: 7 passed; fixed: example.com/calendar/interval TestMergeJoinsWhatTouches", "→ verify",
		"reviewed: APPROVED, 3 of 3 criteria met", "→ complete", "delivered",
	} {
		i := strings.Index(s.Err[at:], text)
		require.GreaterOrEqual(t, i, 0, "%q does not follow in\n%s", text, s.Err)
		at += i
	}
	for _, absent := range []string{"baseline", "discard", "higher is better"} {
		require.NotContains(t, s.Err, absent, "that is Improve's")
	}
	require.Contains(t, s.Out, "Delivered: 1 iteration, 1 fix")
	require.Contains(t, s.Out, "approved by reviewer: 1 file")
	require.Contains(t, s.Out, "pawl apply demo-deliver-1")
	w.NothingRuns()

	repo := filepath.Join(w.Home, "demo", "1", "repo")
	require.Empty(t, w.Git("-C", repo, "status", "--porcelain"))
	s = w.Pawl("apply", "demo-deliver-1")
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, w.Git("-C", repo, "show", "HEAD:interval/interval.go"), "max(merged[n-1].End, next.End)")
	s = w.Pawl("show", "demo-deliver-1")
	require.Contains(t, s.Out, "7 passed")
	s = w.Pawl("log", "demo-deliver-1", "--verify")
	require.Equal(t, 0, s.Code, "a plan changes the contract before it is approved: %s", s.Out)
}

// The third demo is a steward with tasks of several tiers, an interrupt and a circle.
func TestS_DemoSteward(t *testing.T) {
	world.Slow(t, "internal/cli/demo plays its agents by hand")
	w := world.Alone(t, "")
	t.Parallel()
	s := w.Pawl("demo", "steward")
	require.Equal(t, 0, s.Code, s.Err)
	for _, course := range [][]string{
		{"hours: tier T0 by rules", "hours: PLANNING → EXECUTING: T0 needs no approval", "hours: done: proposal"},
		{
			"tea: tier T1 by rules: prices/list.csv", "tea: PLANNING → WAITING_FOR_HUMAN", "Waiting: T1",
			"the demo answers: pawl steward answer demo-steward-1 --task tea --gate tier-", "tea: WAITING_FOR_HUMAN → EXECUTING: approved",
			"tea: step write started", "tea: done: proposal",
		},
		{
			"menu: step shorten started", "menu: action iteration of shorten: kept", "closed: submitted", "menu: gives way to closed", "closed: step write started",
			"closed: done: proposal", "menu: told the loop demo-steward-1-menu-shorten to continue", "menu: action iteration of shorten: kept", "menu: done: proposal", "headline: step shorten started",
		},
		{
			`headline: near a limit (sameResult): "iteration of shorten" had the same result 3 times`, `headline: stopped (sameResult): "iteration of shorten" had the same result 4 times in a row; the limit is 3`,
			"headline: EXECUTING → WAITING_FOR_HUMAN", "the demo answers: pawl steward answer demo-steward-1 --task headline --gate stuck-", "headline: WAITING_FOR_HUMAN → IDLE", "headline: cancelled",
		},
	} {
		at := 0
		for _, text := range course {
			i := strings.Index(s.Err[at:], text)
			require.GreaterOrEqual(t, i, 0, "%q does not follow in\n%s", text, s.Err)
			at += i + len(text)
		}
	}
	require.Regexp(t, `headline +T0 +cancelled`, s.Out)
	require.NotContains(t, s.Err+s.Out, "\x1b")
	w.NothingRuns()

	repo := filepath.Join(w.Home, "demo", "1", "repo")
	require.Empty(t, w.Git("-C", repo, "status", "--porcelain"))
	hash := regexp.MustCompile(`pawl approve demo-steward-1-menu-shorten --hash ([0-9a-f]{16})`).FindStringSubmatch(s.Out)
	require.NotNil(t, hash, s.Out)
	s = w.Pawl("approve", "demo-steward-1-menu-shorten", "--hash", hash[1], "--apply", "ff")
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, w.Git("-C", repo, "show", "HEAD:pages/menu.md"), "Soup: at noon.")
	s = w.Pawl("log", "demo-steward-1", "--verify")
	require.Equal(t, 0, s.Code, s.Out)
}

// The README's first command shows each case handled, and leaves nothing behind.
func TestDemo(t *testing.T) {
	w := world.Alone(t, "")
	t.Parallel()
	s := w.Pawl("demo")
	require.Equal(t, 0, s.Code, s.Err)
	shows(t, "README.md", "go run . demo", s.Err)
	for _, text := range []string{
		"baseline", "kept", "discarded", "guard-fail", "error:verify-crash", "policy:scope", "not-atomic", "no-change",
		"best metric by iteration", "Temporal UI http://127.0.0.1:", "the guard command failed", "a rule was broken, so nothing was run",
	} {
		require.Contains(t, s.Err, text)
	}
	require.Contains(t, s.Out, "Loop complete: 10 iterations, 4 kept, best metric: 23575.8 (baseline: 34051.6, delta: -10475.8)")
	require.Contains(t, s.Out, "Discarded: 6 iterations")
	require.Contains(t, s.Out, "refs/pawl-ledger/demo-1:loop-results.tsv")
	w.NothingRuns()
	require.NotContains(t, s.Err+s.Out, "\x1b")

	demo := filepath.Join(w.Home, "demo", "1", "repo")
	require.Empty(t, w.Git("-C", demo, "status", "--porcelain"))
	require.Len(t, strings.Split(w.Git("-C", demo, "show", "refs/pawl-ledger/demo-1:loop-results.tsv"), "\n"), 11)
	s = w.Pawl("show", "demo-1")
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Out, "completed")
}
