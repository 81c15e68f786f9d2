package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// describe is what Temporal shows of a loop whether or not a worker is up.
func (w *world) describe() (d struct {
	ExecutionConfig struct {
		UserMetadata struct{ Summary, Details string }
	}
	WorkflowExecutionInfo struct {
		Execution        struct{ RunID string }
		Status           string
		Memo             struct{ Fields map[string]any }
		SearchAttributes struct {
			IndexedFields map[string]struct{ Data []byte }
		}
	}
}) {
	w.t.Helper()
	decode(w.t, w.temporal("workflow", "describe", "--workflow-id", w.loop, "--output", "json"), &d)
	return d
}

// attributes are the loop's search attributes.
func (w *world) attributes() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for name, value := range w.describe().WorkflowExecutionInfo.SearchAttributes.IndexedFields {
		if strings.HasPrefix(name, "Pawl") {
			found[name] = strings.Trim(string(value.Data), `"`)
		}
	}
	return found
}

// listed are the IDs that `temporal workflow list` finds.
func (w *world) listed(query string) (ids []string) {
	w.t.Helper()
	var rows []struct{ Execution struct{ WorkflowID string } }
	decode(w.t, w.temporal("workflow", "list", "--query", query, "--output", "json"), &rows)
	for _, r := range rows {
		ids = append(ids, r.Execution.WorkflowID)
	}
	return ids
}

// tell sends a message, as a signal or as an update.
func (w *world) tell(way, name, payload string) said {
	w.t.Helper()
	args := []string{"workflow", "signal", "--workflow-id", w.loop, "--name", name}
	if way == "update" {
		args = []string{"workflow", "update", "execute", "--workflow-id", w.loop, "--name", name}
	}
	if payload != "" {
		args = append(args, "--input", payload)
	}
	return w.tryTemporal(args...)
}

// approves tells the loop that its contract is approved.
func (w *world) approves() {
	w.t.Helper()
	s := w.tell("update", "approve", `{"by":"ann","hash":"`+w.stands("waiting").Gate.Hash+`"}`)
	require.Equal(w.t, 0, s.code, s.err)
}

// result is what the workflow ended with, which may be a failure.
func (w *world) result() (r struct {
	Status     string
	Result     struct{ ExitStatus, ErrorCode, Reason, Branch, Head string }
	CloseEvent struct {
		WorkflowExecutionFailedEventAttributes struct{ Failure failure }
	}
}) {
	w.t.Helper()
	s := w.tryTemporal("workflow", "result", "--workflow-id", w.loop, "--output", "json")
	decode(w.t, s.out, &r)
	return r
}

// failure is what Temporal shows of a workflow that failed.
type failure struct {
	Message                string
	ApplicationFailureInfo struct{ Type string }
}

// fails waits until the workflow has failed.
func (w *world) fails() failure {
	w.t.Helper()
	w.until("it has failed", func() bool { return w.describe().WorkflowExecutionInfo.Status == "WORKFLOW_EXECUTION_STATUS_FAILED" })
	return w.result().CloseEvent.WorkflowExecutionFailedEventAttributes.Failure
}

// auto makes the loop start without asking.
func (w *world) auto() *world { return w.set(doc{"approvals": doc{"plan": "auto"}}) }

