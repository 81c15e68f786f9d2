package failures_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"pawl/test/harness/world"
)

// In containers a user often has no entry in /etc/passwd.
func TestAUserWhomTheMachineDoesNotKnow(t *testing.T) {
	w := world.Alone(t, "echo 12 >work/n; echo raise it").Set(doc{"limits": doc{"iterations": 1}})
	w.As(45678)
	w.Run(0)
	require.Equal(t, "12", w.Kept("work/n"))
}

// Several pawl processes of one machine share the engine. When its owner is killed, another one takes it over: the
// loop, and the command that follows it, only notice a pause.
func TestTheEngineOutlivesEveryProcessThatOwnsIt(t *testing.T) {
	world.Slow(t, "TestALoopOutlivesItsEngine")
	w := world.Alone(t, world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 3}})
	t.Parallel()
	// An engine that was killed comes back to its port. Those of other tests begin at Temporal's own, so none takes this one.
	require.NoError(t, os.MkdirAll(filepath.Join(w.Home, "engine"), 0o700))
	w.Write("home/engine/engine.json", `{"port": 17233, "preferred": 7233}`)
	owner, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	w.Until("the owner is the worker", func() bool { return strings.Contains(world.ReadFile(owner.Log), "the worker is ready") })
	ups := map[int]*world.Command{}
	for range 2 {
		c := w.Start("up", "--json")
		w.Until("it serves", func() bool { return strings.HasSuffix(world.ReadFile(c.Out), "}\n") })
		ups[c.Cmd.Process.Pid] = c
	}
	follower := w.Start("run", "--yes", "--json", w.SpecFile())
	w.At(1)

	address := w.Engine().Address
	require.Contains(t, address, ":172")
	kill := func(pid int) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		w.Until("another owns the engine", func() bool { return w.Engine().PID != pid })
		w.Until("the loop takes messages", func() bool { return w.Pawl("steer", w.Loop, "go on").Code == 0 })
	}
	kill(owner.Cmd.Process.Pid)
	<-owner.Gone
	w.At(2) // the agent ended with its worker, and begins again
	w.Write("go-1", "")
	w.At(3)
	// Any waiting process may be the next owner. The command that follows the loop is one of them, and continues to the
	// end.
	if next := ups[w.Engine().PID]; next != nil {
		kill(next.Cmd.Process.Pid)
		next.Wait()
		delete(ups, next.Cmd.Process.Pid)
	} else {
		require.Equal(t, follower.Cmd.Process.Pid, w.Engine().PID, "the owner is none of those that were started")
	}
	w.Write("go-2", "")
	w.Write("go-3", "")
	s := follower.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	var r world.Report
	world.Decode(t, s.Out, &r)
	require.Equal(t, "completed", r.Status)
	require.Equal(t, 3, r.Result.KeptCount)
	require.Equal(t, "13", w.Kept("work/n"))
	require.Equal(t, address, w.Engine().Address, "clients of the first owner reach the last one")
	for _, line := range strings.Split(strings.TrimSpace(w.Read("at")), "\n") {
		n := strings.Fields(line)
		require.Equal(t, map[string]string{"1": "10", "2": "11", "3": "12"}[n[0]], n[1], "no iteration begins from anything but what was kept: %s", line)
	}
	require.NotContains(t, s.Err, "UNREACHABLE")
	for _, last := range ups {
		last.Interrupt()
		require.Equal(t, 0, last.Wait().Code)
	}
}

