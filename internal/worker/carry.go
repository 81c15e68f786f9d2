package worker

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/loop/api"
	"pawl/internal/spec/kind"
)

// carryOver starts a loop or a steward of this host again from its ledger, on an engine that does not know it: the
// engine's file was replaced because another version wrote it or because it was corrupt. It reports whether there was
// a ledger from which to continue.
func carryOver(ctx context.Context, o Options, r hostrecord.Record) (bool, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return false, err
	}
	head, err := store.Ref(ctx, r.Ledger)
	if err != nil || head == "" {
		return false, err // it had no entry yet
	}
	facts, err := ledger.About(ctx, store, head)
	if err != nil {
		return false, err
	}
	k, err := kind.Of(facts.Kind)
	if err != nil {
		return false, err
	}
	var options sdk.StartWorkflowOptions
	var input any = facts.Charter
	if facts.Steward() {
		options = client.StewardOptions(facts.Charter, "")
	} else {
		options, input = client.StartOptions(r.Loop, facts.Spec), facts.Spec
		options.Memo[launch.MemoBranch] = git.BranchName(r.Branch)
	}
	options.Memo[api.CarriedMemo] = r.FirstRun
	_, err = o.Client.ExecuteWorkflow(ctx, options, k.Workflow, input, launch.From(head))
	if _, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return false, nil
	}
	return err == nil, err
}
