package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"go.temporal.io/api/serviceerror"

	"pawl/internal/client"
	"pawl/internal/kind"
	"pawl/internal/ledger"
	"pawl/internal/store"
	"pawl/internal/workspace"
	"pawl/workflows"
)

// carryOver starts a loop of this host again from its ledger, on an engine that doesn't know it:
// the engine's file was replaced because another version wrote it or because it was corrupt. It
// reports whether there was anything to go on from.
func carryOver(ctx context.Context, o Options, r workspace.Record) (bool, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return false, err
	}
	head, err := store.Ref(ctx, r.Ledger)
	if err != nil || head == "" {
		return false, err // it had not come as far as its first entry
	}
	contract, err := ledger.Open(store).Contract(ctx, head)
	if err != nil {
		return false, err
	}
	k, err := kind.Of(contract.Spec.Kind)
	if err != nil {
		return false, err
	}
	doc, err := json.Marshal(contract.Spec)
	if err != nil {
		return false, err
	}
	options := client.StartOptions(r.Loop, contract.Spec)
	options.Memo["branch"] = strings.TrimPrefix(r.Branch, "refs/heads/")
	_, err = o.Client.ExecuteWorkflow(ctx, options, k.Workflow, json.RawMessage(doc), workflows.Resume{Ledger: head})
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &running) {
		return false, nil
	}
	return err == nil, err
}
