package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/config"
	"pawl/internal/act"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/repo"
	"pawl/internal/workspace"
)

// world is what a test has to itself: a $PAWL_HOME, an engine's port, a repository and a loop
// with a scripted agent.
type world struct {
	t       testing.TB
	dir     string
	home    home.Home
	repo    string
	loop    string
	port    int
	address string
	client  client.Client
	nodes   int
	base    string            // the commit that the repository is at
	kind    string            // the workflow type, "" is Improve
	before  map[string]string // what of the repository must never change
}

// Engines of different worlds begin to look for their ports at different places.
var worlds atomic.Int32

// newWorld makes a world in a folder. Its agent is a POSIX shell script which finds itself in
// iteration $PAWL_ITERATION, attempt $PAWL_ATTEMPT, and the world's folder as $E2E.
func newWorld(t testing.TB, agent string) *world {
	t.Helper()
	program(t)
	dir, err := os.MkdirTemp(scratch, "w")
	require.NoError(t, err)
	return newWorldIn(t, dir, agent)
}

func newWorldIn(t testing.TB, dir, agent string) *world {
	t.Helper()
	w := &world{
		t: t, dir: dir, home: home.Home{Dir: filepath.Join(dir, "home")}, repo: filepath.Join(dir, "repo"), loop: "climb",
		port: 10000 + (os.Getpid()*31+int(worlds.Add(1))*2)%1000,
	}
	require.NoError(t, os.MkdirAll(w.home.Dir, 0o700))
	w.write("agent.sh", "#!/bin/sh\ncat >/dev/null\n"+agent)
	w.git("init", "--quiet", "--initial-branch=main", w.repo)
	for name, content := range map[string]string{
		"README.md": "a hill\n", ".gitignore": "deps/\n", "work/n": "10\n", "work/guard": "good\n", "work/syntax": "good\n",
		"setup.sh":   "mkdir -p deps && echo half >deps/tool.part && mv deps/tool.part deps/tool\n",
		"measure.sh": "grep -q half deps/tool || exit 9\ngrep -q boom work/n && exit 1\ncat work/n\n",
		"guard.sh":   "! grep -q bad work/guard\n",
		"check.sh":   "grep -q half deps/tool && ! grep -q bad work/syntax\n",
	} {
		w.write("repo/"+name, content)
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message", "a hill to climb")
	w.base = w.git("rev-parse", "HEAD")[0]
	w.before = w.untouchable()
	t.Cleanup(func() {
		if t.Failed() {
			w.complain()
		}
		if w.client != nil {
			w.client.Close()
		}
	})
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o700))
}

// git runs git in the user's repository, as a user would.
func (w *world) git(args ...string) []string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	if _, err := os.Stat(w.repo); err == nil {
		cmd.Dir = w.repo
	}
	cmd.Env = append(w.environ(),
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.Output()
	if err != nil {
		detail := ""
		if exit, ok := err.(*exec.ExitError); ok {
			detail = string(exit.Stderr)
		}
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, detail)
	}
	return lines(out)
}

// environ is a user's environment without anything that would lead out of the world.
func (w *world) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "PAWL_") || strings.HasPrefix(kv, "TEMPORAL_")
	})
	return append(env, "HOME="+w.dir, "XDG_CONFIG_HOME="+w.dir, "GIT_CONFIG_NOSYSTEM=1", "PAWL_HOME="+w.home.Dir)
}

// untouchable is everything of the user's repository that a loop must leave alone.
func (w *world) untouchable() map[string]string {
	w.t.Helper()
	config, err := os.ReadFile(filepath.Join(w.repo, ".git", "config"))
	require.NoError(w.t, err)
	return map[string]string{
		"HEAD":   strings.Join(w.git("symbolic-ref", "HEAD"), "\n"),
		"tree":   strings.Join(w.git("status", "--porcelain", "--ignored"), "\n"),
		"config": string(config),
		"refs": strings.Join(slices.DeleteFunc(w.git("for-each-ref", "--format=%(refname) %(objectname)"), func(line string) bool {
			return strings.HasPrefix(line, "refs/heads/pawl/") || strings.HasPrefix(line, "refs/pawl-ledger/")
		}), "\n"),
	}
}

// connect makes the world's client.
func (w *world) connect(address string) {
	w.t.Helper()
	if w.client != nil {
		w.client.Close()
	}
	w.address = address
	_, port, _ := strings.Cut(address, ":")
	w.port, _ = strconv.Atoi(port) // where it was, it shall be again
	var err error
	w.client, err = config.Dial(w.t.Context(), config.Temporal{Namespace: config.DefaultNamespace}.At(address), "e2e", slog.New(slog.DiscardHandler))
	require.NoError(w.t, err)
}

