package proposal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// delivers makes a world whose loop is to deliver: the agent raises the number, the tests want it
// to be higher than it was.
func delivers(t *testing.T, agent string) *world.World {
	t.Helper()
	return world.New(t, agent).Set(doc{
		"kind": "deliver", "verify": doc{"command": ""}, "test": doc{"command": `test "$(cat work/n)" -gt 10`},
		"limits": doc{"iterations": 3},
	})
}

// begins starts the loop with its contract approved.
func begins(w *world.World) {
	w.T.Helper()
	w.Done("start", "--yes", w.SpecFile())
}

// asks waits for a gate other than the one before.
func asks(w *world.World, kind string, before *world.Gate) *world.Gate {
	w.T.Helper()
	var g *world.Gate
	w.Until("a gate "+kind, func() bool {
		g = w.Show().Gate
		return g != nil && g.Kind == kind && (before == nil || g.ID != before.ID)
	})
	return g
}

// A proposal that is made again on a moved base, and rejected, goes back to write on that base. The work of others on
// the base is neither in the next proposal nor in the loop's radius.
func TestA7_WhatIsRejectedOnAMovedBaseGoesOnThere(t *testing.T) {
	world.Slow(t, "TestA7_AMovedBaseHasAHashOfItsOwn moves it, too")
	w := delivers(t, world.Raises).Set(doc{"approvals": doc{"diff": "required"}, "policies": doc{"default": doc{"maxTotalFiles": 1, "maxTotalLines": 4}}})
	begins(w)
	first := asks(w, "diff", nil)
	w.Write("repo/README.md", "a mountain\nand a lake\nand a river\n")
	w.Write("repo/work/other", "better\n")
	w.Commit("meanwhile")
	tip := w.Git("rev-parse", "main")

	moved := w.Pawl("approve", w.Loop, "--hash", first.Hash, "--apply", "ff")
	require.Equal(t, 2, moved.Code, moved.Err)
	require.Contains(t, moved.Err, "main has moved since the proposal was made, so nothing was applied")
	second := asks(w, "diff", first)
	require.Equal(t, tip, w.Proposal().Base)
	w.Done("reject", w.Loop, "--note", "higher")
	third := asks(w, "diff", second)
	st := w.Show()
	require.Equal(t, 2, st.Iteration)
	require.Equal(t, "better\n", w.Git("show", st.Head+":work/other")+"\n", "the work is on top of what the base has become")
	require.Equal(t, tip, w.Proposal().Base)
	require.Contains(t, third.Summary, "1 file, +1 -1", "the loop's own change alone")
	require.NotContains(t, w.Done("diff", w.Loop).Out, "river")

	w.Done("approve", w.Loop, "--hash", third.Hash, "--apply", "ff")
	w.Waits("completed")
	require.Equal(t, "12\n", w.Read("repo/work/n"), "nothing had moved this time, so it is applied")
	w.Done("log", "--verify", w.Loop)
	w.Before = w.Snapshot()
}

// What the reviewer rejected is rejected for everybody (E3).
func TestE3_NobodyAppliesWhatTheReviewerRejected(t *testing.T) {
	w := delivers(t, `case $PAWL_ROLE in
reviewer) echo "REJECTED $(grep -oE '^APPROVED [0-9a-f]{64}' "$PAWL_PROMPT" | cut -d' ' -f2): not this way" ;;
*) `+world.Raises+` ;;
esac`).Set(doc{"limits": doc{"iterations": 1}})
	w.Spec["agent"].(doc)["roles"] = doc{"reviewer": doc{}}
	r := w.Run(3)
	require.Equal(t, "ALO_MAX_ITERATIONS_EXCEEDED", r.Result.ErrorCode)
	require.Equal(t, "rejected", r.Result.Proposal.State)
	w.Refused("REVIEW_REJECTED", "apply", w.Loop)
	w.Refused("REVIEW_REJECTED", "approve", w.Loop, "--hash", r.Result.Proposal.Hash)
	require.Contains(t, w.LastRow().Description(), "not-this-way")
}

// A person may take any time to repair a blocked change.
func TestL9_ABlockedChangeIsMendedAfterALongTime(t *testing.T) {
	world.Slow(t, "TestP3_BlockedChangeIsJudgedAgain is mended at once")
	w := delivers(t, `echo 11 >work/n; echo more >README.md; echo "raise the number"`).Set(doc{"approvals": doc{"escalateAfter": "200ms"}})
	begins(w)
	st := w.Waits("blocked")
	w.Until("somebody was told again, twice", func() bool {
		return strings.Count(w.Pawl("log", "--json", w.Loop).Out, `"gate_escalated"`) > 1
	})
	require.NoError(t, os.WriteFile(filepath.Join(st.Desk, "README.md"), []byte("a hill\n"), 0o644))
	w.Done("continue", w.Loop)
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
}

