package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/engine"
	"pawl/internal/home/repairlog"
	"pawl/test/harness/tier"
)

const (
	childDir  = "PAWL_ENGINE_TEST_DIR"
	childPort = "PAWL_ENGINE_TEST_PORT"
	// answerTime is how long a condition may take on a busy machine. No test waits for all of it.
	answerTime = 30 * time.Second
	taskQueue  = "engine-test"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := beChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// report is what a child process reports about its engine.
type report struct {
	Owner    bool
	Endpoint engine.Endpoint
}

// beChild is the other process: it shares the engine until its standard input ends.
func beChild(dir string) error {
	port, _ := strconv.Atoi(os.Getenv(childPort))
	e, err := engine.Share(context.Background(), engine.Options{Dir: dir, Port: port})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(report{e.Owner(), e.Endpoint()}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close()
}

type child struct {
	report
	cmd    *exec.Cmd
	stdin  io.Closer
	output *bufio.Reader
}

// startChild returns when the child shares the engine.
func startChild(t *testing.T, o engine.Options) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childDir+"="+o.Dir, childPort+"="+strconv.Itoa(o.Port))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	// One pipe for both: the engine prints to neither.
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	c := &child{cmd: cmd, stdin: stdin, output: bufio.NewReader(r)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = r.Close()
	})
	line, err := c.output.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &c.report), "%s", line)
	return c
}

func (c *child) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGKILL))
	_ = c.cmd.Wait()
}

// end closes the child's engine and returns what it printed in addition to its report.
func (c *child) end(t *testing.T) string {
	t.Helper()
	require.NoError(t, c.stdin.Close())
	rest, err := io.ReadAll(c.output)
	require.NoError(t, err)
	require.NoError(t, c.cmd.Wait())
	return string(rest)
}

var nextPort atomic.Int32

// options are for a new engine with its own ports.
func options(t *testing.T) engine.Options {
	t.Helper()
	for {
		port := 10000 + (os.Getpid()%400)*20 + int(nextPort.Add(1))
		f, errF := net.Listen("tcp", address(port))
		u, errU := net.Listen("tcp", address(port+1000))
		if errF == nil {
			f.Close()
		}
		if errU == nil {
			u.Close()
		}
		if errF == nil && errU == nil {
			// A directory whose name has special characters of a URI.
			return engine.Options{Dir: filepath.Join(t.TempDir(), "a b?c#d%41"), Port: port, Logger: testLogger(t)}
		}
	}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// testLogger shows what a user would see of the engine's log.
func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func share(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	e, err := engine.Share(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		// On a very busy machine, closing may go on in the background.
		if err := e.Close(); err != nil {
			t.Log(err)
		}
	})
	return e
}

func dial(t *testing.T, e *engine.Engine) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: e.Endpoint().Address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func startWorker(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(double)
	w.RegisterWorkflow(waitThenDouble)
	w.RegisterWorkflow(mark)
	w.RegisterWorkflow(retried)
	w.RegisterActivity(times)
	w.RegisterActivity(failsAtFirst)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

func times(_ context.Context, a, b int) (int, error) { return a * b, nil }

func double(ctx workflow.Context, n int) (result int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: answerTime})
	err = workflow.ExecuteActivity(ctx, times, 2, n).Get(ctx, &result)
	return result, err
}

func waitThenDouble(ctx workflow.Context, n int) (int, error) {
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	return double(ctx, n)
}

// retried calls an activity that fails at first, and waits for a timer.
func retried(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: answerTime, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond}})
	if err := workflow.ExecuteActivity(ctx, failsAtFirst).Get(ctx, nil); err != nil {
		return err
	}
	return workflow.Sleep(ctx, time.Millisecond)
}

func failsAtFirst(ctx context.Context) error {
	if activity.GetInfo(ctx).Attempt == 1 {
		return errors.New("at first")
	}
	return nil
}

// mark fails for good if the search attribute is not registered.
func mark(ctx workflow.Context, attribute string) error {
	return workflow.UpsertTypedSearchAttributes(ctx, temporal.NewSearchAttributeKeyKeyword(attribute).ValueSet("here"))
}

func execute(t *testing.T, c client.Client, wf any, args ...any) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: t.Name(), TaskQueue: taskQueue}, wf, args...)
	require.NoError(t, err)
	return run
}

// indexes returns the indexes of a table that are not part of its definition.
func indexes(t *testing.T, path, table string) (names string) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	const query = "SELECT group_concat(name ORDER BY name) FROM sqlite_master WHERE type = 'index' AND tbl_name = '%s' AND sql IS NOT NULL"
	require.NoError(t, db.QueryRowContext(t.Context(), fmt.Sprintf(query, table)).Scan(&names))
	return names
}

