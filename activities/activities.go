// Package activities changes the world for a loop: the store, the trees, the ledger, and the supervisor with its
// processes. Each activity is idempotent: a retry finds what the attempt before did, and does the rest. Activities
// decide nothing about the loop: a verdict is a result, an error is a failure of the machine.
//
// Each subject has a package: hosted, contracts, recording, changes, proposals, steps, calls, opening, preflight and
// stewards, in this order; none imports a later one. This package puts them together and registers them by name.
// Start at Activities, then workspace.Workspace, which is everything that a loop has on this host. Each package has its
// own tests; actest has what they share.
package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"pawl/activities/agentcall"
	"pawl/activities/command"
	"pawl/activities/commit"
	"pawl/activities/open"
	"pawl/activities/proposal"
	"pawl/activities/record"
	"pawl/activities/steward"
	"pawl/activities/workspace"
	"pawl/internal/home"
	"pawl/internal/loop/api"
	stewardapi "pawl/internal/steward/api"
)

// Activities are this host's activities. One value serves all loops of a worker.
type Activities struct {
	*workspace.Workspaces
	*record.Recorder
	*record.Mender
	*commit.Committer
	*proposal.Proposals
	*command.Runner
	*agentcall.Caller
	*open.Opener
	*steward.Stewards
}

// New returns the activities of the host.
func New(h home.Home, host, queue, namespace string, attributes bool) *Activities {
	workspaces := workspace.New(h, host, queue, namespace, attributes)
	runner := command.New(workspaces)
	opener := &open.Opener{Runner: runner}
	return &Activities{
		Workspaces: workspaces,
		Recorder:   &record.Recorder{Workspaces: workspaces},
		Mender:     &record.Mender{Workspaces: workspaces},
		Committer:  &commit.Committer{Workspaces: workspaces},
		Proposals:  &proposal.Proposals{Workspaces: workspaces},
		Runner:     runner,
		Caller:     &agentcall.Caller{Runner: runner},
		Opener:     opener,
		Stewards:   &steward.Stewards{Opener: opener},
	}
}

func register(r worker.ActivityRegistry, functions map[string]any) {
	for name, f := range functions {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterShared registers what any host may do.
func (a *Activities) RegisterShared(r worker.ActivityRegistry) {
	register(r, map[string]any{
		api.OpenName:               a.Open,
		stewardapi.OpenStewardName: a.OpenSteward,
		api.FindName:               a.Find,
		api.PlaceName:              a.Place,
		api.NotifyName:             a.Notify,
		stewardapi.ReadChildName:   a.ReadChild,
	})
}

// RegisterAgents registers the activities that run agents.
func (a *Activities) RegisterAgents(r worker.ActivityRegistry) {
	register(r, map[string]any{api.CallName: a.CallAgent, stewardapi.PlanTaskName: a.PlanTask})
}

// RegisterTrees registers the work on this host's trees.
func (a *Activities) RegisterTrees(r worker.ActivityRegistry) {
	a.RegisterAgents(r)
	register(r, map[string]any{
		api.CheckName:              a.Check,
		api.VerifyName:             a.Verify,
		api.GuardName:              a.Guard,
		api.TestName:               a.Test,
		api.CanaryName:             a.Canary,
		api.ProgressName:           a.Progress,
		api.CommitName:             a.Commit,
		api.TakeName:               a.Take,
		api.SettleName:             a.Settle,
		api.RecordName:             a.Record,
		api.ProposeName:            a.Propose,
		api.CloseName:              a.Close,
		api.AmendName:              a.Amend,
		api.ReviewName:             a.Review,
		api.ApplyName:              a.Apply,
		stewardapi.RecordTasksName: a.RecordTasks,
		stewardapi.JoinName:        a.Join,
		stewardapi.ValidateName:    a.Validate,
	})
}
