package loop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop/api"
	"pawl/workflows/placement"
)

// Apply applies the approved proposal of a loop that has ended to the branch that the loop started from. Its input is
// {"loop": …, "hash": …, "how": "ff", "merge", "squash" or "patch"}, with "by" for the record. It approves nothing: if
// nobody approved the proposal by exactly that hash, it fails, and the failure's type is the code of what is missing.
func Apply(ctx workflow.Context, input converter.RawValue) (*api.Applied, error) {
	var request api.Apply
	given := struct{ Loop, Hash, How, By *string }{&request.Loop, &request.Hash, &request.How, &request.By}
	if err := read(input, "loop, hash, how (ff, merge, squash or patch), by (optional)", &given, &request.Loop, &request.Hash, &request.How); err != nil {
		return nil, err
	}
	request.Time = workflow.Now(ctx).UTC()
	var out api.Applied
	if err := onHost(ctx, request.Loop, api.ApplyName, "apply "+request.Hash+" ("+request.How+")", request, &out); err != nil {
		return nil, err
	}
	if m := out.Moved; m != nil {
		f := fault.New(fault.BaseMoved, "%s; the proposal that takes its place has the hash %s", strings.TrimSuffix(out.MovedReason(request.Hash), "."), m.Hash)
		return nil, wire.Encode(f, out)
	}
	return &out, nil
}

// Review records a person's decision on the proposal of a loop that has ended without one. Its input is {"loop": …,
// "hash": …, "answer": "approve" or "reject"}, with "by" and "note" for the record.
func Review(ctx workflow.Context, input converter.RawValue) (*api.Reviewed, error) {
	var request api.Review
	given := struct{ Loop, Hash, Answer, By, Note *string }{&request.Loop, &request.Hash, &request.Answer, &request.By, &request.Note}
	if err := read(input, "loop, hash, answer (approve or reject), by and note (optional)", &given, &request.Loop, &request.Hash, &request.Answer); err != nil {
		return nil, err
	}
	request.Time = workflow.Now(ctx).UTC()
	var out api.Reviewed
	if err := onHost(ctx, request.Loop, api.ReviewName, request.Answer+" "+request.Hash, request, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// read reads one JSON object with known keys, all of them texts; the keys in the last argument are required.
func read(input converter.RawValue, keys string, target any, required ...*string) error {
	d := json.NewDecoder(bytes.NewReader(input.Payload().GetData()))
	d.DisallowUnknownFields()
	err := d.Decode(target)
	if err == nil && !d.More() && !slices.ContainsFunc(required, func(text *string) bool { return *text == "" }) {
		return nil
	}
	return wire.Refusal(fault.New(fault.InvalidMessage, "the input is not one JSON object with these texts: %s", keys).
		Advise("Start the workflow again with such an input."))
}

// hostBound is the longest time to wait for the host that has the loop's store.
const hostBound = 24 * time.Hour

// plainly turns the fault of a failed activity into the workflow's fault.
func plainly(err error) error {
	if f := wire.Decode(err); f != nil {
		return wire.Encode(f, nil)
	}
	return err
}

// onHost runs an activity on the host that has the store of a loop.
func onHost(ctx workflow.Context, loop, name, summary string, input, output any) error {
	options := workflow.ActivityOptions{
		TaskQueue: api.TaskQueue, StartToCloseTimeout: placement.Bookkeeping, HeartbeatTimeout: placement.Heartbeat, ScheduleToCloseTimeout: hostBound,
		RetryPolicy: placement.Retries, Summary: "find " + markdown.Text(loop),
	}
	var found api.Found
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), api.FindName, api.Find{Loop: loop}).Get(ctx, &found)
	if err != nil {
		return plainly(err)
	}
	options.TaskQueue, options.Summary = found.Queue, summary
	return plainly(workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, input).Get(ctx, output))
}
