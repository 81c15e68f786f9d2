package crash_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// threeCourse is an agent for three candidates at once, in two rounds: a change that breaks the guard, two that go
// together, one that is worse, and two that do not go together.
const threeCourse = `
echo "$PAWL_ITERATION.$PAWL_ATTEMPT" >> "$WORLD/calls"
case $PAWL_ITERATION in
1) echo 3 >work/a; echo "raise a" ;;
2) echo 1 >work/b; echo "raise b" ;;
3) echo 9 >work/c; echo bad >work/guard; echo "break the guard" ;;
4) echo 2 >work/a; echo "lower a" ;;
5) echo 20 >work/n; echo "raise n to 20" ;;
6) echo 15 >work/n; echo "raise n to 15" ;;
esac
`

// threeRows are in the order in which candidates are decided: failed ones first, then the best.
var threeRows = []string{
	"0 10 0 yes: baseline",
	"1 10 0 no guard-fail: break the guard",
	"2 13 +3 yes: raise a",
	"3 14 +1 yes: raise b",
	"4 13 -1 no: lower a",
	"5 24 +10 yes: raise n to 20",
	"6 24 0 no conflict: raise n to 15",
}

var threeAtOnce = doc{
	"newFiles": "allow", "verify": doc{"command": "cat work/n work/a work/b work/c 2>/dev/null | awk '{ s += $1 } END { print s }'", "evidence": "single"},
	"limits": doc{"iterations": 6, "parallel": 3, "reworks": 0},
}

var threeRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })

func (w *machine) threeSpec() json.RawMessage { return w.spec(threeAtOnce) }

// course returns the parts of an outcome that do not depend on which agent ended first.
func (o outcome) course() []string { return append(append(o.Rows, o.Commits...), o.Result) }

// TestThreeAtOnceKilledAtEveryPoint is TestKilledAtEveryPoint for a loop of three desks: it must end with the same
// verdicts and commits. Only the steps that were under way may be lost.
func TestThreeAtOnceKilledAtEveryPoint(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint has one at a time")
	t.Parallel()
	ref := reference(t, threeRun(), threeCourse, (*machine).threeSpec, threeRows)
	killedInTurn(t, threeCourse, (*machine).threeSpec, world.Sample(1, firstPlaces(ref.points)), func(w *machine, o outcome, where []string) {
		require.Equal(w.T, ref.course(), o.course(), "the loop must end as the undisturbed one, killed at %v", where)
		require.LessOrEqual(w.T, len(w.callsRepeated()), 3*len(where), "no more than the steps under way")
	})
}

// firstPlaces returns the first and the second passage of each point. How many more there are depends on which agent
// ends first.
func firstPlaces(points []string) (where []string) {
	counts := map[string]int{}
	for _, p := range points {
		if counts[p]++; counts[p] <= 2 && !strings.HasPrefix(p, "report.") && (counts[p] == 1 || !strings.HasPrefix(p, "task.")) {
			where = append(where, fmt.Sprintf("%s#%d", p, counts[p]))
		}
	}
	return where
}

// TestThreeAtOnceKilledAgainAndAgain kills engine and worker every few steps.
func TestThreeAtOnceKilledAgainAndAgain(t *testing.T) {
	world.Slow(t, "killed at some points")
	t.Parallel()
	ref := reference(t, threeRun(), threeCourse, (*machine).threeSpec, threeRows)
	w := newMachine(t, threeCourse)
	spec := w.threeSpec()
	var took recoveries
	r, err := w.survive(spec, &took, func(trace string) *node {
		return w.start(bothRoles, "PAWL_CRASH=#31", "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, filepath.Base(trace)))
	})
	require.NoError(t, err)
	require.Equal(t, ref.course(), w.outcome(r).course(), "the loop must end as the undisturbed one")
	require.Greater(t, len(took.took), 3, "it must have been killed on the way")
	took.report(t)
}
