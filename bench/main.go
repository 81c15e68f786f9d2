// Bench measures pawl side by side with the floor: the same metric protocol as a plain script
// (bench/floor.sh), which has no durability, no isolation and no governance. It prints the table
// of docs/reference/numbers.md. All ratios come from one run on one machine; absolute times are of that
// machine. The tables about noise there are simulated (package worlds). Start at main.
//
//	go run ./bench [-iterations 100] [-rounds 3] [-long 1000] [-paused 1000] [-tasks 1000] [-waiting 200] [-sessions 200]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"pawl/bench/worlds"
	"pawl/internal/exec/supervisor"
)

func main() {
	supervisor.Main()
	if at := os.Getenv(callVariable); at != "" {
		if err := asAgent(at); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	iterations := flag.Int("iterations", 100, "iterations of the overhead measurement")
	rounds := flag.Int("rounds", 3, "how often each is measured, in turn")
	long := flag.Int("long", 1000, "iterations of the long loop, 0 to leave it out")
	paused := flag.Int("paused", 1000, "loops that wait in one worker, 0 to leave it out")
	tasks := flag.Int("tasks", 1000, "tasks in the queue of a steward, 0 to leave it out")
	waiting := flag.Int("waiting", 200, "loops of the steward that wait")
	sessions := flag.Int("sessions", 200, "simulated loops of each rule in each world of noise (evidence)")
	only := flag.String("only", "", "a regular expression of the measurements to make, by their names; all of them without it")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err == nil {
		err = run(wanted, *iterations, *rounds, *long, *paused, *tasks, min(*waiting, *tasks), *sessions)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(wanted *regexp.Regexp, iterations, rounds, long, paused, tasks, waiting, sessions int) error {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if wanted.MatchString("evidence") { // simulated: needs no program
		fmt.Println(worlds.Own(worlds.All(), worlds.In(worlds.All(), worlds.Rules()[0], sessions)) + "\n" + worlds.Beside(sessions))
	}
	if wanted.MatchString("call") {
		if err := call(dir, rounds); err != nil {
			return fmt.Errorf("call: %w", err)
		}
	}
	b := bench{dir: dir}
	for _, m := range []struct {
		name string
		make func() error
	}{
		{"overhead", func() error { return b.overhead(iterations, rounds) }},
		{"start", func() error { return b.start(rounds) }},
		{"worker", func() error { return b.workerStart(rounds) }},
		{"recovery", func() error { return b.recovery(rounds) }},
		{"approval", func() error { return b.approval(rounds) }},
		{"governance", func() error { return b.governance(iterations, rounds) }},
		{"parallel", b.parallel},
		{"steps", func() error { return b.steps(300, rounds) }},
		{"paused", func() error { return b.paused(paused) }},
		{"steward", func() error { return b.steward(tasks, waiting) }},
		{"long", func() error { return b.long(long) }},
	} {
		left := m.name == "paused" && paused == 0 || m.name == "long" && long == 0 || m.name == "steward" && tasks == 0
		if left || !wanted.MatchString(m.name) {
			continue
		}
		if b.binary == "" {
			b.binary = filepath.Join(dir, "pawl")
			if out, err := exec.Command("go", "build", "-o", b.binary, ".").CombinedOutput(); err != nil {
				return fmt.Errorf("building pawl: %w\n%s", err, out)
			}
			fmt.Println("| what | measured |\n|---|---|")
		}
		if err := m.make(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

type bench struct {
	dir, binary string
	n           int
}

// agent improves the number in every third iteration and makes it worse in the others. It takes no time, and each of
// its changes is different.
const agent = `cat >/dev/null; i=$PAWL_ITERATION
if [ $((i % 3)) = 0 ]; then echo $i > n; echo "set n to $i"; else echo -$i > n; echo "set n to minus $i"; fi`

// place is a fresh repository with its own home.
type place struct{ dir, repo, home, spec string }

// marks returns a file beside the repository that the agent of this spec may write.
func (p place) marks(spec map[string]any) (string, error) {
	dir := filepath.Join(p.dir, "beside")
	spec["sandbox"] = map[string]any{"allow": []string{dir}}
	return filepath.Join(dir, "marks"), os.MkdirAll(dir, 0o755)
}

func (b *bench) place(spec map[string]any) (place, error) {
	b.n++
	p := place{dir: filepath.Join(b.dir, strconv.Itoa(b.n))}
	p.repo, p.home, p.spec = filepath.Join(p.dir, "repo"), filepath.Join(p.dir, "home"), filepath.Join(p.dir, "spec.json")
	if err := os.MkdirAll(p.repo, 0o755); err != nil {
		return p, err
	}
	script := `set -e; GIT_DEFAULT_REF_FORMAT=files git init -q --object-format=sha1 -b main .; git config user.name bench; git config user.email bench@localhost
echo 0 > n; git add -A; git commit -qm start`
	if out, err := sh(p.repo, script); err != nil {
		return p, fmt.Errorf("making a repository: %w\n%s", err, out)
	}
	doc := map[string]any{
		"name": "bench", "goal": "raise n", "repo": map[string]any{"path": p.repo}, "scope": []string{"n"},
		"verify": map[string]any{"command": "cat n"}, "agent": map[string]any{"command": agent},
		"approvals": map[string]any{"plan": "auto", "diff": "auto", "tools": []string{"*"}},
	}
	maps.Copy(doc, spec)
	text, err := json.Marshal(doc)
	if err != nil {
		return p, err
	}
	return p, os.WriteFile(p.spec, text, 0o644)
}

// rewrite replaces keys of the place's spec.
func (b *bench) rewrite(p place, keys map[string]any) error {
	text, err := os.ReadFile(p.spec)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	maps.Copy(doc, keys)
	if text, err = json.Marshal(doc); err != nil {
		return err
	}
	return os.WriteFile(p.spec, text, 0o644)
}

// raw returns a spec in the form in which a workflow gets it.
func raw(text []byte) json.RawMessage { return text }

func limits(iterations int) map[string]any {
	return map[string]any{"limits": map[string]any{"iterations": iterations, "toolCalls": 10 * iterations, "activeTime": "10h", "discards": iterations + 1}}
}

func (b *bench) pawl(p place, args ...string) *exec.Cmd {
	c := exec.Command(b.binary, args...)
	c.Env = append(os.Environ(), "PAWL_HOME="+p.home)
	return c
}

// overhead compares 100 iterations with an agent and a verify that take no time.
func (b *bench) overhead(iterations, rounds int) error {
	var ratios, ours, floors []float64
	var events, bytes float64
	for range rounds {
		p, err := b.place(limits(iterations))
		if err != nil {
			return err
		}
		if out, err := b.pawl(p, "run", "--json", p.spec).CombinedOutput(); err != nil {
			return fmt.Errorf("pawl run: %w\n%s", err, out)
		}
		took, err := b.span(p)
		if err != nil {
			return err
		}
		floor, rows, err := b.floor(iterations)
		if err != nil {
			return err
		}
		mine, err := sh(p.repo, "git show refs/pawl-ledger/bench:loop-results.tsv")
		if err != nil {
			return err
		}
		if err := sameRows(string(mine), rows); err != nil {
			return err
		}
		if events, bytes, err = b.history(p, iterations); err != nil {
			return err
		}
		ours, floors = append(ours, took.Seconds()/float64(iterations)), append(floors, floor.Seconds()/float64(iterations))
		ratios = append(ratios, took.Seconds()/floor.Seconds())
	}
	fmt.Printf("| an iteration, against the floor doing the same work (%d iterations, median of %d) | %.2f× (%.1f ms against %.1f ms) |\n",
		iterations, rounds, median(ratios), 1000*median(ours), 1000*median(floors))
	fmt.Printf("| metrics and decisions, row by row | as the floor's, %d rows |\n", iterations+1)
	fmt.Printf("| history per iteration | %.0f events, %.1f KiB |\n", events, bytes/1024)
	return nil
}

// span returns the time from the first iteration's start to the last one's record, from the ledger.
func (b *bench) span(p place) (time.Duration, error) {
	out, err := b.pawl(p, "log", "bench", "--json").Output()
	if err != nil {
		return 0, fmt.Errorf("pawl log: %w", err)
	}
	var first, last time.Time
	for line := range strings.Lines(string(out)) {
		var e struct {
			Type string
			Time time.Time
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return 0, err
		}
		if e.Type == "autonomy_started" {
			first = e.Time
		}
		if e.Type == "autonomy_completed" {
			last = e.Time
		}
	}
	return last.Sub(first), nil
}

// floor runs the plain script and returns how long its iterations took, and its rows.
func (b *bench) floor(iterations int) (time.Duration, string, error) {
	script, err := filepath.Abs("bench/floor.sh")
	if err != nil {
		return 0, "", err
	}
	measure := func(n int) (time.Duration, string, error) {
		p, err := b.place(nil)
		if err != nil {
			return 0, "", err
		}
		// Without a discard limit in its arguments, the script stops after ten discards in a row, like pawl.
		started := time.Now()
		out, err := exec.Command("bash", script, p.repo, strconv.Itoa(n), "higher", "0", agent, "cat n").Output()
		return time.Since(started), string(out), err
	}
	zero, _, err := measure(0)
	if err != nil {
		return 0, "", fmt.Errorf("the floor: %w", err)
	}
	all, rows, err := measure(iterations)
	return all - zero, rows, err
}

// sameRows compares iteration, metric, delta and decision.
func sameRows(mine, floor string) error {
	a, b := strings.Split(strings.TrimSpace(mine), "\n"), strings.Split(strings.TrimSpace(floor), "\n")
	if len(a) != len(b) {
		return fmt.Errorf("%d rows against the floor's %d", len(a), len(b))
	}
	for i := range a {
		x, y := strings.Split(a[i], "\t"), strings.Split(b[i], "\t")
		if x[0] != y[0] || x[2] != y[2] || x[3] != y[3] || x[4] != y[4] {
			return fmt.Errorf("row %d differs:\n%s\n%s", i, a[i], b[i])
		}
	}
	return nil
}

// history returns how many events and bytes one iteration adds to Temporal's history.
func (b *bench) history(p place, iterations int) (events, bytes float64, err error) {
	err = b.serving(p, func(c client.Client, _ int) error {
		d, err := c.DescribeWorkflowExecution(context.Background(), "bench", "")
		if err != nil {
			return err
		}
		info := d.GetWorkflowExecutionInfo()
		events = float64(info.GetHistoryLength()) / float64(iterations)
		bytes = float64(info.GetHistorySizeBytes()) / float64(iterations)
		return nil
	})
	return events, bytes, err
}

// serving runs `pawl up` while do works. It passes do the process ID.
func (b *bench) serving(p place, do func(c client.Client, pid int) error) error {
	up := b.pawl(p, "up")
	if err := up.Start(); err != nil {
		return err
	}
	defer func() { _ = up.Process.Signal(syscall.SIGINT); _ = up.Wait() }()
	c, err := b.dial(p)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c, up.Process.Pid)
}

func (b *bench) dial(p place) (client.Client, error) {
	for deadline := time.Now().Add(30 * time.Second); ; {
		var e struct{ Address string }
		text, err := os.ReadFile(filepath.Join(p.home, "engine", "engine.json"))
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err == nil && e.Address != "" {
			c, err := client.Dial(client.Options{HostPort: e.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
			if err == nil {
				return c, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(errors.New("no engine came up"), err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// start measures the time from the program's start to a loop's first phase, on a home that has an engine already and on
// an empty one.
func (b *bench) start(rounds int) error {
	var fresh, again []float64
	for range rounds {
		p, err := b.place(limits(1))
		if err != nil {
			return err
		}
		for i := range 2 {
			started := time.Now()
			out, err := b.pawl(p, "run", "--json", "--id", fmt.Sprintf("bench-%d", i), p.spec).CombinedOutput()
			if err != nil {
				return fmt.Errorf("pawl run: %w\n%s", err, out)
			}
			events, err := b.pawl(p, "log", fmt.Sprintf("bench-%d", i), "--json").Output()
			if err != nil {
				return err
			}
			var e struct{ Time time.Time }
			if err := json.Unmarshal([]byte(strings.SplitN(string(events), "\n", 2)[0]), &e); err != nil {
				return err
			}
			if i == 0 {
				fresh = append(fresh, e.Time.Sub(started).Seconds())
			} else {
				again = append(again, e.Time.Sub(started).Seconds())
			}
		}
	}
	fmt.Printf("| built binary to first phase | %.2f s on an empty home, %.2f s on one that is there |\n", median(fresh), median(again))
	return nil
}

// recovery kills worker and engine with SIGKILL while the agent runs, restarts them, and measures the time until the
// agent runs again.
func (b *bench) recovery(rounds int) error {
	var seconds []float64
	for range rounds {
		p, err := b.place(nil)
		if err != nil {
			return err
		}
		doc := limits(1)
		marks, err := p.marks(doc)
		if err != nil {
			return err
		}
		doc["agent"] = map[string]any{"command": fmt.Sprintf("date +%%s.%%N >> %s; [ $(wc -l < %s) -gt 1 ] || sleep 600; echo 1 > n; echo better", marks, marks)}
		if err := b.rewrite(p, doc); err != nil {
			return err
		}
		first := b.pawl(p, "run", "--json", p.spec)
		if err := first.Start(); err != nil {
			return err
		}
		if err := lines(marks, 1); err != nil {
			return err
		}
		_ = first.Process.Kill()
		_ = first.Wait()
		restarted := time.Now()
		up := b.pawl(p, "up")
		if err := up.Start(); err != nil {
			return err
		}
		err = lines(marks, 2)
		_ = up.Process.Signal(syscall.SIGINT)
		_ = up.Wait()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(marks)
		if err != nil {
			return err
		}
		at, err := strconv.ParseFloat(strings.TrimSpace(strings.Split(string(text), "\n")[1]), 64)
		if err != nil {
			return err
		}
		seconds = append(seconds, at-float64(restarted.UnixNano())/1e9)
	}
	fmt.Printf("| kill -9 of worker and engine, restart to next step (median of %d) | %.2f s |\n", rounds, median(seconds))
	return nil
}

// long runs a loop of a thousand iterations and measures its prompts.
func (b *bench) long(n int) error {
	p, err := b.place(limits(n))
	if err != nil {
		return err
	}
	if out, err := b.pawl(p, "run", "--json", p.spec).CombinedOutput(); err != nil {
		return fmt.Errorf("pawl run: %w\n%s", err, out)
	}
	var parts []string
	for _, i := range []int{10, 20, 100, n} {
		if i > n {
			continue
		}
		st, err := os.Stat(filepath.Join(p.home, "loops", "bench", "steps", fmt.Sprintf("%04d.1-modify", i), "prompt.md"))
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("%d bytes at iteration %d", st.Size(), i))
	}
	took, err := b.span(p)
	if err != nil {
		return err
	}
	fmt.Printf("| prompt | %s |\n", strings.Join(parts, ", "))
	fmt.Printf("| an iteration of a loop of %d | %.1f ms |\n", n, 1000*took.Seconds()/float64(n))
	return nil
}

// lines waits until the file has n lines.
func lines(path string, n int) error {
	for deadline := time.Now().Add(time.Minute); ; {
		text, err := os.ReadFile(path)
		if err == nil && strings.Count(string(text), "\n") >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not get %d lines", path, n)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func sh(dir, script string) ([]byte, error) {
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	return c.CombinedOutput()
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}
