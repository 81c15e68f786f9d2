package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/activities/workspace"
	"pawl/config"
	"pawl/internal/cli/doctor"
	pawl "pawl/internal/client"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	hostworker "pawl/internal/worker"
	"pawl/test/harness/testdir"
)

// service is a Temporal service as the doctor sees it. A call that no test expects panics.
type service struct {
	workflowservice.WorkflowServiceClient

	attributes map[string]enumspb.IndexedValueType
	off        time.Duration // the difference of its clock
	namespace  error
	stranger   error // its answer to an approval without credentials
	retention  time.Duration
	polled     chan string
}

func TestMain(m *testing.M) {
	supervisor.Main()
	testdir.InMemory()
	os.Exit(m.Run())
}

func newService() *service {
	return &service{stranger: serviceerror.NewPermissionDenied("no", ""), attributes: hostworker.SearchAttributes, retention: 90 * 24 * time.Hour, polled: make(chan string, 1)}
}

// connection is a client of the service.
type connection struct {
	client.Client
	s *service
}

func (connection) Close()                                                   {}
func (c connection) WorkflowService() workflowservice.WorkflowServiceClient { return c.s }
func (c connection) OperatorService() operatorservice.OperatorServiceClient { return operator{s: c.s} }

type operator struct {
	operatorservice.OperatorServiceClient
	s *service
}

func (o operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: o.s.attributes}, nil
}

func (s *service) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest, ...grpc.CallOption) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "1.32.1"}, nil
}

func (s *service) SignalWorkflowExecution(_ context.Context, r *workflowservice.SignalWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.SignalWorkflowExecutionResponse, error) {
	if r.Namespace != "default" || r.SignalName != "approve" || !strings.HasPrefix(r.WorkflowExecution.WorkflowId, "pawl-doctor-") {
		return nil, fmt.Errorf("a signal that could reach somebody: %v", r)
	}
	return nil, s.stranger
}

func (s *service) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(s.retention)}}, s.namespace
}

func (s *service) PollWorkflowTaskQueue(ctx context.Context, r *workflowservice.PollWorkflowTaskQueueRequest, _ ...grpc.CallOption) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	s.polled <- r.Identity
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *service) DescribeTaskQueue(_ context.Context, r *workflowservice.DescribeTaskQueueRequest, _ ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	if r.TaskQueue.Name == "pawl" {
		return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{Identity: "pawl@a"}, {Identity: "pawl@a"}}}, nil
	}
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{
		{Identity: <-s.polled, LastAccessTime: timestamppb.New(time.Now().Add(s.off))},
	}}, nil
}

func examine(t *testing.T, change func(*doctor.Options, *service)) map[string]doctor.Row {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	s := newService()
	o := doctor.Options{
		Home:     home.Home{Dir: dir},
		Temporal: config.Temporal{Address: "temporal:7233", Namespace: "default", Explicit: true},
		Dial:     func(context.Context, config.Temporal) (client.Client, error) { return connection{s: s}, nil },
		Engine:   func(context.Context, string) (doctor.Engine, error) { return doctor.Engine{Wanted: "0.11"}, nil },
	}
	if change != nil {
		change(&o, s)
	}
	rows := map[string]doctor.Row{}
	all := doctor.Examine(t.Context(), o)
	for _, r := range all {
		require.NotEmpty(t, r.What, r.Name)
		require.NotContains(t, rows, r.Name, "a row for each")
		require.Equal(t, r.Status != doctor.OK, r.Fix != "", "what is wrong has a fix, what is right has none: %v", r)
		rows[r.Name] = r
	}
	return rows
}

func TestEverythingIsThere(t *testing.T) {
	rows := examine(t, nil)
	for _, name := range []string{"home", "host", "Temporal", "namespace", "search attributes", "who may approve", "worker", "clock of the server", "git", "clock"} {
		require.Equal(t, doctor.OK, rows[name].Status, rows[name])
	}
	require.Equal(t, "temporal:7233, server 1.32.1", rows["Temporal"].What)
	require.Equal(t, "pawl@a", rows["worker"].What)
	require.Contains(t, rows, "disk")
	if unkept := sandbox.Unkept("test of doctor"); runtime.GOOS == "linux" {
		require.Equal(t, len(unkept) == 0, rows["sandbox's limits"].Status == doctor.OK, rows["sandbox's limits"])
		for _, limit := range unkept {
			require.Contains(t, rows["sandbox's limits"].What, limit)
		}
	}
	require.NotContains(t, rows, "engine", "a service that was named is not pawl's own")
}

