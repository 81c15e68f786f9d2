package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/test/harness/tier"
	"pawl/test/harness/world"
)

// undisturbed is a run without a kill: its outcome, and the crash points that it passed.
type undisturbed struct {
	outcome
	points []string
}

// The two courses. Each runs once.
var (
	shortRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })
	longRun  = sync.OnceValue(func() *undisturbed { return new(undisturbed) })
	runs     sync.Mutex
)

// reference runs a course without a kill, once per test run, and checks that it has the expected results.
func reference(t *testing.T, known *undisturbed, agent string, spec func(*machine) json.RawMessage, expected []string) undisturbed {
	t.Helper()
	runs.Lock()
	defer runs.Unlock()
	if known.points != nil {
		return *known
	}
	w := newMachine(t, agent)
	n := w.start(bothRoles, "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, "trace"))
	require.NoError(t, w.begin(spec(w)))
	r, err := w.end()
	require.NoError(t, err)
	o := w.outcome(r)
	require.Equal(t, expected, o.Rows, "the undisturbed run must take the course")
	n.stop(t)
	*known = undisturbed{o, w.passed("trace")}
	require.NotEmpty(t, known.points, "the program must be built with the tag crashtest")
	return *known
}

// passed returns the crash points in a trace, in the order in which they were passed.
func (w *machine) passed(trace string) (points []string) {
	for _, line := range w.lines(trace) {
		_, point, _ := strings.Cut(line, " ")
		points = append(points, point)
	}
	return points
}

// TestKilledAtEveryPoint kills engine and worker together with kill -9 before and after each side effect, inside each
// kind of workflow task, and between each activity's end and its report. Then it starts them again: the loop must end
// as if nothing had happened.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	ref := reference(t, shortRun(), shortCourse, (*machine).shortSpec, shortRows)
	var slowest recoveries
	t.Run("at", func(t *testing.T) {
		for _, where := range chosenPlaces(ref.points) {
			t.Run(where, func(t *testing.T) {
				t.Parallel()
				w := newMachine(t, shortCourse)
				spec := w.shortSpec()
				n := w.start(bothRoles, "PAWL_CRASH="+where)
				w.killedOnTheWay(n, spec)
				n = w.start(bothRoles, "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, "trace"))
				require.NoError(t, w.begin(spec))
				r, err := w.end()
				require.NoError(t, err)
				require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
				if !strings.HasPrefix(where, ranUnrecorded) {
					require.Empty(t, w.callsRepeated(), "a call whose result is on disk, or that had not begun, is not made twice")
				}
				slowest.add(t, where, n, w.recovery(n, "trace"))
			})
		}
	})
	slowest.report(t)
}

// killedInTurn runs a course again and again until a node was killed at each place. In each run, one node after another
// dies at the next place, as long as the course passes it; the next run may then pass a place that this one did not. It
// hands the outcome of each run to then.
func killedInTurn(t *testing.T, agent string, spec func(*machine) json.RawMessage, where []string, then func(*machine, outcome, []string)) {
	rows := min(4, len(where))
	for i := range rows {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			var left []string
			for at := i; at < len(where); at += rows {
				left = append(left, where[at])
			}
			for all, missed := len(left), 0; len(left) > 0; {
				w := newMachine(t, agent)
				doc, killed := spec(w), 0
				r, err := w.survive(doc, &recoveries{}, func(trace string) *node {
					env := []string{"PAWL_CRASH_TRACE=" + trace}
					if killed < len(left) {
						env = append(env, "PAWL_CRASH="+left[killed])
					}
					killed++
					return w.start(bothRoles, env...)
				})
				require.NoError(t, err)
				killed-- // the last node was not killed
				t.Logf("killed at %v", left[:killed])
				then(w, w.outcome(r), left[:killed])
				if killed == 0 {
					t.Logf("this run did not pass %s", left[0])
					missed, killed = missed+1, 1
					require.Less(t, 4*missed, all, "most places are passed in each run")
				}
				left = left[killed:]
			}
		})
	}
}

