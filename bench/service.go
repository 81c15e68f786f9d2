package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
)

// steps compares durable steps, one after the other, on the embedded engine and on the dev server of the Temporal CLI:
// the same workflow, the same worker, in turn.
func (b *bench) steps(n, rounds int) error {
	cli, err := exec.LookPath("temporal")
	if err != nil {
		fmt.Println("| a durable step against the Temporal CLI's dev server | not measured: there is no `temporal` on the PATH |")
		return nil
	}
	var own, dev, ratios []float64
	for range rounds {
		p, err := b.place(nil)
		if err != nil {
			return err
		}
		var mine, theirs float64
		if err := b.serving(p, func(c client.Client, _ int) (err error) { mine, err = sequence(c, n); return err }); err != nil {
			return err
		}
		if err := b.devServer(cli, filepath.Join(p.dir, "dev.db"), func(c client.Client) (err error) {
			theirs, err = sequence(c, max(10, n/10))
			return err
		}); err != nil {
			return err
		}
		own, dev, ratios = append(own, mine), append(dev, theirs), append(ratios, theirs/mine)
	}
	fmt.Printf("| a durable step on the embedded engine, against the Temporal CLI's dev server (median of %d) | %.1f ms against %.1f ms: %.1f× faster |\n",
		rounds, 1000*median(own), 1000*median(dev), median(ratios))
	return nil
}

// devServer runs `temporal server start-dev` on a file while do works.
func (b *bench) devServer(cli, file string, do func(client.Client) error) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	server := exec.Command(cli, "server", "start-dev", "--db-filename", file, "--headless", "--port", strconv.Itoa(port), "--log-level", "error")
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Signal(syscall.SIGINT); _ = server.Wait() }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := client.Dial(client.Options{HostPort: "127.0.0.1:" + strconv.Itoa(port), Logger: silent()})
		if err == nil {
			defer c.Close()
			return do(c)
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("the dev server did not come up"), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func silent() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// sequence runs n activities that do nothing, one after the other. It returns the seconds per activity.
func sequence(c client.Client, n int) (float64, error) {
	const queue = "bench-steps"
	w := worker.New(c, queue, worker.Options{})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "Nothing"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, n int) (float64, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		var from time.Time
		for i := range n + 5 { // the first ones warm up
			if i == 5 {
				from = workflow.Now(ctx)
			}
			if err := workflow.ExecuteActivity(ctx, "Nothing").Get(ctx, nil); err != nil {
				return 0, err
			}
		}
		return workflow.Now(ctx).Sub(from).Seconds() / float64(n), nil
	}, workflow.RegisterOptions{Name: "Steps"})
	if err := w.Start(); err != nil {
		return 0, err
	}
	defer w.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, "Steps", n)
	if err != nil {
		return 0, err
	}
	var each float64
	return each, run.Get(ctx, &each)
}

// paused starts many loops that stop in their first phase, and measures what their worker, which is also the engine
// here, needs for them.
func (b *bench) paused(n int) error {
	doc := limits(1)
	doc["breakpoints"] = []string{"precheck"}
	p, err := b.place(doc)
	if err != nil {
		return err
	}
	input, err := os.ReadFile(p.spec)
	if err != nil {
		return err
	}
	return b.serving(p, func(c client.Client, pid int) error {
		started := time.Now()
		before := resident(pid)
		for i := range n {
			if err := startLoop(c, fmt.Sprintf("bench-%d", i), input); err != nil {
				return fmt.Errorf("starting loop %d: %w", i, err)
			}
		}
		for i := range n {
			if err := until(c, fmt.Sprintf("bench-%d", i), func(s loop.State) bool { return s.Status == loop.Paused }); err != nil {
				return err
			}
		}
		fmt.Printf("| %d paused loops in one worker, with engine and UI | %.0f MiB more than without (%.0f MiB), started in %.1f s |\n",
			n, float64(resident(pid)-before)/(1<<20), float64(before)/(1<<20), time.Since(started).Seconds())
		return nil
	})
}

