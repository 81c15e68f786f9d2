package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/act"
	"pawl/internal/charter"
	"pawl/internal/client"
	"pawl/internal/git"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/ledger"
	"pawl/internal/spec"
	"pawl/internal/store"
	"pawl/internal/workspace"
)

// carryOver starts a loop or a steward of this host again from its ledger, on an engine that does not know it: the
// engine's file was replaced because another version wrote it or because it was corrupt. It reports whether there was
// a ledger from which to continue.
func carryOver(ctx context.Context, o Options, r workspace.Record) (bool, error) {
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
	options, err := optionsOf(r, facts)
	if err != nil {
		return false, err
	}
	options.Memo[act.CarriedMemo] = r.FirstRun
	_, err = o.Client.ExecuteWorkflow(ctx, options, k.Workflow, facts.Input, launch.From(head))
	if _, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return false, nil
	}
	return err == nil, err
}

// optionsOf returns the options with which the workflow of a ledger starts.
func optionsOf(r workspace.Record, facts ledger.Facts) (sdk.StartWorkflowOptions, error) {
	if facts.Steward() {
		var c charter.Charter
		if err := json.Unmarshal(facts.Input, &c); err != nil {
			return sdk.StartWorkflowOptions{}, fmt.Errorf("reading the charter: %w", err)
		}
		return client.StewardOptions(c, ""), nil
	}
	var s spec.Spec
	if err := json.Unmarshal(facts.Input, &s); err != nil {
		return sdk.StartWorkflowOptions{}, fmt.Errorf("reading the contract: %w", err)
	}
	options := client.StartOptions(r.Loop, s)
	options.Memo[launch.MemoBranch] = git.BranchName(r.Branch)
	return options, nil
}
