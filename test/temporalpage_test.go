package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page docs/temporal.md is run: every command in it, in the page's order, on a cluster, with its
// examples' values in the place of the page's.

func TestTemporalPage_EveryCommandRuns(t *testing.T) {
	needCLI(t)
	t.Parallel()
	w := newWorldOfItsOwn(t, "")
	w.write("repo/parser/speed", "11\n")
	w.write("repo/bench.sh", "#!/bin/sh\ncat parser/speed\n")
	w.git("update-index", "--add", "--chmod=+x", "bench.sh")
	w.git("checkout-index", "--force", "bench.sh")
	w.commit("a parser")
	w.loop = "parser"
	agent := "sh " + filepath.Join(w.dir, "agent.sh")
	c := &cluster{dir: w.dir, home: filepath.Join(w.dir, "home"), address: freeAddress(t), ui: freeAddress(t)}
	w.on(c)
	worker, err := buildWorker()
	require.NoError(t, err)
	w.calls(map[string]string{"temporal": cli, "pawl": program(t), "worker": worker})
	p := w.pageOf("docs/temporal.md", map[string]string{
		"127.0.0.1:7233": c.address, "/home/ann/parser": w.repo, "claude -p --permission-mode acceptEdits": agent,
		"start-dev --db-filename temporal.db": "start-dev --db-filename temporal.db --headless --ip 127.0.0.1 --log-level error --port " + c.address[strings.LastIndex(c.address, ":")+1:],
	})
	w.script("WORLD=" + w.dir + `; cat "$PAWL_PROMPT" >>"$WORLD/prompt"; echo "$PAWL_ITERATION" >>"$WORLD/at"
		until [ -e "$WORLD/go" ]; do sleep 0.05; done; if [ -e "$WORLD/none" ]; then echo none >parser/speed; else echo $(($(cat parser/speed) + 1)) >parser/speed; fi; echo "skip the copy"`)
	calls := 0
	called := func() {
		t.Helper()
		calls++
		w.at(calls)
	}
	hash := func() {
		t.Helper()
		w.until("the contract is in the ledger", func() bool { return w.stands("waiting").Ledger != "" })
		p.values["0123456789abcdef"] = w.stands("waiting").Gate.Hash[:16]
	}
	w.write("loop.json", p.fill(p.json["Start a loop"][0]))
	start := p.blocks["Start a loop"][0]
	again := func() { // the loop, as the page starts it
		t.Helper()
		p.blocks["Start a loop"] = []string{start}
		p.run("Start a loop")
	}

	background := func(name, ready string) *service {
		t.Helper()
		cmd := exec.Command("bash", "-c", "exec env "+strings.TrimSpace(p.next(name)))
		cmd.Dir, cmd.Env = w.dir, w.environ()
		s, err := serve(cmd, filepath.Join(w.dir, strings.Fields(ready)[0]+".log"), ready)
		require.NoError(t, err)
		return s
	}
	c.server = background("A cluster and a worker", "Metrics:")
	p.run("Search attributes")
	c.worker = background("A cluster and a worker", "the worker is ready")
	t.Cleanup(func() { require.NoError(t, c.stop()) })

	p.run("Start a loop")
	hash()
	out := p.run("Look at it")
	for _, text := range []string{"Make the parser faster", "Nightly is too slow, see #42", "startedBy", "PawlStatus", "### Waiting: contract", `"status":"waiting"`, `"kind":"contract"`, `"protections"`} {
		require.Contains(t, out, text)
	}
	w.until("visibility has it", func() bool { return len(w.listed(`PawlGate = "contract"`)) == 1 })
	out = p.run("Find loops")
	require.Equal(t, 2, strings.Count(out, " parser "), "waiting, at its contract")
	require.Contains(t, out, "Total: 1")
	p.run("Answer it")
	called()
	p.run("Pause, steer, continue")
	w.stands("paused")
	p.run("Pause, steer, continue")
	called()
	require.Contains(t, w.read("prompt"), "try the lexer first")
	out = p.run("End it")
	require.Contains(t, out, "ALO_CANCELLED")
	require.Contains(t, out, "good enough")

	again()
	hash()
	p.run("Refuse")
	w.stands("halted")

	again()
	hash()
	p.run("Reset")
	hash()
	p.run("Answer it") // as a signal
	called()
	p.run("End it") // by Cancel
	require.Equal(t, "ALO_CANCELLED", w.stands("halted").ErrorCode)

	// A question opens where verify prints no number twice in a row.
	w.write("none", "")
	w.write("go", "")
	again()
	w.approves()
	calls += 2
	w.until("it asks", func() bool { return w.stands("waiting").Gate.Kind == "question" })
	for _, name := range []string{"go", "none"} {
		require.NoError(t, os.Remove(filepath.Join(w.dir, name)))
	}
	p.run("Answer a question")
	called()
	p.run("End it") // by Terminate
	w.until("its trees are given up", func() bool { return !w.exists("home/loops/parser.4/desk") })
	p.values["refs/pawl-ledger/parser"] = "refs/pawl-ledger/parser.4"
	p.run("Start it again")
	w.until("it goes on", func() bool { return w.stands("running").Iteration == 4 })
	require.Equal(t, "pawl/parser.4", w.stands("running").Branch)
	called()
	w.temporal("workflow", "terminate", "--workflow-id", w.loop, "--reason", "test")

	w.write("loop.json", strings.Replace(w.read("loop.json"), `"approvals": {`, `"approvals": {"plan": "auto", `, 1))
	p.run("Every night")
	p.run("Every night")
	called()
	w.until("visibility has it", func() bool { return len(w.listed(`TemporalScheduledById = "parser-nightly"`)) == 1 })
	w.loop = w.listed(`TemporalScheduledById = "parser-nightly"`)[0]
	require.Regexp(t, `^parser-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, w.loop)
	require.Equal(t, "pawl/"+strings.ReplaceAll(w.loop, ":", "-"), w.stands("running").Branch)
	p.run("Every night")
	w.temporal("workflow", "cancel", "--workflow-id", w.loop)
	w.stands("halted")

	// Another test runs it.
	p.said("starter start loop.json")
	p.allRan()
}