// A host that may run one agent at a time runs one. The other loop waits for its turn; meanwhile it does everything
// else and accepts messages.
func TestAgentsHaveSlotsApartFromTheRest(t *testing.T) {
	world.Slow(t, "config has how many agents may work at a time")
	w := world.Alone(t, `echo "$PAWL_LOOP" >>"$WORLD/by"; mkdir "$WORLD/working" || echo "$PAWL_LOOP" >>"$WORLD/two-at-once"; `+world.WaitsFor("go")+`; rmdir "$WORLD/working"`)
	t.Parallel()
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"), "PAWL_WORKER_AGENTS=1")
	require.NoError(t, err)
	for _, id := range []string{w.Loop, w.Loop + "-b", w.Loop + "-c"} {
		require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile(), "--id", id).Code)
	}
	phase := func(id string) string {
		s := w.Pawl("show", "--json", id)
		var st world.State
		_ = json.Unmarshal([]byte(s.Out), &st)
		return st.Status + " " + st.Phase
	}
	for _, id := range []string{w.Loop, w.Loop + "-b", w.Loop + "-c"} {
		w.Until(id+" wants its agent", func() bool { return phase(id) == "running modify" })
	}
	w.At(1)
	by, _, _ := strings.Cut(w.Read("by"), "\n")
	waits := w.Loop + "-b"
	if by == waits {
		waits = w.Loop
	}
	require.Equal(t, 0, w.Pawl("halt", waits).Code, "also where its agent waits for its turn")
	w.Until("it ends", func() bool { return strings.HasPrefix(phase(waits), "halted") })
	w.Write("go", "")
	for _, id := range []string{w.Loop, w.Loop + "-b", w.Loop + "-c"} {
		if id != waits {
			w.Until(id+" ends", func() bool { return strings.HasPrefix(phase(id), "completed") })
		}
	}
	require.Empty(t, w.Read("two-at-once"))
	require.Equal(t, 2, strings.Count(w.Read("at"), "\n"), "the one that was halted never had an agent")

	urgency := urgency(w, by)
	require.Less(t, urgency["Commit"], urgency["Verify"], "what takes milliseconds before what takes minutes")
	require.Less(t, urgency["Verify"], urgency["CallAgent"])
	require.Less(t, urgency["Record"], urgency["Open"], "loops under way before new ones")
	require.NoError(t, u.Stop())
}

// urgency returns the priority of each kind of activity in a loop's history.
func urgency(w *world.World, id string) map[string]int32 {
	w.T.Helper()
	c, err := client.Dial(client.Options{HostPort: w.Engine().Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(w.T, err)
	defer c.Close()
	found := map[string]int32{}
	for events := c.GetWorkflowHistory(w.T.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(w.T, err)
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		name := a.GetActivityType().GetName()
		found[name] = a.GetPriority().GetPriorityKey()
	}
	return found
}

// A process that is interrupted leaves its loop, and `pawl up` continues it.
func TestLoopThatIsLeftGoesOnUnderUp(t *testing.T) {
	world.Slow(t, "TestTheEngineOutlivesEveryProcessThatOwnsIt is taken over, too")
	w := world.Alone(t, world.WaitsFor("go")).Set(doc{"limits": doc{"iterations": 2}})
	t.Parallel()
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	require.NoError(t, c.Cmd.Process.Signal(syscall.SIGTERM))
	s := c.Wait()
	require.Equal(t, 5, s.Code, s.Err)
	require.Contains(t, s.Err, "the embedded engine at 127.0.0.1:")

	// Nobody serves: reading uses the ledger, and a message waits for a worker.
	s = w.Pawl("show", w.Loop)
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "no engine is running")
	require.Contains(t, s.Err, "`pawl up` resumes from there")
	s = w.Pawl("steer", w.Loop, "mind the gap")
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "steer was sent as a signal; it takes effect when a worker runs (`pawl up`)")
	w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
	w.NothingRuns()

	u := w.Up()
	w.At(2)
	require.NoError(t, u.Stop())
	w.NothingRuns()

	w.Up()
	w.Write("go", "")
	w.Waits("completed")
	require.Equal(t, "1 10\n1 10\n1 10\n", strings.Join(strings.SplitAfter(w.Read("at"), "\n")[:3], ""), "the step begins again from its start")
	require.Equal(t, []row{
		{"0", "10", "+0.00", "yes", "baseline"}, {"1", "11", "+1.00", "yes", "raise the number"}, {"2", "12", "+1.00", "yes", "raise the number"},
	}, w.Results(w.Loop))
}

