package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// verified is what `pawl log --verify --json` says.
type verified struct {
	Whole                  bool
	Ledger, Workflow, Copy string
	Entries, Events, Rows  int
	Faults                 []struct{ Commit, What string }
}

func (w *world) verify(code int) (v verified) {
	w.t.Helper()
	s := w.pawl("log", "--verify", "--json", w.loop)
	require.Equal(w.t, code, s.code, "%s%s", s.out, s.err)
	decode(w.t, s.out, &v)
	require.Equal(w.t, code == 0, v.Whole)
	return v
}

// TestL8_TheLedgerOfALoopIsProvenWhole: while it waits, after its end, after what is said later,
// and not once somebody had his hands on it.
func TestL8_TheLedgerOfALoopIsProvenWhole(t *testing.T) {
	w := newWorld(t, once(`echo "exit 0" >guard.sh`)).set(doc{"guard": doc{"command": "sh guard.sh"}, "limits": doc{"iterations": 3}})
	w.run(4)
	v := w.verify(0)
	require.Equal(t, []string{"agrees", "agrees"}, []string{v.Workflow, v.Copy})
	st := w.waits("blocked")
	w.write("mended", "! grep -q bad work/other\n")
	w.shell("cp " + w.dir + "/mended " + st.Desk + "/guard.sh")
	w.done("continue", w.loop)
	w.waits("completed")
	v = w.verify(0)
	require.Equal(t, 4, v.Rows, "the baseline and three iterations")
	p := w.proposal()
	w.done("approve", w.loop, "--hash", p.Hash)
	w.done("apply", w.loop, "--how", "squash")
	w.before = w.snapshot()
	after := w.verify(0)
	require.Equal(t, v.Entries+2, after.Entries)
	require.Equal(t, "agrees", after.Workflow)
	require.Contains(t, w.done("log", "--verify", w.loop).out, "the ledger is whole: ")

	var record struct{ Store, Ledger string }
	require.NoError(t, json.Unmarshal([]byte(w.readHome("loops/"+w.loop+"/workspace.json")), &record))
	at := func(args ...string) string {
		return w.git(append([]string{"-c", "user.name=M", "-c", "user.email=m@example.com", "--git-dir", record.Store}, args...)...)
	}
	head := at("rev-parse", record.Ledger)
	at("update-ref", record.Ledger, head+"~4", head)
	cut := w.verify(1)
	require.Equal(t, []string{"differs", "differs"}, []string{cut.Workflow, cut.Copy}, "cut off")
	require.Contains(t, w.pawl("log", "--verify", w.loop).out, "NOT whole")
	at("update-ref", record.Ledger, head)

	// Somebody raises his own number, hash after hash.
	forged := at("commit-tree", "-p", head+"^1", "-p", head+"^2", "-m", "forged", head+"^{tree}")
	at("update-ref", record.Ledger, forged)
	require.Equal(t, "differs", w.verify(1).Copy, "rewritten")
	at("update-ref", record.Ledger, head)
	at("update-ref", "-d", "refs/heads/pawl/"+w.loop)
	require.Contains(t, w.verify(1).Faults[0].What, "branch")
	at("update-ref", "refs/heads/pawl/"+w.loop, p.Head)
	w.verify(0)
	s := w.pawl("log", "--verify", "nobody")
	require.Equal(t, 2, s.code)
	require.True(t, strings.Contains(s.err, "ALO_LOOP_NOT_FOUND"), s.err)
}

// readHome reads a file of $PAWL_HOME.
func (w *world) readHome(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.home, name))
	require.NoError(w.t, err)
	return string(b)
}
