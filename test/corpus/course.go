package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patience is how long one case may take.
const patience = 4 * time.Minute

// world is what one case works with.
type world struct {
	name     string
	dir      string // the folder around the repository, $WORLD for the agent
	repo     string
	engine   *engine
	record   record
	answered map[string]int  // by kind of gate, how many have been answered
	seen     map[string]bool // gates by loop and ID
	done     map[string]bool // deeds
}

// newWorld makes the repository, the agent and the spec.
func newWorld(root string, c course, shared *engine) (*world, error) {
	dir := filepath.Join(root, "w", c.name)
	w := &world{
		name: c.name, dir: dir, repo: filepath.Join(dir, "repo"), engine: shared,
		answered: map[string]int{}, seen: map[string]bool{}, done: map[string]bool{},
	}
	if c.alone {
		w.engine = &engine{program: shared.program, home: w.path("home"), log: w.path("up.log")}
	}
	for name, content := range baseFiles {
		if own, ok := c.files[name]; ok {
			content = own
		}
		if err := w.write("repo/"+name, content); err != nil {
			return nil, err
		}
	}
	for name, content := range c.files {
		content = strings.ReplaceAll(content, "$WORLD", w.dir) // commands do not have the agent's variables
		if err := w.write("repo/"+name, content); err != nil {
			return nil, err
		}
	}
	agent, spec := "cat >/dev/null\n"+c.agent+"\n", merge(baseSpec(w), c.spec)
	if c.tasks != nil {
		agent, spec = crew, merge(charter(w), c.spec)
	}
	if err := w.write("agent.sh", agent); err != nil {
		return nil, err
	}
	spec["name"] = c.name
	for key, value := range spec {
		if value == nil {
			delete(spec, key)
		}
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := w.write("spec.json", string(text)); err != nil {
		return nil, err
	}
	w.shell(`cd repo && git -c init.defaultBranch=main init -q && git add -A && git commit -qm "a hill"`)
	return w, nil
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(w.path(name), []byte(content), 0o644)
}

// take takes the case to its end, and returns what is kept of it.
func (w *world) take(ctx context.Context, c course) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.alone {
		if err := w.engine.start(ctx); err != nil {
			return err.Error()
		}
		defer w.engine.kill()
	}
	w.record.screen("validate", w.shell("pawl validate spec.json"))
	if c.tasks != nil {
		w.takeSteward(ctx, c)
	} else {
		w.takeLoop(ctx, c)
	}
	return w.record.text()
}

func (w *world) takeLoop(ctx context.Context, c course) {
	start := w.shell("pawl start spec.json")
	w.record.screen("start", start)
	if !start.ok() {
		return
	}
	w.follow(ctx, c, func() bool {
		var state struct{ Status string }
		_ = json.Unmarshal([]byte(w.shell("pawl show $LOOP --json").out), &state)
		return slices.Contains([]string{"completed", "failed", "halted", "rejected", "cancelled", "refused"}, state.Status)
	})
	w.record.screen("watch", w.shell("pawl watch $LOOP"))
	w.keepLoop(c.name)
	w.record.screen("list", w.shell(`pawl list --all | grep -w -- "$LOOP"`))
}

func (w *world) takeSteward(ctx context.Context, c course) {
	start := w.shell("pawl steward up spec.json --detach")
	w.record.screen("steward up", start)
	if !start.ok() {
		return
	}
	if slices.ContainsFunc(c.deeds, func(d deed) bool { return d.when == "planning" }) {
		w.mark("plan") // the planner waits
	}
	for i, task := range c.tasks {
		name := fmt.Sprintf("task%d.md", i)
		if err := w.write(name, task); err != nil {
			w.record.add("fault", err.Error())
			return
		}
		w.record.screen("submit", w.shell("pawl steward submit $LOOP "+name))
	}
	w.mark("submitted")
	var children []string
	w.follow(ctx, c, func() bool {
		var state struct {
			Tasks []struct {
				Outcome string
				Loops   []string
			}
		}
		_ = json.Unmarshal([]byte(w.shell("pawl steward show $LOOP --json").out), &state)
		children = nil
		working := false
		for _, task := range state.Tasks {
			working = working || task.Outcome == ""
			children = append(children, task.Loops...)
		}
		return len(state.Tasks) > 0 && !working
	})
	w.record.screen("steward stop", w.shell("pawl steward stop $LOOP --yes"))
	w.record.screen("steward show", w.shell("pawl steward show $LOOP"))
	w.record.json("steward state", w.shell("pawl steward show $LOOP --json"))
	w.record.events(w.shell("pawl log $LOOP --all --json"))
	w.record.screen("steward log", w.shell("pawl log $LOOP"))
	w.record.screen("steward log --verify", w.shell("pawl log $LOOP --verify"))
	w.record.add("status file", w.shell("cat repo/.pawl/STATUS_LEDGER.md").out)
	for _, child := range children {
		w.keepLoop(child)
	}
}

