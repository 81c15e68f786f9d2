package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"pawl/internal/act"
	"pawl/internal/artifact"
	"pawl/internal/charter"
	"pawl/internal/crash"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/store"
	"pawl/internal/task"
	"pawl/internal/telemetry"
	"pawl/internal/userrepo"
)

// RecordTasks appends to a steward's ledger what has happened, with the artifacts that people read
// (S7), and writes those into the project's .pawl folder. What somebody has changed there by hand is
// drift: it is reported and never written over, unless a person says so.
func (a *Stewards) RecordTasks(ctx context.Context, in act.RecordTasks) (act.TasksRecorded, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.TasksRecorded{}, err
	}
	crash.At("tasks.before")
	var out act.TasksRecorded
	if out.Appended, err = ws.record(ctx, in); err != nil {
		return out, err
	}
	crash.At("tasks.appended")
	if !ws.Remote { // else it was pushed with the append
		if in.Close {
			out.PushRefused, err = ws.push(ctx)
			if err != nil {
				return out, err
			}
		} else {
			ws.pushSoon(true)
		}
	}
	if out.PushRefused == "" {
		out.PushRefused = ws.popRefusal()
	}
	if out.Artifacts, out.Drift, out.Well, err = ws.exportArtifacts(ctx, in, out.Ledger); err != nil {
		return out, err
	}
	crash.At("tasks.exported")
	out.Stop = ws.loopStop()
	if !in.Close && slices.ContainsFunc(in.Events, leadsToStep) {
		if out.Governance, err = ws.governance(ctx, out.Ledger); err != nil {
			return out, err
		}
	}
	if in.Close {
		ws.endProcesses()
		if err := a.removeTrees(ctx, ws); err != nil {
			return out, err
		}
	}
	crash.At("tasks.after")
	return out, nil
}

// leadsToStep reports whether a step may begin next because of an event.
func leadsToStep(e loop.Event) bool {
	return e.Type == loop.MilestoneReached || e.Type == loop.TaskStateChanged && e.To == task.Executing
}

// governance returns the SHA-256 of the governance files as they are now, "" where the charter names none or the
// project can't be read: validation says so where it matters.
func (ws *loopWorkspace) governance(ctx context.Context, head string) (string, error) {
	c, err := ws.steward.Charter(ctx, head)
	if err != nil || len(c.Governance) == 0 {
		return "", err
	}
	repo, err := ws.repository()
	if err != nil { // a push says so
		return "", nil //nolint:nilerr // see there
	}
	defer repo.Close()
	at, err := userrepo.Fetch(ctx, ws.store, repo, ws.Onto)
	if err != nil {
		return "", ctx.Err()
	}
	files, err := ws.store.Entries(ctx, at)
	if err != nil {
		return "", fmt.Errorf("listing the project's files: %w", err)
	}
	_, hash := governing(c, files)
	return hash, nil
}

// record appends, on this host and with a URL in the repository that it shares with others.
func (ws *loopWorkspace) record(ctx context.Context, in act.RecordTasks) (act.Appended, error) {
	if len(in.Events) == 0 && in.Ledger != "" {
		return act.Appended{Ledger: in.Ledger}, nil
	}
	var page ledger.Page[steward.State]
	left, at, err := ws.transact(ctx, in.Entry, store.Tx{}, func(left act.Entry, _ string) (store.Entry, error) {
		files, folded, err := ws.steward.Entry(ctx, left.Ledger, left.Events, func(hash string) ([]byte, error) { return ws.text(hash) })
		if err != nil {
			return store.Entry{}, err
		}
		page = folded
		c, err := ws.charter(ctx, left.Ledger, folded.State.Charter)
		if err != nil {
			return store.Entry{}, err
		}
		files[ledger.StatusFile] = artifact.Status(folded.State, c)
		if in.Milestone {
			files[ledger.LastKnownFile] = artifact.LastKnown(folded.State, c)
		}
		return store.Entry{
			Ref: ws.Ledger, Prev: left.Ledger, Code: folded.State.Base, Files: files, Message: tasksMessage(left.Events),
			Time: timeOf(left.Events), Author: ws.author(),
		}, nil
	})
	if err != nil {
		return act.Appended{}, err
	}
	if len(left.Events) > 0 {
		ws.steward.Appended(at, page)
		ws.noteHeads(at, "")
		ws.log(ctx, left.Events)
		ws.machine.Telemetry.Appended(ctx, telemetry.Steward(page.State), left.Events, func(ctx context.Context) ([]loop.Event, error) {
			if left.Ledger == "" {
				return nil, nil
			}
			return ws.steward.Events(ctx, left.Ledger)
		})
	}
	if ws.Remote {
		crash.At("append.written")
		err = ws.publish(ctx, false)
	}
	return act.Appended{Ledger: at, Mended: ws.mendedSince(in.Events)}, err
}

// charter returns the charter with that hash: as it was kept for the next entry, else as the ledger has
// it.
func (ws *loopWorkspace) charter(ctx context.Context, head, hash string) (c charter.Charter, err error) {
	text, err := ws.text(hash)
	if err != nil {
		return ws.steward.Charter(ctx, head)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("reading the charter: %w", err)
	}
	return c, nil
}

// tasksMessage is what `git log` of a steward's ledger shows.
func tasksMessage(events []loop.Event) string {
	if len(events) == 0 {
		return "ledger(steward)"
	}
	last := events[len(events)-1]
	of := last.Task
	if last.Submitted != nil {
		of = last.Submitted.ID
	}
	if of == "" {
		return "ledger(steward): " + string(last.Type)
	}
	return fmt.Sprintf("ledger(%s): %s", of, last.Type)
}
