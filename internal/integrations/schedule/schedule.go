// Package schedule keeps a steward's schedules (S5) in Temporal: cron or interval, time zone, catch-up window. Each
// slot starts the workflow Submit, which submits the task. The package decides nothing about tasks: the steward decides
// whether a slot's task may begin before the last one is over, and records every slot. Start at Ensure.
//
// The workflow that a slot starts knows its slot by the search attribute TemporalScheduledStartTime.
package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/lib/loosejson"
	"pawl/internal/loop/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// SubmitWorkflow is the type of the workflow that a slot starts.
const SubmitWorkflow = "Submit"

// CatchUp is how late a slot is taken by default: a laptop that has slept overnight takes it in the morning.
const CatchUp = 24 * time.Hour

// memo is the key of two memos. In the memo of a schedule it has the steward for which the schedule was made. In the
// memo of the workflows that the schedule starts it has the digest of what the schedule was made from. A schedule with
// neither is somebody else's, and pawl leaves it alone. Changes that a person makes in Temporal stay as long as the
// charter does not change.
const memo = "pawl"

// idOf returns a schedule's ID in Temporal.
func idOf(steward, name string) string { return steward + "/" + name }

// Ensure makes Temporal have exactly the schedules of c: it creates missing ones, updates those that c has changed, and
// deletes those that c no longer names. It makes no change without need, and people decide whether a schedule is
// paused.
func Ensure(ctx context.Context, schedules sdk.ScheduleClient, c charter.Charter) error {
	wanted := map[string]bool{}
	for _, s := range c.Schedules {
		wanted[idOf(c.Name, s.Name)] = true
		if err := ensure(ctx, schedules, c.Name, s); err != nil {
			return fmt.Errorf("the schedule %s: %w", s.Name, err)
		}
	}
	there, err := listed(ctx, schedules, c.Name)
	if err != nil {
		return err
	}
	for _, id := range there {
		if !wanted[id] {
			if err := removeOwn(ctx, schedules, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove deletes all schedules that Ensure has made for a steward, and no others. It also deletes those of c that
// Temporal's list does not have yet.
func Remove(ctx context.Context, schedules sdk.ScheduleClient, c charter.Charter) error {
	if err := Ensure(ctx, schedules, charter.Charter{Name: c.Name}); err != nil {
		return err
	}
	for _, s := range c.Schedules {
		if err := removeOwn(ctx, schedules, idOf(c.Name, s.Name)); err != nil {
			return err
		}
	}
	return nil
}

func ensure(ctx context.Context, schedules sdk.ScheduleClient, steward string, s charter.Schedule) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(text)) // of everything that the schedule is made from
	id := idOf(steward, s.Name)
	wanted := when(s)
	action := does(steward, s, digest)
	_, err = schedules.Create(ctx, sdk.ScheduleOptions{
		ID: id, Spec: wanted, Action: action, Overlap: overlap, CatchupWindow: catchUp(s), Note: "pawl: the steward " + steward, Memo: map[string]any{memo: steward},
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	handle := schedules.GetHandle(ctx, id)
	d, err := handle.Describe(ctx)
	switch {
	case err != nil || made(d) == digest:
		return err
	case !own(d):
		return &TakenError{id}
	}
	return handle.Update(ctx, sdk.ScheduleUpdateOptions{DoUpdate: func(in sdk.ScheduleUpdateInput) (*sdk.ScheduleUpdate, error) {
		now := in.Description.Schedule // its state says whether somebody has paused it
		now.Spec, now.Action = &wanted, action
		now.Policy = &sdk.SchedulePolicies{Overlap: overlap, CatchupWindow: catchUp(s)}
		return &sdk.ScheduleUpdate{Schedule: &now}, nil
	}})
}

// TakenError says that somebody else has made a schedule with the ID of one of the charter.
type TakenError struct{ ID string }

func (e *TakenError) Error() string {
	return "there is a schedule " + e.ID + " that pawl has not made: delete it in Temporal, or give one of the two another name"
}

// overlap lets Temporal start Submit for every slot, because no ledger would know of a slot that Temporal skips. Submit
// ends at once. A charter's `overlap` is about tasks, which live longer than Submit, so the steward applies it.
const overlap = enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL

func when(s charter.Schedule) sdk.ScheduleSpec {
	spec := sdk.ScheduleSpec{TimeZoneName: s.TimeZone}
	if s.Cron != "" {
		spec.CronExpressions = []string{s.Cron}
	} else {
		spec.Intervals = []sdk.ScheduleIntervalSpec{{Every: time.Duration(s.Every)}}
	}
	return spec
}

func catchUp(s charter.Schedule) time.Duration {
	if s.CatchUp > 0 {
		return time.Duration(s.CatchUp)
	}
	return CatchUp
}

func does(steward string, s charter.Schedule, digest string) *sdk.ScheduleWorkflowAction {
	t := s.Task
	t.Source = task.Scheduled + s.Name
	if t.Body == "" && t.Spec == nil && len(t.Plan) == 0 { // in a charter a title is enough, but a steward requires more
		t.Body = t.Title
	}
	in := task.Submission[task.Task]{Steward: steward, Task: t, By: t.Source, Trigger: &task.Trigger{Name: s.Name, From: "schedule"}}
	return &sdk.ScheduleWorkflowAction{
		ID: "submit-" + idOf(steward, s.Name), Workflow: SubmitWorkflow, Args: []any{in}, TaskQueue: api.TaskQueue,
		Memo: map[string]any{memo: digest}, StaticSummary: "The schedule " + s.Name + " hands a task to " + steward,
	}
}

// own reports whether pawl has made a schedule.
func own(d *sdk.ScheduleDescription) bool {
	return d.Memo.GetFields()[memo] != nil || made(d) != ""
}

// made returns the digest of what a schedule was made from, "" if it has none.
func made(d *sdk.ScheduleDescription) string {
	action, ok := d.Schedule.Action.(*sdk.ScheduleWorkflowAction)
	if !ok {
		return ""
	}
	p, _ := action.Memo[memo].(*commonpb.Payload)
	return loosejson.Decode[string](p.GetData()) // it may be somebody else's memo
}

// listed returns the IDs of all schedules with the names of a steward's schedules, also of those that somebody else has
// made. A schedule that was made a moment ago may be missing.
func listed(ctx context.Context, schedules sdk.ScheduleClient, steward string) (ids []string, err error) {
	all, err := schedules.List(ctx, sdk.ScheduleListOptions{PageSize: 1000})
	if err != nil {
		return nil, fmt.Errorf("listing schedules: %w", err)
	}
	for all.HasNext() {
		s, err := all.Next()
		if err != nil {
			return nil, fmt.Errorf("listing schedules: %w", err)
		}
		if name, has := strings.CutPrefix(s.ID, idOf(steward, "")); has && !strings.Contains(name, "/") { // else of a steward shop/eu
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// removeOwn deletes a schedule, unless somebody else has made it.
func removeOwn(ctx context.Context, schedules sdk.ScheduleClient, id string) error {
	handle := schedules.GetHandle(ctx, id)
	d, err := handle.Describe(ctx)
	if gone(err) || err == nil && !own(d) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for the schedule %s: %w", id, err)
	}
	if err := handle.Delete(ctx); err != nil && !gone(err) {
		return fmt.Errorf("deleting the schedule %s: %w", id, err)
	}
	return nil
}

func gone(err error) bool {
	var e *serviceerror.NotFound
	return errors.As(err, &e)
}