func TestTemporalCLI_StartLookApproveAndList(t *testing.T) {
	w := newWorldOnCluster(t, waitsFor("go"))
	w.begin("--static-summary", "climb", "--static-details", "up **the** hill", "--memo", `goal="climb"`, "--memo", `startedBy="ann"`)
	st := w.stands("waiting")

	d := w.describe()
	require.Equal(t, "climb", d.ExecutionConfig.UserMetadata.Summary)
	require.Equal(t, "up **the** hill", d.ExecutionConfig.UserMetadata.Details)
	require.Equal(t, map[string]any{"goal": "climb", "startedBy": "ann", "branch": "pawl/" + w.loop}, d.WorkflowExecutionInfo.Memo.Fields)
	require.Equal(t, map[string]string{
		"PawlKind": "improve", "PawlStatus": "waiting", "PawlPhase": "baseline", "PawlGate": "contract", "PawlRepo": w.repo, "PawlIteration": "0", "PawlBest": "10",
	}, w.attributes())
	details := w.temporal("workflow", "metadata", "--workflow-id", w.loop)
	for _, text := range []string{"### Waiting: contract", `{"gate":"` + st.Gate.ID + `","hash":"` + st.Gate.Hash[:16] + `"}`, "| status | waiting |"} {
		require.Contains(t, details, text)
	}

	var open gate
	w.query("gate", &open)
	require.Equal(t, *st.Gate, open)
	var events struct {
		Events []event
		Seq    int64
	}
	w.query("events", &events)
	require.Equal(t, "gate_opened", events.Events[len(events.Events)-1].Type)
	require.Equal(t, events.Seq, events.Events[len(events.Events)-1].Seq)

	refused := w.tell("update", "approve", `{"hash":"abcdabcdabcdabcd"}`)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.err, "HASH_MISMATCH")
	w.approves()
	w.at(1)
	require.Equal(t, w.loop, strings.Join(w.listed(`PawlStatus = "running" AND PawlRepo = "`+w.repo+`"`), " "))
	w.write("go", "")
	require.Equal(t, "completed", w.stands("completed").Status)
	r := w.result()
	require.Equal(t, []string{"COMPLETED", "max_steps", "pawl/" + w.loop}, []string{r.Status, r.Result.ExitStatus, r.Result.Branch})
	require.Equal(t, "11", w.kept("work/n"))
	var iterations struct {
		Iterations []struct{ Description string }
		Count      int
	}
	w.query("iterations", &iterations)
	require.Equal(t, 1, iterations.Count)
	require.Equal(t, "raise the number", iterations.Iterations[0].Description)
	w.until("the list has the end, too", func() bool {
		return len(w.listed(`PawlStatus = "completed" AND PawlBest > 10.5 AND PawlIteration = 1 AND PawlRepo = "`+w.repo+`"`)) == 1
	})
	require.NotContains(t, w.attributes(), "PawlGate")
}

// Whatever is wrong with a spec that comes through Temporal is in the failure, by key.
func TestTemporalCLI_SpecThatIsWrong(t *testing.T) {
	w := newWorldOnCluster(t, raises)
	w.set(doc{"limits": doc{"iterations": 0}, "scop": []string{"x"}}).begin()
	f := w.fails()
	require.Equal(t, "INVALID_SPEC", f.ApplicationFailureInfo.Type)
	for _, key := range []string{"scop", "limits.iterations"} {
		require.Contains(t, f.Message, key)
	}
}

func TestTemporalCLI_EveryMessage(t *testing.T) {
	for _, way := range []string{"signal", "update"} {
		tells := func(w *world, name, payload string) {
			t.Helper()
			s := w.tell(way, name, payload)
			require.Equal(w.t, 0, s.code, s.err)
		}
		t.Run(way+": approve, steer, pause, continue, halt", func(t *testing.T) {
			w := newWorldOnCluster(t, `cat "$PAWL_PROMPT" >"$WORLD/prompt-$PAWL_ITERATION"; `+waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 3}})
			w.begin()
			tells(w, "approve", `{"by":"ann","hash":"`+w.stands("waiting").Gate.Hash+`"}`)
			w.at(1)
			tells(w, "steer", `{"note":"try the north face"}`)
			w.write("go-1", "")
			w.at(2)
			require.Contains(t, w.read("prompt-2"), "try the north face")
			tells(w, "pause", "")
			st := w.stands("paused")
			require.Equal(t, []string{"continue"}, st.Gate.Answers)
			tells(w, "continue", `{"gate":"`+st.Gate.ID+`","by":"ann"}`)
			w.at(3) // the step is repeated
			tells(w, "halt", `{"note":"enough"}`)
			st = w.stands("halted")
			require.Equal(t, []string{"ALO_CANCELLED", "enough"}, []string{st.ErrorCode, st.Reason})
			require.Equal(t, "11", w.kept("work/n"))
		})
		t.Run(way+": reject", func(t *testing.T) {
			w := newWorldOnCluster(t, raises)
			w.begin()
			w.stands("waiting")
			tells(w, "reject", `{"by":"ann","note":"not now"}`)
			st := w.stands("halted")
			require.Equal(t, "the contract was rejected by ann: not now", st.Reason)
		})
		t.Run(way+": answer", func(t *testing.T) {
			w := newWorldOnCluster(t, `echo none >work/n; echo "say nothing"`).auto().set(doc{"limits": doc{"iterations": 5}})
			w.begin()
			st := w.stands("waiting")
			require.Equal(t, "question", st.Gate.Kind)
			require.Equal(t, []string{"retry", "halt"}, st.Gate.Choices)
			tells(w, "answer", `{"choice":"halt","by":"ann"}`)
			require.Contains(t, w.stands("halted").Reason, "halted by ann")
		})
		t.Run(way+": what nothing waits for, or nobody can read", func(t *testing.T) {
			w := newWorldOnCluster(t, waitsFor("go")).auto()
			w.begin()
			w.at(1)
			bad := []struct{ name, payload, code string }{
				{"continue", "", "ALO_LOOP_NOT_PAUSED"}, {"approve", `{"hash":"abcdabcdabcdabcd"}`, "GATE_CLOSED"}, {"reject", "{}", "GATE_CLOSED"},
				{"answer", `{"choice":"retry"}`, "GATE_CLOSED"}, {"steer", `{}`, "INVALID_MESSAGE"}, {"steer", `"go"`, "INVALID_MESSAGE"}, {"pause", `{"by":1}`, "INVALID_MESSAGE"},
				{"halt", `{"now":true}`, "INVALID_MESSAGE"},
			}
			for _, m := range bad {
				s := w.tell(way, m.name, m.payload)
				require.Equal(t, way == "signal", s.code == 0, s.err)
				if way == "update" {
					require.Contains(t, s.err, m.code)
				}
			}
			w.write("go", "")
			require.Equal(t, "11", w.stands("completed").Best.String())
			var refused []string
			for _, e := range w.logged() {
				if e.Type == "message_refused" {
					refused = append(refused, e.Message)
				}
			}
			if way == "signal" {
				require.Len(t, refused, len(bad), "each is recorded")
			} else {
				require.Empty(t, refused, "none leaves a trace")
			}
		})
	}
}

