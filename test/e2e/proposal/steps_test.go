package proposal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestE3_ATaskOfTwoStepsEndsInOneProposal has two loops work on one task, as a steward starts them: the second
// continues from the branch of the first. Its proposal has the work of both and is applied to the project's branch. No
// workflow runs under the steward's name, which does not disturb the loops.
func TestE3_ATaskOfTwoStepsEndsInOneProposal(t *testing.T) {
	world.Slow(t, "activities/open has a later step")
	w := world.New(t, world.Raises)
	began := w.Git("rev-parse", "main")
	session := doc{"steward": "nobody-" + w.Loop, "task": "t1", "plan": "cafe", "approvedBy": "Ann", "base": began, "onto": "main"}
	w.Set(doc{"session": session, "approvals": doc{"plan": "auto"}})
	w.Run(0)
	first, one := w.Proposal(), w.Show()
	require.Equal(t, began, first.Base)
	require.Equal(t, "steward nobody-"+w.Loop+", plan cafe, approved by Ann", one.Contract.ApprovedBy)

	w.Loop += "-two"
	w.Set(doc{"name": w.Loop, "repo": doc{"base": one.Branch}})
	w.Run(0)
	second := w.Proposal()
	require.Equal(t, began, second.Base, "it begins where the task began")
	require.Equal(t, first.Head, w.Git("merge-base", first.Head, second.Head), "it has the first step's work")
	require.Equal(t, w.Before, w.Snapshot())
	shown := w.Done("diff", w.Loop).Out
	require.Contains(t, shown, "-10")
	require.Contains(t, shown, "+12")
	require.Contains(t, w.Done("show", w.Loop).Out, "as the loop's session says")

	w.Done("approve", w.Loop, "--hash", second.Hash)
	w.Done("apply", w.Loop, "--how", "squash", "--hash", second.Hash)
	require.Equal(t, "12\n", w.Read("repo/work/n"))
	require.Equal(t, began, w.Git("rev-parse", "main^"), "one commit on the project's branch")
	require.Equal(t, shown, w.Git("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", began, "main")+"\n")
	done := w.Proposal()
	require.Equal(t, []string{"applied", "main"}, []string{done.State, done.Branch})
	w.Before = w.Snapshot()
}
