package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// Each of these tests waits for two minutes: a host counts as gone only after it has not asked for work for longer than
// a long poll may take.

// hosts returns a cluster whose loops move soon after their host is gone, and a second host without a worker yet. The
// queues have partitions like those of a real cluster.
func hosts(t *testing.T, env ...string) (one, two *world.Cluster) {
	t.Helper()
	one = world.NewCluster(t, "--dynamic-config-value", "matching.numTaskqueueReadPartitions=4", "--dynamic-config-value", "matching.numTaskqueueWritePartitions=4")
	require.NoError(t, one.Worker.Stop(syscall.SIGINT))
	one.Env = append(env, "PAWL_WORKER_MOVE_AFTER=1s")
	require.NoError(t, one.StartWorker(one.Address))
	return one, one.Another(t)
}

// host returns the ID of a cluster's host.
func host(c *world.Cluster) string {
	return strings.TrimSpace(world.ReadFile(filepath.Join(c.Home, "host-id")))
}

// hasTrees reports whether a loop has a desk on the host.
func hasTrees(c *world.Cluster, loop string) bool {
	_, err := os.Stat(filepath.Join(c.Home, "loops", loop, "desk"))
	return err == nil
}

// count returns how many events of a type the loop's ledger has.
func count(w *world.World, kind string) int {
	w.T.Helper()
	_, said := w.Events()
	return strings.Count(said.Out, `"type":"`+kind+`"`)
}

// keep stores the loop's history for the replay test of the workflows, with -update.
func keep(w *world.World, name string) {
	w.T.Helper()
	if !*world.Update {
		return
	}
	host, err := os.Hostname()
	require.NoError(w.T, err)
	history := w.Temporal("workflow", "show", "--workflow-id", w.Loop, "--output", "json")
	history = strings.ReplaceAll(strings.ReplaceAll(history, w.Dir, "/world"), "@"+host, "@here")
	require.NoError(w.T, os.WriteFile(filepath.Join("workflows", "loop", "testdata", "histories", name+".json"), []byte(history), 0o644))
}