// logged are the loop's events from its ledger in the user's repository.
func (w *world) logged() (events []event) {
	w.t.Helper()
	s := w.starter("log", "--json", w.loop)
	require.Equal(w.t, 0, s.code, s.err)
	for line := range strings.Lines(s.out) {
		var e event
		require.NoError(w.t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

func TestTemporalCLI_CancelIsHalt(t *testing.T) {
	w := newWorldOnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+raises+`; exit; }; `+waitsFor("never")).auto().set(doc{"limits": doc{"iterations": 5}})
	w.begin()
	w.at(1)
	w.temporal("workflow", "cancel", "--workflow-id", w.loop)
	st := w.stands("halted")
	require.Equal(t, "ALO_CANCELLED", st.ErrorCode)
	r := w.result()
	require.Equal(t, []string{"COMPLETED", "interrupted", "ALO_CANCELLED"}, []string{r.Status, r.Result.ExitStatus, r.Result.ErrorCode}, "it ends with its report")
	require.Equal(t, "11", w.kept("work/n"))
	w.nothingRuns()
}

// A terminated workflow runs no code of its own: the worker cleans up after it, at once where a step
// was running, and the next worker where none was there.
func TestTemporalCLI_TerminateIsCleanedUpAfter(t *testing.T) {
	t.Run("by the worker that is there", func(t *testing.T) {
		w := newWorldOnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+raises+`; exit; }; `+waitsFor("never")).auto().set(doc{"limits": doc{"iterations": 5}})
		w.begin()
		w.at(1)
		desk := w.stands("running").Desk
		w.temporal("workflow", "terminate", "--workflow-id", w.loop, "--reason", "test")
		w.until("its processes are ended and its trees given up", func() bool {
			_, err := os.Stat(desk)
			return os.IsNotExist(err) && len(survivors(w.dir)) == 0
		})
		require.Equal(t, "11", w.kept("work/n"), "what was kept stays")
		s := w.starter("show", w.loop)
		require.Equal(t, 0, s.code, "its ledger can be read: %s", s.err)
		require.Contains(t, s.out, "terminated from outside")
	})
	t.Run("by the next one", func(t *testing.T) {
		needCLI(t)
		t.Parallel()
		c := newCluster(t)
		w := newWorldOfItsOwn(t, waitsFor("never")).on(c).auto()
		w.begin()
		w.at(1)
		desk := w.stands("running").Desk
		require.NoError(t, c.worker.stop(syscall.SIGKILL))
		w.temporal("workflow", "terminate", "--workflow-id", w.loop, "--reason", "test")
		require.NoError(t, c.startWorker(c.address))
		require.NoDirExists(t, desk)
		w.nothingRuns()

		// The ID is free again.
		w.script(raises)
		w.begin()
		require.Equal(t, "pawl/"+w.loop+".2", w.stands("completed").Branch)
		require.Equal(t, map[string]any{"goal": "climb", "branch": "pawl/" + w.loop + ".2"}, w.describe().WorkflowExecutionInfo.Memo.Fields)
	})
}

// lastEvent is the ID of the last event of a type in the loop's history.
func (w *world) lastEvent(kind string, before int) (id int) {
	w.t.Helper()
	var history struct {
		Events []struct{ EventID, EventType string }
	}
	decode(w.t, w.temporal("workflow", "show", "--workflow-id", w.loop, "--output", "json"), &history)
	for _, e := range history.Events {
		if n, _ := strconv.Atoi(e.EventID); e.EventType == kind && (before == 0 || n < before) {
			id = n
		}
	}
	return id
}

// A ledger cannot be reset, so a run that is reset to a point before its last entry must not go on.
// At a gate nothing has been recorded since: a reset to there goes on.
func TestTemporalCLI_Reset(t *testing.T) {
	const completed = "EVENT_TYPE_WORKFLOW_TASK_COMPLETED"
	t.Run("behind the ledger", func(t *testing.T) {
		w := newWorldOnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+raises+`; exit; }; `+waitsFor("go")).auto().set(doc{"limits": doc{"iterations": 2}})
		w.begin()
		w.at(1)
		w.temporal("workflow", "reset", "--workflow-id", w.loop, "--event-id", strconv.Itoa(w.lastEvent(completed, 12)), "--reason", "test")
		require.Equal(t, "LEDGER_AHEAD", w.fails().ApplicationFailureInfo.Type)
		w.until("its trees are given up", func() bool { return !w.exists("../cluster/home/loops/" + w.loop + "/desk") })
		require.Equal(t, "11", w.kept("work/n"))
		st := w.stands("failed")
		require.Contains(t, st.Recovery, "from its ledger")

		// What it says to do: the second argument of a loop is where to go on from.
		head := w.git("rev-parse", "refs/pawl-ledger/"+w.loop)
		w.write("go", "")
		w.write("resume.json", `{"ledger":"`+head+`"}`)
		w.begin("--input-file", filepath.Join(w.dir, "resume.json"))
		st = w.stands("completed")
		require.Equal(t, "pawl/"+w.loop, st.Branch)
		require.Equal(t, []string{"11", "0"}, []string{w.kept("work/n"), strconv.Itoa(len(w.results(w.loop)) - 3)})
	})
	t.Run("to the ledger's head", func(t *testing.T) {
		w := newWorldOnCluster(t, waitsFor("go")).set(doc{"limits": doc{"iterations": 2}})
		w.begin()
		w.until("the gate is in the ledger", func() bool { return w.stands("waiting").Ledger != "" })
		w.temporal("workflow", "reset", "--workflow-id", w.loop, "--event-id", strconv.Itoa(w.lastEvent(completed, 0)), "--reason", "test")
		w.approves()
		w.at(1)
		w.write("go", "")
		require.Equal(t, "12", w.stands("completed").Best.String())
		require.Equal(t, "pawl/"+w.loop, w.result().Result.Branch)
	})
}

