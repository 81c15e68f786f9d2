package service_test

import (
	"bytes"
	"encoding/base64"
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

	"pawl/test/harness/world"
)

// attributes returns the loop's search attributes.
func attributes(w *world.World) map[string]string {
	w.T.Helper()
	found := map[string]string{}
	for name, value := range w.Describe().WorkflowExecutionInfo.SearchAttributes.IndexedFields {
		if strings.HasPrefix(name, "Pawl") {
			found[name] = strings.Trim(string(value.Data), `"`)
		}
	}
	return found
}

func TestTemporalCLI_StartLookApproveAndList(t *testing.T) {
	w := world.OnCluster(t, world.WaitsFor("go"))
	w.Begin("--static-summary", "climb", "--static-details", "up **the** hill", "--memo", `goal="climb"`, "--memo", `startedBy="ann"`)
	st := w.Stands("waiting")

	d := w.Describe()
	require.Equal(t, "climb", d.ExecutionConfig.UserMetadata.Summary)
	require.Equal(t, "up **the** hill", d.ExecutionConfig.UserMetadata.Details)
	require.Equal(t, map[string]any{"goal": "climb", "startedBy": "ann", "branch": "pawl/" + w.Loop}, d.WorkflowExecutionInfo.Memo.Fields)
	require.Equal(t, map[string]string{
		"PawlKind": "improve", "PawlStatus": "waiting", "PawlPhase": "baseline", "PawlGate": "contract", "PawlRepo": w.Repo, "PawlIteration": "0", "PawlBest": "10",
	}, attributes(w))
	details := w.Temporal("workflow", "metadata", "--workflow-id", w.Loop)
	for _, text := range []string{"### Waiting: contract", `{ "gate": "` + st.Gate.ID + `", "hash": "` + st.Gate.Hash[:16] + `" }`, "| status | waiting |"} {
		require.Contains(t, details, text)
	}

	var open world.Gate
	w.Query("gate", &open)
	require.Equal(t, *st.Gate, open)
	var events struct {
		Events []world.Event
		Seq    int64
	}
	w.Query("events", &events)
	require.Equal(t, "gate_opened", events.Events[len(events.Events)-1].Type)
	require.Equal(t, events.Seq, events.Events[len(events.Events)-1].Seq)

	refused := w.Tell("update", "approve", `{"hash":"abcdabcdabcdabcd"}`)
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Err, "HASH_MISMATCH")
	w.Approves()
	w.At(1)
	require.Equal(t, w.Loop, strings.Join(w.Listed(`PawlStatus = "running" AND PawlRepo = "`+w.Repo+`"`), " "))
	w.Write("go", "")
	require.Equal(t, "completed", w.Stands("completed").Status)
	r := w.Result()
	require.Equal(t, []string{"COMPLETED", "max_steps", "pawl/" + w.Loop}, []string{r.Status, r.Result.ExitStatus, r.Result.Branch})
	require.Equal(t, "11", w.Kept("work/n"))
	var iterations struct {
		Iterations []struct{ Description string }
		Count      int
	}
	w.Query("iterations", &iterations)
	require.Equal(t, 1, iterations.Count)
	require.Equal(t, "raise the number", iterations.Iterations[0].Description)
	w.Until("the list has the end, too", func() bool {
		return len(w.Listed(`PawlStatus = "completed" AND PawlBest > 10.5 AND PawlIteration = 1 AND PawlRepo = "`+w.Repo+`"`)) == 1
	})
	require.NotContains(t, attributes(w), "PawlGate")
}

// Everything that is wrong with a spec from Temporal is in the failure, by key.
func TestTemporalCLI_SpecThatIsWrong(t *testing.T) {
	world.Slow(t, "TestSpecFileThatIsWrong reads them")
	w := world.OnCluster(t, world.Raises)
	w.Set(doc{"limits": doc{"iterations": 0}, "scop": []string{"x"}}).Begin()
	f := w.Fails()
	require.Equal(t, "INVALID_SPEC", f.ApplicationFailureInfo.Type)
	for _, key := range []string{"scop", "limits.iterations"} {
		require.Contains(t, f.Message, key)
	}
}