// TestALoopGoesOnByItselfWhenItsHostIsGone kills a host with three loops: in one an agent works, in one a change is
// being measured that is nowhere else yet, and one is at a gate. Nobody does anything about it, and what people tell
// the loops counts. When the host comes back, it leaves them alone.
func TestALoopGoesOnByItselfWhenItsHostIsGone(t *testing.T) {
	world.Slow(t, "it waits for two minutes")
	t.Parallel()
	one, two := hosts(t)
	waits := `echo "$PAWL_ITERATION" >>"$WORLD/at"
		[ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.1; done
		[ $PAWL_ITERATION = 3 ] && until [ -e "$WORLD/on" ]; do sleep 0.1; done
		cat "$PAWL_PROMPT" >>"$WORLD/told"
		`
	working := world.Alone(t, waits+world.Raises).Set(doc{"limits": doc{"iterations": 3}}).Auto().On(one)
	working.Shares()
	atGate := world.Alone(t, world.Raises).Set(doc{"approvals": doc{"plan": "auto", "diff": "required"}, "limits": doc{"iterations": 1}}).On(one)
	atGate.Shares()
	atGate.Begin()
	gate := atGate.Stands("waiting").Gate
	working.Begin()
	judging := world.Alone(t, `[ $PAWL_ITERATION = 2 ] && touch "$WORLD/hold"; cat "$PAWL_PROMPT" >>"$WORLD/told"; `+world.Raises).
		Set(doc{"limits": doc{"iterations": 3}}).Auto().On(one)
	judging.Set(doc{"verify": doc{"command": "if [ -e " + judging.Dir + "/hold ]; then until [ -e " + judging.Dir + "/free ]; do sleep 0.1; done; fi; sh measure.sh"}})
	judging.Shares()
	judging.Begin()
	judging.Until("the second change is being measured", func() bool {
		var st world.State
		judging.Query("state", &st)
		return st.Iteration == 2 && st.Phase == "verify"
	})
	working.At(2)

	require.NoError(t, one.Worker.Stop(syscall.SIGKILL))
	require.NoError(t, two.StartWorker(two.Address))
	defer func() { require.NoError(t, two.Worker.Stop(syscall.SIGINT)) }()
	working.Write("go", "")
	judging.Write("free", "")
	working.Temporal("workflow", "signal", "--workflow-id", working.Loop, "--name", "steer", "--input", `{"note": "mind the gap", "by": "ann"}`)
	atGate.Temporal("workflow", "update", "execute", "--workflow-id", atGate.Loop, "--name", "approve", "--input", `{"hash": "`+gate.Hash+`", "gate": "`+gate.ID+`"}`)

	working.At(4) // the second iteration again, on the other host, and the third
	working.Home, atGate.Home, judging.Home = two.Home, two.Home, two.Home
	judging.Stands("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 no interrupted: raise the number", "3 yes raise the number"}, judging.RowsThere())
	require.Equal(t, "12", judging.Has("refs/heads/pawl/"+judging.Loop, "work/n"))
	judging.Done("log", judging.Loop, "--verify")
	require.Equal(t, "approved", atGate.Stands("completed").Proposal.State)
	require.Equal(t, 1, count(atGate, "loop_moved"))
	require.Equal(t, 1, count(atGate, "gate_opened"), "it is the same gate")
	atGate.Done("log", atGate.Loop, "--verify")

	before := working.There("for-each-ref")
	require.True(t, hasTrees(one, working.Loop))
	require.NoError(t, one.StartWorker(one.Address))
	working.Until("the first host has given its trees up", func() bool { return !hasTrees(one, working.Loop) && !hasTrees(one, atGate.Loop) })
	require.Equal(t, before, working.There("for-each-ref"))
	require.True(t, hasTrees(two, working.Loop))
	working.Write("on", "")

	st := working.Stands("completed")
	require.Equal(t, host(two), st.Host)
	require.Equal(t, host(two), working.Describe().WorkflowExecutionInfo.Memo.Fields["host"])
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, working.RowsThere())
	require.Equal(t, "13", working.Has("refs/heads/pawl/"+working.Loop, "work/n"))
	require.Equal(t, st.Head, working.There("rev-parse", "refs/heads/pawl/"+working.Loop))
	require.Equal(t, 1, count(working, "loop_moved"))
	require.Equal(t, 1, strings.Count(working.Read("told"), "mind the gap"))
	require.Contains(t, working.Done("log", working.Loop, "--verify").Out, "whole")
	keep(working, "moved-in-an-iteration-v1")
	keep(atGate, "moved-at-a-gate-v1")
	keep(judging, "moved-and-lost-v1")
	events, _ := working.Events()
	for i, e := range events {
		if e.Type == "loop_moved" {
			require.Equal(t, "step_ended", events[i+1].Type, "what the agent had spent on the host that is gone")
		}
	}
}

// TestALoopStaysWithAHostThatIsOnlyBusy has an agent wait for its host's only slot, much longer than a loop waits for a
// host that is gone, although another host is there.
func TestALoopStaysWithAHostThatIsOnlyBusy(t *testing.T) {
	world.Slow(t, "it waits for two minutes")
	t.Parallel()
	one, two := hosts(t, "PAWL_WORKER_AGENTS=1")
	waits := `echo "$PAWL_ITERATION" >>"$WORLD/at"; until [ -e "$WORLD/go" ]; do sleep 0.1; done; `
	working := world.Alone(t, waits+world.Raises).Set(doc{"limits": doc{"iterations": 1}}).Auto().On(one)
	waiting := world.Alone(t, world.Raises).Set(doc{"limits": doc{"iterations": 1}}).Auto().On(one)
	for _, w := range []*world.World{working, waiting} {
		w.Shares()
		w.Begin()
		working.At(1)
	}
	require.NoError(t, two.StartWorker(two.Address))
	defer func() { require.NoError(t, two.Worker.Stop(syscall.SIGINT)) }()
	working.Until("the other host has seen that this one lives", func() bool {
		return strings.Contains(world.ReadFile(filepath.Join(two.Dir, "worker.log")), "the host "+host(one)+" asks for work")
	})
	working.Write("go", "")
	for _, w := range []*world.World{working, waiting} {
		require.Equal(t, host(one), w.Stands("completed").Host)
		require.Zero(t, count(w, "loop_moved"))
	}
}