// approval measures from the approval of a contract to the beginning of the next step.
func (b *bench) approval(rounds int) error {
	var took []float64
	for range rounds {
		doc := limits(1)
		doc["approvals"] = map[string]any{"plan": "required", "diff": "auto", "tools": []string{"*"}}
		p, err := b.place(nil)
		if err != nil {
			return err
		}
		marks, err := p.marks(doc)
		if err != nil {
			return err
		}
		doc["agent"] = map[string]any{"command": fmt.Sprintf("date +%%s.%%N >> %s; echo 1 > n; echo better", marks)}
		if err := b.rewrite(p, doc); err != nil {
			return err
		}
		err = b.serving(p, func(c client.Client, _ int) error {
			input, err := os.ReadFile(p.spec)
			if err != nil {
				return err
			}
			if err := startLoop(c, "bench", input); err != nil {
				return err
			}
			var hash string
			if err := until(c, "bench", func(s loop.State) bool {
				if s.Gate != nil {
					hash = s.Gate.Hash
				}
				return s.Gate != nil && s.Ledger != ""
			}); err != nil {
				return err
			}
			from := time.Now()
			if err := c.SignalWorkflow(context.Background(), "bench", "", "approve", map[string]string{"hash": hash}); err != nil {
				return err
			}
			if err := lines(marks, 1); err != nil {
				return err
			}
			text, err := os.ReadFile(marks)
			if err != nil {
				return err
			}
			at, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			took = append(took, at-float64(from.UnixNano())/1e9)
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("| approval to the agent at work (median of %d) | %.0f ms |\n", rounds, 1000*median(took))
	return nil
}

// governance compares loops with everything that governs them with loops that have as little of it as possible: no
// sandbox, no search for secrets.
func (b *bench) governance(iterations, rounds int) error {
	var ratios []float64
	ways := [2]map[string]any{{}, {
		"sandbox": map[string]any{"use": "off"}, "guard": map[string]any{"policy": "open"}, "policies": map[string]any{"open": map[string]any{"secrets": "allow"}},
	}}
	for round := range rounds {
		var each [2]time.Duration
		for n := range ways {
			i := (n + round) % 2 // each of them is first equally often
			doc := limits(iterations)
			maps.Copy(doc, ways[i])
			p, err := b.place(doc)
			if err != nil {
				return err
			}
			if out, err := b.pawl(p, "run", "--json", p.spec).CombinedOutput(); err != nil {
				return fmt.Errorf("pawl run: %w\n%s", err, out)
			}
			if each[i], err = b.span(p); err != nil {
				return err
			}
		}
		ratios = append(ratios, each[0].Seconds()/each[1].Seconds())
	}
	fmt.Printf("| an iteration with sandbox and search for secrets, against one without (%d iterations, median, lowest and highest of %d pairs) | %+.0f %% (%+.0f to %+.0f) |\n",
		iterations, rounds, 100*(median(ratios)-1), 100*(slices.Min(ratios)-1), 100*(slices.Max(ratios)-1))
	return nil
}

func startLoop(c client.Client, id string, input []byte) error {
	_, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: id, TaskQueue: "pawl"}, "Improve", raw(input))
	return err
}

// until waits for a state of a loop.
func until(c client.Client, id string, is func(loop.State) bool) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		var s loop.State
		v, err := c.QueryWorkflow(context.Background(), id, "", "state")
		if err == nil {
			err = v.Get(&s)
		}
		if err == nil && is(s) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s did not get there; it is %s", id, s.Status), err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// resident returns how much memory a process uses, in bytes.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// workerStart measures the time from the production worker's start until it polls.
func (b *bench) workerStart(rounds int) error {
	binary := filepath.Join(b.dir, "worker")
	if out, err := exec.Command("go", "build", "-o", binary, "./worker").CombinedOutput(); err != nil {
		return fmt.Errorf("building the worker: %w\n%s", err, out)
	}
	p, err := b.place(nil)
	if err != nil {
		return err
	}
	var took []float64
	err = b.engineOf(p, func(address string) error {
		for i := range rounds {
			home, log := filepath.Join(p.dir, fmt.Sprintf("worker-%d", i)), filepath.Join(p.dir, fmt.Sprintf("worker-%d.log", i))
			f, err := os.Create(log)
			if err != nil {
				return err
			}
			w := exec.Command(binary)
			w.Env = append(os.Environ(), "PAWL_HOME="+home, "TEMPORAL_ADDRESS="+address)
			w.Stderr = f
			started := time.Now()
			if err := w.Start(); err != nil {
				return err
			}
			err = says(log, "the worker is ready")
			took = append(took, time.Since(started).Seconds())
			_ = w.Process.Signal(syscall.SIGINT)
			_ = w.Wait()
			_ = f.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("| the production worker, from its start until it polls (median of %d) | %.2f s |\n", rounds, median(took))
	return nil
}

// engineOf runs do with the address of a service: the embedded engine of a home that has none of our workers.
func (b *bench) engineOf(p place, do func(address string) error) error {
	return b.serving(p, func(client.Client, int) error {
		text, err := os.ReadFile(filepath.Join(p.home, "engine", "engine.json"))
		if err != nil {
			return err
		}
		var e struct{ Address string }
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		return do(e.Address)
	})
}

// says waits until a file has a text.
func says(path, text string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), text) {
			return nil
		}
	}
	return fmt.Errorf("%s never said %q", path, text)
}
