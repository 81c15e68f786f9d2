package steward

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/integrations/schedule"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/statusfile"
	"pawl/internal/steward/task"
	"pawl/internal/telemetry"
)

// RecordTasks appends events to a steward's ledger, with the artifacts for people (S7), also in the project's .pawl
// folder. A file that somebody changed there is drift, and is only overwritten if a person says so.
func (a *Stewards) RecordTasks(ctx context.Context, input stewardapi.RecordTasks) (stewardapi.TasksRecorded, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return stewardapi.TasksRecorded{}, err
	}
	crashpoint.At("tasks.before")
	var out stewardapi.TasksRecorded
	if out.Appended, err = recordTasks(ctx, ws, input); err != nil {
		return out, err
	}
	crashpoint.At("tasks.appended")
	if out.PushRefused, err = restoreLedger(ctx, ws, input.Events, out.Ledger); err != nil {
		return out, err
	}
	switch {
	case ws.Remote: // it was pushed with the append
	case !input.Close:
		ws.PushSoon(true)
	default:
		reason, err := ws.Push(ctx)
		if err != nil {
			return out, err
		}
		out.PushRefused = cmp.Or(reason, out.PushRefused)
	}
	if out.PushRefused == "" {
		out.PushRefused = ws.PopRefusal()
	}
	if out.Drift, out.Well, err = exportArtifacts(ctx, ws, input, out.Ledger); err != nil {
		return out, err
	}
	crashpoint.At("tasks.exported")
	out.Stop = ws.LoopStop()
	if !input.Close && slices.ContainsFunc(input.Events, leadsToStep) {
		if out.Governance, err = governance(ctx, ws, out.Ledger); err != nil {
			return out, err
		}
	}
	if input.Close {
		ws.EndProcesses()
		if err := a.removeSchedules(ctx, ws, out.Ledger); err != nil {
			return out, err
		}
		if err := a.CloseTrees(ctx, ws); err != nil {
			return out, err
		}
	}
	crashpoint.At("tasks.after")
	return out, nil
}

// restoreLedger puts the ledger in the project's repository back, if an answer among the events says so.
func restoreLedger(ctx context.Context, ws *workspace.Workspace, events []loop.Event, head string) (refused string, err error) {
	for _, e := range events {
		if e.Type != loop.GateClosed || e.Answer == nil || e.Drift == nil {
			continue
		}
		if !e.Drift.Restorable || e.Answer.Choice != steward.Restore {
			continue
		}
		if refused, err = ws.RestoreLedger(ctx, head, e.Drift.Theirs); err != nil {
			return "", err
		}
	}
	return refused, nil
}

// removeSchedules removes the schedules of a steward that ends: nobody would take their tasks. If it can't, the steward
// ends all the same, and `pawl steward stop` removes them.
func (a *Stewards) removeSchedules(ctx context.Context, ws *workspace.Workspace, head string) error {
	c, err := ws.StewardBook.Charter(ctx, head)
	if err != nil || len(c.Schedules) == 0 {
		return err
	}
	if err := schedule.Remove(ctx, a.Temporal(ctx).ScheduleClient(), c); err != nil {
		a.Logger.WarnContext(ctx, "the schedules of a steward could not be removed", "steward", ws.Loop, "error", err)
	}
	return ctx.Err()
}

// leadsToStep reports whether a step may begin next because of an event.
func leadsToStep(e loop.Event) bool {
	return e.Type == loop.MilestoneReached || e.Type == loop.TaskStateChanged && e.To == task.Executing
}

// governance returns the SHA-256 of the governance files as they are now, "" if the charter names none or the project
// can't be read. Validation reports the latter where it matters.
func governance(ctx context.Context, ws *workspace.Workspace, head string) (string, error) {
	c, err := ws.StewardBook.Charter(ctx, head)
	if err != nil || len(c.Governance) == 0 {
		return "", err
	}
	_, hash, err := project(ctx, ws, c)
	return hash, err
}

// project returns the project's head and the SHA-256 of its governance files, "" if the project can't be read now.
// Planning and pushes report that where it matters.
func project(ctx context.Context, ws *workspace.Workspace, c charter.Charter) (commit, governance string, err error) {
	repo, err := ws.Repository()
	if err == nil {
		defer repo.Close()
		commit, err = userrepo.Fetch(ctx, ws.Objects, repo, ws.Onto)
	}
	if err != nil {
		return "", "", ctx.Err()
	}
	files, err := ws.Objects.Entries(ctx, commit)
	if err != nil {
		return "", "", fmt.Errorf("listing the project's files: %w", err)
	}
	_, governance = governing(c, files)
	return commit, governance, nil
}

// record appends on this host and, with a URL, in the shared repository.
func recordTasks(ctx context.Context, ws *workspace.Workspace, input stewardapi.RecordTasks) (api.Appended, error) {
	if len(input.Events) == 0 && input.Ledger != "" {
		return api.Appended{Ledger: input.Ledger}, nil
	}
	var page ledger.Page[steward.State]
	left, commit, err := record.Transact(ctx, ws, input.Entry, store.Tx{}, func(left api.Entry, _ string) (store.Entry, error) {
		files, folded, err := ws.StewardBook.Entry(ctx, left.Ledger, left.Events, func(hash string) ([]byte, error) { return text(ws, hash) })
		if err != nil {
			return store.Entry{}, err
		}
		page = folded
		c, err := charterAt(ctx, ws, left.Ledger, folded.State.Charter)
		if err != nil {
			return store.Entry{}, err
		}
		files[ledger.StatusFile] = statusfile.Status(folded.State, c)
		if input.Milestone {
			files[ledger.LastKnownFile] = statusfile.LastKnown(folded.State, c)
		}
		return store.Entry{
			Ref: ws.Ledger, Prev: left.Ledger, Code: folded.State.Base, Files: files, Message: tasksMessage(left.Events),
			Time: record.TimeOf(left.Events), Author: ws.Author(),
		}, nil
	})
	if err != nil {
		return api.Appended{}, err
	}
	if len(left.Events) > 0 {
		ws.StewardBook.Appended(commit, page)
		record.NoteHeads(ws, commit, "")
		record.Observe(ctx, ws, left.Ledger, telemetry.Steward(page.State), left.Events)
	}
	switch {
	case ws.Remote && input.Hasty:
		err = ws.PublishBriefly(ctx, false)
	case ws.Remote:
		crashpoint.At("append.written")
		err = ws.Publish(ctx, false)
	}
	return api.Appended{Ledger: commit, Mended: record.MendedSince(ws, input.Events)}, err
}

// charterAt returns the charter with that hash: the one that was kept for the next entry, else the one in the ledger.
func charterAt(ctx context.Context, ws *workspace.Workspace, head, hash string) (c charter.Charter, err error) {
	text, err := text(ws, hash)
	if err != nil {
		return ws.StewardBook.Charter(ctx, head)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("reading the charter: %w", err)
	}
	return c, nil
}

// tasksMessage returns the line for an entry in `git log` of a steward's ledger.
func tasksMessage(events []loop.Event) string {
	if len(events) == 0 {
		return "ledger(steward)"
	}
	last := events[len(events)-1]
	return fmt.Sprintf("ledger(%s): %s", cmp.Or(last.Task, "steward"), last.Type)
}
