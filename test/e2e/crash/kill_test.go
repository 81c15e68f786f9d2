package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"pawl/internal/loop"
	"pawl/test/harness/world"
)

// waiting is an agent that reports that it has begun, waits until it may go on, and raises n.
const waiting = `
echo $$ $(date +%s%N) >> "$WORLD/agents"
[ -e "$WORLD/go" ] || read -r _ < "$WORLD/gate"
echo 11 > work/n
echo "raise n"
`

// stubborn is an agent that ignores an interrupt.
const stubborn = `trap 'echo asked >> "$WORLD/asked"' INT
echo $$ $(date +%s%N) >> "$WORLD/agents"
while ! [ -e "$WORLD/go" ]; do sleep 0.05; done
echo 11 > work/n
echo "raise n"
`

// raised are the results of a loop of one iteration with one of these agents, however often it was disturbed.
var raised = []string{"0 10 0 yes: baseline", "1 11 +1 yes: raise n"}

// newWaiting makes a machine whose agent waits.
func newWaiting(t testing.TB, agent string) *machine {
	t.Helper()
	w := newMachine(t, agent)
	w.fifo("gate")
	return w
}

func (w *machine) fifo(name string) {
	w.T.Helper()
	require.NoError(w.T, syscall.Mkfifo(filepath.Join(w.Dir, name), 0o600))
}

// letGo lets the waiting agent go on, and all later ones.
func (w *machine) letGo() {
	w.T.Helper()
	w.Write("go", "")
	f, err := os.OpenFile(filepath.Join(w.Dir, "gate"), os.O_RDWR, 0) // opened for both, so that it doesn't wait for a reader
	require.NoError(w.T, err)
	_, err = f.WriteString("go\n")
	require.NoError(w.T, err)
	w.T.Cleanup(func() { f.Close() })
}

// agents returns the process IDs of the agents that have begun, in order.
func (w *machine) agents() (pids []int) {
	for _, line := range w.lines("agents") {
		pid, _, _ := strings.Cut(line, " ")
		pids = append(pids, w.outside(line, pid))
	}
	return pids
}

// outside returns the process ID on this machine of a process that knows itself by another ID in its sandbox and has
// printed that in a line; -1 if the process is gone. It looks it up once.
func (w *machine) outside(line, inside string) int {
	if pid, known := w.pids[line]; known {
		return pid
	}
	if w.pids == nil {
		w.pids = map[string]int{}
	}
	w.pids[line] = -1
	for _, p := range w.processes(w.record().Token()) {
		pid, _, _ := strings.Cut(p, " ")
		status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
		for _, field := range lines(status) {
			if name, value, _ := strings.Cut(field, ":"); name == "NSpid" && slices.Equal(strings.Fields(value)[1:], []string{inside}) {
				w.pids[line], _ = strconv.Atoi(pid)
			}
		}
	}
	return w.pids[line]
}

// agentBegins waits until the n-th agent has begun and returns its process ID and the time of its beginning.
func (w *machine) agentBegins(n int) (pid int, at time.Time) {
	w.T.Helper()
	w.until("agent "+strconv.Itoa(n)+" begins", func() bool { return len(w.agents()) >= n })
	_, nanos, _ := strings.Cut(w.lines("agents")[n-1], " ")
	ns, err := strconv.ParseInt(nanos, 10, 64)
	require.NoError(w.T, err)
	return w.agents()[n-1], time.Unix(0, ns)
}

func alive(pid int) bool {
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && len(cmdline) > 0
}

// requireRaised waits for the loop's end and checks its results: one iteration in one attempt.
func (w *machine) requireRaised() outcome {
	w.T.Helper()
	r, err := w.end()
	require.NoError(w.T, err)
	o := w.outcome(r)
	require.Equal(w.T, raised, o.Rows)
	_, l, head := w.openLedger()
	s, err := l.State(w.T.Context(), head)
	require.NoError(w.T, err)
	require.Equal(w.T, 1, s.Iterations[0].Attempts, "being disturbed costs none of the loop's attempts")
	return o
}