// keepLoop keeps what came of a loop that has ended.
func (w *world) keepLoop(id string) {
	run := func(command string) result { return w.shell("LOOP=" + id + "; " + command) }
	w.record.screen("show "+id, run("pawl show $LOOP"))
	w.record.json("state "+id, run("pawl show $LOOP --json"))
	w.record.events(run("pawl log $LOOP --all --json"))
	w.record.screen("log "+id, run("pawl log $LOOP"))
	w.record.screen("log --verify "+id, run("pawl log $LOOP --verify"))
	w.record.screen("report "+id, run("pawl report $LOOP"))
	w.record.add("rows", run("git -C repo show refs/pawl-ledger/$LOOP:loop-results.tsv").out)
	w.record.keep("trees", run(`git -C repo log --reverse --format='%T %s' main..pawl/$LOOP`).out)
	w.record.keep("branch of the user", run(`git -C repo log --reverse --format='%T %s' main; git -C repo status --porcelain`).out)
	w.record.screen("clean", run("pawl clean $LOOP --yes"))
}

// follow answers gates and does deeds until the case is over.
func (w *world) follow(ctx context.Context, c course, over func() bool) {
	for !over() {
		w.doDeeds(ctx, c)
		w.answerGates(ctx, c)
		select {
		case <-ctx.Done():
			w.record.add("fault", "it does not end")
			w.shell("pawl halt $LOOP")
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *world) mark(name string) { _ = w.write(name, "") }

func (w *world) doDeeds(ctx context.Context, c course) {
	for _, d := range c.deeds {
		if _, err := os.Stat(w.path(d.when)); err != nil || w.done[d.when] {
			continue
		}
		w.done[d.when] = true
		for _, command := range d.do {
			w.doOne(ctx, command)
		}
		w.mark(d.when + ".done")
	}
}

func (w *world) doOne(ctx context.Context, command string) {
	switch command {
	case "kill-up":
		w.engine.kill()
	case "up":
		if err := w.engine.start(ctx); err != nil {
			w.record.add("fault", err.Error())
		}
	default:
		w.record.screen("deed: "+command, w.shell(command))
	}
}

// waiting is an entry of `pawl inbox --json`.
type waiting struct {
	Loop, Steward, Task string
	Gate                struct{ ID, Kind, Hash string }
	Ways                []struct{ Command string }
}

func (w *world) answerGates(ctx context.Context, c course) {
	var all []waiting
	_ = json.Unmarshal([]byte(w.shell("pawl inbox --json").out), &all)
	for _, gate := range all {
		mine := gate.Loop == w.name || gate.Steward == w.name
		key := gate.Loop + " " + gate.Gate.ID
		if !mine || w.seen[key] {
			continue
		}
		w.seen[key] = true
		w.mark("gate-" + gate.Gate.Kind)
		w.doDeeds(ctx, c)
		w.answer(c, gate)
	}
}

// answer gives the next answer for a gate of this kind.
func (w *world) answer(c course, gate waiting) {
	kind := gate.Gate.Kind
	id := gate.Loop
	if id == "" {
		id = gate.Steward
		w.record.screen("steward show at gate "+kind, w.shell("pawl steward show $LOOP"))
	} else {
		w.record.screen("show at gate "+kind, w.shell("pawl show "+id))
	}
	if kind == "diff" {
		w.record.screen("diff", w.shell("pawl diff "+id))
	}
	var ways []string
	for _, way := range gate.Ways {
		ways = append(ways, way.Command)
	}
	w.record.add("ways at gate "+kind, strings.Join(ways, "\n")+"\n")

	given := c.answers[kind]
	words := "approve"
	if n := len(given); n > 0 {
		words = given[min(w.answered[kind], n-1)]
	}
	w.answered[kind]++
	said := w.shell(command(gate, id, words))
	w.record.screen("answer "+words, said)
	if len(given) == 0 && !said.ok() {
		w.record.screen("halt", w.shell("pawl halt "+id))
	}
}

// command returns the command that gives this answer.
func command(gate waiting, id, words string) string {
	message, rest, _ := strings.Cut(words, " ")
	if gate.Loop == "" {
		switch message {
		case "approve":
			return fmt.Sprintf("pawl steward answer %s --task %s --gate %s --approve --hash %s", id, gate.Task, gate.Gate.ID, gate.Gate.Hash)
		case "answer":
			return fmt.Sprintf("pawl steward answer %s --task %s --gate %s --choice %s", id, gate.Task, gate.Gate.ID, rest)
		}
	}
	switch message {
	case "approve":
		return "pawl approve " + id + " --hash " + strconv.Quote(gate.Gate.Hash) + " " + rest
	case "extend":
		return "pawl extend " + id + " --hash " + gate.Gate.Hash + " " + rest
	}
	return "pawl " + message + " " + id + " " + rest
}

// result is what a command printed.
type result struct {
	code     int
	out, err string
}

func (r result) ok() bool { return r.code == 0 }

// shell runs commands in the world's folder.
func (w *world) shell(commands string) result {
	cmd := exec.Command("sh", "-c", `pawl() { "$PAWL" "$@"; }; `+commands)
	var out, stderr strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &stderr
	cmd.Env = append(environment(w.engine.home), "PAWL="+w.engine.program, "LOOP="+w.name, "WORLD="+w.dir)
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		return result{-1, "", err.Error()}
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}