// spec is the world's loop as workflow input, with what a test has different.
func (w *world) spec(change map[string]any) json.RawMessage {
	w.t.Helper()
	doc := map[string]any{
		"goal": "climb", "repo": map[string]any{"path": w.repo}, "scope": []string{"work/**"},
		"setup":  map[string]any{"command": "sh setup.sh"},
		"verify": map[string]any{"command": "sh measure.sh"}, "guard": map[string]any{"command": "sh guard.sh"},
		"agent":     map[string]any{"command": []string{filepath.Join(w.dir, "agent.sh")}, "env": map[string]any{"E2E": w.dir}},
		"limits":    map[string]any{"iterations": 1, "toolCalls": 1000, "activeTime": "1h"},
		"approvals": map[string]any{"plan": "auto", "diff": "auto", "tools": []string{"*"}},
	}
	for k, v := range change {
		if inner, ok := v.(map[string]any); ok {
			merged := map[string]any{}
			if old, ok := doc[k].(map[string]any); ok {
				maps.Copy(merged, old)
			}
			maps.Copy(merged, inner)
			v = merged
		}
		doc[k] = v
	}
	b, err := json.Marshal(doc)
	require.NoError(w.t, err)
	return b
}

// begin starts the loop, or finds it started: an engine may be killed before it can say so.
func (w *world) begin(spec json.RawMessage) error {
	_, err := w.client.ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{
		ID: w.loop, TaskQueue: act.TaskQueue, WorkflowTaskTimeout: 2 * time.Second,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, cmp.Or(w.kind, "Improve"), spec)
	if _, done := err.(*serviceerror.WorkflowExecutionAlreadyStarted); done {
		return nil
	}
	return err
}

// end waits for the loop's end.
func (w *world) end() (loop.Result, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var r loop.Result
	err := w.client.GetWorkflow(ctx, w.loop, "").Get(ctx, &r)
	var failed *temporal.WorkflowExecutionError
	if err != nil && !errors.As(err, &failed) {
		w.t.Fatalf("the loop does not end (%v); it is %s", err, w.whereabouts())
	}
	return r, err
}

// until waits for a condition.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			w.t.Fatalf("it never came to this: %s; the loop is %s", what, w.whereabouts())
		}
		time.Sleep(20 * time.Millisecond) // the pace of looking, not a time that anything is given
	}
}

// read returns the lines of a file of the world, none if there is no such file.
func (w *world) read(name string) []string {
	b, _ := os.ReadFile(filepath.Join(w.dir, name))
	return lines(b)
}

// query asks the loop for its state.
func (w *world) query() (loop.State, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	v, err := w.client.QueryWorkflow(ctx, w.loop, "", "state")
	if err != nil {
		return loop.State{}, err
	}
	var s loop.State
	return s, v.Get(&s)
}

// is says whether the loop's state fulfils a condition; a loop that can't be asked does not.
func (w *world) is(condition func(loop.State) bool) func() bool {
	return func() bool {
		s, err := w.query()
		return err == nil && condition(s)
	}
}

// message sends the loop a message as a signal.
func (w *world) message(name string, payload any) {
	w.t.Helper()
	require.NoError(w.t, w.client.SignalWorkflow(w.t.Context(), w.loop, "", name, payload))
}

// record is the loop's workspace.
func (w *world) record() workspace.Record {
	w.t.Helper()
	r, ok := workspace.Latest(w.home, w.loop)
	require.True(w.t, ok, "the host has no workspace for the loop")
	return r
}

// openLedger returns the loop's store, its ledger and the head of that.
func (w *world) openLedger() (*repo.Store, *ledger.Ledger, string) {
	w.t.Helper()
	r := w.record()
	store, err := repo.OpenStore(w.t.Context(), r.Store)
	require.NoError(w.t, err)
	head, err := store.Ref(w.t.Context(), r.Ledger)
	require.NoError(w.t, err)
	return store, ledger.Open(store), head
}

// historyLength is how many events the loop's workflow has.
func (w *world) historyLength() int64 {
	w.t.Helper()
	d, err := w.client.DescribeWorkflowExecution(w.t.Context(), w.loop, "")
	require.NoError(w.t, err)
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

// whereabouts says in a few words where the loop is, for a failure's message.
func (w *world) whereabouts() string {
	s, err := w.query()
	if err != nil {
		return fmt.Sprintf("not to be asked (%v)", err)
	}
	text := fmt.Sprintf("%s in iteration %d, attempt %d, phase %s", s.Status, s.Iteration, s.Attempt, s.Phase)
	if d, err := w.client.DescribeWorkflowExecution(w.t.Context(), w.loop, ""); err == nil {
		for _, p := range d.GetPendingActivities() {
			text += fmt.Sprintf(", activity %s %s attempt %d %s", p.GetActivityType().GetName(), p.GetState(), p.GetAttempt(), p.GetLastFailure().GetMessage())
		}
		if p := d.GetPendingWorkflowTask(); p != nil {
			text += fmt.Sprintf(", workflow task %s attempt %d", p.GetState(), p.GetAttempt())
		}
	}
	return text
}

// complain shows what the processes of a test that failed have said.
func (w *world) complain() {
	logs, _ := filepath.Glob(filepath.Join(w.dir, "*.log"))
	for _, log := range logs {
		b, _ := os.ReadFile(log)
		all := lines(b)
		w.t.Logf("%s:\n%s", filepath.Base(log), strings.Join(all[max(0, len(all)-15):], "\n"))
	}
}

// files lists what there is below a folder of the world and matches.
func files(dir string, match func(path string) bool) (found []string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && match(path) {
			found = append(found, path)
		}
		return nil
	})
	return found
}