func TestTemporalCLI_NightlyLoop(t *testing.T) {
	w := newWorldOnCluster(t, raises).auto()
	w.temporal("schedule", "create", "--schedule-id", "nightly-"+w.loop, "--cron", "0 2 * * *", "--overlap-policy", "Skip",
		"--workflow-id", w.loop, "--type", "Improve", "--task-queue", "pawl", "--task-timeout", "2s", "--input-file", w.jsonFile(), "--paused")
	// Two nights that have passed.
	w.temporal("schedule", "backfill", "--schedule-id", "nightly-"+w.loop, "--overlap-policy", "BufferAll",
		"--start-time", "2026-03-01T00:00:00Z", "--end-time", "2026-03-02T12:00:00Z")
	name := w.loop
	for _, night := range []string{"2026-03-01", "2026-03-02"} {
		w.loop = name + "-" + night + "T02:00:00Z"
		st := w.stands("completed")
		require.Equal(t, "pawl/"+name+"-"+night+"T02-00-00Z", st.Branch, "git allows no colon in a ref")
		require.Equal(t, "11", w.git("show", st.Branch+":work/n"))
		require.NotEmpty(t, w.git("rev-parse", "refs/pawl-ledger/"+name+"-"+night+"T02-00-00Z"))
	}
	w.loop = name
	w.temporal("schedule", "delete", "--schedule-id", "nightly-"+w.loop)
}

