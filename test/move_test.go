package test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests take two minutes each, in which they wait: no host is taken for gone before it has not
// asked for work for longer than a long poll may last.

// hosts are a cluster whose worker's loops move soon, and a second host without a worker yet. Its queues
// are partitioned as those of a real cluster are.
func hosts(t *testing.T, env ...string) (one, two *cluster) {
	t.Helper()
	one = newCluster(t, "--dynamic-config-value", "matching.numTaskqueueReadPartitions=4", "--dynamic-config-value", "matching.numTaskqueueWritePartitions=4")
	require.NoError(t, one.worker.stop(syscall.SIGINT))
	one.env = append(env, "PAWL_WORKER_MOVE_AFTER=1s")
	require.NoError(t, one.startWorker(one.address))
	return one, one.another(t)
}

// host is the ID of a cluster's host.
func (c *cluster) host() string { return strings.TrimSpace(readFile(filepath.Join(c.home, "host-id"))) }

// hasTrees reports whether a loop has a desk on the host.
func (c *cluster) hasTrees(loop string) bool {
	_, err := os.Stat(filepath.Join(c.home, "loops", loop, "desk"))
	return err == nil
}

// count is how often an event of a type is in the loop's ledger.
func (w *world) count(kind string) int {
	w.t.Helper()
	_, said := w.events()
	return strings.Count(said.out, `"type":"`+kind+`"`)
}

// keep keeps the loop's history for the replay test of the workflows, where -update asks for that.
func (w *world) keep(name string) {
	w.t.Helper()
	if !*update {
		return
	}
	host, err := os.Hostname()
	require.NoError(w.t, err)
	history := w.temporal("workflow", "show", "--workflow-id", w.loop, "--output", "json")
	history = strings.ReplaceAll(strings.ReplaceAll(history, w.dir, "/world"), "@"+host, "@here")
	require.NoError(w.t, os.WriteFile(filepath.Join("workflows", "testdata", "histories", name+".json"), []byte(history), 0o644))
}

