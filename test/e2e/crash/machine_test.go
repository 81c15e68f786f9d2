package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
	"pawl/internal/git/store"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/world"
)

// machine is a world whose engine and worker are processes that the tests end, with its own client.
type machine struct {
	*world.World
	home    home.Home
	port    int
	address string
	client  client.Client
	nodes   int
	base    string // the repository's commit
	kind    string // the workflow type; "" is Improve
	resumes string // the ledger from which the loop continues, "" for none
	pids    map[string]int

	// For its steward:
	validates string   // how often it validates; "" is every second
	tasks     []string // the tasks to submit; nil is crewTasks
}

type doc = world.Doc

// Engines of different machines begin to look for free ports at different numbers.
var machines atomic.Int32

// newMachine makes a machine. Its agent is a POSIX shell script that gets the iteration in $PAWL_ITERATION, the attempt
// in $PAWL_ATTEMPT and the world's folder in $WORLD.
func newMachine(t testing.TB, agent string) *machine {
	t.Helper()
	program(t)
	dir, err := os.MkdirTemp(world.Scratch, "m")
	require.NoError(t, err)
	return newMachineIn(t, dir, agent)
}

func newMachineIn(t testing.TB, dir, agent string) *machine {
	t.Helper()
	w := &machine{World: world.In(t, dir, agent, map[string]string{
		"README.md": "a hill\n", ".gitignore": "deps/\n", "work/n": "10\n", "work/guard": "good\n", "work/syntax": "good\n",
		"setup.sh":   "mkdir -p deps && echo half >deps/tool.part && mv deps/tool.part deps/tool\n",
		"measure.sh": "grep -q half deps/tool || exit 9\ngrep -q boom work/n && exit 1\ncat work/n\n",
		"guard.sh":   "! grep -q bad work/guard\n",
		"check.sh":   "grep -q half deps/tool && ! grep -q bad work/syntax\n",
	}, "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")}
	w.home, w.Loop = home.Home{Dir: w.Home}, "climb"
	w.port = 10000 + (os.Getpid()*31+int(machines.Add(1))*2)%1000
	w.base = w.Git("rev-parse", "HEAD")
	w.Set(doc{
		"setup": doc{"command": "sh setup.sh"}, "guard": doc{"command": "sh guard.sh"}, "approvals": doc{"plan": "auto"},
	})
	require.NoError(t, os.MkdirAll(w.home.Dir, 0o700))
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

// connect makes the machine's client.
func (w *machine) connect(address string) {
	w.T.Helper()
	if w.client != nil {
		w.client.Close()
	}
	w.address = address
	_, port, _ := strings.Cut(address, ":")
	w.port, _ = strconv.Atoi(port) // the next engine uses the same port
	var err error
	w.client, err = config.Dial(w.T.Context(), config.Temporal{Namespace: config.DefaultNamespace}.At(address, nil, "", func() string { return address }), "e2e", slog.New(slog.DiscardHandler))
	require.NoError(w.T, err)
}

// spec returns the machine's loop as workflow input, with a test's changes.
func (w *machine) spec(change doc) json.RawMessage {
	w.T.Helper()
	b, err := json.Marshal(w.Set(change).Spec)
	require.NoError(w.T, err)
	return b
}

// begin starts the loop. The loop may have started already, if an engine was killed before it could answer.
func (w *machine) begin(spec json.RawMessage) error {
	_, err := w.client.ExecuteWorkflow(w.T.Context(), client.StartWorkflowOptions{
		ID: w.Loop, TaskQueue: api.TaskQueue, WorkflowTaskTimeout: 2 * time.Second,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, cmp.Or(w.kind, "Improve"), spec, doc{"ledger": w.resumes})
	if _, done := err.(*serviceerror.WorkflowExecutionAlreadyStarted); done {
		return nil
	}
	return err
}

// end waits for the loop's end.
func (w *machine) end() (loop.Result, error) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), world.Patience)
	defer cancel()
	var r loop.Result
	err := w.client.GetWorkflow(ctx, w.Loop, "").Get(ctx, &r)
	var failed *temporal.WorkflowExecutionError
	if err != nil && !errors.As(err, &failed) {
		w.T.Fatalf("the loop does not end (%v); it is %s", err, w.whereabouts())
	}
	return r, err
}