func TestTemporalCLI_TheSameIDTwice(t *testing.T) {
	w := newWorldOnCluster(t, waitsFor("go")).auto()
	w.begin()
	w.at(1)
	s := w.tryTemporal("workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.loop, "--input-file", w.jsonFile(), "--fail-existing")
	require.Equal(t, 1, s.code)
	require.Contains(t, s.err, "already running")
	for _, s := range []said{w.starter("start", w.jsonFile()), w.pawl("start", w.jsonFile()), w.starter("run", "--yes", w.jsonFile())} {
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "ALO_LOOP_ALREADY_RUNNING")
		plain(t, s.err)
	}
	w.write("go", "")
	w.stands("completed")
	w.begin()
	w.until("the second has ended", func() bool { st := w.stands("completed"); return st.Branch == "pawl/"+w.loop+".2" })
	require.Equal(t, 0, w.starter("run", "--yes", w.jsonFile()).code)
	require.Equal(t, "11", w.git("show", "refs/heads/pawl/"+w.loop+".3:work/n"))
	require.Equal(t, w.results(w.loop), w.results(w.loop+".2"))
}

// pawl and starter start loops as the CLI does, with what people see of them filled in.
func TestTemporalCLI_StartedByOurPrograms(t *testing.T) {
	for name, start := range map[string]func(w *world) said{
		"starter": func(w *world) said { return w.starter("start", w.jsonFile()) },
		"pawl":    func(w *world) said { return w.pawl("start", w.jsonFile()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOnCluster(t, raises).set(doc{"goal": "climb\nup the *hill*"})
			s := start(w)
			require.Equal(t, 0, s.code, s.err)
			d := w.describe()
			require.Equal(t, "climb", d.ExecutionConfig.UserMetadata.Summary)
			require.Contains(t, d.ExecutionConfig.UserMetadata.Details, "up the *hill*")
			require.Contains(t, d.ExecutionConfig.UserMetadata.Details, w.repo)
			memo := d.WorkflowExecutionInfo.Memo.Fields
			require.Equal(t, "pawl/"+w.loop, memo["branch"])
			require.NotEmpty(t, memo["startedBy"])
			w.approves()
			w.stands("completed")
			require.Equal(t, "11", w.kept("work/n"))
		})
	}
}

// A namespace without pawl's search attributes to which none can be added: loops do without, and
// every command works.
func TestTemporalCLI_NamespaceWithoutSearchAttributes(t *testing.T) {
	var full []string
	for i := range 10 { // as many of a type as the database has columns for
		full = append(full, "--search-attribute", fmt.Sprintf("Theirs%d=Keyword", i))
	}
	for name, begin := range map[string]func(t *testing.T) (c *cluster, through string){
		"there is no room for them": func(t *testing.T) (*cluster, string) {
			c := newCluster(t, full...)
			return c, c.address
		},
		"nobody here may add any, or look": func(t *testing.T) (*cluster, string) {
			dir, err := os.MkdirTemp(scratch, "c")
			require.NoError(t, err)
			c := &cluster{dir: dir, home: filepath.Join(dir, "home"), address: freeAddress(t), ui: freeAddress(t)}
			require.NoError(t, c.startServer())
			through := withoutOperator(t, c.address)
			require.NoError(t, c.startWorker(through))
			t.Cleanup(func() { require.NoError(t, c.stop()) })
			return c, through
		},
	} {
		t.Run(name, func(t *testing.T) {
			needCLI(t)
			t.Parallel()
			c, through := begin(t)
			require.Contains(t, readFile(c.worker.log), "loops do without")
			w := newWorldOfItsOwn(t, waitsFor("go")).on(c)
			w.env = []string{"TEMPORAL_ADDRESS=" + through}
			w.begin()
			w.approves()
			w.at(1)
			require.Empty(t, w.attributes())
			w.write("go", "")
			w.stands("completed")
			require.Equal(t, "11", w.kept("work/n"))
			require.Empty(t, w.attributes())
			var rows []struct{ Loop, Status, Branch string }
			decode(t, w.starter("list", "--json").out, &rows)
			require.Len(t, rows, 1)
			require.Equal(t, "completed", rows[0].Status)
		})
	}
}

