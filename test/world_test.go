package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must come. It is for machines that do a lot else.
const patience = 6 * time.Minute

// world is what a test has to itself: a repository with a hill to climb, an agent that is a
// shell script, a spec. The metric is the number in the file work/n, and it is 10 to begin with.
type world struct {
	t      *testing.T
	dir    string // around the repository: spec, agent, whatever a script leaves
	home   string // $PAWL_HOME
	repo   string
	env    []string // what its programs are given besides
	loop   string
	spec   doc
	before map[string]string // the user's repository, to the byte
}

type doc = map[string]any

var worlds atomic.Int32

// newWorld makes a world whose loops run in the shared `pawl up`. The agent is a POSIX shell
// script that runs on the desk: it finds the world's folder as $WORLD. At the test's end the
// user's repository must be what it was, and nothing that ran for the loop may be left.
func newWorld(t *testing.T, agent string) *world {
	t.Helper()
	t.Parallel()
	w := newWorldOfItsOwn(t, agent)
	w.home = sharedHome()
	share(t)
	return w
}

// newWorldOfItsOwn makes a world with a $PAWL_HOME of its own, in which nothing runs yet.
func newWorldOfItsOwn(t *testing.T, agent string) *world {
	t.Helper()
	program(t)
	dir, err := os.MkdirTemp(scratch, "w")
	require.NoError(t, err)
	w := &world{
		t: t, dir: dir, home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "repo"),
		loop: fmt.Sprintf("hill%d", worlds.Add(1)),
	}
	w.script(agent)
	w.git("init", "--quiet", "--initial-branch=main", w.repo)
	for key, value := range map[string]string{"user.name": "Ann", "user.email": "ann@example.com", "gc.auto": "0"} {
		w.git("config", key, value)
	}
	for name, content := range map[string]string{
		"README.md": "a hill\n", "work/n": "10\n", "work/other": "good\n",
		"measure.sh": "cat work/n\n", "guard.sh": "! grep -q bad work/other\n",
	} {
		w.write("repo/"+name, content)
	}
	w.commit("a hill to climb")
	w.spec = doc{
		"name": w.loop, "goal": "climb", "repo": doc{"path": w.repo}, "scope": []string{"work/**"},
		"verify":    doc{"command": "sh measure.sh"},
		"agent":     doc{"command": []string{"sh", filepath.Join(w.dir, "agent.sh")}, "env": doc{"WORLD": w.dir}},
		"limits":    doc{"iterations": 1, "toolCalls": 1000, "activeTime": "1h"},
		"approvals": doc{"diff": "auto", "tools": []string{"*"}},
	}
	w.before = w.snapshot()
	t.Cleanup(func() {
		assert.Equal(t, w.before, w.snapshot(), "the user's repository has changed")
		w.nothingRuns()
		if t.Failed() {
			w.complain()
		}
	})
	return w
}

// script gives the world another agent.
func (w *world) script(agent string) { w.write("agent.sh", "cat >/dev/null\n"+agent+"\n") }

// raises is an agent that adds one to the number in each iteration.
const raises = `echo $(($(cat work/n) + 1)) >work/n; echo "raise the number"`

// deed is what an agent does in an iteration after it has raised the number, and why its change is
// not kept then; "" where it is.
type deed struct{ name, script, reason string }

// does gives the world an agent that does one deed after the other, each in an iteration of its
// own, which it describes by the deed's name.
func (w *world) does(deeds ...deed) *world {
	var script strings.Builder
	script.WriteString(`echo $(($(cat work/n) + 1)) >work/n
		g() { git -c user.name=Mallory -c user.email=m@example.com "$@"; }
		case $PAWL_ITERATION in
`)
	for i, d := range deeds {
		fmt.Fprintf(&script, "%d)\necho '%s'\nexec >/dev/null 2>&1\n%s\n;;\n", i+1, d.name, d.script)
	}
	script.WriteString("esac\nexit 0")
	w.script(script.String())
	return w.set(doc{"limits": doc{"iterations": len(deeds), "discards": len(deeds)}})
}

// come expects the rows that deeds come to.
func (w *world) come(deeds ...deed) {
	w.t.Helper()
	best := 10
	want := []row{{"0", "10", "+0.00", "yes", "baseline"}}
	for i, d := range deeds {
		r := row{strconv.Itoa(i + 1), strconv.Itoa(best), "+0.00", "no", d.reason + ": " + d.name}
		if d.reason == "" {
			best++
			r = row{r.iter, strconv.Itoa(best), "+1.00", "yes", d.name}
		}
		want = append(want, r)
	}
	require.Equal(w.t, want, w.results(w.loop))
}

// set merges keys into the spec.
func (w *world) set(change doc) *world {
	for key, value := range change {
		inner, ok := value.(doc)
		old, had := w.spec[key].(doc)
		if ok && had {
			merged := maps.Clone(old)
			maps.Copy(merged, inner)
			value = merged
		}
		w.spec[key] = value
	}
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o644))
}

// read returns a file of the world, "" where there is none.
func (w *world) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(b)
}