// TestALoopGoesOnByItselfWhenItsHostIsGone kills a host with three loops on it: one in the middle of an
// agent's work, one whose change is being measured and is nowhere else yet, one at a gate. Nobody does anything about it; what people say to the loops counts. The
// host that comes back leaves them alone.
func TestALoopGoesOnByItselfWhenItsHostIsGone(t *testing.T) {
	t.Parallel()
	one, two := hosts(t)
	waits := `echo "$PAWL_ITERATION" >>"$WORLD/at"
		[ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.1; done
		[ $PAWL_ITERATION = 3 ] && until [ -e "$WORLD/on" ]; do sleep 0.1; done
		cat "$PAWL_PROMPT" >>"$WORLD/told"
		`
	working := newWorldOfItsOwn(t, waits+raises).set(doc{"limits": doc{"iterations": 3}}).auto().on(one)
	working.shares()
	atGate := newWorldOfItsOwn(t, raises).set(doc{"approvals": doc{"plan": "auto", "diff": "required"}, "limits": doc{"iterations": 1}}).on(one)
	atGate.shares()
	atGate.begin()
	gate := atGate.stands("waiting").Gate
	working.begin()
	judging := newWorldOfItsOwn(t, `[ $PAWL_ITERATION = 2 ] && touch "$WORLD/hold"; cat "$PAWL_PROMPT" >>"$WORLD/told"; `+raises).
		set(doc{"limits": doc{"iterations": 3}}).auto().on(one)
	judging.set(doc{"verify": doc{"command": "if [ -e " + judging.dir + "/hold ]; then until [ -e " + judging.dir + "/free ]; do sleep 0.1; done; fi; sh measure.sh"}})
	judging.shares()
	judging.begin()
	judging.until("the second change is being measured", func() bool {
		var st state
		judging.query("state", &st)
		return st.Iteration == 2 && st.Phase == "verify"
	})
	working.at(2)

	require.NoError(t, one.worker.stop(syscall.SIGKILL))
	require.NoError(t, two.startWorker(two.address))
	defer func() { require.NoError(t, two.worker.stop(syscall.SIGINT)) }()
	working.write("go", "")
	judging.write("free", "")
	working.temporal("workflow", "signal", "--workflow-id", working.loop, "--name", "steer", "--input", `{"note": "mind the gap", "by": "ann"}`)
	atGate.temporal("workflow", "update", "execute", "--workflow-id", atGate.loop, "--name", "approve", "--input", `{"hash": "`+gate.Hash+`", "gate": "`+gate.ID+`"}`)

	working.at(4) // the second iteration again, on the other host, and the third
	working.home, atGate.home, judging.home = two.home, two.home, two.home
	judging.stands("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 no interrupted: raise the number", "3 yes raise the number"}, judging.rowsThere())
	require.Equal(t, "12", judging.has("refs/heads/pawl/"+judging.loop, "work/n"))
	judging.done("log", judging.loop, "--verify")
	require.Equal(t, "approved", atGate.stands("completed").Proposal.State)
	require.Equal(t, 1, atGate.count("loop_moved"))
	require.Equal(t, 1, atGate.count("gate_opened"), "it is the same gate")
	atGate.done("log", atGate.loop, "--verify")

	before := working.there("for-each-ref")
	require.True(t, one.hasTrees(working.loop))
	require.NoError(t, one.startWorker(one.address))
	working.until("the first host has given its trees up", func() bool { return !one.hasTrees(working.loop) && !one.hasTrees(atGate.loop) })
	require.Equal(t, before, working.there("for-each-ref"))
	require.True(t, two.hasTrees(working.loop))
	working.write("on", "")

	st := working.stands("completed")
	require.Equal(t, two.host(), st.Host)
	require.Equal(t, two.host(), working.describe().WorkflowExecutionInfo.Memo.Fields["host"])
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, working.rowsThere())
	require.Equal(t, "13", working.has("refs/heads/pawl/"+working.loop, "work/n"))
	require.Equal(t, st.Head, working.there("rev-parse", "refs/heads/pawl/"+working.loop))
	require.Equal(t, 1, working.count("loop_moved"))
	require.Equal(t, 1, strings.Count(working.read("told"), "mind the gap"))
	require.Contains(t, working.done("log", working.loop, "--verify").out, "whole")
	working.keep("moved-in-an-iteration-v1")
	atGate.keep("moved-at-a-gate-v1")
	judging.keep("moved-and-lost-v1")
	events, _ := working.events()
	for i, e := range events {
		if e.Type == "loop_moved" {
			require.Equal(t, "step_ended", events[i+1].Type, "what the agent had spent on the host that is gone")
		}
	}
}

// TestALoopStaysWithAHostThatIsOnlyBusy has an agent wait for the only slot of its host much longer than
// it would wait for a host that is gone, with another host at hand.
func TestALoopStaysWithAHostThatIsOnlyBusy(t *testing.T) {
	t.Parallel()
	one, two := hosts(t, "PAWL_WORKER_AGENTS=1")
	waits := `echo "$PAWL_ITERATION" >>"$WORLD/at"; until [ -e "$WORLD/go" ]; do sleep 0.1; done; `
	working := newWorldOfItsOwn(t, waits+raises).set(doc{"limits": doc{"iterations": 1}}).auto().on(one)
	waiting := newWorldOfItsOwn(t, raises).set(doc{"limits": doc{"iterations": 1}}).auto().on(one)
	for _, w := range []*world{working, waiting} {
		w.shares()
		w.begin()
		working.at(1)
	}
	require.NoError(t, two.startWorker(two.address))
	defer func() { require.NoError(t, two.worker.stop(syscall.SIGINT)) }()
	working.until("the other host has seen that this one lives", func() bool {
		return strings.Contains(readFile(filepath.Join(two.dir, "worker.log")), "the host "+one.host()+" asks for work")
	})
	working.write("go", "")
	for _, w := range []*world{working, waiting} {
		require.Equal(t, one.host(), w.stands("completed").Host)
		require.Zero(t, w.count("loop_moved"))
	}
}
