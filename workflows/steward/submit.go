package steward

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Submitted is the result of Submit. Task is "" for a schedule's slot, which the steward may skip, and if a dedupe key
// may belong to another task: a signal has no reply.
type Submitted struct {
	Steward string `json:"steward"`
	Task    string `json:"task,omitempty"`
}

// Submit submits a task: {"steward": …, "task": {…}}. Schedules start it, and people who have only the Temporal UI. A
// slot is part of its task's dedupe key, so it submits one task, however often Temporal tries.
func Submit(ctx workflow.Context, input converter.RawValue) (*Submitted, error) {
	var in task.Submission[json.RawMessage]
	d := json.NewDecoder(bytes.NewReader(input.Payload().GetData()))
	d.DisallowUnknownFields()
	wrong := ""
	switch err := d.Decode(&in); {
	case errors.Is(err, io.EOF):
		wrong = "it is empty"
	case err != nil:
		wrong = loop.Plain(err)
	case d.More():
		wrong = "something follows the object"
	case in.Steward == "":
		wrong = `"steward" is missing`
	case len(in.Task) == 0:
		wrong = `"task" is missing`
	}
	if wrong != "" {
		return nil, wire.Refusal(fault.New(fault.InvalidMessage, `the input is not one JSON object with "steward" and "task": %s`, wrong).
			Advise("Start the workflow again with such an input."))
	}
	t, err := task.DecodeTask(in.Task, charter.Specs)
	if err != nil {
		return nil, wire.Refusal(err)
	}
	info := workflow.GetInfo(ctx)
	slot, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledFor)
	if scheduled && in.Trigger != nil {
		in.Trigger.Delivery = slot.UTC().Format(time.RFC3339)
		t.Dedupe = t.Source + " " + in.Trigger.Delivery
	} else if t.Dedupe == "" && t.ID == "" {
		t.ID = task.IDOf(t, info.OriginalRunID) // the same ID after a reset
	}
	if in.Trigger == nil {
		in.Trigger = &task.Trigger{Name: "Submit", From: "person", Delivery: info.WorkflowExecution.ID}
	}
	if by, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(scheduledBy); scheduled && in.Trigger.From == "person" { // the schedule was made in Temporal
		in.By = cmp.Or(in.By, "the Temporal schedule "+by)
		in.Trigger.Name, in.Trigger.From = by, "schedule"
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	m := steward.Message{By: in.By, Task: doc, Trigger: in.Trigger}
	err = workflow.SignalExternalWorkflow(ctx, in.Steward, "", steward.MessageSubmit, m).Get(ctx, nil)
	var gone *temporal.UnknownExternalWorkflowExecutionError
	switch {
	case err != nil && !errors.As(err, &gone):
		return nil, plainly(err)
	case err != nil:
		return nil, wire.Encode(fault.New(fault.LoopNotFound, "no steward %s is running", in.Steward).
			Advise("`pawl steward list` shows the stewards."), nil)
	}
	return &Submitted{in.Steward, t.ID}, nil
}

// The search attributes in which Temporal gives the time of a schedule's slot and the schedule's ID.
var (
	scheduledFor = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")
	scheduledBy  = temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")
)
