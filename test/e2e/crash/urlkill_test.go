package crash_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

var urlRun = sync.OnceValue(func() *undisturbed { return new(undisturbed) })

func (w *machine) urlSpec() json.RawMessage {
	w.Spec["repo"] = doc{"url": "file://" + w.Repo, "base": "main"}
	return w.spec(doc{"limits": doc{"iterations": 2}})
}

// TestALoopWithAURLKilledAtEveryPoint is TestKilledAtEveryPoint for a loop that is pushed with each append, at the points
// at which its ledger or branch may be ahead of what was pushed.
func TestALoopWithAURLKilledAtEveryPoint(t *testing.T) {
	world.Slow(t, "TestKilledAtEveryPoint has a path")
	t.Parallel()
	ref := reference(t, urlRun(), shortCourse, (*machine).urlSpec, shortRows)
	var where []string
	for _, at := range places(ref.points) {
		if own, _, _ := strings.Cut(at, "."); own == "append" || own == "push" || own == "store" || own == "open" || own == "close" {
			where = append(where, at)
		}
	}
	require.Contains(t, where, "append.written#1")
	require.Contains(t, where, "push.ledger#1")
	killedInTurn(t, shortCourse, (*machine).urlSpec, where, func(w *machine, o outcome, at []string) {
		require.Equal(w.T, ref.outcome, o, "the loop must end as the undisturbed one, killed at %v", at)
		require.Empty(w.T, w.callsRepeated(), "no agent was at work")
	})
}
