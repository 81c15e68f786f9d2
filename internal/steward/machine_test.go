package steward

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/steward/task"
)

// all is evidence of every kind.
var all = task.Evidence{
	Trigger: "a person", Blocker: "b", Plan: "h", Tier: task.T3, Estimate: "none", Approval: "nobody has to", Written: "l", Note: "n", Reason: "r",
	Answer: "a", Done: "d",
}

func TestS2_OnlyTheTableOfTheSource(t *testing.T) {
	allowed := map[[2]task.State]bool{
		{task.Idle, task.Planning}: true, {task.Idle, task.Waiting}: true,
		{task.Planning, task.Executing}: true, {task.Planning, task.Waiting}: true, {task.Planning, task.Idle}: true,
		{task.Executing, task.Waiting}: true, {task.Executing, task.Planning}: true, {task.Executing, task.Idle}: true,
		{task.Waiting, task.Executing}: true, {task.Waiting, task.Planning}: true, {task.Waiting, task.Idle}: true,
	}
	for _, from := range task.States {
		for _, to := range task.States {
			_, err := change(Task{ID: "t", State: from}, to, all)
			require.Equal(t, allowed[[2]task.State{from, to}], err == nil, "%s → %s", from, to)
		}
	}
}

func TestS2_ATransitionNeedsItsEvidence(t *testing.T) {
	for _, row := range Transitions {
		require.NotEmpty(t, row.Needs)
		_, err := change(Task{ID: "t", State: row.From}, row.To, task.Evidence{})
		require.Error(t, err, "%s → %s", row.From, row.To)
		for _, need := range row.Needs {
			e := all
			switch need {
			case "trigger":
				e.Trigger = ""
			case "blocker":
				e.Blocker = ""
			case "plan":
				e.Plan = ""
			case "tier":
				e.Tier = ""
			case "estimate":
				e.Estimate = ""
			case "approval":
				e.Approval = ""
			case "written":
				e.Written = ""
			case "note":
				e.Note = ""
			case "reason":
				e.Reason = ""
			case "answer":
				e.Answer = ""
			case "done":
				e.Done = ""
			}
			_, err := change(Task{ID: "t", State: row.From}, row.To, e)
			require.ErrorContains(t, err, need, "%s → %s without %s", row.From, row.To, need)
		}
	}
}
