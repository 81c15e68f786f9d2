package crash_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// deliverCourse is a Deliver loop that passes every point at which something can be cut off: a plan, a rework by the
// guard, a failing test with its rerun, a fix, verify, a review.
var deliverCourse = roles(`planner) echo "climb"`,
	`writer) `+failing+`; test "$PAWL_ATTEMPT" -gt 1 || echo bad >work/guard; echo "climb badly"`, `fixer) `+passing+`; echo "climb well"`,
	`reviewer) sed -n 's/^\(APPROVED [0-9a-f]*\).*/\1: fine/p' "$PAWL_PROMPT" | head -n 1`)

var deliverRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })

func (w *machine) deliverSpec() json.RawMessage {
	return w.delivers(doc{"agent": doc{"roles": own}})
}

// TestADeliveryKilledAtEveryPoint is TestKilledAtEveryPoint for a Deliver loop, at the points of the loop's own work:
// it must end with the same decisions, commits and ledger.
func TestADeliveryKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	ref := reference(t, deliverRun(), deliverCourse, (*machine).deliverSpec, []string{"1 1 0 yes: climb well"})
	killedInTurn(t, deliverCourse, (*machine).deliverSpec, world.Sample(1, places(ref.points)), func(w *machine, o outcome, where []string) {
		require.Equal(w.T, ref.outcome, o, "the loop must end as the undisturbed one, killed at %v", where)
		unknown := slices.DeleteFunc(slices.Clone(where), func(at string) bool { return !strings.HasPrefix(at, ranUnrecorded) })
		require.LessOrEqual(w.T, len(w.callsRepeated()), len(unknown), "a call whose result is on disk, or that had not begun, is not made twice: killed at %v", where)
	})
}
