package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// delivers makes a world whose loop is to deliver: the agent raises the number, the tests want it
// to be higher than it was.
func delivers(t *testing.T, agent string) *world {
	t.Helper()
	return newWorld(t, agent).set(doc{
		"kind": "deliver", "verify": doc{"command": ""}, "test": doc{"command": `test "$(cat work/n)" -gt 10`},
		"limits": doc{"iterations": 3},
	})
}

// begins starts the loop with its contract approved.
func (w *world) begins() {
	w.t.Helper()
	w.done("start", "--yes", w.specFile())
}

// asks waits for a gate that is not the one before.
func (w *world) asks(kind string, before *gate) *gate {
	w.t.Helper()
	var g *gate
	w.until("a gate "+kind, func() bool {
		g = w.show().Gate
		return g != nil && g.Kind == kind && (before == nil || g.ID != before.ID)
	})
	return g
}

// A proposal that is made anew on top of a moved base, and rejected, goes back to write on top of
// that. What others did there is neither in the next proposal nor in how far the loop reaches.
func TestA7_WhatIsRejectedOnAMovedBaseGoesOnThere(t *testing.T) {
	w := delivers(t, raises).set(doc{"approvals": doc{"diff": "required"}, "policies": doc{"default": doc{"maxTotalFiles": 1, "maxTotalLines": 4}}})
	w.begins()
	first := w.asks("diff", nil)
	w.write("repo/README.md", "a mountain\nand a lake\nand a river\n")
	w.write("repo/work/other", "better\n")
	w.commit("meanwhile")
	tip := w.git("rev-parse", "main")

	w.done("approve", w.loop, "--hash", first.Hash, "--apply", "ff")
	second := w.asks("diff", first)
	require.Equal(t, tip, w.proposal().Base)
	w.done("reject", w.loop, "--note", "higher")
	third := w.asks("diff", second)
	st := w.show()
	require.Equal(t, 2, st.Iteration)
	require.Equal(t, "better\n", w.git("show", st.Head+":work/other")+"\n", "the work is on top of what the base has become")
	require.Equal(t, tip, w.proposal().Base)
	require.Contains(t, third.Summary, "1 files, +1 -1", "the loop's own change alone")
	require.NotContains(t, w.done("diff", w.loop).out, "river")

	w.done("approve", w.loop, "--hash", third.Hash, "--apply", "ff")
	w.waits("completed")
	require.Equal(t, "12\n", w.read("repo/work/n"), "nothing had moved this time, so it is applied")
	w.done("log", "--verify", w.loop)
	w.before = w.snapshot()
}

// What the reviewer rejected is rejected for everybody (E3).
func TestE3_NobodyAppliesWhatTheReviewerRejected(t *testing.T) {
	w := delivers(t, `case $PAWL_ROLE in
reviewer) echo "REJECTED $(grep -oE '^APPROVED [0-9a-f]{64}' "$PAWL_PROMPT" | cut -d' ' -f2): not this way" ;;
*) `+raises+` ;;
esac`).set(doc{"limits": doc{"iterations": 1}})
	w.spec["agent"].(doc)["roles"] = doc{"reviewer": doc{}}
	r := w.run(3)
	require.Equal(t, "ALO_MAX_ITERATIONS_EXCEEDED", r.Result.ErrorCode)
	require.Equal(t, "rejected", r.Result.Proposal.State)
	w.refusedWith("REVIEW_REJECTED", "apply", w.loop)
	w.refusedWith("REVIEW_REJECTED", "approve", w.loop, "--hash", r.Result.Proposal.Hash)
	require.Contains(t, w.lastRow().description, "not-this-way")
}

// A change that is blocked can be mended for as long as it takes.
func TestL9_ABlockedChangeIsMendedAfterALongTime(t *testing.T) {
	w := delivers(t, `echo 11 >work/n; echo more >README.md; echo "raise the number"`).set(doc{"approvals": doc{"escalateAfter": "200ms"}})
	w.begins()
	st := w.waits("blocked")
	w.until("somebody was told again, twice", func() bool {
		return strings.Count(w.pawl("log", "--json", w.loop).out, `"gate_escalated"`) > 1
	})
	require.NoError(t, os.WriteFile(filepath.Join(st.Desk, "README.md"), []byte("a hill\n"), 0o644))
	w.done("continue", w.loop)
	w.waits("completed")
	require.Equal(t, "11", w.kept("work/n"))
}

// A loop with a plan is extended, and its ledger is whole.
func TestL8_AnExtendedLoopWithAPlan(t *testing.T) {
	w := delivers(t, `case $PAWL_ROLE in planner) echo "# Climb" ;; *) `+raises+` ;; esac`)
	w.set(doc{"test": doc{"command": `test "$(cat work/n)" -gt 11`}, "limits": doc{"toolCalls": 2, "onExhausted": "ask"}})
	w.spec["agent"].(doc)["roles"] = doc{"planner": doc{}}
	w.begins()
	g := w.asks("budget", nil)
	w.done("log", "--verify", w.loop)
	w.done("extend", w.loop, "--hash", g.Hash, "--limit", "toolCalls=9")
	w.waits("completed")
	w.done("log", "--verify", w.loop)
}

// loop-stop is obeyed before the next phase, not only before the next iteration.
func TestL_LoopStopEndsADeliveryBetweenItsPhases(t *testing.T) {
	w := delivers(t, `touch "$WORLD/repo/loop-stop"; `+raises)
	start := time.Now()
	r := w.run(5)
	require.Less(t, time.Since(start), patience)
	require.Equal(t, "ALO_CANCELLED", r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "loop-stop")
	require.Equal(t, "write", w.show().Phase)
	require.NoError(t, os.Remove(filepath.Join(w.repo, "loop-stop")))
}
