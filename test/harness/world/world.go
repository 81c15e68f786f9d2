package world

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Patience is how long a test waits for a condition. The longest runs take half a minute on a quiet machine, and have
// taken twenty times that on a busy one.
const Patience = 15 * time.Minute

// World is what one test works with: a repository in which a number can be raised, an agent that is a shell script, a
// spec. The metric is the number in the file work/n, which starts at 10.
type World struct {
	T      testing.TB
	Dir    string // the folder around the repository: spec, agent, files that scripts leave
	Home   string // $PAWL_HOME
	Repo   string
	Env    []string            // additional variables for its programs
	GitEnv []string            // additional variables for the user's git
	User   *syscall.Credential // the user of its programs, nil for the user of the test
	Loop   string
	Spec   Doc
	Before map[string]string // the content of the user's repository
}

// Doc is a spec, or a part of one.
type Doc = map[string]any

var worlds atomic.Int32

// New makes a world whose loops run in the shared `pawl up`. The agent is a POSIX shell script that runs on the desk,
// with the world's folder in $WORLD. At the test's end the user's repository must be unchanged, and no process of the
// loop may be left.
func New(t *testing.T, agent string) *World {
	t.Helper()
	t.Parallel()
	w := Alone(t, agent)
	w.Home = sharedHome()
	share(t)
	return w
}

// Alone makes a world with its own $PAWL_HOME, in which nothing runs yet.
func Alone(t *testing.T, agent string) *World {
	t.Helper()
	Program(t)
	dir, err := os.MkdirTemp(Scratch, "w")
	require.NoError(t, err)
	w := In(t, dir, agent, map[string]string{
		"README.md": "a hill\n", "work/n": "10\n", "work/other": "good\n",
		"measure.sh": "cat work/n\n", "guard.sh": "! grep -q bad work/other\n",
	})
	w.Loop = fmt.Sprintf("hill%d", worlds.Add(1))
	w.Spec["name"] = w.Loop
	t.Cleanup(func() {
		assert.Equal(t, w.Before, w.Snapshot(), "the user's repository has changed")
		w.NothingRuns()
		if t.Failed() {
			w.complain()
		}
	})
	return w
}

// In makes a world in a folder, with these files committed. It builds nothing and checks nothing.
func In(t testing.TB, dir, agent string, files map[string]string, env ...string) *World {
	t.Helper()
	w := &World{T: t, Dir: dir, Home: filepath.Join(dir, "home"), Repo: filepath.Join(dir, "repo"), GitEnv: env}
	w.Script(agent)
	w.Init()
	for name, content := range files {
		w.Write("repo/"+name, content)
	}
	w.Commit("a hill to climb")
	w.Spec = Doc{
		"goal": "climb", "repo": Doc{"path": w.Repo}, "scope": []string{"work/**"},
		"verify": Doc{"command": "sh measure.sh"},
		"agent":  Doc{"command": []string{"sh", filepath.Join(w.Dir, "agent.sh")}, "env": Doc{"WORLD": w.Dir}},
		// A changed sealed file stops the loop, so that tests see the change.
		"limits":    Doc{"iterations": 1, "toolCalls": 1000, "activeTime": "1h", "onSealed": "block"},
		"approvals": Doc{"diff": "auto", "tools": []string{"*"}},
		// Agents of tests leave files beside their tree. $PAWL_HOME and the repository stay out of their reach.
		"sandbox": Doc{"allow": []string{w.Dir}},
		// There is no code here that a guard could check.
		"validate": Doc{"canary": false},
	}
	return w
}

// Set merges keys into the spec.
func (w *World) Set(change Doc) *World {
	for key, value := range change {
		inner, ok := value.(Doc)
		old, had := w.Spec[key].(Doc)
		if ok && had {
			merged := maps.Clone(old)
			maps.Copy(merged, inner)
			value = merged
		}
		w.Spec[key] = value
	}
	return w
}

// Write writes a file of the world.
func (w *World) Write(name, content string) {
	w.T.Helper()
	path := filepath.Join(w.Dir, name)
	require.NoError(w.T, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.T, os.WriteFile(path, []byte(content), 0o644))
}

// Read returns a file of the world, "" if it is missing.
func (w *World) Read(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.Dir, name))
	return string(b)
}

// Exists reports whether there is a file of that name in the world.
func (w *World) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(w.Dir, name))
	return err == nil
}

// NothingRuns asserts that no process with the world's name is left. A git that is pushing ends by itself.
func (w *World) NothingRuns() {
	w.T.Helper()
	var left []string
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // the pace of looking
		left = Survivors(w.Dir)
		if slices.ContainsFunc(left, func(process string) bool { return !pushes.MatchString(process) }) || len(left) == 0 {
			break
		}
	}
	assert.Empty(w.T, left, "processes are left")
}

// pushes matches a process of a push, in the form of Survivors.
var pushes = regexp.MustCompile(`^\d+: \S*git .*\b(push|send-pack|receive-pack|pack-objects|unpack-objects|index-pack|rev-list)\b`)

// complain shows the worker's log.
func (w *World) complain() {
	lines := strings.Split(strings.TrimSpace(ReadFile(filepath.Join(w.Home, "logs", "pawl.log"))), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, w.Loop) })
	if len(lines) > 0 {
		w.T.Logf("the worker's log:\n%s", strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

// ReadFile returns a file, "" if it is missing.
func ReadFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// SpecFile writes the spec and returns its path.
func (w *World) SpecFile() string {
	w.T.Helper()
	b, err := json.MarshalIndent(w.Spec, "", "  ")
	require.NoError(w.T, err)
	w.Write("spec.yaml", string(b)) // JSON is YAML
	return filepath.Join(w.Dir, "spec.yaml")
}

// Rest waits between two looks at something, of which the last began at began. Looking takes at most a tenth of the time,
// because it slows down what the test waits for. Nothing depends on the pace.
func Rest(began time.Time) { <-Rested(began) }

// Rested is Rest for those who wait for something else, too: its channel gets a value when the wait is over.
func Rested(began time.Time) <-chan time.Time {
	return time.After(max(20*time.Millisecond, 9*time.Since(began)))
}

// Until waits for a condition.
func (w *World) Until(what string, condition func() bool) {
	w.T.Helper()
	for end := time.Now().Add(Patience); ; {
		began := time.Now()
		if condition() {
			return
		}
		if time.Now().After(end) {
			w.T.Fatalf("it never came to this: %s\n%s", what, w.Pawl("show", w.Loop).Out)
		}
		Rest(began)
	}
}
