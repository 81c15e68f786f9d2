// Package activities changes the world for a loop: the store, the trees, the ledger, and the supervisor with its
// processes. Each activity is idempotent: a retry finds what the attempt before did, and does the rest. Activities
// decide nothing about the loop: a verdict is a result, an error is a failure of the machine.
//
// Each subject has a package: hosted, contracts, recording, changes, proposals, steps, calls, opening, preflight and
// stewards, in this order; none imports a later one. This package puts them together and registers them by name.
// Start at Activities, then hosted.Workspace, which is everything that a loop has on this host. Each package has its
// own tests; actest has what they share.
package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"pawl/activities/calls"
	"pawl/activities/changes"
	"pawl/activities/hosted"
	"pawl/activities/opening"
	"pawl/activities/proposals"
	"pawl/activities/recording"
	"pawl/activities/steps"
	"pawl/activities/stewards"
	"pawl/internal/act"
	"pawl/internal/home"
)

// Activities are this host's activities. One value serves all loops of a worker.
type Activities struct {
	*hosted.Workspaces
	*recording.Recorder
	*recording.Mender
	*changes.Committer
	*proposals.Proposals
	*steps.Runner
	*calls.Caller
	*opening.Opener
	*stewards.Stewards
}

// New returns the activities of the host.
func New(h home.Home, host, queue, namespace string, attributes bool) *Activities {
	all := hosted.New(h, host, queue, namespace, attributes)
	runner := steps.New(all)
	opener := &opening.Opener{Runner: runner}
	return &Activities{
		Workspaces: all, Recorder: &recording.Recorder{Workspaces: all}, Mender: &recording.Mender{Workspaces: all}, Committer: &changes.Committer{Workspaces: all}, Proposals: &proposals.Proposals{Workspaces: all},
		Runner: runner, Caller: &calls.Caller{Runner: runner}, Opener: opener, Stewards: &stewards.Stewards{Opener: opener},
	}
}

func register(r worker.ActivityRegistry, all map[string]any) {
	for name, f := range all {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterShared registers what any host may do.
func (a *Activities) RegisterShared(r worker.ActivityRegistry) {
	register(r, map[string]any{
		act.OpenName: a.Open, act.OpenStewardName: a.OpenSteward, act.FindName: a.Find, act.PlaceName: a.Place, act.NotifyName: a.Notify,
		act.ReadChildName: a.ReadChild,
	})
}

// RegisterAgents registers the activities that run agents.
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
