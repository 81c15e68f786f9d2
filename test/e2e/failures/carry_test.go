package failures_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestALoopOutlivesItsEngine removes the engine's database while a loop is paused in its second iteration. The engine
// starts with a new database, and the loop continues from its ledger.
func TestALoopOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	w := world.Alone(t, world.Raises).Set(doc{"limits": doc{"iterations": 3}, "approvals": doc{"plan": "auto"}, "breakpoints": []string{"verify"}})
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	run := w.Start("run", "--json", w.SpecFile()) // ends at the first breakpoint, because there is no terminal
	require.Equal(t, 4, run.Wait().Code)
	w.Waits("paused")
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Until("the second breakpoint", func() bool { st := w.Show(); return st.Status == "paused" && st.Iteration == 2 })
	require.NoError(t, u.Stop())

	require.NoError(t, os.WriteFile(filepath.Join(w.Home, "engine", "temporal.db"), []byte("this is no database"), 0o600))
	u, err = world.StartUp(w.Home, filepath.Join(w.Dir, "up2"))
	require.NoError(t, err)
	defer func() { require.NoError(t, u.Stop()) }()
	w.Until("the second iteration waits where it was", func() bool { return w.Pawl("continue", w.Loop).Code == 0 })
	w.Until("the third iteration's breakpoint", func() bool { st := w.Show(); return st.Status == "paused" && st.Iteration == 3 })
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	rows := w.Results(w.Loop)
	require.Len(t, rows, 4)
	for _, r := range rows {
		require.Equal(t, "yes", r.Kept())
	}
	require.Equal(t, "13", w.Kept("work/n"))
}