func (w *world) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(w.dir, name))
	return err == nil
}

// git runs git as the user and returns what it prints.
func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := w.tryGit(args...)
	require.NoError(w.t, err, "git %s", strings.Join(args, " "))
	return out
}

func (w *world) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	if _, err := os.Stat(w.repo); err == nil {
		cmd.Dir = w.repo
	}
	cmd.Env = append(environ(w.home, w.dir), "GIT_OPTIONAL_LOCKS=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// commit commits what the user has in the tree. What the repository is from now on must stay.
func (w *world) commit(message string) {
	w.t.Helper()
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message", message)
	w.before = w.snapshot()
}

// snapshot is the user's repository to the byte: the tree and all of .git but the objects, the
// loops' branches and their ledgers.
func (w *world) snapshot() map[string]string {
	files := map[string]string{}
	filepath.WalkDir(w.repo, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, w.repo), "/")
		switch {
		case err != nil:
			files[name] = err.Error()
			return nil
		case slices.Contains([]string{".git/objects", ".git/refs/heads/pawl", ".git/refs/pawl-ledger", ".git/logs/refs/heads/pawl"}, name):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir():
			return nil
		}
		info, _ := d.Info()
		content := []byte{}
		switch {
		case info.Size() > large:
			content = fmt.Appendf(nil, "%d bytes of %s", info.Size(), info.ModTime())
		case d.Type().IsRegular():
			content, _ = os.ReadFile(path)
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			content = []byte(target)
		}
		files[name] = info.Mode().String() + "\n" + string(content)
		return nil
	})
	return files
}

// large is the size beyond which a snapshot goes by a file's size and time.
const large = 32 << 20

// nothingRuns asserts that no process is left that carries the world's name.
func (w *world) nothingRuns() {
	w.t.Helper()
	assert.Empty(w.t, survivors(w.dir), "processes are left")
}

// complain shows what the log of the worker says.
func (w *world) complain() {
	lines := strings.Split(strings.TrimSpace(readFile(filepath.Join(w.home, "logs", "pawl.log"))), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, w.loop) })
	if len(lines) > 0 {
		w.t.Logf("the worker's log:\n%s", strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

func readFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// said is what a command came to.
type said struct {
	code     int
	out, err string
}

// report is what `pawl run --json` prints.
type report struct {
	Loop, Run, Status string
	Gate              *gate
	Result            *struct {
		ExitStatus, ErrorCode, Reason, Recovery, Branch, Head, Recommendation string
		Iterations, KeptCount, Discarded                                      int
		Baseline, Best, Delta                                                 *json.Number
		Kept                                                                  []struct{ Commit, Description string }
		Proposal                                                              *struct{ Hash, Base, Head, State string }
		Usage                                                                 struct{ ToolCalls, AgentCalls int }
	}
}

type gate struct {
	ID, Kind, Summary, Hash string
	Answers, Choices        []string
}

// state is what `pawl show --json` prints, as far as tests look at it.
type state struct {
	Loop, Goal, Status, Phase, Branch, Head, Ledger, Desk, ErrorCode, ExitStatus, Reason, PauseReason, Recovery string
	Iteration, Attempt, DiscardsInARow                                                                          int
	Gate                                                                                                        *gate
	Baseline, Best                                                                                              *json.Number
	Budget                                                                                                      map[string]struct{ Limit, Used, Remaining *json.Number }
	Contract                                                                                                    *struct {
		Hash, ApprovedBy string
		Sealed           []struct{ Path string }
	}
	LastGuard *struct {
		Passed, Blocked bool
		Reason, Policy  string
		Violations      []string
	}
	ChangedFiles []string
	Iterations   []struct {
		N                           int
		Description, Reason, Commit string
		Metric                      json.Number
		Kept                        bool
		Attempts                    int
		Files                       []string
	}
	Host     string
	Proposal *proposal
}

// command is a pawl that runs.
type command struct {
	w        *world
	cmd      *exec.Cmd
	args     []string
	out, err string // files
	gone     chan struct{}
}

// start starts a command.
func (w *world) start(args ...string) *command {
	w.t.Helper()
	return w.prepare(args...).begin()
}

func (w *world) prepare(args ...string) *command {
	w.t.Helper()
	c := &command{w: w, args: args, cmd: exec.Command(program(w.t), args...), gone: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env = w.dir, w.environ()
	tieToParent(c.cmd)
	return c
}

// environ is what the world's programs are given. $HOME is not around the world: a sandbox hides it.
func (w *world) environ() []string {
	return append(append(environ(w.home, w.dir), "HOME="+filepath.Join(w.dir, "user")), w.env...)
}

func (c *command) begin() *command {
	c.w.t.Helper()
	stdout, err := os.CreateTemp(c.w.dir, "stdout")
	require.NoError(c.w.t, err)
	defer stdout.Close()
	stderr, err := os.CreateTemp(c.w.dir, "stderr")
	require.NoError(c.w.t, err)
	defer stderr.Close()
	c.cmd.Stdout, c.cmd.Stderr, c.out, c.err = stdout, stderr, stdout.Name(), stderr.Name()
	require.NoError(c.w.t, c.cmd.Start())
	go func() {
		c.cmd.Wait()
		close(c.gone)
	}()
	return c
}

// wait waits for the command's end.
func (c *command) wait() said {
	c.w.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(patience):
		c.cmd.Process.Kill()
		<-c.gone
		c.w.t.Fatalf("pawl %s does not end\n%s", strings.Join(c.args, " "), readFile(c.err))
	}
	s := said{c.cmd.ProcessState.ExitCode(), readFile(c.out), readFile(c.err)}
	if testing.Verbose() && c.args[0] != "show" {
		c.w.t.Logf("$ pawl %s\n%s%s[exit %d]", strings.Join(c.args, " "), clip(s.out), clip(s.err), s.code)
	}
	return s
}

func clip(text string) string {
	const most = 4000
	if len(text) > most {
		return text[:most] + "…\n"
	}
	return text
}

// interrupt is Ctrl-C.
func (c *command) interrupt() {
	c.w.t.Helper()
	require.NoError(c.w.t, c.cmd.Process.Signal(syscall.SIGINT))
}

// pawl runs a command to its end.
func (w *world) pawl(args ...string) said {
	w.t.Helper()
	return w.start(args...).wait()
}

// specFile writes the spec and returns its path.
func (w *world) specFile() string {
	w.t.Helper()
	b, err := json.MarshalIndent(w.spec, "", "  ")
	require.NoError(w.t, err)
	w.write("spec.yaml", string(b)) // JSON is YAML
	return filepath.Join(w.dir, "spec.yaml")
}

// run runs the loop to its end with its contract approved beforehand, and expects an exit code.
func (w *world) run(code int, args ...string) report {
	w.t.Helper()
	s := w.pawl(append([]string{"run", "--json", "--yes", w.specFile()}, args...)...)
	require.Equal(w.t, code, s.code, "%s%s", s.out, s.err)
	var r report
	decode(w.t, s.out, &r)
	return r
}

// show asks for the loop's state.
func (w *world) show() state {
	w.t.Helper()
	s := w.pawl("show", "--json", w.loop)
	require.Equal(w.t, 0, s.code, s.err)
	var st state
	decode(w.t, s.out, &st)
	return st
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	require.NoError(t, d.Decode(v), text)
	require.False(t, d.More(), "more than one value: %s", text)
}

// until waits for a condition.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			w.t.Fatalf("it never came to this: %s\n%s", what, w.pawl("show", w.loop).out)
		}
		time.Sleep(20 * time.Millisecond) // the pace of looking, not a time that anything is given
	}
}

