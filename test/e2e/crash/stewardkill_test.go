package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// undisturbedCrew is a run of a steward without a kill.
type undisturbedCrew struct {
	outcome crewOutcome
	points  []string
}

// crewRun returns that run. It runs once.
func crewRun(t *testing.T) undisturbedCrew {
	t.Helper()
	runs.Lock()
	defer runs.Unlock()
	if calmCrew.points == nil {
		w := newCrew(t)
		n := w.start(bothRoles, "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, "trace"))
		require.True(t, w.supervise(n, w.crewSpec()))
		calmCrew.outcome = w.crewOutcome()
		require.Equal(t, courseTasks, calmCrew.outcome.Tasks, "the undisturbed run must take the course")
		require.Empty(t, w.tasksRunTwice())
		n.stop(t)
		calmCrew.points = w.passed("trace")
	}
	return calmCrew
}

var calmCrew undisturbedCrew

// courseTasks are the tasks at the end of the course.
var courseTasks = []string{
	`broad T3 done [crew-broad-x crew-broad-y crew-broad-z] by ""`, `narrow T1 done [crew-narrow-x] by "ann"`,
	`never T1 cancelled [] by ""`, `circle T3 cancelled [crew-circle-x] by ""`,
}

// stewardsOwn are the prefixes of the points of a steward's own side effects: its ledger and artifacts, planning,
// joining, validating, starting and telling its loops. All other points are those of its loops.
var stewardsOwn = []string{
	"steward.", "plan.", "join.", "validate.", "tasks.", "task.OpenSteward", "task.RecordTasks", "task.PlanTask", "task.Join", "task.ReadChild",
	"task.Validate", "task.Deliver", "task.Improve", "task.Tell", "report.OpenSteward", "report.RecordTasks", "report.PlanTask", "report.Join", "report.ReadChild",
	"report.Validate",
}

// crewPlaces chooses where to kill: at the first passage of each point, and at the steward's own points also at a later
// one. TestS11_AStewardKilledBeforeEveryEntry kills in the states between, and the tests of loops at later passages of
// loops' points.
func crewPlaces(points []string) (where []string) {
	counts := map[string]int{}
	var order []string
	for _, p := range points {
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	for i, p := range order {
		last := counts[p]
		own := slices.ContainsFunc(stewardsOwn, func(own string) bool { return strings.HasPrefix(p, own) })
		switch {
		case last == 1 || !own || strings.HasPrefix(p, "validate.") || strings.Contains(p, ".Validate"): // how often they are passed depends on the machine
			where = append(where, p+"#1")
		default:
			where = append(where, p+"#1", fmt.Sprintf("%s#%d", p, 2+(i*5)%(last-1)))
		}
	}
	return where
}

// TestS11_AStewardKilledTwiceTakesTheCourse kills engine and worker with kill -9 after a plan was made and when a loop of
// a task is to be started.
func TestS11_AStewardKilledTwiceTakesTheCourse(t *testing.T) {
	if world.All() {
		t.Skip("TestS11_AStewardKilledAtEveryPoint runs")
	}
	t.Parallel()
	places := []string{"report.PlanTask#1", "task.Deliver#1"}
	o, killed := killedCrew(t, places)
	require.Equal(t, len(places), killed)
	require.Equal(t, courseTasks, o.Tasks)
}

// TestS11_AStewardKilledAtEveryPoint kills engine and worker with kill -9 before and after each side effect of a
// steward and of its loops, and starts them again: its tasks must have the same outcome, none lost and none run twice.
// One run of the course is killed at several places, because the course is long.
func TestS11_AStewardKilledAtEveryPoint(t *testing.T) {
	world.Slow(t, "it is killed twice")
	t.Parallel()
	ref := crewRun(t)
	places := world.Sample(2, crewPlaces(ref.points))
	for i := range min(4, len(places)/2) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			var left []string
			for at := i; at < len(places); at += min(4, len(places)/2) {
				left = append(left, places[at])
			}
			for all, missed := len(left), 0; len(left) > 0; {
				o, killed := killedCrew(t, left)
				require.Equal(t, ref.outcome, o, "the tasks must end as the undisturbed ones, killed at %v", left[:killed])
				if killed == 0 { // another run may not have that later passage
					t.Logf("this run did not pass %s", left[0])
					missed, killed = missed+1, 1
					require.Less(t, 4*missed, all, "most places are passed in each run")
				}
				left = left[killed:]
			}
		})
	}
}