func TestTheWorkerIsKilledWhileAnAgentWorks(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint kills it at other points")
	t.Parallel()
	w := newWaiting(t, waiting)
	w.start(engineRole)
	n := w.start(workerRole)
	require.NoError(t, w.begin(w.spec(nil)))
	first, _ := w.agentBegins(1)
	n.kill()
	n = w.start(workerRole)
	_, at := w.agentBegins(2)
	t.Logf("kill -9 of the worker, start to the agent at work: %s", seconds(at.Sub(n.started)))
	require.False(t, alive(first), "the first agent must be gone before the second begins")
	w.letGo()
	w.requireRaised()
	for _, e := range w.history("").GetEvents() {
		require.NotEqual(t, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType(),
			"no task must wait for the dead worker")
	}
}

// TestAKillBetweenEvaluationsCostsAtMostOne kills a worker while it judges a change by samples: it does not repeat
// earlier evaluations.
func TestAKillBetweenEvaluationsCostsAtMostOne(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint kills")
	t.Parallel()
	w := newMachine(t, `echo 11 >work/n; echo "raise n"`)
	w.start(engineRole)
	n := w.start(workerRole)
	runs, released := filepath.Join(w.Dir, "runs"), filepath.Join(w.Dir, "go")
	require.NoError(t, w.begin(w.spec(doc{"verify": doc{"evidence": "sequential", "command": fmt.Sprintf(
		"echo run >>%[1]s; while test $(wc -l <%[1]s) -eq 14 && ! test -e %[2]s; do sleep 0.05; done; sh measure.sh", runs, released,
	)}})))
	w.until("the second evaluation of the change", func() bool { return len(w.lines("runs")) == 14 })
	n.kill()
	w.Write("go", "")
	w.start(workerRole)
	w.requireRaised()
	ended := 0
	_, l, head := w.openLedger()
	events, err := l.Events(t.Context(), head)
	require.NoError(t, err)
	for _, e := range events {
		if e.Type == loop.StepEnded && (e.Step == "verify" || e.Step == "claim") {
			ended++
		}
	}
	require.Greater(t, ended, 20, "the calibration, the change, the new head, the claim")
	require.Len(t, w.lines("runs"), ended+1, "one evaluation was under way when the worker was killed")
}

func TestTheEngineIsKilledWhileAnAgentWorks(t *testing.T) {
	world.Slow(t, "the worker is killed")
	t.Parallel()
	w := newWaiting(t, waiting)
	n := w.start(engineRole)
	w.start(workerRole)
	require.NoError(t, w.begin(w.spec(nil)))
	pid, _ := w.agentBegins(1)
	n.kill()
	w.start(engineRole)
	w.until("the loop can be asked", w.is(func(s loop.State) bool { return s.Iteration == 1 }))
	require.True(t, alive(pid), "an agent works on while the engine is away")
	w.letGo()
	w.requireRaised()
	require.Len(t, w.agents(), 1, "and is not run twice")
}

func TestAnotherPawlTakesOver(t *testing.T) {
	world.Slow(t, "test/e2e/failures has it with the program")
	t.Parallel()
	w := newWaiting(t, waiting)
	n := w.start(bothRoles)
	n.polls(t)
	second := w.start(bothRoles) // shares the engine and waits to take over
	require.NoError(t, w.begin(w.spec(nil)))
	w.agentBegins(1)
	select {
	case <-second.worker:
		t.Fatal("two workers of one host")
	default:
	}
	n.kill()
	killed := time.Now()
	_, at := w.agentBegins(2)
	t.Logf("kill -9 of one, to the agent at work under the other: %s", seconds(at.Sub(killed)))
	w.letGo()
	w.requireRaised()
}

func TestTheSupervisorIsKilled(t *testing.T) {
	world.Slow(t, "TestTheWorkerIsKilledWhileAnAgentWorks ends an agent likewise")
	t.Parallel()
	w := newWaiting(t, waiting)
	w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(nil)))
	first, _ := w.agentBegins(1)
	require.NoError(t, syscall.Kill(w.supervisor(), syscall.SIGKILL))
	w.agentBegins(2)
	require.False(t, alive(first), "the first agent must be gone before the second begins")
	w.letGo()
	w.requireRaised()
}

// supervisor returns the process ID of the loop's supervisor.
func (w *machine) supervisor() int {
	w.T.Helper()
	token := w.record().Token()
	pid := 0
	w.until("the loop has a supervisor", func() bool {
		for _, p := range w.processes(token) {
			if id, command, _ := strings.Cut(p, " "); strings.HasPrefix(command, "pawl-supervisor ") {
				pid, _ = strconv.Atoi(id)
			}
		}
		return pid != 0
	})
	return pid
}

