package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop"
)

const (
	MaxPlan   = 64 << 10 // bytes of a plan
	shownPlan = 8 << 10  // bytes of the plan that enter history, for the person who approves it
)

// KeepPlan keeps the planner's output as the plan: all of it in a file, its beginning in history for who approves it.
func KeepPlan(ws *workspace.Workspace, text, dir string) (*loop.Plan, error) {
	text = loop.Clip(text, MaxPlan)
	if err := durable.WriteFile(filepath.Join(ws.Machine.Home.Loop(ws.Ref), ledger.PlanFile), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return &loop.Plan{Hash: ledger.HashOf([]byte(text)), Text: loop.Clip(text, shownPlan), Log: dir}, nil
}

// unrecordedPlan returns a plan that is not in the ledger yet. On a host that took over the loop since then, there is
// only the part of it that the state has, which mostly is all of it.
func unrecordedPlan(ws *workspace.Workspace, plan loop.Plan) ([]byte, error) {
	text, err := os.ReadFile(dirfd.At(filepath.Join(ws.Machine.Home.Loop(ws.Ref), ledger.PlanFile)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	if ledger.HashOf(text) != plan.Hash { // the file is missing, or a power cut has damaged it
		text = []byte(plan.Text)
	}
	if ledger.HashOf(text) != plan.Hash {
		return nil, workspace.Refuse(fault.New(fault.PreconditionFailed, "the plan that was drafted is not in %s", ws.Machine.Home.Loop(ws.Ref)).
			Advise("Start the loop again."))
	}
	return text, nil
}

// PlanAt returns the loop's plan from the ledger at head, "" if there is none.
func PlanAt(ctx context.Context, ws *workspace.Workspace, s loop.State, head string) (string, error) {
	if s.Plan == nil {
		return "", nil
	}
	files, err := ws.Objects.ReadLedger(ctx, head, ledger.PlanFile)
	if err != nil {
		return "", fmt.Errorf("reading the plan: %w", err)
	}
	text := files[ledger.PlanFile]
	if ledger.HashOf(text) != s.Plan.Hash {
		return "", fmt.Errorf("the plan in the ledger at %s is not the one that was approved", head)
	}
	return string(text), nil
}

// Rebind gives the ledger the contract that Open drew up, even after a crash. Before the ledger's first entry the
// contract is only in this file, and nothing was done under it yet.
func Rebind(ws *workspace.Workspace) error {
	var c ledger.Contract
	err := durable.ReadJSON(filepath.Join(ws.Machine.Home.Loop(ws.Ref), ledger.ContractFile), &c)
	if errors.Is(err, durable.ErrTorn) {
		return workspace.Refuse(fault.New(fault.PreconditionFailed, "the contract that was drawn can't be read: %v", err).Advise("Start the loop again."))
	}
	if err != nil {
		return fmt.Errorf("reading the contract: %w", err)
	}
	ws.Book.Bind(c)
	return nil
}
