package proposal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// verified is the output of `pawl log --verify --json`.
type verified struct {
	Whole                  bool
	Ledger, Workflow, Copy string
	Entries, Events, Rows  int
	Faults                 []struct{ Commit, What string }
	CutOff                 string
}

func verify(w *world.World, code int) (v verified) {
	w.T.Helper()
	s := w.Pawl("log", "--verify", "--json", w.Loop)
	require.Equal(w.T, code, s.Code, "%s%s", s.Out, s.Err)
	world.Decode(w.T, s.Out, &v)
	require.Equal(w.T, code == 0, v.Whole)
	return v
}

// TestL8_TheLedgerOfALoopIsProvenWhole: while the loop waits, after its end and after later messages, but not after
// somebody has changed it.
func TestL8_TheLedgerOfALoopIsProvenWhole(t *testing.T) {
	w := world.New(t, world.Once(`echo "exit 0" >guard.sh`)).Set(doc{"guard": doc{"command": "sh guard.sh"}, "limits": doc{"iterations": 3}})
	w.Run(4)
	v := verify(w, 0)
	require.Equal(t, []string{"agrees", "agrees"}, []string{v.Workflow, v.Copy})
	st := w.Waits("blocked")
	w.Write("mended", "! grep -q bad work/other\n")
	w.Shell("cp " + w.Dir + "/mended " + st.Desk + "/guard.sh")
	w.Done("continue", w.Loop)
	w.Waits("completed")
	v = verify(w, 0)
	require.Equal(t, 4, v.Rows, "the baseline and three iterations")
	p := w.Proposal()
	w.Done("approve", w.Loop, "--hash", p.Hash)
	w.Done("apply", w.Loop, "--how", "squash")
	w.Before = w.Snapshot()
	after := verify(w, 0)
	require.Equal(t, v.Entries+2, after.Entries)
	require.Equal(t, "agrees", after.Workflow)
	require.Contains(t, w.Done("log", "--verify", w.Loop).Out, "the ledger is whole: ")

	var record struct{ Store, Ledger string }
	require.NoError(t, json.Unmarshal([]byte(w.ReadHome("loops/"+w.Loop+"/workspace.json")), &record))
	at := func(args ...string) string {
		return w.Git(append([]string{"-c", "user.name=M", "-c", "user.email=m@example.com", "--git-dir", record.Store}, args...)...)
	}
	head := at("rev-parse", record.Ledger)
	at("update-ref", record.Ledger, head+"~4", head)
	cut := verify(w, 1)
	require.Equal(t, []string{"differs", "differs"}, []string{cut.Workflow, cut.Copy}, "cut off")
	require.Contains(t, w.Pawl("log", "--verify", w.Loop).Out, "NOT whole")
	at("update-ref", record.Ledger, head)

	// Somebody raises the number and forges each later hash.
	forged := at("commit-tree", "-p", head+"^1", "-p", head+"^2", "-m", "forged", head+"^{tree}")
	at("update-ref", record.Ledger, forged)
	require.Equal(t, "differs", verify(w, 1).Copy, "rewritten")
	at("update-ref", record.Ledger, head)
	at("update-ref", "-d", "refs/heads/pawl/"+w.Loop)
	require.Contains(t, verify(w, 1).Faults[0].What, "branch")
	at("update-ref", "refs/heads/pawl/"+w.Loop, p.Head)
	require.Empty(t, verify(w, 0).CutOff)

	// An apply to a moved base moves the branch before it records that. Nothing else may be on the branch then.
	moved := at("commit-tree", "-p", p.Base, "-m", "moved", p.Base+"^{tree}")
	onto := at("commit-tree", "-p", p.Head, "-p", moved, "-m", "onto the moved base", p.Head+"^{tree}")
	at("update-ref", "refs/heads/pawl/"+w.Loop, onto)
	require.Contains(t, verify(w, 0).CutOff, "pawl apply "+w.Loop)
	require.Contains(t, w.Done("log", "--verify", w.Loop).Out, "an apply was cut off")
	at("update-ref", "refs/heads/pawl/"+w.Loop, at("commit-tree", "-p", p.Head, "-p", moved, "-m", "onto the moved base", p.Base+"^{tree}"))
	require.Contains(t, verify(w, 1).Faults[0].What, "but the ledger records "+p.Head)
	at("update-ref", "refs/heads/pawl/"+w.Loop, p.Head)
	s := w.Pawl("log", "--verify", "nobody")
	require.Equal(t, 2, s.Code)
	require.True(t, strings.Contains(s.Err, "ALO_LOOP_NOT_FOUND"), s.Err)
}