// daemons is an agent that leaves two processes behind and hangs. Only the environment identifies one of them, only the
// working folder the other.
const daemons = `
(cd / && setsid sh -c 'echo $$ >> "$WORLD/daemons"; exec sleep 1000' &)
setsid env -i sh -c 'echo $$ >> "$1/daemons"; sleep 1000' sh "$WORLD" &
while [ "$(cat "$WORLD/daemons" 2>/dev/null | wc -l)" -lt 2 ]; do sleep 0.01; done
[ -e "$WORLD/go" ] && rm -f "$WORLD/daemons"
` + waiting

func TestWhatAnAgentLeavesBehindIsEnded(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*machine, *node){
		"after kill -9 of the worker": func(_ *machine, n *node) { n.kill() },
		// The supervisor is stopped first, so that it can't clean up and the next worker has to.
		"after kill -9 of worker and supervisor": func(w *machine, n *node) {
			pid := w.supervisor()
			require.NoError(w.T, syscall.Kill(pid, syscall.SIGSTOP))
			n.kill()
			require.NoError(w.T, syscall.Kill(pid, syscall.SIGKILL))
		},
		"when the step ends": func(w *machine, _ *node) {},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "after kill -9 of worker and supervisor" {
				world.Slow(t, "killed together with its supervisor")
			}
			t.Parallel()
			w := newWaiting(t, daemons)
			w.start(engineRole)
			n := w.start(workerRole)
			require.NoError(t, w.begin(w.spec(nil)))
			w.agentBegins(1)
			var left []int
			for _, line := range w.lines("daemons") {
				pid := w.outside("daemon "+line, line)
				require.True(t, alive(pid))
				left = append(left, pid)
			}
			require.Len(t, left, 2)
			kill(w, n)
			select {
			case <-n.gone:
				n = w.start(workerRole)
				n.polls(t)
				for _, pid := range left {
					require.False(t, alive(pid), "what a dead worker left must be gone before the next one polls")
				}
			default:
			}
			w.letGo()
			w.requireRaised()
			for _, line := range w.lines("daemons") {
				require.False(t, alive(w.outside("daemon "+line, line)), "nothing survives its step")
			}
		})
	}
}

func TestAGracefulStopCostsTheLoopNothing(t *testing.T) {
	world.Slow(t, "TestTheWorkerIsKilledWhileAnAgentWorks has the harder end")
	t.Parallel()
	w := newWaiting(t, `trap 'echo asked >> "$WORLD/asked"; exit 1' INT`+waiting)
	w.start(engineRole)
	require.NoError(t, w.begin(w.spec(nil)))
	for i := 1; i <= 3; i++ {
		n := w.start(workerRole)
		w.agentBegins(i)
		n.stop(t)
		require.Len(t, w.lines("asked"), i, "the agent is asked to end")
		require.Empty(t, w.processes(w.record().Token()), "nothing goes on without a worker")
	}
	w.start(workerRole)
	w.agentBegins(4)
	w.letGo()
	o := w.requireRaised()
	require.NotContains(t, strings.Join(o.Events, "\n"), "interrupted", "the loop has not noticed")
}

func TestTerminatedLoopsGiveTheirTreesUp(t *testing.T) {
	world.Slow(t, "internal/worker removes the trees of a loop that is over")
	t.Parallel()
	for name, before := range map[string]func(*machine, *node){
		"while its worker runs":    func(*machine, *node) {},
		"while its worker is dead": func(_ *machine, n *node) { n.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "while its worker runs" {
				world.Slow(t, "the worker is dead")
			}
			t.Parallel()
			w := newWaiting(t, waiting)
			w.start(engineRole)
			n := w.start(workerRole)
			require.NoError(t, w.begin(w.spec(nil)))
			w.agentBegins(1)
			before(w, n)
			require.NoError(t, w.client.TerminateWorkflow(t.Context(), w.Loop, "", "enough"))
			n.kill()
			n = w.start(workerRole)
			n.polls(t)
			w.requireNothingLeft()
			require.Equal(t, w.Before, w.Snapshot())
		})
	}
}