func TestWhatIsWrongIsFoundAndHasAFix(t *testing.T) {
	own := func(e doctor.Engine) func(*doctor.Options, *service) {
		return func(o *doctor.Options, _ *service) {
			o.Temporal.Explicit = false
			o.Engine = func(context.Context, string) (doctor.Engine, error) { return e, nil }
		}
	}
	for _, c := range []struct {
		name   string
		change func(*doctor.Options, *service)
		row    string
		status string
		what   string
	}{
		{"no home", func(o *doctor.Options, _ *service) { o.HomeErr = errors.New("no room\nat all") }, "home", doctor.Failed, "no room"},
		{"a home that is gone", func(o *doctor.Options, _ *service) { o.Home.Dir = "/no/such/home" }, "home", doctor.Failed, "no such file"},
		{"a home that others read", func(o *doctor.Options, _ *service) { os.Chmod(o.Home.Dir, 0o755) }, "home", doctor.Failed, "mode 755"},
		{"settings that can't be used", func(o *doctor.Options, _ *service) { o.TemporalErr = errors.New("bad profile") }, "Temporal", doctor.Failed, "bad profile"},
		{"a service that does not answer", func(o *doctor.Options, _ *service) {
			o.Dial = func(context.Context, config.Temporal) (client.Client, error) { return nil, errors.New("refused") }
		}, "Temporal", doctor.Failed, "refused"},
		{"no service and no engine", func(o *doctor.Options, _ *service) { o.Temporal.Explicit, o.Engine = false, nil }, "Temporal", doctor.Failed, "no engine of its own"},
		{"no such namespace", func(_ *doctor.Options, s *service) { s.namespace = serviceerror.NewNamespaceNotFound("default") }, "namespace", doctor.Failed, "does not exist"},
		{"a service that requires no credentials", func(_ *doctor.Options, s *service) { s.stranger = serviceerror.NewNotFound("no such workflow") }, "who may approve", doctor.Note, "everyone who reaches temporal:7233"},
		{"a service that fails", func(_ *doctor.Options, s *service) {
			s.stranger = serviceerror.NewUnavailable("something went wrong, please retry")
		}, "who may approve", doctor.Note, "neither taken nor refused"},
		{"an engine that requires no token", func(o *doctor.Options, s *service) {
			own(doctor.Engine{Running: true, Address: "127.0.0.1:7233"})(o, s)
			s.stranger = serviceerror.NewNotFound("no such workflow")
		}, "who may approve", doctor.Note, "everyone who reaches 127.0.0.1:7233"},
		{"no right to the namespace", func(_ *doctor.Options, s *service) { s.namespace = serviceerror.NewPermissionDenied("no", "") }, "namespace", doctor.Failed, "can't be used"},
		{"ended loops are soon forgotten", func(_ *doctor.Options, s *service) { s.retention = 24 * time.Hour }, "namespace", doctor.Note, "forgets ended loops after 24h"},
		{"no search attributes", func(_ *doctor.Options, s *service) { s.attributes = nil }, "search attributes", doctor.Note, "PawlBest, PawlGate"},
		{"search attributes of another type", func(_ *doctor.Options, s *service) {
			s.attributes = map[string]enumspb.IndexedValueType{"PawlKind": enumspb.INDEXED_VALUE_TYPE_TEXT}
		}, "search attributes", doctor.Note, "another type than pawl's: PawlKind"},
		{"a server in the past", func(_ *doctor.Options, s *service) { s.off = -time.Hour }, "clock of the server", doctor.Failed, "by -1h0m0s"},
		{"a server a little ahead", func(_ *doctor.Options, s *service) { s.off = 10 * time.Second }, "clock of the server", doctor.Note, "by 10s"},
		{"no git", func(*doctor.Options, *service) { t.Setenv("PATH", t.TempDir()) }, "git", doctor.Failed, "none on the PATH"},
		{"an old git", func(*doctor.Options, *service) { pathWith(t, "git", "echo git version 2.20.1") }, "git", doctor.Failed, "2.20.1 is too old"},
		{"an agent that is broken", func(*doctor.Options, *service) { pathWith(t, "claude", "exit 7") }, "agent claude", doctor.Failed, "exit status 7"},
		{"an agent that is there", func(*doctor.Options, *service) { pathWith(t, "codex", "echo codex-cli 0.169.0; echo more") }, "agent codex", doctor.OK, "codex-cli 0.169.0 ("},
		{"no agent", func(*doctor.Options, *service) { pathWith(t, "nothing", "") }, "agents", doctor.Note, "none of claude, codex"},
		{"an engine that does not run", own(doctor.Engine{Version: "0.11", Wanted: "0.11"}), "engine", doctor.Note, "is not running"},
		{"an engine that hangs", own(doctor.Engine{Held: true, Owner: 42}), "engine", doctor.Failed, "process 42 holds its lock"},
		{"an engine that runs", own(doctor.Engine{Running: true, Owner: 42, Address: "127.0.0.1:7233", UI: "http://x"}), "engine", doctor.OK, "runs in process 42; UI http://x"},
		{"a database that is deleted while the engine runs", own(doctor.Engine{Running: true, Owner: 42, Address: "127.0.0.1:7233", Database: "/x/temporal.db", Wanted: "0.11"}), "engine's database", doctor.Failed, "/x/temporal.db was deleted while the engine runs"},
		{"a damaged database", own(doctor.Engine{Damaged: true, Database: "/x/temporal.db"}), "engine's database", doctor.Note, "is damaged"},
		{"rows of the database that nobody can read", own(doctor.Engine{Unread: "executions 3", Database: "/x/temporal.db", Version: "0.11", Wanted: "0.11"}), "engine's database", doctor.Failed, "executions 3"},
		{"a loop that can't continue", func(o *doctor.Options, _ *service) {
			o.Troubles = func(context.Context) ([]pawl.Trouble, error) {
				return []pawl.Trouble{{Loop: "x", What: "its ledger can't be read\nat all"}}, nil
			}
		}, "loop x", doctor.Failed, "its ledger can't be read"},
		{"no loop that can't continue", func(o *doctor.Options, _ *service) {
			o.Troubles = func(context.Context) ([]pawl.Trouble, error) { return nil, nil }
		}, "loops", doctor.OK, "no loop of this host"},
		{"a damaged record where no service answers", func(o *doctor.Options, _ *service) {
			require.NoError(t, os.MkdirAll(o.Home.Loop("x"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(o.Home.Loop("x"), "workspace.json"), nil, 0o600))
		}, "records", doctor.Note, "those of the loops x are damaged"},
		{"an engine that was mended", func(o *doctor.Options, _ *service) {
			require.NoError(t, os.MkdirAll(o.Home.Engine(), 0o700))
			repairlog.Note(o.Home.Engine(), "the database was gone")
		}, "mended engine", doctor.Note, "the database was gone"},
		{"a loop that was mended", func(o *doctor.Options, _ *service) {
			require.NoError(t, hostrecord.Write(o.Home, hostrecord.Record{Loop: "x", Ref: "x"}))
			repairlog.Note(o.Home.Loop("x"), "the store is gone")
		}, "mended x", doctor.Note, "the store is gone"},
		{"a database of another version", own(doctor.Engine{Version: "0.9", Wanted: "0.11"}), "engine's database", doctor.Note, "schema 0.9, and this pawl writes 0.11"},
		{"ports that other programs use", own(doctor.Engine{Taken: []string{"127.0.0.1:7233"}}), "ports", doctor.Note, "other programs listen on 127.0.0.1:7233"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := os.Getenv("PATH")
			defer os.Setenv("PATH", path)
			rows := examine(t, c.change)
			require.Equal(t, c.status, rows[c.row].Status, rows[c.row])
			require.Contains(t, rows[c.row].What, c.what)
		})
	}
}

