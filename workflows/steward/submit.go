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
	var submission task.Submission[json.RawMessage]
	d := json.NewDecoder(bytes.NewReader(input.Payload().GetData()))
	d.DisallowUnknownFields()
	wrong := ""
	switch err := d.Decode(&submission); {
	case errors.Is(err, io.EOF):
		wrong = "it is empty"
	case err != nil:
		wrong = loop.Plain(err)
	case d.More():
		wrong = "something follows the object"
	case submission.Steward == "":
		wrong = `"steward" is missing`
	case len(submission.Task) == 0:
		wrong = `"task" is missing`
	}
	if wrong != "" {
		return nil, wire.Refusal(fault.New(fault.InvalidMessage, `the input is not one JSON object with "steward" and "task": %s`, wrong).
			Advise("Start the workflow again with such an input."))
	}
	t, err := task.DecodeTask(submission.Task, charter.Specs)
	if err != nil {
		return nil, wire.Refusal(err)
	}
	info := workflow.GetInfo(ctx)
	slot, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledFor)
	if scheduled && submission.Trigger != nil {
		submission.Trigger.Delivery = slot.UTC().Format(time.RFC3339)
		t.Dedupe = t.Source + " " + submission.Trigger.Delivery
	} else if t.Dedupe == "" && t.ID == "" {
		t.ID = task.IDOf(t, info.OriginalRunID) // the same ID after a reset
	}
	if submission.Trigger == nil {
		submission.Trigger = &task.Trigger{Name: "Submit", From: "person", Delivery: info.WorkflowExecution.ID}
	}
	if schedule, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(scheduledBy); scheduled && submission.Trigger.From == "person" { // the schedule was made in Temporal
		submission.By = cmp.Or(submission.By, "the Temporal schedule "+schedule)
		submission.Trigger.Name, submission.Trigger.From = schedule, "schedule"
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	m := steward.Message{By: submission.By, Task: doc, Trigger: submission.Trigger}
	err = workflow.SignalExternalWorkflow(ctx, submission.Steward, "", steward.MessageSubmit, m).Get(ctx, nil)
	var notFound *temporal.UnknownExternalWorkflowExecutionError
	switch {
	case err != nil && !errors.As(err, &notFound):
		return nil, plainly(err)
	case err != nil:
		return nil, wire.Encode(fault.New(fault.LoopNotFound, "no steward %s is running", submission.Steward).
			Advise("`pawl steward list` shows the stewards."), nil)
	}
	return &Submitted{submission.Steward, t.ID}, nil
}

// The search attributes in which Temporal gives the time of a schedule's slot and the schedule's ID.
var (
	scheduledFor = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")
	scheduledBy  = temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")
)
