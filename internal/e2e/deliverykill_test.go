package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/world"
)

// deliverCourse is a Deliver loop that passes every point at which something can be cut off: a plan, a
// rework by the guard, a failing test with its rerun, a fix, verify, a review.
var deliverCourse = roles(`planner) echo "climb"`,
	`writer) `+failing+`; test "$PAWL_ATTEMPT" -gt 1 || echo bad >work/guard; echo "climb badly"`, `fixer) `+passing+`; echo "climb well"`,
	`reviewer) sed -n 's/^\(APPROVED [0-9a-f]*\).*/\1: fine/p' "$PAWL_PROMPT" | head -n 1`)

var deliverRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })

func (w *machine) deliverSpec() json.RawMessage {
	return w.delivers(doc{"agent": doc{"roles": own}})
}

// TestADeliveryKilledAtEveryPoint does to a Deliver loop what TestKilledAtEveryPoint does to Improve, at
// the points of the loop's own work: it must end with the same decisions, commits and ledger.
func TestADeliveryKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	ref := reference(t, deliverRun(), deliverCourse, (*machine).deliverSpec, []string{"1 1 0 yes: climb well"})
	for _, where := range world.Sample(2, places(ref.points)) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t, deliverCourse)
			spec := w.deliverSpec()
			n := w.start(bothRoles, "PAWL_CRASH="+where)
			w.killedOnTheWay(n, spec)
			w.start(bothRoles, "PAWL_CRASH_TRACE="+filepath.Join(w.Dir, "trace"))
			require.NoError(t, w.begin(spec))
			r, err := w.end()
			require.NoError(t, err)
			require.Equal(t, ref.outcome, w.outcome(r), "the loop must end as the undisturbed one")
			if !strings.HasPrefix(where, ranUnrecorded) {
				require.Empty(t, w.callsRepeated(), "a call whose result is on disk, or that had not begun, is not made twice")
			}
		})
	}
}
