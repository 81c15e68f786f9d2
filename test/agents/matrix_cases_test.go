package agents_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
	"pawl/test/harness/world"
)

// matrixCase is one case that each program goes through: what its model does, and the results.
type matrixCase struct {
	name   string
	plan   string // the scripted server's plan; TOOL in it is the program's name for its shell
	spec   doc    // more keys of the loop's spec
	waits  bool   // the program waits for its provider most of the time
	acp    bool   // the program is called by the Agent Client Protocol
	off    bool   // the program's own stream counts, not pawl's meter
	cannot map[string]string
	result func(l *looped) map[string]string
	sleeps bool
}

// cases are in the order in which they start: the longest ones first.
var cases = []matrixCase{
	{name: "limit", plan: "climb;fault=sub429;lasts=100", result: (*looped).sleptThrough},
	{name: "500", plan: "climb;fault=e500", sleeps: true, waits: true},
	{name: "529", plan: "climb;fault=e529", sleeps: true, waits: true},
	{name: "hang", waits: true, plan: "climb;fault=hang;at=2", spec: doc{"limits": doc{"silence": "40s"}}},
	{name: "drip", waits: true, plan: "climb;fault=drip;at=2", spec: doc{"limits": doc{"silence": "75s", "phaseTimeout": "100s"}}},
	{name: "improve", plan: "shell;then=climb;cached=1000;think=20;cmd=" + url.PathEscape("sh plant.sh"), result: (*looped).counted},
	{name: "stream", plan: "parallel;cached=1000;think=20", off: true, result: (*looped).counted},
	{name: "acp", plan: "climb;cached=1000;think=20", acp: true, result: (*looped).counted, cannot: map[string]string{
		agents.Pi: "cannot: it does not speak the protocol",
	}},
	{name: "agents of its own", plan: "nest;cached=1000;think=20", spec: doc{"approvals": doc{"tools": []string{"*", "subagents"}, "diff": "auto"}}, result: (*looped).counted, cannot: map[string]string{
		agents.Pi: "cannot: it has none",
	}},
	{name: "deliver", plan: "deliver", spec: doc{"kind": "deliver", "verify": doc{"command": ""}, "test": doc{"command": `test "$(cat work/n)" = 42`}}, result: (*looped).delivered},
	{name: "401", plan: "climb;fault=e401", sleeps: true},
	{name: "cut", plan: "climb;fault=cut;at=2;times=1", sleeps: true},
	{name: "tool calls", plan: "loop", spec: doc{"limits": doc{"toolCalls": 5}}, result: func(l *looped) map[string]string {
		return l.stopped("tool calls", 5, func(st shown, served map[string]int) (float64, float64, float64) {
			return float64(st.Usage.ToolCalls), float64(served["tools"]), 1
		})
	}},
	{name: "tokens", plan: "loop", spec: doc{"limits": doc{"tokens": 3000}}, result: func(l *looped) map[string]string {
		return l.stopped("tokens", 3000, func(st shown, served map[string]int) (float64, float64, float64) {
			return float64(st.Usage.InputTokens + st.Usage.OutputTokens), float64(served["in"] + served["out"] + served["side_in"] + served["side_out"]), 1280
		})
	}},
	{name: "dollars", plan: "loop", spec: doc{"limits": doc{"costUSD": 0.005}}, result: func(l *looped) map[string]string {
		return l.stopped("dollars", 0.005, func(st shown, _ map[string]int) (float64, float64, float64) {
			usd, err := st.Usage.CostUSD.Float64()
			require.NoError(l.T, err)
			return usd, usd, 0.0048
		})
	}},
	{name: "kill", plan: "sleep", result: (*looped).killed},
	{
		name: "denied", plan: "shell;then=climb;anyway=TOOL;cmd=" + url.PathEscape("echo bad >work/other"), spec: doc{"approvals": doc{"tools": []string{"read", "edit"}, "diff": "auto"}},
		cannot: map[string]string{agents.Codex: "cannot: its shell can't be withheld, and such a spec is refused"}, result: (*looped).denied,
	},
}

// result returns the result of a case that has only one.
func (l *looped) result() map[string]string {
	if l.matrixCase.result != nil {
		return l.matrixCase.result(l)
	}
	if l.waits {
		l.until("meets its fault", func() bool { return l.served()["faults"] > 0 })
		l.idle()
	}
	st := l.rests(l.sleeps)
	defer l.ends(st)
	return map[string]string{l.name: l.cameTo(st)}
}

// counted runs a loop that makes a change, and compares what pawl and the server counted.
func (l *looped) counted() map[string]string {
	st := l.rests(false)
	l.run.Wait()
	served := l.served()
	in, out := served["in"]+served["side_in"], served["out"]+served["side_out"]
	if l.off {
		in, out = served["in"], served["out"]
	}
	cell := l.cameTo(st) + ", the counts are the server's"
	if got, want := []int{st.Usage.ToolCalls, st.Usage.InputTokens, st.Usage.OutputTokens}, []int{served["tools"], in, out}; !slices.Equal(got, want) {
		cell = fmt.Sprintf("%s, with %d tool calls, %d tokens in, %d out; the server counted %d, %d and %d", l.cameTo(st), got[0], got[1], got[2], want[0], want[1], want[2])
	}
	return map[string]string{l.name: cell}
}

