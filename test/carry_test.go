package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALoopOutlivesItsEngine takes the engine's database away from under a loop that is paused
// in its second iteration: the engine starts with a new one, and the loop goes on from its ledger.
func TestALoopOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	w := newWorldOfItsOwn(t, raises).set(doc{"limits": doc{"iterations": 3}, "approvals": doc{"plan": "auto"}, "breakpoints": []string{"verify"}})
	u, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(t, err)
	run := w.start("run", "--json", w.specFile()) // leaves at the first breakpoint, for there is no terminal
	require.Equal(t, 4, run.wait().code)
	w.waits("paused")
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.until("the second breakpoint", func() bool { st := w.show(); return st.Status == "paused" && st.Iteration == 2 })
	require.NoError(t, u.stop())

	require.NoError(t, os.WriteFile(filepath.Join(w.home, "engine", "temporal.db"), []byte("this is no database"), 0o600))
	u, err = startUp(w.home, filepath.Join(w.dir, "up2"))
	require.NoError(t, err)
	defer func() { require.NoError(t, u.stop()) }()
	w.until("the third iteration's breakpoint", func() bool { st := w.show(); return st.Status == "paused" && st.Iteration == 3 })
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.waits("completed")
	rows := w.results(w.loop)
	require.Len(t, rows, 4)
	require.Equal(t, "yes", rows[1].kept)
	require.Contains(t, rows[2].description, "interrupted")
	require.Equal(t, "yes", rows[3].kept)
	require.Equal(t, "12", w.kept("work/n"))
}