// until waits for a condition.
func (w *machine) until(what string, condition func() bool) {
	w.T.Helper()
	deadline := time.Now().Add(world.Patience)
	for began := time.Now(); !condition(); began = time.Now() {
		if began.After(deadline) {
			w.T.Fatalf("it never came to this: %s; the loop is %s", what, w.whereabouts())
		}
		world.Rest(began)
	}
}

// lines returns the lines of a file of the world, none if there is no such file.
func (w *machine) lines(name string) []string { return lines([]byte(w.Read(name))) }

// query asks the loop for its state.
func (w *machine) query() (loop.State, error) {
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Second)
	defer cancel()
	v, err := w.client.QueryWorkflow(ctx, w.Loop, "", "state")
	if err != nil {
		return loop.State{}, err
	}
	var s loop.State
	return s, v.Get(&s)
}

// is returns a function that reports whether the loop's state fulfils a condition. It returns false if the loop does
// not answer.
func (w *machine) is(condition func(loop.State) bool) func() bool {
	return func() bool {
		s, err := w.query()
		return err == nil && condition(s)
	}
}

// message sends the loop a message as a signal.
func (w *machine) message(name string, payload any) {
	w.T.Helper()
	require.NoError(w.T, w.client.SignalWorkflow(w.T.Context(), w.Loop, "", name, payload))
}

// record returns the loop's workspace record.
func (w *machine) record() hostrecord.Record {
	w.T.Helper()
	r, ok := hostrecord.Latest(w.home, w.Loop)
	require.True(w.T, ok, "the host has no workspace for the loop")
	return r
}

// openLedger returns the loop's store, its ledger, and the ledger's head.
func (w *machine) openLedger() (*store.Store, *ledger.Ledger, string) {
	w.T.Helper()
	r := w.record()
	store, err := store.Open(w.T.Context(), r.Store)
	require.NoError(w.T, err)
	head, err := store.Ref(w.T.Context(), r.Ledger)
	require.NoError(w.T, err)
	return store, ledger.Open(store), head
}

// historyLength returns how many events the loop's workflow has.
func (w *machine) historyLength() (length int64) {
	w.T.Helper()
	w.until("nothing is under way", func() bool { // a gate can be seen before it is recorded
		d, err := w.client.DescribeWorkflowExecution(w.T.Context(), w.Loop, "")
		length = d.GetWorkflowExecutionInfo().GetHistoryLength()
		return err == nil && len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil
	})
	return length
}

// whereabouts says in a few words where the loop is, for the message of a failure.
func (w *machine) whereabouts() string {
	s, err := w.query()
	if err != nil {
		return fmt.Sprintf("not to be asked (%v)", err)
	}
	text := fmt.Sprintf("%s in iteration %d, attempt %d, phase %s", s.Status, s.Iteration, s.Attempt, s.Phase)
	if d, err := w.client.DescribeWorkflowExecution(w.T.Context(), w.Loop, ""); err == nil {
		for _, p := range d.GetPendingActivities() {
			text += fmt.Sprintf(", activity %s %s attempt %d %s", p.GetActivityType().GetName(), p.GetState(), p.GetAttempt(), p.GetLastFailure().GetMessage())
		}
		if p := d.GetPendingWorkflowTask(); p != nil {
			text += fmt.Sprintf(", workflow task %s attempt %d", p.GetState(), p.GetAttempt())
		}
	}
	return text
}

// complain shows the output of the processes of a failed test.
func (w *machine) complain() {
	logs, _ := filepath.Glob(filepath.Join(w.Dir, "*.log"))
	for _, log := range logs {
		b, _ := os.ReadFile(log)
		all := lines(b)
		w.T.Logf("%s:\n%s", filepath.Base(log), strings.Join(all[max(0, len(all)-15):], "\n"))
	}
}

// files lists the files below a folder of the world that match.
func files(dir string, match func(path string) bool) (found []string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && match(path) {
			found = append(found, path)
		}
		return nil
	})
	return found
}
