package crash_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func (w *machine) scratchSpec() json.RawMessage {
	return w.spec(doc{"limits": doc{"iterations": 2}, "judge": doc{"keep": []string{"kept"}}})
}

// TestKilledWhileItJudgesFromScratch kills a loop where it makes the judge anew, and before and after the commands that
// judge its head there.
func TestKilledWhileItJudgesFromScratch(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint kills loops at the same points")
	t.Parallel()
	ref := reference(t, new(undisturbed), shortCourse, (*machine).scratchSpec, shortRows)
	require.Contains(t, strings.Join(ref.Events, "\n"), "judged_from_scratch")
	counts := map[string]int{}
	for _, p := range ref.points {
		counts[p]++
	}
	var where []string
	for _, p := range []string{"tree.created", "step.starting", "step.ended", "step.recorded"} {
		require.NotZero(t, counts[p], p)
		where = append(where, fmt.Sprintf("%s#%d", p, counts[p]), fmt.Sprintf("%s#%d", p, counts[p]-1))
	}
	for _, at := range world.Sample(1, append(where[:1], where[2:]...)) { // the judge is made anew once
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t, shortCourse)
			spec := w.scratchSpec()
			n := w.start(bothRoles, "PAWL_CRASH="+at)
			w.killedOnTheWay(n, spec)
			w.start(bothRoles, "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, "trace"))
			require.NoError(t, w.begin(spec))
			r, err := w.end()
			require.NoError(t, err)
			require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
		})
	}
}