func TestWhatAnEngineHeldIsThereWhenItIsStartedAgain(t *testing.T) {
	o := options(t)
	o.SearchAttributes = map[string]enumspb.IndexedValueType{
		"PawlPhase": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"PawlBest":  enumspb.INDEXED_VALUE_TYPE_INT,
	}
	first, err := engine.Share(t.Context(), o)
	require.NoError(t, err)
	assert.True(t, first.Owner())
	assert.False(t, first.Moved())
	assert.Equal(t, address(o.Port), first.Endpoint().Address)
	assert.Equal(t, "http://"+address(o.Port+1000), first.Endpoint().UI)
	info, err := os.Stat(o.Dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	t.Run("first", func(t *testing.T) {
		c := dial(t, first)
		startWorker(t, c)
		var got int
		require.NoError(t, execute(t, c, double, 21).Get(t.Context(), &got))
		require.Equal(t, 42, got)
	})
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice")
	_, ok := engine.Find(t.Context(), o.Dir)
	require.False(t, ok, "a closed engine is not found")
	assert.Equal(t, "by_status,by_workflow_id,by_workflow_type,default_idx", indexes(t, filepath.Join(o.Dir, "temporal.db"), "executions_visibility"))

	o.SearchAttributes["PawlGate"] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	o.SearchAttributes["PawlBest"] = enumspb.INDEXED_VALUE_TYPE_DOUBLE
	second := share(t, o)
	assert.Equal(t, first.Endpoint().Address, second.Endpoint().Address)
	assert.Equal(t, first.Endpoint().ClusterID, second.Endpoint().ClusterID)
	assert.Empty(t, second.Replaced())

	c := dial(t, second)
	var got int
	require.NoError(t, c.GetWorkflow(t.Context(), t.Name()+"/first", "").Get(t.Context(), &got))
	assert.Equal(t, 42, got)
	history := c.GetWorkflowHistory(t.Context(), t.Name()+"/first", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	event, err := history.Next()
	require.NoError(t, err)
	assert.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, event.EventType)

	ns, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	assert.Equal(t, 90*24*time.Hour, ns.Config.WorkflowExecutionRetentionTtl.AsDuration())
	attributes, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	assert.Subset(t, attributes.CustomAttributes, o.SearchAttributes)

	// Every service knows the added attribute at once, not after two seconds.
	startWorker(t, c)
	require.NoError(t, execute(t, c, mark, "PawlGate").Get(t.Context(), nil))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		found, err := c.CountWorkflow(context.Background(), &workflowservice.CountWorkflowExecutionsRequest{Query: `PawlGate = "here"`})
		require.NoError(t, err)
		require.EqualValues(t, 1, found.Count)
	}, answerTime, 10*time.Millisecond)
}

func TestTheRetentionOfAnExistingNamespaceChanges(t *testing.T) {
	o := options(t)
	first, err := engine.Share(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, first.Close())

	o.Retention = 48 * time.Hour
	c := dial(t, share(t, o))
	ns, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	assert.Equal(t, o.Retention, ns.Config.WorkflowExecutionRetentionTtl.AsDuration())
}

func TestTheUIAnswersToThisMachineOnly(t *testing.T) {
	e := share(t, options(t))
	get := func(path, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Endpoint().UI+path, nil)
		require.NoError(t, err)
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	code, body := get("/", "")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "<html")
	code, body = get("/api/v1/namespaces/default", "localhost:8233")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "workflowExecutionRetentionTtl")
	code, _ = get("/api/v1/namespaces/default", "rebound.example")
	assert.Equal(t, http.StatusForbidden, code)
}

func TestASecondProcessUsesTheRunningEngine(t *testing.T) {
	o := options(t)
	e := share(t, o)
	found, ok := engine.Find(t.Context(), o.Dir)
	require.True(t, ok)
	assert.Equal(t, e.Endpoint(), found)

	c := startChild(t, o)
	assert.False(t, c.Owner)
	assert.Equal(t, e.Endpoint(), c.Endpoint)
	assert.Empty(t, c.end(t), "it prints nothing")
	assert.True(t, e.Owner())
}