// killedCrew takes the course with nodes that die at one place after another, as long as the course passes them. It
// returns what became of the tasks, and the number of kills.
func killedCrew(t *testing.T, places []string) (o crewOutcome, killed int) {
	w := newCrew(t)
	spec := w.crewSpec()
	for over := false; !over; {
		env := []string{fmt.Sprintf("PAWL_CRASH_TRACE=%s/trace%d", w.Dir, killed)}
		if killed < len(places) {
			env = append(env, "PAWL_CRASH="+places[killed])
		}
		n := w.start(bothRoles, env...)
		if over = w.supervise(n, spec); !over {
			require.True(t, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
			killed++
		}
	}
	require.LessOrEqual(t, len(w.tasksRunTwice()), w.underWay(), "a call whose result is on disk, or that had not begun, is not made twice: killed at %v", places[:killed])
	t.Logf("killed at %v", places[:killed])
	return w.crewOutcome(), killed
}

// underWay counts the calls that were under way at a kill, whose result is unknown. While a call is under way, a
// steward passes other points, so a kill at any point may interrupt a call.
func (w *machine) underWay() (n int) {
	traces, _ := filepath.Glob(filepath.Join(w.Dir, "trace*"))
	for _, trace := range traces {
		for _, point := range w.passed(filepath.Base(trace)) {
			switch point {
			case "step.starting":
				n++
			case "step.recorded":
				n--
			}
		}
	}
	return n
}

// TestS11_AStewardKilledBeforeEveryEntry gives the steward one worker after another: each writes one entry of the
// ledger and dies before the next. So one run kills a steward in every state that its ledger has.
func TestS11_AStewardKilledBeforeEveryEntry(t *testing.T) {
	world.Slow(t, "it is killed at single entries")
	t.Parallel()
	ref := crewRun(t)
	w := newCrew(t)
	w.validates = "1m" // else the entries would be those of validations
	spec := w.crewSpec()
	w.start(engineRole)
	lives := 0
	for over := false; !over; lives++ {
		require.Less(t, lives, 400, "the steward does not get on")
		n := w.start(workerRole, "PAWL_CRASH=tasks.before#2", fmt.Sprintf("PAWL_CRASH_TRACE=%s/trace%d", w.Dir, lives))
		over = w.supervise(n, spec)
		require.True(t, over || n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
	}
	require.Equal(t, ref.outcome, w.crewOutcome())
	require.LessOrEqual(t, len(w.tasksRunTwice()), w.underWay(), "only calls that nobody knew the result of are made again")
	st, _, head := w.openLedger()
	entries, err := st.LedgerHistory(t.Context(), head)
	require.NoError(t, err)
	t.Logf("%d workers for %d entries", lives, len(entries))
	require.GreaterOrEqual(t, lives, len(entries), "no worker wrote two of them")
}

// TestS11_AStewardKilledAgainAndAgain takes the course with processes that die every few side effects.
func TestS11_AStewardKilledAgainAndAgain(t *testing.T) {
	world.Slow(t, "it is killed at single points, and loops are killed again and again")
	t.Parallel()
	ref := crewRun(t)

	for _, c := range []struct {
		victim       string
		dies, beside []string
		after        string // the number of side effects before the kill
	}{
		{"engine and worker together", bothRoles, nil, "#61"},
		{"the worker alone", workerRole, engineRole, "#47"},
	} {
		t.Run(c.victim, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t)
			spec := w.crewSpec()
			if c.beside != nil {
				w.start(c.beside)
			}
			for i := 1; ; i++ {
				require.Less(t, i, 200, "the steward does not get on")
				n := w.start(c.dies, "PAWL_CRASH="+c.after, fmt.Sprintf("PAWL_CRASH_TRACE=%s/trace%d", w.Dir, i))
				if w.supervise(n, spec) {
					require.Greater(t, i, 3, "it must have been killed on the way")
					t.Logf("killed %d times", i-1)
					break
				}
				require.True(t, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
			}
			require.Equal(t, ref.outcome, w.crewOutcome())
			require.LessOrEqual(t, len(w.tasksRunTwice()), w.underWay(), "only calls that nobody knew the result of are made again")
		})
	}

	t.Run("the engine alone", func(t *testing.T) {
		world.Slow(t, "killed with the worker")
		t.Parallel()
		w := newCrew(t)
		spec := w.crewSpec()
		victim := filepath.Join(w.Dir, "victim")
		n := w.start(engineRole)
		w.start(workerRole, "PAWL_CRASH=#71", "PAWL_CRASH_VICTIM="+victim).polls(t)
		for kills := 0; ; kills++ {
			require.NoError(t, os.WriteFile(victim, []byte(strconv.Itoa(n.cmd.Process.Pid)), 0o600))
			if w.supervise(n, spec) {
				require.Greater(t, kills, 3, "the engine must have been killed on the way")
				t.Logf("the engine was killed %d times", kills)
				break
			}
			n = w.start(engineRole)
		}
		require.Equal(t, ref.outcome, w.crewOutcome())
		require.Empty(t, w.tasksRunTwice(), "no call is made twice because the engine was away")
	})
}