func TestALoopSurvivesWhileItWaits(t *testing.T) {
	world.Slow(t, "TestMessagesSentWhileNobodyIsThere waits, too")
	t.Parallel()
	w := newWaiting(t, waiting)
	w.letGo()
	n := w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(doc{"approvals": doc{"plan": "required"}})))
	atGate := w.is(func(s loop.State) bool { return s.Status == loop.Waiting && s.Ledger != "" })
	w.until("the contract waits for approval", atGate)
	w.until("nothing runs while a loop waits", func() bool { return len(w.processes(w.record().Token())) == 0 })
	before, err := w.query()
	require.NoError(t, err)
	n.kill()
	w.start(bothRoles)
	w.until("it still waits", atGate)
	after, err := w.query()
	require.NoError(t, err)
	require.Equal(t, pretty(w, before), pretty(w, after))
	w.message("approve", map[string]string{"hash": after.Gate.Hash, "by": "ann"})
	w.requireRaised()
}

// measureRecovery kills engine and worker while an agent works. It returns the time from the start of the next process
// until the agent works again.
func (w *machine) measureRecovery(n *node, i int) (*node, time.Duration) {
	w.T.Helper()
	n.kill()
	n = w.start(bothRoles)
	_, at := w.agentBegins(i)
	return n, at.Sub(n.started)
}

// BenchmarkRecovery measures the time from the start of pawl after kill -9 until the agent works again (the target is
// two seconds), and how much of it the start itself takes.
func BenchmarkRecovery(b *testing.B) {
	w := newWaiting(b, waiting)
	n := w.start(bothRoles)
	require.NoError(b, w.begin(w.spec(nil)))
	w.agentBegins(1)
	var total, slowest time.Duration
	i := 1
	for b.Loop() {
		i++
		var took time.Duration
		n, took = w.measureRecovery(n, i)
		n.polls(b)
		total, slowest = total+took, max(slowest, took)
	}
	b.ReportMetric(total.Seconds()/float64(i-1), "s/recovery")
	b.ReportMetric(slowest.Seconds(), "s/slowest")
	w.letGo()
	_, err := w.end()
	require.NoError(b, err)
	require.Empty(b, w.processes(w.record().Token()))
}

// crashes waits until a node was killed at its crash point.
func (n *node) crashes(t testing.TB) {
	t.Helper()
	select {
	case <-n.gone:
		require.True(t, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
	case <-time.After(world.Patience):
		t.Fatalf("%s does not come to its crash point:\n%s", n.name, n.tail())
	}
}

// A worker finds the store of its loop damaged, and is killed while it exchanges the store's objects, the next one while
// it exchanges its refs.
func TestAWorkerIsKilledWhileItMendsAStore(t *testing.T) {
	world.Slow(t, "internal/git/store mends what such a kill leaves")
	t.Parallel()
	w := newWaiting(t, waiting)
	w.start(engineRole)
	n := w.start(workerRole)
	require.NoError(t, w.begin(w.spec(nil)))
	w.agentBegins(1)
	n.kill()
	r := w.record()
	s, _, _ := w.openLedger()
	require.NoError(t, os.Remove(filepath.Join(r.Store, r.Ledger)))
	only, err := s.Ref(t.Context(), "refs/pawl/base/"+r.Ref) // the repository does not have that
	require.NoError(t, err)
	for _, part := range []string{"objects", "refs"} {
		w.launch(workerRole, "PAWL_CRASH=mend.exchanging#"+map[string]string{"objects": "1", "refs": "2"}[part]).crashes(t)
		require.NoDirExists(t, filepath.Join(r.Store, part))
	}
	w.letGo()
	w.start(workerRole)
	w.requireRaised()
	at, err := s.Ref(t.Context(), "refs/pawl/base/"+r.Ref)
	require.NoError(t, err)
	require.Equal(t, only, at)
}

// The machine of a loop is lost. On another one, a run that continues its ledger from the repository is killed when it
// has fetched that.
func TestARunIsKilledWhileItTakesALedgerUp(t *testing.T) {
	world.Slow(t, "TestALoopWithAURLKilledAtEveryPoint kills others")
	t.Parallel()
	w := newWaiting(t, waiting)
	w.Spec["repo"] = doc{"url": "file://" + w.Repo, "base": "main"}
	n := w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(nil)))
	w.agentBegins(1)
	from := w.Git("rev-parse", w.record().Ledger)
	n.kill()
	require.NoError(t, os.Rename(w.Home, w.Home+".lost"))
	require.NoError(t, os.Mkdir(w.Home, 0o700))
	w.resumes = from
	w.letGo()
	n = w.start(bothRoles, "PAWL_CRASH=takeup.fetched")
	w.killedOnTheWay(n, w.spec(nil))
	w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(nil)))
	w.requireRaised()
}