func TestAnotherProcessTakesOverFromAKilledOwner(t *testing.T) {
	o := options(t)
	owner := startChild(t, o)
	require.True(t, owner.Owner)
	e := share(t, o)
	require.False(t, e.Owner())
	require.Equal(t, owner.Endpoint, e.Endpoint())

	c := dial(t, e)
	startWorker(t, c)
	run := execute(t, c, waitThenDouble, 4)
	owner.kill(t)
	require.Eventually(t, e.Owner, answerTime, time.Millisecond)
	assert.Equal(t, owner.Endpoint.Address, e.Endpoint().Address)
	assert.Equal(t, owner.Endpoint.UI, e.Endpoint().UI)
	assert.Equal(t, os.Getpid(), e.Endpoint().PID)

	require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "go", nil))
	var got int
	require.NoError(t, run.Get(t.Context(), &got))
	assert.Equal(t, 8, got)
}

func TestAnEngineStartsAgainWhenTheClockIsSetBack(t *testing.T) {
	var back atomic.Int64
	e := share(t, options(t).WithClock(&back))
	c := dial(t, e)
	startWorker(t, c)
	run := execute(t, c, waitThenDouble, 4)
	before := e.Endpoint()
	back.Store(int64(time.Hour))
	require.Eventually(t, func() bool { return e.Endpoint().StartedAt.After(before.StartedAt) }, answerTime, time.Millisecond)
	assert.Equal(t, before.Address, e.Endpoint().Address)

	require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "go", nil))
	var got int
	require.NoError(t, run.Get(t.Context(), &got))
	assert.Equal(t, 8, got)
}

func TestAnEngineStartsAgainWhenTheClockIsSetBackWhileItStarts(t *testing.T) {
	e := share(t, options(t).WithClockSetBackAtStart())
	before := e.Endpoint()
	require.Eventually(t, func() bool { return e.Endpoint().StartedAt.After(before.StartedAt) }, answerTime, time.Millisecond)
}

// An engine whose timers were read further than the clock is: it was set back while no engine ran.
func TestTimersDoNotWaitForAClockThatWasSetBack(t *testing.T) {
	o := options(t)
	first := share(t, o)
	c := dial(t, first)
	run := execute(t, c, retried)
	require.NoError(t, first.Close())
	db, err := sql.Open("sqlite", "file://"+(&url.URL{Path: filepath.Join(o.Dir, "temporal.db")}).EscapedPath())
	require.NoError(t, err)
	engine.TimersReadTo(t, db, time.Now().Add(5*time.Hour))
	require.NoError(t, db.Close())

	c = dial(t, share(t, o))
	startWorker(t, c)
	require.NoError(t, c.GetWorkflow(t.Context(), run.GetID(), "").Get(t.Context(), nil))
}

func TestAnotherProcessTakesOverWhenTheOwnerCloses(t *testing.T) {
	o := options(t)
	owner := startChild(t, o)
	e := share(t, o)
	assert.Empty(t, owner.end(t), "it prints nothing")
	require.Eventually(t, e.Owner, answerTime, time.Millisecond)
	assert.Equal(t, owner.Endpoint.Address, e.Endpoint().Address)
	assert.Equal(t, owner.Endpoint.ClusterID, e.Endpoint().ClusterID)
}

func TestAShareThatIsClosedWhileItWaitsTakesNothing(t *testing.T) {
	o := options(t)
	owner, waiting, next := share(t, o), share(t, o), share(t, o)
	require.False(t, waiting.Owner())
	require.NoError(t, waiting.Close())
	require.NoError(t, owner.Close())
	require.Eventually(t, next.Owner, answerTime, time.Millisecond)
	assert.False(t, waiting.Owner())
	assert.Equal(t, owner.Endpoint().Address, next.Endpoint().Address)
}

func TestAKilledEngineStartsAgainWhereItWas(t *testing.T) {
	o := options(t)
	occupied, err := net.Listen("tcp", address(o.Port))
	require.NoError(t, err)
	owner := startChild(t, o)
	owner.kill(t)
	_, ok := engine.Find(t.Context(), o.Dir)
	require.False(t, ok)
	// The engine's clients know the port to which it had to move.
	require.NoError(t, occupied.Close())

	e := share(t, o)
	assert.Equal(t, owner.Endpoint.Address, e.Endpoint().Address)
	assert.True(t, e.Moved())
	assert.Empty(t, e.Replaced())
}

