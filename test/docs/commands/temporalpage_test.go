package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// This test runs the page docs/guides/temporal.md: every command in it, in the page's order, on a cluster, with values in
// place of the page's.

func TestTemporalPage_EveryCommandRuns(t *testing.T) {
	world.Slow(t, "a cluster")
	world.NeedCLI(t)
	t.Parallel()
	w := world.Alone(t, "")
	w.Write("repo/parser/speed", "11\n")
	w.Write("repo/bench.sh", "#!/bin/sh\n[ -e '"+w.Dir+"/none' ] && echo none || cat parser/speed\n")
	w.Git("update-index", "--add", "--chmod=+x", "bench.sh")
	w.Git("checkout-index", "--force", "bench.sh")
	w.Commit("a parser")
	w.Loop = "parser"
	agent := "sh " + filepath.Join(w.Dir, "agent.sh")
	c := &world.Cluster{Dir: w.Dir, Home: filepath.Join(w.Dir, "home"), Address: world.FreeAddress(t), UI: world.FreeAddress(t)}
	w.On(c)
	worker, err := world.BuildWorker()
	require.NoError(t, err)
	calls(w, map[string]string{"temporal": world.CLI, "pawl": world.Program(t), "worker": worker})
	p := pageOf(w, "docs/guides/temporal.md", map[string]string{
		"127.0.0.1:7233": c.Address, "/home/ann/parser": w.Repo, "claude -p --permission-mode acceptEdits": agent,
		"start-dev --db-filename temporal.db": "start-dev --db-filename temporal.db --headless --ip 127.0.0.1 --log-level error --port " + c.Address[strings.LastIndex(c.Address, ":")+1:],
	})
	w.Script("WORLD=" + w.Dir + `; cat "$PAWL_PROMPT" >>"$WORLD/prompt"; echo "$PAWL_ITERATION" >>"$WORLD/at"
		until [ -e "$WORLD/go" ]; do sleep 0.05; done; echo $(($(cat parser/speed) + 1)) >parser/speed; echo "skip the copy"`)
	calls := 0
	called := func() {
		t.Helper()
		calls++
		w.At(calls)
	}
	hash := func() {
		t.Helper()
		w.Until("the contract is in the ledger", func() bool { return w.Stands("waiting").Ledger != "" })
		p.values["0123456789abcdef"] = w.Stands("waiting").Gate.Hash[:16]
	}
	// Its agent leaves files beside its tree.
	w.Write("loop.json", strings.Replace(p.fill(p.json["Start a loop"][0]), `"limits":`, `"sandbox": {"allow": ["`+w.Dir+`"]}, "limits":`, 1))
	start := p.blocks["Start a loop"][0]
	again := func() { // starts the loop as the page does
		t.Helper()
		p.blocks["Start a loop"] = []string{start}
		p.run("Start a loop")
	}

	background := func(name, ready string) *world.Service {
		t.Helper()
		cmd := exec.Command("bash", "-c", "exec env "+strings.TrimSpace(p.next(name)))
		cmd.Dir, cmd.Env = w.Dir, w.Environ()
		s, err := world.Serve(cmd, filepath.Join(w.Dir, strings.Fields(ready)[0]+".log"), ready)
		require.NoError(t, err)
		return s
	}
	c.Server = background("A cluster and a worker", "Metrics:")
	p.run("Search attributes")
	c.Worker = background("A cluster and a worker", "the worker is ready")
	t.Cleanup(func() { require.NoError(t, c.Stop()) })

	p.run("Start a loop")
	hash()
	out := p.run("Look at it")
	for _, text := range []string{"Make the parser faster", "Nightly is too slow, see #42", "startedBy", "PawlStatus", "### Waiting: contract", `"status":"waiting"`, `"kind":"contract"`, `"protections"`} {
		require.Contains(t, out, text)
	}
	require.Contains(t, p.types("pawl show parser --json"), `"status": "waiting"`)
	w.Until("visibility has it", func() bool { return len(w.Listed(`PawlGate = "contract"`)) == 1 })
	out = p.run("Find loops")
	require.Equal(t, 2, strings.Count(out, " parser "), "waiting, at its contract")
	require.Contains(t, out, "Total: 1")
	p.run("Answer it")
	called()
	p.run("Pause, steer, continue")
	w.Stands("paused")
	p.run("Pause, steer, continue")
	called()
	require.Contains(t, w.Read("prompt"), "try the lexer first")
	out = p.run("End it")
	require.Contains(t, out, "ALO_CANCELLED")
	require.Contains(t, out, "good enough")

	again()
	hash()
	p.run("Refuse")
	w.Stands("halted")

	again()
	hash()
	p.run("Reset")
	hash()
	p.run("Answer it") // as a signal
	called()
	p.run("End it") // by Cancel
	require.Equal(t, "ALO_CANCELLED", w.Stands("halted").ErrorCode)

	// A question opens if verify prints no number twice in a row.
	again()
	w.Approves()
	w.Write("none", "") // neither for a change nor for the code before it
	w.Write("go", "")
	calls += 2
	w.Until("it asks", func() bool { return w.Stands("waiting").Gate.Kind == "question" })
	for _, name := range []string{"go", "none"} {
		require.NoError(t, os.Remove(filepath.Join(w.Dir, name)))
	}
	p.run("Answer a question")
	called()
	p.run("End it") // by Terminate
	w.Until("its trees are given up", func() bool { return !w.Exists("home/loops/parser.4/desk") })
	p.values["refs/pawl-ledger/parser"] = "refs/pawl-ledger/parser.4"
	p.run("Start it again")
	w.Until("it goes on", func() bool { return w.Stands("running").Iteration == 3 })
	require.Equal(t, "pawl/parser.4", w.Stands("running").Branch)
	called()
	w.Temporal("workflow", "terminate", "--workflow-id", w.Loop, "--reason", "test")

	w.Write("loop.json", strings.Replace(w.Read("loop.json"), `"approvals": {`, `"approvals": {"plan": "auto", `, 1))
	p.run("Every night")
	p.run("Every night")
	called()
	w.Until("visibility has it", func() bool { return len(w.Listed(`TemporalScheduledById = "parser-nightly"`)) == 1 })
	w.Loop = w.Listed(`TemporalScheduledById = "parser-nightly"`)[0]
	require.Regexp(t, `^parser-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, w.Loop)
	require.Equal(t, "pawl/"+strings.ReplaceAll(w.Loop, ":", "-"), w.Stands("running").Branch)
	p.run("Every night")
	w.Temporal("workflow", "cancel", "--workflow-id", w.Loop)
	w.Stands("halted")

	// another test runs it
	p.said("starter start loop.json")
	p.allRan()
}