// delivered runs a loop whose first change fails its test, and whose fix passes.
func (l *looped) delivered() map[string]string {
	st := l.rests(false)
	l.run.Wait()
	n := strings.TrimSpace(l.Git("show", "refs/heads/pawl/"+l.Loop+":work/n"))
	if n == "42" && l.Proposal().State != "" {
		return map[string]string{l.name: "a first change, its fix, a proposal"}
	}
	return map[string]string{l.name: n + ": " + l.cameTo(st)}
}

// sleptThrough has a limit whose end is known, and which then ends.
func (l *looped) sleptThrough() map[string]string {
	l.until("sleeps", l.asleep)
	l.idle()
	st := l.rests(false)
	served, end := l.served(), time.Unix(int64(l.served()["reset"]), 0)
	slept, ended := false, 0
	var others []sleep
	for line := range strings.Lines(l.Pawl("log", "--json", l.Loop).Out) {
		var e struct {
			Type  string
			Sleep sleep
		}
		require.NoError(l.T, json.Unmarshal([]byte(line), &e))
		switch until := e.Sleep.Until; e.Type {
		case "sleep_begun":
			slept = !until.Before(end) && until.Before(end.Add(3*time.Second))
			if !slept {
				others = append(others, e.Sleep)
			}
		case "sleep_ended":
			ended++
		}
	}
	switch {
	case !slept:
		return map[string]string{l.name: fmt.Sprintf("does not sleep until it ends (%s): %v, %s", end, others, l.cameTo(st))}
	case ended == 1 && len(st.Iterations) == 1 && st.Iterations[0].Kept && served["main"] == 3 && st.Usage.ToolCalls == 2:
		return map[string]string{l.name: "sleeps until it ends, goes on once, loses no iteration"}
	}
	return map[string]string{l.name: fmt.Sprintf("sleeps until it ends, goes on %d times; %s", ended, l.cameTo(st))}
}

// stopped runs a loop that would never end, until it reaches a budget. count returns what pawl and the server counted,
// and what one request uses.
func (l *looped) stopped(what string, limit float64, count func(shown, map[string]int) (pawls, servers, one float64)) map[string]string {
	st := l.rests(false)
	l.run.Wait()
	pawls, servers, one := count(st, l.served())
	cell := l.cameTo(st)
	switch {
	case cell != "ends at its budget":
	case math.Abs(pawls-servers) > one/1000:
		cell += ", but the counts differ: " + strconv.FormatFloat(pawls, 'g', -1, 64) + ", and the server counted " + strconv.FormatFloat(servers, 'g', -1, 64)
	case servers-limit > one*1.001:
		cell += ", but used " + strconv.FormatFloat(servers, 'g', -1, 64) + " of " + strconv.FormatFloat(limit, 'g', -1, 64)
	default:
		cell = "stops within one call"
	}
	return map[string]string{l.name: cell}
}

// killed kills a program while its shell runs something, and while another process has left its session.
func (l *looped) killed() map[string]string {
	digits := l.Loop[strings.LastIndexByte(l.Loop, '-')+1:]
	mark := "sleep 9000" + digits
	var at []string
	l.until("has its shell at work", func() bool {
		at = world.Survivors(mark + "3")
		return len(at) > 0
	})
	killed := 0
	for _, name := range at {
		pid, _, _ := strings.Cut(name, ":")
		for id, err := strconv.Atoi(pid); err == nil && id > 1; id, err = strconv.Atoi(parent(id)) {
			at, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(id), "exe"))
			name := filepath.Base(at)
			if at == "" || strings.HasPrefix(name, "pawl") { // processes above it do not belong to the call
				break
			}
			if !slices.Contains([]string{"sh", "dash", "bash", "sleep", "coreutils"}, name) && syscall.Kill(id, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	st := l.rests(false)
	l.run.Wait()
	if killed == 0 {
		return map[string]string{l.name: "was not killed: " + l.cameTo(st)}
	}
	cell := fmt.Sprintf("%d survivors", len(world.Survivors(mark)))
	if cell == "0 survivors" {
		cell = "no survivors"
	}
	if came := l.cameTo(st); strings.Contains(came, "the agent failed (was ended by SIGKILL") {
		cell += ", the iteration is lost"
	} else {
		cell += ", " + came
	}
	served := l.served()
	if tokens, of := st.Usage.InputTokens+st.Usage.OutputTokens, served["in"]+served["out"]+served["side_in"]+served["side_out"]; tokens == of {
		cell += ", its tokens are counted"
	} else {
		cell += fmt.Sprintf(", %d of %d tokens are counted", tokens, of)
	}
	return map[string]string{l.name: cell}
}

// parent returns the ID of the process that started a process, "" if it is gone.
func parent(pid int) string {
	for line := range strings.Lines(world.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))) {
		if up, is := strings.CutPrefix(line, "PPid:"); is {
			return strings.TrimSpace(up)
		}
	}
	return ""
}

// denied has a model that calls the shell, which is not approved, and then makes its change.
func (l *looped) denied() map[string]string {
	st := l.rests(false)
	l.run.Wait()
	cell := l.cameTo(st)
	if cell == "the change is kept" && l.Git("show", "refs/heads/pawl/"+l.Loop+":work/other") == "good" {
		cell = "is not run, the change is kept"
	}
	return map[string]string{l.name: cell}
}