// If nothing runs, an answer is checked against the ledger, and waits in the engine for a worker.
func TestAnAnswerWaitsForAWorker(t *testing.T) {
	world.Slow(t, "TestALoopOutlivesItsEngine waits, too")
	w := world.Alone(t, world.Raises).Set(doc{"approvals": doc{"plan": "required"}})
	t.Parallel()
	s := w.Pawl("run", "--json", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	var r world.Report
	world.Decode(t, s.Out, &r)
	w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", strings.Repeat("0", 64))
	w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
	w.Refused("GATE_MISMATCH", "approve", w.Loop, "--hash", r.Gate.Hash, "--gate", "contract-99")
	w.Refused("INVALID_MESSAGE", "approve", w.Loop, "--hash", r.Gate.Hash, "--apply", "ff")
	s = w.Pawl("approve", "--json", w.Loop, "--hash", r.Gate.Hash)
	require.Equal(t, 0, s.Code, s.Err)
	var sent struct{ Via string }
	world.Decode(t, s.Out, &sent)
	require.Equal(t, "signal", sent.Via)
	w.NothingRuns()
	w.Up()
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, func() row { w.Waits("completed"); return w.LastRow() }())
}

// A second process uses the running engine, and takes engine and worker over when their owner ends.
func TestSecondProcessUsesTheEngineAndTakesItOver(t *testing.T) {
	world.Slow(t, "TestTheEngineOutlivesEveryProcessThatOwnsIt has three processes")
	w := world.Alone(t, world.WaitsFor("go"))
	t.Parallel()
	owner := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	second := w.Start("up", "--json")
	w.Until("it serves", func() bool { return strings.HasSuffix(world.ReadFile(second.Out), "}\n") })
	var serving struct{ Address, UI, Namespace, Worker, Engine, Log string }
	world.Decode(t, world.ReadFile(second.Out), &serving)
	require.Equal(t, "another's", serving.Engine)
	require.Contains(t, world.ReadFile(owner.Err), serving.Address)
	require.NoError(t, owner.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 5, owner.Wait().Code)
	w.Until("it has taken over", func() bool { return strings.Contains(world.ReadFile(second.Err), "took over the engine") })
	w.Write("go", "")
	w.Waits("completed")
	second.Interrupt()
	s := second.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "the worker is ready")
	require.NotContains(t, world.ReadFile(filepath.Join(w.Home, "logs", "pawl.log")), "had lost", "%s", s.Err)
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestReadingWithAndWithoutAnEngine(t *testing.T) {
	world.Slow(t, "internal/client reads both")
	w := world.Alone(t, world.Raises).Set(doc{"limits": doc{"iterations": 2}})
	t.Parallel()
	s := w.Pawl("list")
	require.Equal(t, 0, s.Code, s.Err)
	require.Empty(t, s.Out)
	require.Contains(t, s.Err, "there are no loops yet")
	require.Equal(t, "[]\n", w.Pawl("list", "--json").Out)
	w.Run(0)

	type listed struct {
		Loop, Status, Branch, Goal, Repo string
		Iteration                        int
		Best                             json.Number
	}
	want := []listed{{w.Loop, "completed", "pawl/" + w.Loop, "climb", w.Repo, 2, "12"}}
	read := func() (list []listed, st world.State, events []world.Event) {
		s := w.Pawl("list", "--json")
		require.Equal(t, 0, s.Code, s.Err)
		world.Decode(t, s.Out, &list)
		require.Contains(t, w.Pawl("list").Out, w.Loop)
		st = w.Show()
		require.Contains(t, w.Pawl("show", w.Loop).Out, "pawl/"+w.Loop)
		events, s = w.Events()
		require.Equal(t, 0, s.Code, s.Err)
		require.Contains(t, w.Pawl("log", w.Loop).Out, "kept 12 (+1, +9.1 %): raise the number")
		return list, st, events
	}
	list, st, events := read()
	require.Equal(t, want, list)
	require.Equal(t, "completed", st.Status)
	s = w.Pawl("show", w.Loop)
	require.Contains(t, s.Err, "no engine is running; this is from the ledger")

	w.Up()
	w.Until("Temporal's list knows", func() bool {
		var list []listed
		world.Decode(t, w.Pawl("list", "--json").Out, &list)
		return len(list) == 1 && list[0] == want[0]
	})
	_, stUp, eventsUp := read()
	require.Equal(t, st, stUp)
	require.Equal(t, events, eventsUp)
	require.Subset(t, world.Types(events), []string{
		"autonomy_started", "checkpoint_created", "iteration_started", "iteration_succeeded", "budget_exhausted", "autonomy_completed",
	})
}
