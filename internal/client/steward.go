package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/charter"
	"pawl/internal/fault"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/store"
)

// StewardOptions are those under which every steward is started, whoever starts it.
func StewardOptions(c charter.Charter, by string) sdk.StartWorkflowOptions {
	return startOptions(launch.OfSteward(c, by))
}

// StartSteward starts a steward's workflow. by is who starts it, for the record.
func (c *Client) StartSteward(ctx context.Context, ch charter.Charter, by string) (sdk.WorkflowRun, error) {
	run, err := c.SDK.ExecuteWorkflow(ctx, StewardOptions(ch, by), kind.Steward.Workflow, ch)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return nil, fault.New(fault.LoopAlreadyRunning, "a steward or loop %s is running already", ch.Name).
			Advise(fmt.Sprintf("Look at it with `pawl steward show %[1]s`, or end it with `pawl steward stop %[1]s`.", ch.Name))
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, c.Unreachable(ctx, err)
	}
	return run, nil
}

// SendTask carries a message to a steward, as Send does to a loop. An answer is bound to the one gate of
// its task that is open.
func (c *Client) SendTask(ctx context.Context, name, what string, m steward.Message) (Sent, error) {
	return c.carry(ctx, name, what, toSteward{c, name, what, m})
}

// toSteward is a message to a steward.
type toSteward struct {
	*Client
	id, name string
	m        steward.Message
}

func (t toSteward) family() Family { return Steward }
func (t toSteward) plain() any     { return t.m }

func (t toSteward) bound(ctx context.Context) (any, error) {
	gates, err := t.Gates(ctx, t.id)
	return t.to(gates), err
}

func (t toSteward) checked(ctx context.Context) (any, error) {
	s, err := t.RecordedSteward(ctx, t.id)
	if err != nil {
		return nil, err
	}
	if s.Status.Ended() {
		return nil, Steward.over(t.id, string(s.Status))
	}
	m := t.to(s.Gates)
	c := charter.Defaults()
	c.Limits.Queue = math.MaxInt // how many it takes, the steward itself knows
	_, err = steward.Answer(s, c, t.name, m)
	return m, err
}

// to binds an answer to the gate that it is for: the only one of its task.
func (t toSteward) to(gates []loop.Gate) steward.Message {
	var task string
	if t.m.Gate != "" || !steward.AnswersGates(t.name) || json.Unmarshal(t.m.Task, &task) != nil {
		return t.m
	}
	gates = slices.DeleteFunc(slices.Clone(gates), func(g loop.Gate) bool { return g.Task != task })
	if len(gates) == 1 {
		t.m.Gate = gates[0].ID
	}
	return t.m
}

// Gates asks a steward what waits. An error means that no worker answered.
func (c *Client) Gates(ctx context.Context, name string) ([]loop.Gate, error) {
	var gates []loop.Gate
	err := c.query(ctx, WorkerTimeout, name, &gates, "gates")
	return gates, err
}

// StewardState asks a steward for its state. An error means that no worker answered.
func (c *Client) StewardState(ctx context.Context, name string) (steward.State, error) {
	var s steward.State
	err := c.query(ctx, WorkerTimeout, name, &s, "state")
	return s, err
}

// Stewarding returns a steward's state: from itself, else from the ledger of this host.
func (c *Client) Stewarding(ctx context.Context, name string) (Snapshot[steward.State], error) {
	return find(ctx, c, name, subject[steward.State]{
		Family: Steward, asked: c.StewardState, recorded: c.RecordedSteward,
		late: func(known, recorded steward.State) bool { return false },
		outside: func(s steward.State, info *workflowpb.WorkflowExecutionInfo) steward.State {
			if end, ended := outside[info.GetStatus()]; ended && !s.Status.Ended() {
				s.Status, s.Reason = end.Status, end.Reason
			}
			return s
		},
	})
}

// RecordedSteward returns a steward's state as the ledger on this host has it: ALO_LOOP_NOT_FOUND where
// there is none.
func (c *Client) RecordedSteward(ctx context.Context, name string) (steward.State, error) {
	var s steward.State
	r, ok := c.Record(name)
	if !ok {
		return s, Steward.NotFound(name)
	}
	if !r.Steward() {
		return s, Steward.NotFound(name).Advise("It is a loop: `pawl show " + name + "`.")
	}
	st, err := store.Open(ctx, r.Store)
	if err != nil {
		return s, err
	}
	head, err := st.Ref(ctx, r.Ledger)
	if err != nil || head == "" {
		return s, errors.Join(err, Steward.NotFound(name))
	}
	return ledger.OpenSteward(st).State(ctx, head)
}

// FamilyOf returns the family of whoever has that ID: as Temporal has it, else as the ledger on this host
// does. Of one that neither knows it is Loop, which then is not found.
func (c *Client) FamilyOf(ctx context.Context, id string) Family {
	if c.SDK != nil {
		if d, err := c.SDK.DescribeWorkflowExecution(ctx, id, ""); err == nil {
			if k, known := kind.OfWorkflow(d.GetWorkflowExecutionInfo().GetType().GetName()); known {
				return Of(k)
			}
			return Loop
		}
	}
	if _, err := c.RecordedSteward(ctx, id); err == nil {
		return Steward
	}
	return Loop
}
