package crash_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// backCourse reaches a plateau at once. Then it keeps a change on a branch, which is not better than the head. After
// that it finds an improvement from the head.
const backCourse = `
echo "$PAWL_ITERATION.$PAWL_ATTEMPT" >> "$WORLD/calls"
n() { echo "$1" >work/n; echo "set n to $1"; }
case $PAWL_ITERATION in
1) n 15 ;; 2) n 16 ;; 3) n 9 ;; 4) n 15.5 ;; 5) n 3 ;; 6) n 20 ;;
esac
`

var backRows = []string{
	"0 10 0 yes: baseline", "1 15 +5 yes: set n to 15", "2 16 +1 yes: set n to 16", "3 9 -7 no: set n to 9",
	"4 15.5 +0.5 yes: set n to 15.5", "5 3 -12.5 no: set n to 3", "6 20 +4 yes: set n to 20",
}

var backRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })

func (w *machine) backSpec() json.RawMessage {
	return w.spec(doc{"limits": doc{"iterations": 6, "backtrack": true, "shiftAfter": 1, "reworks": 0}})
}

// TestABranchKilledAtEveryPoint kills the process where a branch begins and where it is given up.
func TestABranchKilledAtEveryPoint(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint kills a loop where its head is moved")
	t.Parallel()
	ref := reference(t, backRun(), backCourse, (*machine).backSpec, backRows)
	require.Contains(t, strings.Join(ref.Events, "\n"), "branch_begun")
	require.Contains(t, strings.Join(ref.Events, "\n"), "branch_given_up")
	require.Contains(t, ref.Result, "kept 3, discarded 3, best 20")
	require.Len(t, ref.Commits, 10, "six changes, two of them undone, and the branch: %v", ref.Commits)
	for _, where := range settled(ref.points, 4, 7) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t, backCourse)
			spec := w.backSpec()
			n := w.start(bothRoles, "PAWL_CRASH="+where)
			w.killedOnTheWay(n, spec)
			w.start(bothRoles)
			require.NoError(t, w.begin(spec))
			r, err := w.end()
			require.NoError(t, err)
			require.Equal(t, ref.course(), w.outcome(r).course(), "the loop must end as the undisturbed one")
			require.Empty(t, w.callsRepeated(), "no agent was at work")
		})
	}
}

// settled returns the settle points of these passages, where the branch's head moves.
func settled(points []string, times ...int) (where []string) {
	for _, n := range times {
		seen := map[string]int{}
		for _, p := range points {
			if seen[p]++; seen[p] == n && strings.HasPrefix(p, "settle.") {
				where = append(where, fmt.Sprintf("%s#%d", p, n))
			}
		}
	}
	return where
}