// waits waits until the loop is in a status, and returns its state then.
func (w *world) waits(status string) (st state) {
	w.t.Helper()
	w.until(status, func() bool {
		s := w.pawl("show", "--json", w.loop)
		st = state{}
		return s.code == 0 && json.Unmarshal([]byte(s.out), &st) == nil && st.Status == status
	})
	return st
}

// row is a line of loop-results.tsv without its time.
type row struct{ iter, metric, delta, kept, description string }

// results are the rows of a ledger that was pushed to the user's repository.
func (w *world) results(loop string) (rows []row) {
	w.t.Helper()
	for _, line := range strings.Split(w.git("show", "refs/pawl-ledger/"+loop+":loop-results.tsv"), "\n") {
		f := strings.Split(line, "\t")
		require.Len(w.t, f, 6, line)
		_, err := time.Parse("2006-01-02T15:04:05Z", f[1])
		require.NoError(w.t, err)
		rows = append(rows, row{f[0], f[2], f[3], f[4], f[5]})
	}
	return rows
}

// lastRow is the last line of the loop's results.
func (w *world) lastRow() row {
	w.t.Helper()
	rows := w.results(w.loop)
	return rows[len(rows)-1]
}

// kept is what a file is on the loop's branch in the user's repository.
func (w *world) kept(name string) string {
	w.t.Helper()
	return w.git("show", "refs/heads/pawl/"+w.loop+":"+name)
}

// onBranch are the names of the files on the loop's branch, as bytes.
func (w *world) onBranch() []string {
	w.t.Helper()
	out := w.git("ls-tree", "-r", "-z", "--name-only", "refs/heads/pawl/"+w.loop)
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

// subjects are the loop's commits on its branch, the newest first.
func (w *world) subjects() []string {
	w.t.Helper()
	out := w.git("log", "--format=%s", "main..refs/heads/pawl/"+w.loop)
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// pawlRefs are the branches and ledgers that loops left in the user's repository.
func (w *world) pawlRefs() string {
	w.t.Helper()
	return w.git("for-each-ref", "--format=%(refname)", "refs/heads/pawl", "refs/pawl-ledger")
}

// stepLog is what a step of the loop wrote to a stream.
func (w *world) stepLog(step, stream string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.home, "loops", w.loop, "steps", step, stream))
	require.NoError(w.t, err)
	return bytes.TrimSpace(b)
}