func TestAnEngineMovesWhenItsPortIsTaken(t *testing.T) {
	for name, taken := range map[string]func(engine.Options) int{
		"by another frontend": func(o engine.Options) int { return o.Port },
		"by another UI":       func(o engine.Options) int { return o.Port + 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			foreign, err := net.Listen("tcp", address(taken(o)))
			require.NoError(t, err)
			e, err := engine.Share(t.Context(), o)
			require.NoError(t, err)
			assert.True(t, e.Moved())
			assert.Greater(t, e.Endpoint().Port, o.Port)
			found, ok := engine.Find(t.Context(), o.Dir)
			assert.True(t, ok)
			assert.Equal(t, e.Endpoint().Address, found.Address)
			require.NoError(t, e.Close())
			require.NoError(t, foreign.Close())

			back := share(t, o)
			assert.False(t, back.Moved(), "having moved is not for good")
		})
	}
}

func TestFindDoesNotBelieveAStrangersEndpoint(t *testing.T) {
	e := share(t, options(t))
	stranger := e.Endpoint()
	stranger.ClusterID = "00000000-0000-0000-0000-000000000000"
	for name, c := range map[string]struct {
		endpoint engine.Endpoint
		held     bool
	}{
		"a copied directory that nobody owns":       {e.Endpoint(), false},
		"another Temporal on the port of our owner": {stranger, true},
		"an owner that has not started yet":         {engine.Endpoint{Address: e.Endpoint().Address, PID: -1, ClusterID: e.Endpoint().ClusterID}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, err := json.Marshal(c.endpoint)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), data, 0o600))
			lock, err := os.Create(filepath.Join(dir, "lock"))
			require.NoError(t, err)
			defer lock.Close()
			_, err = fmt.Fprintln(lock, os.Getpid())
			require.NoError(t, err)
			if c.held {
				require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
			}
			_, ok := engine.Find(t.Context(), dir)
			assert.False(t, ok)
		})
	}
	t.Run("no directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		_, ok := engine.Find(t.Context(), dir)
		assert.False(t, ok)
		assert.NoDirExists(t, dir)
	})
}

func TestADatabaseThatCannotBeUsedIsMovedAside(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, db *os.File)
		suffix string
		more   bool // only with -tags nightly
	}{
		"another schema": {func(t *testing.T, db *os.File) {
			_, err := db.WriteAt([]byte{0, 0, 0, 10}, 60) // PRAGMA user_version: 0.10
			require.NoError(t, err)
		}, "0.10", false},
		"another program's": {func(t *testing.T, db *os.File) {
			_, err := db.WriteAt([]byte{0, 0, 0, 0}, 68) // PRAGMA application_id
			require.NoError(t, err)
		}, "unknown", true},
		"not a database": {func(t *testing.T, db *os.File) {
			_, err := db.WriteAt([]byte("no database at all, but a text"), 0)
			require.NoError(t, err)
		}, "corrupt", true},
		"empty": {func(t *testing.T, db *os.File) {
			require.NoError(t, db.Truncate(0))
		}, "corrupt", true},
		"overwritten in the middle": {func(t *testing.T, db *os.File) {
			_, err := db.WriteAt(make([]byte, 1<<16), 1<<14)
			require.NoError(t, err)
		}, "corrupt", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.more && !tier.Nightly {
				t.Skip("runs with -tags nightly: one that is of another version, one that is damaged")
			}
			o := options(t)
			// In another process, so that the file is closed as in real use.
			assert.Empty(t, startChild(t, o).end(t))
			path := filepath.Join(o.Dir, "temporal.db")
			require.NoError(t, os.WriteFile(path+"."+c.suffix, nil, 0o600), "an earlier one is in the way")
			db, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			c.spoil(t, db)
			require.NoError(t, db.Close())
			before, err := os.Stat(path)
			require.NoError(t, err)

			e := share(t, o)
			assert.Equal(t, path+"."+c.suffix+".2", e.Replaced())
			kept, err := os.Stat(e.Replaced())
			require.NoError(t, err)
			assert.True(t, os.SameFile(before, kept), "it is the same file under another name")
			assert.FileExists(t, path)
			if c.suffix == "corrupt" {
				assert.Len(t, repairlog.Lines(o.Dir), 1)
				assert.Contains(t, repairlog.Lines(o.Dir)[0], "moved aside to "+path)
			} else {
				assert.Empty(t, repairlog.Lines(o.Dir), "it is another program's, not damaged")
			}
		})
	}
}

func TestADatabaseThatIsGoneIsNamed(t *testing.T) {
	o := options(t)
	assert.Empty(t, startChild(t, o).end(t))
	assert.Empty(t, repairlog.Lines(o.Dir), "there was none to lose")
	require.NoError(t, os.Remove(filepath.Join(o.Dir, "temporal.db")))
	share(t, o)
	require.Len(t, repairlog.Lines(o.Dir), 1)
	assert.Contains(t, repairlog.Lines(o.Dir)[0], "the database was gone")
}