// ranUnrecorded is the one point at which a command has run and its result is not recorded yet.
const ranUnrecorded = "step.ended"

// chosenPlaces returns where this tier kills: at two of the points, at each of them once, or at night also later on.
func chosenPlaces(points []string) []string {
	if tier.Nightly {
		return places(points)
	}
	return world.EndToEnd(2, slices.DeleteFunc(places(points), func(place string) bool { return !strings.HasSuffix(place, "#1") }))
}

// places chooses where to kill: at the first passage of each point, and for a point that is passed again also at one
// later passage, which differs from point to point. For points of workflow tasks the first passage is enough. Points of
// reports follow right after a point of the activity itself, so they are left to TestKilledAgainAndAgain.
func places(points []string) (where []string) {
	counts := map[string]int{}
	var order []string
	for _, p := range points {
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	for i, p := range order {
		if strings.HasPrefix(p, "report.") {
			continue
		}
		where = append(where, p+"#1")
		if n := counts[p]; n > 1 && !strings.HasPrefix(p, "task.") {
			where = append(where, fmt.Sprintf("%s#%d", p, 2+(i*5)%(n-1)))
		}
	}
	return where
}

// killedOnTheWay starts the loop and waits until the node was killed.
func (w *machine) killedOnTheWay(n *node, spec json.RawMessage) {
	w.T.Helper()
	started := make(chan error, 1)
	go func() { started <- w.begin(spec) }()
	select {
	case <-n.gone:
		require.True(w.T, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
		<-started // the engine may have been killed before it could answer
	case <-time.After(world.Patience):
		w.T.Fatalf("the loop never came to where the crash is; it is %s", w.whereabouts())
	}
}

// recovery returns the time from a node's start to its first side effect for the loop.
func (w *machine) recovery(n *node, trace string) time.Duration {
	w.T.Helper()
	all := w.lines(trace)
	require.NotEmpty(w.T, all, "%s has done nothing for the loop", n.name)
	nanos, _, _ := strings.Cut(all[0], " ")
	at, err := strconv.ParseInt(nanos, 10, 64)
	require.NoError(w.T, err)
	return time.Unix(0, at).Sub(n.started)
}

// recoveries are times from a start to the next step.
type recoveries struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

// tooLong is longer than any recovery that works, however busy the machine is, and shorter than one that waits for the
// service's timeouts.
const tooLong = 20 * time.Second

func (r *recoveries) add(t testing.TB, where string, n *node, d time.Duration) {
	t.Helper()
	select {
	case <-n.worker:
	case <-n.gone:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.took == nil {
		r.took = map[string]time.Duration{}
	}
	r.took[where] = d
	if d > tooLong {
		t.Logf("%s: %s from the start to the next step, %s of it until the worker polled: the dead worker's tasks were left to their timeouts",
			where, seconds(d), seconds(n.polled.Sub(n.started)))
	}
}

// at returns how many of the kills were at a point.
func (r *recoveries) at(point string) (n int) {
	for where := range r.took {
		if strings.HasSuffix(where, " "+point) {
			n++
		}
	}
	return n
}

// report logs the median and the slowest recovery.
func (r *recoveries) report(t *testing.T) {
	t.Helper()
	if len(r.took) == 0 {
		return
	}
	where := make([]string, 0, len(r.took))
	for p := range r.took {
		where = append(where, p)
	}
	slices.SortFunc(where, func(a, b string) int { return int(r.took[a] - r.took[b]) })
	t.Logf("kill -9, start to next step: %d recoveries, median %s", len(where), seconds(r.took[where[len(where)/2]]))
	for _, p := range where[max(0, len(where)-5):] {
		t.Logf("  %s %s", seconds(r.took[p]), p)
	}
}

// TestKilledAgainAndAgain takes the course with processes that die every few steps, so that every kind of iteration is
// cut off in many places.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	world.Slow(t, "killed once, at some places")
	const course, life = longCourse, "#29"
	spec := (*machine).courseSpec
	ref := reference(t, longRun(), course, spec, courseRows)

	t.Run("engine and worker together", func(t *testing.T) {
		t.Parallel()
		w := newMachine(t, course)
		spec := spec(w)
		var took recoveries
		r, err := w.survive(spec, &took, func(trace string) *node {
			return w.start(bothRoles, "PAWL_CRASH="+life, "PAWL_CRASH_TRACE="+trace)
		})
		require.NoError(t, err)
		require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
		require.LessOrEqual(t, len(w.callsRepeated()), took.at(ranUnrecorded), "only calls that nobody knew the result of are made again")
		require.Greater(t, len(took.took), 3, "it must have been killed on the way")
		took.report(t)
	})

	t.Run("the worker alone", func(t *testing.T) {
		world.Slow(t, "killed with the engine")
		t.Parallel()
		w := newMachine(t, course)
		spec := spec(w)
		w.start(engineRole)
		var took recoveries
		r, err := w.survive(spec, &took, func(trace string) *node {
			return w.start(workerRole, "PAWL_CRASH=#23", "PAWL_CRASH_TRACE="+trace)
		})
		require.NoError(t, err)
		require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
		require.LessOrEqual(t, len(w.callsRepeated()), took.at(ranUnrecorded), "only calls that nobody knew the result of are made again")
		require.Greater(t, len(took.took), 3, "it must have been killed on the way")
		took.report(t)
	})

	t.Run("the engine alone", func(t *testing.T) {
		world.Slow(t, "killed with the worker")
		t.Parallel()
		w := newMachine(t, course)
		spec := spec(w)
		victim := filepath.Join(w.Dir, "victim")
		n := w.start(engineRole)
		w.start(workerRole, "PAWL_CRASH=#37", "PAWL_CRASH_VICTIM="+victim).polls(t)
		kills := 0
		for {
			require.NoError(t, os.WriteFile(victim, []byte(strconv.Itoa(n.cmd.Process.Pid)), 0o600))
			require.NoError(t, w.begin(spec))
			r, err, over := w.endOr(n)
			if over {
				require.NoError(t, err)
				require.Greater(t, kills, 3, "the engine must have been killed on the way")
				require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
				require.Empty(t, w.callsRepeated(), "no call is made twice because the engine was away")
				t.Logf("the engine was killed %d times", kills)
				return
			}
			kills++
			n = w.start(engineRole)
		}
	})
}

// survive runs the loop to its end on nodes that may each be killed.
func (w *machine) survive(spec json.RawMessage, took *recoveries, start func(trace string) *node) (loop.Result, error) {
	w.T.Helper()
	for i := 1; ; i++ {
		trace := fmt.Sprintf("trace%d", i)
		n := start(filepath.Join(w.Dir, trace))
		if err := w.begin(spec); err != nil {
			<-n.gone // the engine may have been killed before it could answer
		}
		r, err, over := w.endOr(n)
		if i > 1 && len(w.passed(trace)) > 0 {
			took.add(w.T, fmt.Sprintf("%d: killed at %s", i, last(w.passed(fmt.Sprintf("trace%d", i-1)))), n, w.recovery(n, trace))
		}
		if over {
			return r, err
		}
		require.True(w.T, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
		require.Less(w.T, i, 200, "the loop does not get on")
	}
}

// endOr waits for the end of the loop or of the node.
func (w *machine) endOr(n *node) (r loop.Result, err error, over bool) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), world.Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.client.GetWorkflow(ctx, w.Loop, "").Get(ctx, &r) }()
	select {
	case <-n.gone:
		cancel()
		<-ended
		return loop.Result{}, nil, false
	case err = <-ended:
		if ctx.Err() != nil {
			w.T.Fatalf("the loop does not end; it is %s", w.whereabouts())
		}
		select {
		case <-n.gone:
			return loop.Result{}, nil, false
		default:
		}
		return r, err, true
	}
}

func last(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return list[len(list)-1]
}