func TestAgentsAreThoseThatTheRunningWorkerFinds(t *testing.T) {
	path := os.Getenv("PATH")
	defer os.Setenv("PATH", path)
	pathWith(t, "claude", "echo the shell has it")
	shell, worker := os.Getenv("PATH"), t.TempDir()
	program := "#!/bin/sh\necho codex 1.2.3 $GREETING\n"
	require.NoError(t, os.WriteFile(filepath.Join(worker, "codex"), []byte(program), 0o700))
	look := func(env []string, runs bool) map[string]doctor.Row {
		return examine(t, func(o *doctor.Options, _ *service) {
			o.Which = workspace.LookUp
			o.Worker = func() ([]string, bool) { return env, runs }
		})
	}
	rows := look([]string{"PATH=" + worker, "GREETING=hello"}, true)
	require.Equal(t, "codex 1.2.3 hello ("+filepath.Join(worker, "codex")+")", rows["agent codex"].What)
	require.Equal(t, doctor.Note, rows["agent claude"].Status)
	require.Equal(t, filepath.Join(shell, "claude")+" is not on the worker's PATH", rows["agent claude"].What)
	require.Contains(t, rows["agent claude"].Fix, "pawl up")

	rows = look(nil, false)
	require.Contains(t, rows["agent claude"].What, "the shell has it", "the process that starts a loop is its worker")
	require.NotContains(t, rows, "agent codex")
}

func TestNothingIsLeftOfAnAgentThatWasAskedForItsVersion(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	tail, err := exec.LookPath("tail")
	require.NoError(t, err)
	path := os.Getenv("PATH")
	defer os.Setenv("PATH", path)
	rows := examine(t, func(*doctor.Options, *service) {
		pathWith(t, "claude", tail+" -f /dev/null & echo $! >"+pid+"; exit 7")
	})
	require.Equal(t, doctor.Failed, rows["agent claude"].Status)
	text, err := os.ReadFile(pid)
	require.NoError(t, err)
	left, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left))
		return err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(left, 0) != nil
	}, time.Minute, time.Millisecond)
}

// pathWith sets a PATH that has one program.
func pathWith(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("PATH", dir)
}

func TestSoundMeansThatNothingFailed(t *testing.T) {
	require.True(t, doctor.Sound([]doctor.Row{{Status: doctor.OK}, {Status: doctor.Note}}))
	require.False(t, doctor.Sound([]doctor.Row{{Status: doctor.Failed}, {Status: doctor.OK}}))
}