// A loop with a plan is extended, and its ledger is complete.
func TestL8_AnExtendedLoopWithAPlan(t *testing.T) {
	world.Slow(t, "workflows extends loops")
	w := delivers(t, `case $PAWL_ROLE in planner) echo "# Climb" ;; *) `+world.Raises+` ;; esac`)
	w.Set(doc{"test": doc{"command": `test "$(cat work/n)" -gt 11`}, "limits": doc{"toolCalls": 2, "onExhausted": "ask"}})
	w.Spec["agent"].(doc)["roles"] = doc{"planner": doc{}}
	begins(w)
	g := asks(w, "budget", nil)
	w.Done("log", "--verify", w.Loop)
	w.Done("extend", w.Loop, "--hash", g.Hash, "--limit", "toolCalls=9")
	w.Waits("completed")
	w.Done("log", "--verify", w.Loop)
}

// loop-stop is obeyed before the next phase, not only before the next iteration.
func TestL_LoopStopEndsADeliveryBetweenItsPhases(t *testing.T) {
	world.Slow(t, "TestP8_LoopStopFile ends a loop")
	w := delivers(t, `touch "$WORLD/repo/loop-stop"; `+world.Raises).Set(doc{"sandbox": doc{"use": "off"}}) // the agent stands for a person
	r := w.Run(5)
	require.Equal(t, "ALO_CANCELLED", r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "loop-stop")
	require.Equal(t, "write", w.Show().Phase)
	require.NoError(t, os.Remove(filepath.Join(w.Repo, "loop-stop")))
}

// The writer is shown what failed before the first write, which does not count. A new failure counts.
func TestL2_ATestThatFailedBeforeDoesNotCount(t *testing.T) {
	world.Slow(t, "TestRealRepositoriesAreMended has one")
	w := delivers(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ROLE"; echo $PAWL_ROLE >>"$WORLD/roles"
		if [ $PAWL_ROLE = writer ]; then echo bad >work/other; fi; [ $PAWL_ROLE = writer ] || echo good >work/other; echo 11 >work/n; echo "raise the number"`)
	w.Set(doc{"test": doc{"command": `echo "not ok 1 - docker"; ok=ok; [ "$(cat work/n)" -gt 10 ] || ok="not ok"; echo "$ok 2 - climbs"
		ok=ok; grep -q good work/other || ok="not ok"; echo "$ok 3 - stays"; echo 1..3; exit 1`}})
	begins(w)
	w.Waits("completed")
	require.Contains(t, w.Read("prompt-writer"), "2 tests failed before the first change, and need not pass unless the goal is about them: docker, climbs")
	require.Equal(t, "writer\nfixer\n", w.Read("roles"), "the test that passed before had to be mended, and only that")
	require.Contains(t, w.Read("prompt-fixer"), "stays")
	require.Contains(t, w.Done("log", w.Loop).Out, "failing as before the first write: docker")
	require.Equal(t, "the change is tested and verified, but 1 test failed before the first write and still fails: docker", w.Show().Reason)
}

// An approval that is to be applied at once says what keeps git from it, as apply does, and ends.
func TestA7_AnApprovalSaysWhyItIsNotApplied(t *testing.T) {
	world.Slow(t, "internal/git/userrepo has what is in the way of a landing")
	w := delivers(t, world.Raises).Set(doc{"approvals": doc{"diff": "required"}})
	begins(w)
	gate := asks(w, "diff", nil)
	lock := filepath.Join(w.Repo, ".git", "index.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))

	s := w.Pawl("approve", w.Loop, "--hash", gate.Hash, "--apply", "squash")
	require.NotEqual(t, 0, s.Code)
	require.Contains(t, s.Err, "index.lock")
	require.Contains(t, s.Err, "nothing is applied yet")

	require.NoError(t, os.Remove(lock))
	w.Waits("completed")
	require.Equal(t, "11\n", w.Read("repo/work/n"))
	require.Equal(t, "raise the number", w.Git("log", "-1", "--format=%s", "main"), "what was done, though its record comes later")
	w.Before = w.Snapshot()
}
