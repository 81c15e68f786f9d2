package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
	"pawl/test/harness/world"
)

// matrixFile has the recorded results of the matrix, which docs/reference/agents-tested.md shows. With PAWL_MATRIX=FILE the
// results are written to that file instead and compared with nothing.
const matrixFile = "test/agents/testdata/matrix.json"

// installed returns where a package's program is, and its version: the pinned one from .ci/agents, or the one from
// .ci/newest-agents in the folder PAWL_AGENTS.
func installed(t testing.TB, pkg, version, name string) (path, is string) {
	t.Helper()
	path, is = pinned(t, pkg, version, name), version
	if in := os.Getenv("PAWL_AGENTS"); in != "" {
		prefix := filepath.Base(pkg) + "-"
		if found, _ := filepath.Glob(filepath.Join(in, prefix+"[0-9]*")); len(found) == 1 {
			path, is = filepath.Join(found[0], "node_modules", ".bin", name), strings.TrimPrefix(filepath.Base(found[0]), prefix)
		}
	}
	if _, err := os.Stat(path); err != nil {
		world.Lacks(t, name+" "+is+" is not there; .ci/agents installs it")
	}
	return path, is
}

// pinned returns where .ci/agents puts a package's program.
func pinned(t testing.TB, pkg, version, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "pawl-test", filepath.Base(pkg)+"-"+version, "node_modules", ".bin", name)
}

// matrix is one worker, one user's home and one model server for all programs.
type matrix struct {
	*world.World
	server string        // the server's URL on the loopback
	host   string        // the server's name for the programs
	home   string        // the user's home
	slots  chan struct{} // slots for loops that work
	faults chan struct{} // slots for loops whose program waits for its provider

	mu    sync.Mutex
	cells map[string]map[string]string // results by program and case
}

// atOnce is how many loops work at the same time, waitAtOnce how many programs wait for a failing provider.
const (
	atOnce     = 8
	waitAtOnce = 12
)

// TestTheMatrixOfRealPrograms runs each program of agent.use in the sandbox, against a scripted model server that
// speaks their protocols, in a repository full of settings that would run something. matrix_cases_test.go has the
// cases, docs/reference/agents-tested.md shows the results.
func TestTheMatrixOfRealPrograms(t *testing.T) {
	world.Slow(t, "TestProgramsByTheirStreams has their streams")
	python, err := exec.LookPath("python3")
	if err != nil {
		world.Lacks(t, "there is no python3")
	}
	m := &matrix{World: world.Alone(t, ""), cells: map[string]map[string]string{}, slots: make(chan struct{}, atOnce), faults: make(chan struct{}, waitAtOnce)}
	m.serve(python)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "pawl-test"), 0o700))
	m.home, err = os.MkdirTemp(filepath.Join(cache, "pawl-test"), "home") // Codex runs no tool if its own folder is in /tmp
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(m.home) })
	m.hostile()
	m.settings()
	m.Env = append(m.Env, "HOME="+m.home, "XDG_CONFIG_HOME="+filepath.Join(m.home, ".config"))
	up, err := world.StartUp(m.Home, filepath.Join(m.Dir, "up"), m.Env...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.Stop()) })
	var all sync.WaitGroup
	for _, c := range world.Sample(len(cases), combined()) {
		all.Go(func() { m.cell(t, c.program, cases[c.number], c.number) })
	}
	all.Wait()
	m.marks()
	m.compare()
}

// combination is a program and the number of a case.
type combination struct {
	program agents.Program
	number  int
}

// combined returns each program with each case, the longest cases first. Programs rotate, so that each share has all of
// them.
func combined() (all []combination) {
	installs := slices.DeleteFunc(slices.Clone(agents.Table), func(p agents.Program) bool { return p.Package == "" })
	for i := range cases {
		for j := range installs {
			all = append(all, combination{installs[(i+j)%len(installs)], i})
		}
	}
	return all
}

// cell runs one case with one program.
func (m *matrix) cell(t *testing.T, p agents.Program, c matrixCase, number int) {
	if c.waits {
		m.faults <- struct{}{}
		defer func() { <-m.faults }()
	}
	m.slots <- struct{}{}
	idle := sync.OnceFunc(func() { <-m.slots })
	defer idle()
	t.Run(p.Name+"/"+c.name, func(t *testing.T) {
		path, version := installed(t, p.Package, p.Version, p.Name)
		cells := map[string]string{c.name: c.cannot[p.Name]}
		if cells[c.name] == "" {
			l := m.loop(t, p, path, c, number)
			l.idle = idle
			cells = l.result()
		}
		cells["version"] = version
		m.note(p.Name, cells)
	})
}

// note stores the results of a case.
func (m *matrix) note(program string, cells map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[program] == nil {
		m.cells[program] = map[string]string{}
	}
	maps.Copy(m.cells[program], cells)
}

// compare compares the results with the recorded ones, or records them.
func (m *matrix) compare() {
	t := m.T
	got, err := json.MarshalIndent(m.cells, "", "  ")
	require.NoError(t, err)
	if to := os.Getenv("PAWL_MATRIX"); to != "" {
		require.NoError(t, os.WriteFile(to, append(got, '\n'), 0o644))
		return
	}
	var recorded map[string]map[string]string
	require.NoError(t, json.Unmarshal([]byte(world.ReadFile(matrixFile)), &recorded))
	for name, cells := range m.cells {
		for key, cell := range cells {
			assert.Equal(t, recorded[name][key], cell, "%s, %s: PAWL_MATRIX=%s writes what came of it, and go test ./test/docs -update the page", name, key, matrixFile)
		}
	}
}

// looped is a loop of the matrix.
type looped struct {
	*world.World
	matrixCase
	m    *matrix
	p    agents.Program
	run  *world.Command
	idle func() // gives its slot back, because the loop needs almost no processor from then on
}

