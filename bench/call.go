package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/exec/usage"
)

// The size of an agent's call here: requests as large as in the middle of a session, one after the other, to a model
// that answers at once.
const (
	callRequests = 20
	callBytes    = 100 << 10
	callEvents   = 40
	// callVariable turns this program into such an agent. Its value is the model's address.
	callVariable = "BENCH_MODEL"
)

// asAgent is what this program does as an agent.
func asAgent(model string) error {
	body := bytes.Repeat([]byte("x"), callBytes)
	for range callRequests {
		r, err := http.NewRequest(http.MethodPost, model+"/v1/messages", bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("X-Api-Key", "placeholder")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %w", answer.Status, err)
		}
	}
	return nil
}

// call measures what pawl adds to a call of an agent: the supervisor, and the meter between agent and model.
func call(dir string, rounds int) error {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-4-5\",\"usage\":{\"input_tokens\":25000,\"output_tokens\":1}}}\n\n")
		for range callEvents {
			fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"%s\"}}\n\n", strings.Repeat("word ", 30))
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":1200}}\n\n")
	}))
	defer model.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	under := func(name string, metered bool) (took, peak float64, err error) {
		s, err := supervisor.Start("bench-"+name+strconv.Itoa(os.Getpid()), sandbox.ByNothing)
		if err != nil {
			return 0, 0, err
		}
		defer s.Close()
		c := supervisor.Command{Argv: []string{self}, Dir: dir, Env: []string{callVariable + "=" + model.URL}, Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr")}
		if metered {
			c.Env = []string{callVariable + "=http://" + llmproxy.Address}
			c.Meter = &llmproxy.Config{Upstream: model.URL, Keys: map[string]string{"placeholder": "key"}, File: filepath.Join(dir, "meter.jsonl"), Prices: usage.Listed()}
		}
		begun := time.Now()
		r, err := s.Run(context.Background(), c)
		if err == nil && r.ExitCode != 0 {
			said, _ := os.ReadFile(c.Stderr)
			err = fmt.Errorf("the agent failed: %s%s", r.StartError, said)
		}
		return time.Since(begun).Seconds(), supervisorMemory(), err
	}
	var alone, supervised, metered, without, with []float64
	for range 10 * rounds {
		c := exec.Command(self)
		c.Env = []string{callVariable + "=" + model.URL}
		begun := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		alone = append(alone, time.Since(begun).Seconds())
		took, peak, err := under("plain", false)
		if err != nil {
			return err
		}
		supervised, without = append(supervised, took), append(without, peak)
		if took, peak, err = under("metered", true); err != nil {
			return err
		}
		metered, with = append(metered, took), append(with, peak)
	}
	fmt.Printf("| a call of an agent with %d requests of %d KiB: alone, under the supervisor, and through the meter (median of %d) | %.1f ms, %.1f ms, %.1f ms: the meter adds %.2f ms to a request |\n",
		callRequests, callBytes>>10, len(alone), 1000*median(alone), 1000*median(supervised), 1000*median(metered), 1000*(median(metered)-median(supervised))/callRequests)
	fmt.Printf("| the memory of a loop's supervisor at most, without the meter and with it | %.0f MiB, %.0f MiB |\n", median(without), median(with))
	return nil
}

// supervisorMemory returns the most memory of a supervisor of this process, in MiB, 0 if it is unknown.
func supervisorMemory() float64 {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(children)) {
			name, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if !strings.HasPrefix(string(name), "pawl-supervisor") {
				continue
			}
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			_, rest, _ := strings.Cut(string(status), "VmHWM:")
			if fields := strings.Fields(rest); len(fields) > 0 {
				kib, _ := strconv.ParseFloat(fields[0], 64)
				return kib / 1024
			}
		}
	}
	return 0
}