// withoutOperator serves a service to those who have no permission for its operator's part, as a
// cluster with an authorizer does, and returns the address.
func withoutOperator(t *testing.T, address string) string {
	t.Helper()
	service, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	forward, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: workflowservice.NewWorkflowServiceClient(service)})
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.PermissionDenied, "Request unauthorized.")
	}))
	workflowservice.RegisterWorkflowServiceServer(server, forward)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go server.Serve(l)
	t.Cleanup(func() {
		server.Stop()
		service.Close()
	})
	return l.Addr().String()
}

// The server goes away while an agent works, and while a gate is open. The loop goes on.
func TestTemporalCLI_ClusterThatGoesAway(t *testing.T) {
	needCLI(t)
	t.Parallel()
	c := newCluster(t)
	w := newWorldOfItsOwn(t, waitsFor("go-$PAWL_ITERATION")).on(c).set(doc{"limits": doc{"iterations": 2}})
	w.begin()
	gate := w.stands("waiting").Gate
	require.NoError(t, c.server.stop(syscall.SIGKILL))
	s := w.starter("approve", w.loop, "--hash", gate.Hash)
	require.Equal(t, 1, s.code)
	for _, text := range []string{"Temporal at " + c.address + " does not answer", "ENGINE_UNREACHABLE"} {
		require.Contains(t, s.err, text)
	}
	require.NoError(t, c.startServer())
	w.approves()
	w.at(1)
	follower := w.start("run", "--json", "--yes", w.specFile()) // of a loop that runs: refused, with nothing lost
	require.Equal(t, 2, follower.wait().code)
	require.NoError(t, c.server.stop(syscall.SIGKILL))
	w.write("go-1", "") // the agent ends while nobody can be told
	w.until("the agent has ended", func() bool { return !strings.Contains(strings.Join(survivors(w.dir), "\n"), "agent.sh") })
	require.NoError(t, c.startServer())
	w.at(2)
	require.NoError(t, c.server.stop(syscall.SIGINT))
	require.NoError(t, c.startServer())
	w.write("go-2", "")
	require.Equal(t, "12", w.stands("completed").Best.String())
	require.Equal(t, []row{{"0", "10", "+0.00", "yes", "baseline"}, {"1", "11", "+1.00", "yes", "raise the number"}, {"2", "12", "+1.00", "yes", "raise the number"}}, w.results(w.loop))
	require.Equal(t, 2, strings.Count(w.read("at"), "\n"), "no step was done twice")
}

var csrf = regexp.MustCompile(`_csrf=([^;]+)`)

// The Temporal UI sends signals and updates as JSON over HTTP; what it takes from the person is the
// name and the payload that the loop's current details show.
func TestTemporalUI_AnswersAGate(t *testing.T) {
	w := newWorldOnCluster(t, raises)
	w.begin()
	st := w.stands("waiting")
	payload := regexp.MustCompile("`approve` with `([^`]+)`").FindStringSubmatch(w.temporal("workflow", "metadata", "--workflow-id", w.loop))
	require.NotNil(t, payload)
	require.Contains(t, payload[1], st.Gate.ID)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := http.Client{Jar: jar}
	page, err := browser.Get("http://" + clusterUp.ui + "/api/v1/settings")
	require.NoError(t, err)
	page.Body.Close()
	token := csrf.FindStringSubmatch(page.Header.Get("Set-Cookie"))
	require.NotNil(t, token, page.Header)
	body, err := json.Marshal(doc{"signalName": "approve", "workflowExecution": doc{"workflowId": w.loop}, "input": doc{"payloads": []doc{
		{"metadata": doc{"encoding": []byte("json/plain")}, "data": []byte(payload[1])},
	}}})
	require.NoError(t, err)
	request, err := http.NewRequest("POST", "http://"+clusterUp.ui+"/api/v1/namespaces/default/workflows/"+w.loop+"/signal/approve", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-CSRF-TOKEN", token[1])
	answer, err := browser.Do(request)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)
	w.stands("completed")
	require.Equal(t, "11", w.kept("work/n"))
}
