// Package activities touches the world for a loop, over the store, the trees, the ledger and the
// supervisor. Each activity is idempotent: a retry finds what the attempt before it did, and does the
// rest. Activities decide nothing about the loop: a verdict is a result, an error is the machine's.
//
// Start at Activities, then loopWorkspace in workspace.go: all that a loop has on this host. By subject:
// trees.go; open.go, contract.go and resume.go (how a loop comes to this host); journal.go and push.go
// (what is recorded, here and in the user's repository); steps.go and step.go (what runs in a tree),
// sandbox.go and layers.go (what is around it), tests.go; call.go, prompt.go, stream.go and collect.go (agents); commit.go; proposal.go and apply.go.
package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"pawl/internal/act"
	"pawl/internal/home"
)

// Activities are this host's activities. One value serves all loops of a worker.
type Activities struct {
	*Workspaces
	*Recorder
	*Mender
	*Committer
	*Proposals
	*Runner
	*Caller
	*Opener
	*Stewards
}

// New returns the activities of the host.
func New(h home.Home, host, queue, namespace string, attributes bool) *Activities {
	all := newWorkspaces(h, host, queue, namespace, attributes)
	runner := newRunner(all)
	opener := &Opener{Runner: runner}
	return &Activities{
		Workspaces: all, Recorder: &Recorder{all}, Mender: newMender(all), Committer: &Committer{all}, Proposals: &Proposals{all},
		Runner: runner, Caller: &Caller{runner}, Opener: opener, Stewards: &Stewards{Opener: opener},
	}
}

// register registers activities by name.
func register(r worker.ActivityRegistry, all map[string]any) {
	for name, f := range all {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterShared registers what any host may do: take up a loop, find one, tell somebody of it, say
// whether another host is gone.
func (a *Activities) RegisterShared(r worker.ActivityRegistry) {
	register(r, map[string]any{
		act.OpenName: a.Open, act.OpenStewardName: a.OpenSteward, act.FindName: a.Find, act.PlaceName: a.Place, act.NotifyName: a.Notify,
		act.ReadChildName: a.ReadChild,
	})
}

// RegisterAgents registers what runs agents.
func (a *Activities) RegisterAgents(r worker.ActivityRegistry) {
	register(r, map[string]any{act.CallName: a.CallAgent, act.PlanTaskName: a.PlanTask})
}

// RegisterTrees registers the work on this host's trees.
func (a *Activities) RegisterTrees(r worker.ActivityRegistry) {
	a.RegisterAgents(r)
	register(r, map[string]any{
		act.CheckName: a.Check, act.VerifyName: a.Verify, act.GuardName: a.Guard, act.TestName: a.Test, act.CanaryName: a.Canary, act.ProgressName: a.Progress,
		act.CommitName: a.Commit, act.TakeName: a.Take, act.SettleName: a.Settle, act.RecordName: a.Record, act.ProposeName: a.Propose, act.CloseName: a.Close,
		act.AmendName: a.Amend, act.ReviewName: a.Review, act.ApplyName: a.Apply, act.RecordTasksName: a.RecordTasks,
		act.JoinName: a.Join, act.ValidateName: a.Validate,
	})
}