func TestTemporalCLI_EveryMessage(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	for _, way := range []string{"signal", "update"} {
		tells := func(w *world.World, name, payload string) {
			t.Helper()
			s := w.Tell(way, name, payload)
			require.Equal(w.T, 0, s.Code, s.Err)
		}
		t.Run(way+": approve, steer, pause, continue, halt", func(t *testing.T) {
			w := world.OnCluster(t, `cat "$PAWL_PROMPT" >"$WORLD/prompt-$PAWL_ITERATION"; `+world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 3}})
			w.Begin()
			tells(w, "approve", `{"by":"ann","hash":"`+w.Stands("waiting").Gate.Hash+`"}`)
			w.At(1)
			tells(w, "steer", `{"note":"try the north face"}`)
			w.Write("go-1", "")
			w.At(2)
			require.Contains(t, w.Read("prompt-2"), "try the north face")
			tells(w, "pause", "")
			st := w.Stands("paused")
			require.Equal(t, []string{"continue"}, st.Gate.Answers)
			tells(w, "continue", `{"gate":"`+st.Gate.ID+`","by":"ann"}`)
			w.At(3) // the step is repeated
			tells(w, "halt", `{"note":"enough"}`)
			st = w.Stands("halted")
			require.Equal(t, []string{"ALO_CANCELLED", "enough"}, []string{st.ErrorCode, st.Reason})
			require.Equal(t, "11", w.Kept("work/n"))
		})
		t.Run(way+": reject", func(t *testing.T) {
			w := world.OnCluster(t, world.Raises)
			w.Begin()
			w.Stands("waiting")
			tells(w, "reject", `{"by":"ann","note":"not now"}`)
			st := w.Stands("halted")
			require.Equal(t, "the contract was rejected by ann: not now", st.Reason)
		})
		t.Run(way+": answer", func(t *testing.T) {
			w := world.OnCluster(t, `echo >"$WORLD/none"; echo none >work/n; echo "say nothing"`).Auto()
			w.Set(doc{"limits": doc{"iterations": 5}, "verify": doc{"command": "[ -e '" + w.Dir + "/none' ] && echo none || sh measure.sh"}}) // for the reference, too
			w.Begin()
			st := w.Stands("waiting")
			require.Equal(t, "question", st.Gate.Kind)
			require.Equal(t, []string{"retry", "halt"}, st.Gate.Choices)
			tells(w, "answer", `{"choice":"halt","by":"ann"}`)
			require.Contains(t, w.Stands("halted").Reason, "halted by ann")
		})
		t.Run(way+": what nothing waits for, or nobody can read", func(t *testing.T) {
			w := world.OnCluster(t, world.WaitsFor("go")).Auto()
			w.Begin()
			w.At(1)
			bad := []struct{ name, payload, code string }{
				{"continue", "", "ALO_LOOP_NOT_PAUSED"}, {"approve", `{"hash":"abcdabcdabcdabcd"}`, "GATE_CLOSED"}, {"reject", "{}", "GATE_CLOSED"},
				{"answer", `{"choice":"retry"}`, "GATE_CLOSED"}, {"steer", `{}`, "INVALID_MESSAGE"}, {"steer", `"go"`, "INVALID_MESSAGE"}, {"pause", `{"by":1}`, "INVALID_MESSAGE"},
				{"halt", `{"now":true}`, "INVALID_MESSAGE"},
			}
			for _, m := range bad {
				s := w.Tell(way, m.name, m.payload)
				require.Equal(t, way == "signal", s.Code == 0, s.Err)
				if way == "update" {
					require.Contains(t, s.Err, m.code)
				}
			}
			w.Write("go", "")
			require.Equal(t, "11", w.Stands("completed").Best.String())
			var refused []string
			for _, e := range logged(w) {
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

// logged returns the loop's events from its ledger in the user's repository.
func logged(w *world.World) (events []world.Event) {
	w.T.Helper()
	s := w.Starter("log", "--json", w.Loop)
	require.Equal(w.T, 0, s.Code, s.Err)
	for line := range strings.Lines(s.Out) {
		var e world.Event
		require.NoError(w.T, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

func TestTemporalCLI_CancelIsHalt(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	w := world.OnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+world.Raises+`; exit; }; `+world.WaitsFor("never")).Auto().Set(doc{"limits": doc{"iterations": 5}})
	w.Begin()
	w.At(1)
	w.Temporal("workflow", "cancel", "--workflow-id", w.Loop)
	st := w.Stands("halted")
	require.Equal(t, "ALO_CANCELLED", st.ErrorCode)
	r := w.Result()
	require.Equal(t, []string{"COMPLETED", "interrupted", "ALO_CANCELLED"}, []string{r.Status, r.Result.ExitStatus, r.Result.ErrorCode}, "it ends with its report")
	require.Equal(t, "11", w.Kept("work/n"))
	w.NothingRuns()
}

// A terminated workflow runs no code of its own. The worker cleans up after it: at once if a step was running. If no
// worker was there, the next one does.
func TestTemporalCLI_TerminateIsCleanedUpAfter(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	t.Run("by the worker that is there", func(t *testing.T) {
		w := world.OnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+world.Raises+`; exit; }; `+world.WaitsFor("never")).Auto().Set(doc{"limits": doc{"iterations": 5}})
		w.Begin()
		w.At(1)
		desk := w.Stands("running").Desk
		w.Temporal("workflow", "terminate", "--workflow-id", w.Loop, "--reason", "test")
		w.Until("its processes are ended and its trees given up", func() bool {
			_, err := os.Stat(desk)
			return os.IsNotExist(err) && len(world.Survivors(w.Dir)) == 0
		})
		require.Equal(t, "11", w.Kept("work/n"), "what was kept stays")
		s := w.Starter("show", w.Loop)
		require.Equal(t, 0, s.Code, "its ledger can be read: %s", s.Err)
		require.Contains(t, s.Out, "terminated from outside")
	})
	t.Run("by the next one", func(t *testing.T) {
		world.NeedCLI(t)
		t.Parallel()
		c := world.NewCluster(t)
		w := world.Alone(t, world.WaitsFor("never")).On(c).Auto()
		w.Begin()
		w.At(1)
		desk := w.Stands("running").Desk
		require.NoError(t, c.Worker.Stop(syscall.SIGKILL))
		w.Temporal("workflow", "terminate", "--workflow-id", w.Loop, "--reason", "test")
		require.NoError(t, c.StartWorker(c.Address))
		require.NoDirExists(t, desk)
		w.NothingRuns()

		// The ID is free again.
		w.Script(world.Raises)
		w.Begin()
		require.Equal(t, "pawl/"+w.Loop+".2", w.Stands("completed").Branch)
		require.Equal(t, map[string]any{"goal": "climb", "branch": "pawl/" + w.Loop + ".2"}, w.Describe().WorkflowExecutionInfo.Memo.Fields)
	})
}

// lastEvent returns the ID of the last event of a type in the loop's history.
func lastEvent(w *world.World, kind string, before int) (id int) {
	w.T.Helper()
	var history struct {
		Events []struct{ EventID, EventType string }
	}
	world.Decode(w.T, w.Temporal("workflow", "show", "--workflow-id", w.Loop, "--output", "json"), &history)
	for _, e := range history.Events {
		if n, _ := strconv.Atoi(e.EventID); e.EventType == kind && (before == 0 || n < before) {
			id = n
		}
	}
	return id
}

// A ledger can't be reset, so a run that is reset to a point before its last entry must not continue. A reset to a gate
// can continue, because nothing was recorded after the gate opened.
func TestTemporalCLI_Reset(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	const completed = "EVENT_TYPE_WORKFLOW_TASK_COMPLETED"
	t.Run("behind the ledger", func(t *testing.T) {
		w := world.OnCluster(t, `[ "$PAWL_ITERATION" = 1 ] && { `+world.Raises+`; exit; }; `+world.WaitsFor("go")).Auto().Set(doc{"limits": doc{"iterations": 2}})
		w.Begin()
		w.At(1)
		w.Temporal("workflow", "reset", "--workflow-id", w.Loop, "--event-id", strconv.Itoa(lastEvent(w, completed, 12)), "--reason", "test")
		require.Equal(t, "LEDGER_AHEAD", w.Fails().ApplicationFailureInfo.Type)
		w.Until("its trees are given up", func() bool { return !w.Exists("../cluster/home/loops/" + w.Loop + "/desk") })
		require.Equal(t, "11", w.Kept("work/n"))
		st := w.Stands("failed")
		require.Contains(t, st.Recovery, "from its ledger")

		// What it tells people to do: the second argument of a loop says where to continue.
		head := w.Git("rev-parse", "refs/pawl-ledger/"+w.Loop)
		w.Write("go", "")
		w.Write("resume.json", `{"ledger":"`+head+`"}`)
		w.Begin("--input-file", filepath.Join(w.Dir, "resume.json"))
		st = w.Stands("completed")
		require.Equal(t, "pawl/"+w.Loop, st.Branch)
		require.Equal(t, []string{"12", "0"}, []string{w.Kept("work/n"), strconv.Itoa(len(w.Results(w.Loop)) - 3)})
	})
	t.Run("to the ledger's head", func(t *testing.T) {
		w := world.OnCluster(t, world.WaitsFor("go")).Set(doc{"limits": doc{"iterations": 2}})
		w.Begin()
		w.Until("the gate is in the ledger", func() bool { return w.Stands("waiting").Ledger != "" })
		w.Temporal("workflow", "reset", "--workflow-id", w.Loop, "--event-id", strconv.Itoa(lastEvent(w, completed, 0)), "--reason", "test")
		w.Approves()
		w.At(1)
		w.Write("go", "")
		require.Equal(t, "12", w.Stands("completed").Best.String())
		require.Equal(t, "pawl/"+w.Loop, w.Result().Result.Branch)
	})
}

func TestTemporalCLI_NightlyLoop(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	w := world.OnCluster(t, world.Raises).Auto()
	w.Temporal("schedule", "create", "--schedule-id", "nightly-"+w.Loop, "--cron", "0 2 * * *", "--overlap-policy", "Skip",
		"--workflow-id", w.Loop, "--type", "Improve", "--task-queue", "pawl", "--task-timeout", "2s", "--input-file", w.JSONFile(), "--paused")
	// Two nights in the past.
	w.Temporal("schedule", "backfill", "--schedule-id", "nightly-"+w.Loop, "--overlap-policy", "BufferAll",
		"--start-time", "2026-03-01T00:00:00Z", "--end-time", "2026-03-02T12:00:00Z")
	name := w.Loop
	for _, night := range []string{"2026-03-01", "2026-03-02"} {
		w.Loop = name + "-" + night + "T02:00:00Z"
		st := w.Stands("completed")
		require.Equal(t, "pawl/"+name+"-"+night+"T02-00-00Z", st.Branch, "git allows no colon in a ref")
		require.Equal(t, "11", w.Git("show", st.Branch+":work/n"))
		require.NotEmpty(t, w.Git("rev-parse", "refs/pawl-ledger/"+name+"-"+night+"T02-00-00Z"))
	}
	w.Loop = name
	w.Temporal("schedule", "delete", "--schedule-id", "nightly-"+w.Loop)
}

func TestTemporalCLI_TheSameIDTwice(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	w := world.OnCluster(t, world.WaitsFor("go")).Auto()
	w.Begin()
	w.At(1)
	s := w.TryTemporal("workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.Loop, "--input-file", w.JSONFile(), "--fail-existing")
	require.Equal(t, 1, s.Code)
	require.Contains(t, s.Err, "already running")
	for _, s := range []world.Said{w.Starter("start", w.JSONFile()), w.Pawl("start", w.JSONFile()), w.Starter("run", "--yes", w.JSONFile())} {
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "ALO_LOOP_ALREADY_RUNNING")
		world.Plain(t, s.Err)
	}
	w.Write("go", "")
	w.Stands("completed")
	w.Begin()
	w.Until("the second has ended", func() bool { st := w.Stands("completed"); return st.Branch == "pawl/"+w.Loop+".2" })
	require.Equal(t, 0, w.Starter("run", "--yes", w.JSONFile()).Code)
	require.Equal(t, "11", w.Git("show", "refs/heads/pawl/"+w.Loop+".3:work/n"))
	require.Equal(t, w.Results(w.Loop), w.Results(w.Loop+".2"))
}

// pawl and starter start loops as the CLI does, and fill in what people see of them.
func TestTemporalCLI_StartedByOurPrograms(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	for name, start := range map[string]func(w *world.World) world.Said{
		"starter": func(w *world.World) world.Said { return w.Starter("start", w.JSONFile()) },
		"pawl":    func(w *world.World) world.Said { return w.Pawl("start", w.JSONFile()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := world.OnCluster(t, world.Raises).Set(doc{"goal": "climb\nup the *hill*"})
			s := start(w)
			require.Equal(t, 0, s.Code, s.Err)
			d := w.Describe()
			require.Equal(t, "climb", d.ExecutionConfig.UserMetadata.Summary)
			require.Contains(t, d.ExecutionConfig.UserMetadata.Details, "up the *hill*")
			require.Contains(t, d.ExecutionConfig.UserMetadata.Details, w.Repo)
			memo := d.WorkflowExecutionInfo.Memo.Fields
			require.Equal(t, "pawl/"+w.Loop, memo["branch"])
			require.NotEmpty(t, memo["startedBy"])
			w.Approves()
			w.Stands("completed")
			require.Equal(t, "11", w.Kept("work/n"))
		})
	}
}

// If a namespace lacks pawl's search attributes and none can be added, loops work without them, and so does every
// command.
func TestTemporalCLI_NamespaceWithoutSearchAttributes(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	var full []string
	for i := range 10 { // as many attributes of a type as the database has columns for
		full = append(full, "--search-attribute", fmt.Sprintf("Theirs%d=Keyword", i))
	}
	for name, begin := range map[string]func(t *testing.T) (c *world.Cluster, through string){
		"there is no room for them": func(t *testing.T) (*world.Cluster, string) {
			c := world.NewCluster(t, full...)
			return c, c.Address
		},
		"nobody here may add any, or look": func(t *testing.T) (*world.Cluster, string) {
			dir, err := os.MkdirTemp(world.Scratch, "c")
			require.NoError(t, err)
			c := &world.Cluster{Dir: dir, Home: filepath.Join(dir, "home"), Address: world.FreeAddress(t), UI: world.FreeAddress(t)}
			require.NoError(t, c.StartServer())
			through := withoutOperator(t, c.Address)
			require.NoError(t, c.StartWorker(through))
			t.Cleanup(func() { require.NoError(t, c.Stop()) })
			return c, through
		},
	} {
		t.Run(name, func(t *testing.T) {
			world.NeedCLI(t)
			t.Parallel()
			c, through := begin(t)
			require.Contains(t, world.ReadFile(c.Worker.Log), "loops work without them")
			w := world.Alone(t, world.WaitsFor("go")).On(c)
			w.Env = []string{"TEMPORAL_ADDRESS=" + through}
			w.Begin()
			w.Approves()
			w.At(1)
			require.Empty(t, attributes(w))
			w.Write("go", "")
			w.Stands("completed")
			require.Equal(t, "11", w.Kept("work/n"))
			require.Empty(t, attributes(w))
			var rows []struct{ Loop, Status, Branch string }
			world.Decode(t, w.Starter("list", "--json").Out, &rows)
			require.Len(t, rows, 1)
			require.Equal(t, "completed", rows[0].Status)
		})
	}
}

// withoutOperator serves a service without its operator part, as a cluster with an authorizer does for most users. It
// returns the address.
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

// The server disappears while an agent works, and while a gate is open. The loop continues.
func TestTemporalCLI_ClusterThatGoesAway(t *testing.T) {
	world.Slow(t, "one loop goes through the cluster")
	world.NeedCLI(t)
	t.Parallel()
	c := world.NewCluster(t)
	w := world.Alone(t, world.WaitsFor("go-$PAWL_ITERATION")).On(c).Set(doc{"limits": doc{"iterations": 2}})
	w.Begin()
	gate := w.Stands("waiting").Gate
	require.NoError(t, c.Server.Stop(syscall.SIGKILL))
	s := w.Starter("approve", w.Loop, "--hash", gate.Hash)
	require.Equal(t, 1, s.Code)
	for _, text := range []string{"Temporal at " + c.Address + " does not answer", "ENGINE_UNREACHABLE"} {
		require.Contains(t, s.Err, text)
	}
	require.NoError(t, c.StartServer())
	w.Approves()
	w.At(1)
	follower := w.Start("run", "--json", "--yes", w.SpecFile()) // the loop already runs, so this is refused, and nothing is lost
	require.Equal(t, 2, follower.Wait().Code)
	require.NoError(t, c.Server.Stop(syscall.SIGKILL))
	w.Write("go-1", "") // the agent ends while there is no server
	w.Until("the agent has ended", func() bool { return !strings.Contains(strings.Join(world.Survivors(w.Dir), "\n"), "agent.sh") })
	require.NoError(t, c.StartServer())
	w.At(2)
	require.NoError(t, c.Server.Stop(syscall.SIGINT))
	require.NoError(t, c.StartServer())
	w.Write("go-2", "")
	require.Equal(t, "12", w.Stands("completed").Best.String())
	require.Equal(t, []row{{"0", "10", "+0.00", "yes", "baseline"}, {"1", "11", "+1.00", "yes", "raise the number"}, {"2", "12", "+1.00", "yes", "raise the number"}}, w.Results(w.Loop))
	require.Equal(t, 2, strings.Count(w.Read("at"), "\n"), "no step was done twice")
}

// TestTemporalUI_ShowsTheDiffThatAGateAsksAbout: whoever has only Temporal reads there what an approval covers, of new
// files and of the change as a whole. Nothing in it acts, and the history has nothing of it.
func TestTemporalUI_ShowsTheDiffThatAGateAsksAbout(t *testing.T) {
	w := world.OnCluster(t, world.Raises+`; printf 'seen\342\200\256\033[2J\n\140\140\140\n# no heading\n' >work/new`).
		Set(doc{"newFiles": "ask", "limits": doc{"iterations": 1}, "approvals": doc{"plan": "auto", "diff": "required"}})
	w.Begin()
	added := "+seen\\u{202e}\\u{1b}[2J\n+```\n+# no heading\n````\n"
	for _, gate := range []struct{ kind, begins string }{{"newFiles", "New files on "}, {"diff", "diff --git a/work/n"}} {
		st := w.Stands("waiting")
		require.Equal(t, gate.kind, st.Gate.Kind)
		var metadata struct{ CurrentDetails string }
		w.Query("__temporal_workflow_metadata", &metadata)
		require.Contains(t, metadata.CurrentDetails, "The diff that the hash covers:\n\n````diff\n"+gate.begins)
		require.Contains(t, metadata.CurrentDetails, added)
		w.Tell("signal", "approve", `{"gate": "`+st.Gate.ID+`", "hash": "`+st.Gate.Hash+`"}`)
		w.Until("the gate is answered", func() bool {
			var now world.State
			w.Query("state", &now)
			return now.Gate == nil || now.Gate.ID != st.Gate.ID
		})
	}
	w.Stands("completed")
	var payloads strings.Builder
	for _, m := range payloadData.FindAllStringSubmatch(w.Temporal("workflow", "show", "--workflow-id", w.Loop, "--output", "json"), -1) {
		data, err := base64.StdEncoding.DecodeString(m[1])
		require.NoError(t, err)
		payloads.Write(data)
	}
	require.True(t, strings.Contains(payloads.String(), "raise the number"), "the payloads are read")
	require.False(t, strings.Contains(payloads.String(), "no heading"), "the history has the diff")
}

var payloadData = regexp.MustCompile(`"data": "([^"]*)"`)

var csrf = regexp.MustCompile(`_csrf=([^;]+)`)

// The Temporal UI sends signals and updates as JSON over HTTP. From the person it takes the name and the payload that
// the loop's current details show.
func TestTemporalUI_AnswersAGate(t *testing.T) {
	w := world.OnCluster(t, world.Raises)
	w.Begin()
	st := w.Stands("waiting")
	payload := regexp.MustCompile("`approve` with `([^`]+)`").FindStringSubmatch(w.Temporal("workflow", "metadata", "--workflow-id", w.Loop))
	require.NotNil(t, payload)
	require.Contains(t, payload[1], st.Gate.ID)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := http.Client{Jar: jar}
	page, err := browser.Get("http://" + world.ClusterUp.UI + "/api/v1/settings")
	require.NoError(t, err)
	page.Body.Close()
	token := csrf.FindStringSubmatch(page.Header.Get("Set-Cookie"))
	require.NotNil(t, token, page.Header)
	body, err := json.Marshal(doc{"signalName": "approve", "workflowExecution": doc{"workflowId": w.Loop}, "input": doc{"payloads": []doc{
		{"metadata": doc{"encoding": []byte("json/plain")}, "data": []byte(payload[1])},
	}}})
	require.NoError(t, err)
	request, err := http.NewRequest("POST", "http://"+world.ClusterUp.UI+"/api/v1/namespaces/default/workflows/"+w.Loop+"/signal/approve", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-CSRF-TOKEN", token[1])
	answer, err := browser.Do(request)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)
	w.Stands("completed")
	require.Equal(t, "11", w.Kept("work/n"))
}