// loop starts a loop whose model plays the plan of a case.
func (m *matrix) loop(t *testing.T, p agents.Program, path string, c matrixCase, number int) *looped {
	w := *m.World
	w.T, w.Loop, w.Spec = t, nameOf(p, c, number), maps.Clone(m.Spec)
	w.Spec["name"] = w.Loop
	w.Spec["agent"] = m.agent(p, path, c, number)
	w.Spec["limits"] = doc{"iterations": 1, "toolCalls": 1000, "activeTime": "1h", "phaseTimeout": "15m"}
	allow := []string{m.Dir}
	if c.acp && p.ByACP.Finds != "" { // it is not installed with the program that speaks the protocol
		allow = append(allow, filepath.Dir(filepath.Dir(filepath.Dir(path))))
	}
	w.Spec["sandbox"] = doc{"use": "required", "hosts": []string{m.host}, "allow": allow}
	w.Set(c.spec)
	b, err := json.Marshal(w.Spec)
	require.NoError(t, err)
	w.Write(w.Loop+".yaml", string(b))
	return &looped{World: &w, matrixCase: c, m: m, p: p, run: w.Start("run", "--yes", filepath.Join(m.Dir, w.Loop+".yaml"))}
}

// nameOf returns the name of a loop. The server makes marks from the digits in it.
func nameOf(p agents.Program, c matrixCase, number int) string {
	i := slices.IndexFunc(agents.Table, func(o agents.Program) bool { return o.Name == p.Name })
	return fmt.Sprintf("%s-%s-%d", p.Name, strings.ReplaceAll(c.name, " ", "-"), 100*(i+1)+number)
}

// shown is what the matrix reads of a loop's state.
type shown struct {
	Status, Reason, ExitStatus, ErrorCode string
	Gate                                  *world.Gate
	Sleep                                 *sleep
	Usage                                 struct {
		ToolCalls, InputTokens, OutputTokens int
		CostUSD                              json.Number
	}
	Iterations []struct {
		Kept        bool
		Description string
	}
}

type sleep struct {
	Class string
	Until time.Time
}

// asleep reports whether the loop's state says that it sleeps.
func (l *looped) asleep() bool {
	return strings.Contains(world.ReadFile(l.run.Out)+world.ReadFile(l.run.Err), "asleep until")
}

// until waits for a condition. It stops if the loop has ended or waits for a person.
func (l *looped) until(what string, is func() bool) {
	l.Until(l.Loop+" "+what, func() bool {
		select {
		case <-l.run.Gone:
			return true
		case <-time.After(100 * time.Millisecond):
			return is()
		}
	})
}

// rests waits until the loop no longer works by itself, or sleeps if sleeps is set, and returns its state.
func (l *looped) rests(sleeps bool) (st shown) {
	l.until("rests", func() bool { return sleeps && l.asleep() })
	st = l.state()
	if sleeps && l.asleep() { // even if it has continued since
		st.Status, st.Sleep = "sleeping", l.firstSleep()
	}
	return st
}

// firstSleep returns why the loop slept first, from its record, which comes after the screen.
func (l *looped) firstSleep() (first *sleep) {
	l.Until(l.Loop+" has a sleep on record", func() bool {
		for line := range strings.Lines(l.Pawl("log", "--json", l.Loop).Out) {
			var e struct{ Sleep *sleep }
			require.NoError(l.T, json.Unmarshal([]byte(line), &e))
			if e.Sleep != nil {
				first = e.Sleep
				return true
			}
		}
		return false
	})
	return first
}

func (l *looped) state() (st shown) {
	s := l.Pawl("show", "--json", l.Loop)
	require.Equal(l.T, 0, s.Code, s.Err)
	require.NoError(l.T, json.Unmarshal([]byte(s.Out), &st))
	return st
}

// ends halts a loop that would continue later.
func (l *looped) ends(st shown) {
	halted := l.Pawl("halt", l.Loop)
	if st.Status == "waiting" {
		require.Equal(l.T, 0, halted.Code, halted.Err)
	} // else it may have ended by itself
	l.run.Wait()
}

// cameTo says in a few words how a loop ended.
func (l *looped) cameTo(st shown) string {
	switch {
	case st.Status == "sleeping":
		return "sleeps (" + st.Sleep.Class + ")"
	case st.Gate != nil && strings.Contains(st.Gate.Summary, "can't sign in to its provider"):
		return "asks for the sign-in"
	case st.Gate != nil && st.Gate.Kind != "diff":
		return "asks: " + st.Gate.Summary
	case st.ErrorCode == "BUDGET_EXHAUSTED":
		return "ends at its budget"
	case len(st.Iterations) == 1 && st.Iterations[0].Kept:
		return "the change is kept"
	case len(st.Iterations) == 1 && strings.Contains(st.Iterations[0].Description, "took too long"):
		return "ended when its time was up"
	case len(st.Iterations) == 1 && strings.Contains(st.Iterations[0].Description, "it said nothing for"):
		return "ended by limits.silence"
	case len(st.Iterations) == 1:
		return "the iteration is lost: " + st.Iterations[0].Description
	}
	return strings.TrimSpace(st.Status + " " + st.ErrorCode + " " + st.Reason)
}

// served returns the server's own counts.
func (l *looped) served() map[string]int {
	r, err := http.Get(l.m.server + "/_stats/" + l.Loop)
	require.NoError(l.T, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(l.T, err)
	var all map[string]any
	require.NoError(l.T, json.Unmarshal(b, &all), string(b))
	counts := map[string]int{}
	for name, value := range all {
		if n, is := value.(float64); is {
			counts[name] = int(n)
		}
	}
	return counts
}
