package steward

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/activities/workspace"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// The files that a steward writes into the project's .pawl folder are copies from its ledger, for people. For each
// file, a note in the store says what was written, so that a change by somebody else is noticed.

// exported is the note about a file.
type exported struct {
	// Written has the digests of what was written, the last one first. The one before is also valid, because a crash
	// may have come between note and file.
	Written []string `json:"written"`
	// Kept is the digest of a person's version that the person wants this steward to keep. The note about the folder
	// has one if the person wants the folder to stay deleted.
	Kept *string `json:"kept,omitempty"`
}

func noteFile(ws *workspace.Workspace, name string) string {
	return filepath.Join(ws.Store, "pawl-exports", strings.ReplaceAll(name, "/", ",")+".json")
}

// note returns the note about a file. It is empty if there is none, or if a power cut has damaged it.
func note(ws *workspace.Workspace, name string) (exported, error) {
	var n exported
	err := durable.ReadJSON(noteFile(ws, name), &n)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrTorn) {
		return exported{}, nil
	}
	return n, err
}

func setNote(ws *workspace.Workspace, name string, n any) error {
	path := noteFile(ws, name)
	if err := os.MkdirAll(dirfd.At(filepath.Dir(path)), 0o700); err != nil {
		return err
	}
	return durable.WriteJSON(path, n)
}

// ownerNote is the note that names the steward which has the folder. It is about no file.
const ownerNote = "owner"

// ownsFolder reports whether this steward has the project's folder. It takes it if no other running steward has it.
func ownsFolder(ws *workspace.Workspace) (bool, error) {
	var owner string
	if durable.ReadJSON(noteFile(ws, ownerNote), &owner) == nil {
		if owner == ws.Ref {
			return true, nil
		}
		if record, err := hostrecord.Read(ws.Machine.Home, owner); err == nil && !record.Closed && record.Store == ws.Store {
			return false, nil
		}
	}
	if err := takeFolder(ws); err != nil {
		return false, err
	}
	return true, setNote(ws, ownerNote, ws.Ref)
}

// takeFolder forgets what people said about the files of an earlier steward, because that was for that steward alone.
// Its files are still known as pawl's own. Those that are gone are no loss, because this steward has not written them.
func takeFolder(ws *workspace.Workspace) error {
	names, err := noted(ws)
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := note(ws, name)
		if err != nil {
			return err
		}
		n.Kept = nil
		if !slices.Contains(n.Written, userrepo.Absent) {
			n.Written = append(n.Written, userrepo.Absent)
		}
		if err := setNote(ws, name, n); err != nil {
			return err
		}
	}
	return nil
}

// noted returns the names of which there are notes.
func noted(ws *workspace.Workspace) (names []string, err error) {
	files, err := os.ReadDir(dirfd.At(filepath.Dir(noteFile(ws, ""))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, file := range files {
		if name, ok := strings.CutSuffix(strings.ReplaceAll(file.Name(), ",", "/"), ".json"); ok && name != ownerNote {
			names = append(names, name)
		}
	}
	return names, nil
}

// exportArtifacts writes the artifacts of an entry into the project's folder. It returns the drift that it found
// there, and the drift that has passed.
func exportArtifacts(ctx context.Context, ws *workspace.Workspace, input stewardapi.RecordTasks, head string) (drift, healed []task.Drift, err error) {
	names := []string{ledger.StatusFile}
	if input.Milestone {
		names = append(names, ledger.LastKnownFile)
	}
	for _, e := range input.Events {
		if e.Type == loop.PlanMade {
			names = append(names, ledger.TaskPlanFile(e.Task))
		}
	}
	answered := answersOf(input.Events)
	for name := range answered {
		if name != userrepo.FolderName { // the folder itself is not a file of the ledger
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	files, err := ws.Objects.ReadLedger(ctx, head, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading what is to be exported: %w", err)
	}
	if owns, err := ownsFolder(ws); err != nil || !owns {
		return nil, nil, err
	}
	for _, said := range answered {
		if said.choice == steward.Restore {
			if err := letBack(ws); err != nil {
				return nil, nil, err
			}
		}
	}
	folder, err := folder(ctx, ws)
	if pre, ok := errors.AsType[*userrepo.Precondition](err); ok {
		return []task.Drift{driftOf(userrepo.FolderName, pre.What, "", "")}, nil, nil
	}
	switch {
	case userrepo.Unwritten(err) || err == nil && folder == nil && ws.Remote:
		return nil, nil, nil
	case err == nil && folder == nil:
		return nil, nil, keepAway(ws, names, files)
	case err != nil:
		return nil, nil, fmt.Errorf("opening the project's folder: %w", err)
	}
	defer folder.Close()
	if err := letBack(ws); err != nil { // a person has made it again
		return nil, nil, err
	}
	missing, deleted, err := gone(ws, folder)
	if err != nil {
		return nil, nil, err
	}
	if deleted != nil {
		said := answered[userrepo.FolderName]
		switch {
		case said.choice == steward.Restore:
			contents, err := ws.Objects.ReadLedger(ctx, head, missing...)
			if err != nil {
				return nil, nil, fmt.Errorf("reading what is to be restored: %w", err)
			}
			for name, content := range contents {
				files[name], answered[name] = content, answer{driftOf(name, "", userrepo.Absent, ""), steward.Restore}
			}
			names = slices.Sorted(maps.Keys(files))
		case said.choice == steward.Keep && said.drift.Theirs == deleted.Theirs:
			if err := keepAway(ws, slices.Concat(missing, names), files); err != nil {
				return nil, nil, err
			}
		default:
			return []task.Drift{*deleted}, nil, nil
		}
	}
	for _, name := range names {
		content, ok := files[name]
		if !ok {
			continue
		}
		d, err := exportFile(ws, folder, name, content, answered[name])
		if err != nil && !userrepo.Unwritten(err) {
			return nil, nil, fmt.Errorf("writing %s: %w", filepath.Join(folder.Path, name), err)
		}
		if d != nil {
			drift = append(drift, *d)
		}
	}
	state, err := ws.StewardBook.State(ctx, head)
	if err == nil {
		healed, err = wellAgain(ws, folder, state)
	}
	return drift, healed, err
}

// gone returns the files that pawl wrote into the folder, if all of them were deleted, and one drift about all: then
// somebody does not want the folder, and is asked once.
func gone(ws *workspace.Workspace, folder *userrepo.Folder) (missing []string, d *task.Drift, err error) {
	names, err := noted(ws)
	if err != nil {
		return nil, nil, err
	}
	ofTasks := list.Filter(names, func(name string) bool { return strings.Contains(name, "/") })
	items := ""
	for _, name := range append([]string{ledger.StatusFile, ledger.LastKnownFile}, ofTasks...) { // the first two exist nearly always
		n, err := note(ws, name)
		if err != nil {
			return nil, nil, err
		}
		if len(n.Written) == 0 || slices.Contains(n.Written, userrepo.Absent) || n.Kept != nil && *n.Kept == userrepo.Absent {
			continue // a file that was not written says nothing
		}
		if now, err := folder.Digest(name); err != nil || now != userrepo.Absent {
			return nil, nil, err
		}
		missing, items = append(missing, name), items+name+" "+n.Written[0]+"\n"
	}
	if len(missing) < 2 {
		return nil, nil, nil
	}
	digest := ledger.HashOf([]byte(items))
	text := fmt.Sprintf("%s was deleted: the %d files that pawl wrote there are gone", folder.Path, len(missing))
	return missing, new(driftOf(userrepo.FolderName, text, "nothing of "+digest, digest)), nil
}

// keepAway records that a person wants the folder to stay deleted, with these files, even those never written. contents
// are those that pawl would write.
func keepAway(ws *workspace.Workspace, names []string, contents map[string][]byte) error {
	for _, name := range append(slices.Clip(names), userrepo.FolderName) {
		n, err := note(ws, name)
		if err != nil {
			return err
		}
		if n.Kept != nil && *n.Kept == userrepo.Absent {
			continue
		}
		n.Kept = new(userrepo.Absent)
		n.Written = slices.DeleteFunc(n.Written, func(digest string) bool { return digest == userrepo.Absent })
		if content, ok := contents[name]; ok && len(n.Written) == 0 {
			n.Written = []string{ledger.HashOf(content)}
		}
		if err := setNote(ws, name, n); err != nil {
			return err
		}
	}
	return nil
}

// letBack forgets that a person wanted the folder to stay deleted. What was said about its files holds.
func letBack(ws *workspace.Workspace) error {
	if n, err := note(ws, userrepo.FolderName); err != nil || n.Kept == nil {
		return err
	}
	return setNote(ws, userrepo.FolderName, exported{})
}

// wellAgain returns the artifacts that were found changed, or that a person kept so, and that are now again as pawl wrote
// them. For those that nobody has answered yet, it also returns the ones that are as a person kept them before.
func wellAgain(ws *workspace.Workspace, folder *userrepo.Folder, state steward.State) (healed []task.Drift, err error) {
	for i, d := range slices.Concat(state.Drift, state.Accepted) {
		accepted := i >= len(state.Drift)
		if d.Name != task.DriftArtifact || d.Well != "" || slices.ContainsFunc(healed, func(drift task.Drift) bool { return drift.What == d.What }) {
			continue
		}
		path, manner := folder.Path, "can be used again"
		if d.What != userrepo.FolderName {
			path, manner = filepath.Join(folder.Path, d.What), "is again as pawl wrote it"
			n, err := note(ws, d.What)
			if err != nil {
				return nil, err
			}
			now, err := folder.Digest(d.What)
			if err != nil {
				return nil, err
			}
			switch {
			case slices.Contains(n.Written, now):
			case !accepted && n.Kept != nil && *n.Kept == now:
				manner = "is again as you kept it"
			default:
				continue
			}
		} else if accepted && d.Theirs != "" { // a deleted folder, whose files have answers of their own
			continue
		}
		healed = append(healed, driftOf(d.What, path+" "+manner, "", ""))
	}
	return healed, nil
}

// answer is a person's answer about a changed artifact.
type answer struct {
	drift  task.Drift
	choice string
}

// answersOf returns the answers in an entry, by file.
func answersOf(events []loop.Event) map[string]answer {
	out := map[string]answer{}
	for _, e := range events {
		if e.Type == loop.GateClosed && e.Drift != nil && e.Drift.Name == task.DriftArtifact && e.Answer != nil {
			out[e.Drift.What] = answer{*e.Drift, e.Answer.Choice}
		}
	}
	return out
}

// exportFile writes one file, unless somebody changed it since pawl wrote it. A version that the person wants to keep
// stays as it is. If the person wants to restore the file, it is overwritten.
func exportFile(ws *workspace.Workspace, folder *userrepo.Folder, name string, content []byte, said answer) (*task.Drift, error) {
	n, err := note(ws, name)
	if err != nil {
		return nil, err
	}
	now, err := folder.Digest(name)
	if err != nil {
		return nil, err
	}
	ours := ledger.HashOf(content)
	switch {
	case now == ours || slices.Contains(n.Written, now) || now == userrepo.Absent && len(n.Written) == 0:
	case said.choice == steward.Restore && said.drift.Theirs == now:
	case said.choice == steward.Restore && said.drift.Well != "" && n.Kept != nil && *n.Kept == now:
	case said.choice == steward.Keep && said.drift.Theirs == now:
		n.Kept = &now
		return nil, setNote(ws, name, n)
	case n.Kept != nil && *n.Kept == now:
		return nil, nil
	default:
		return edited(folder, name, now, ours), nil
	}
	if len(n.Written) == 0 || n.Written[0] != ours || n.Kept != nil || slices.Contains(n.Written, userrepo.Absent) {
		n.Kept = nil
		if now == userrepo.Absent {
			n.Written = []string{userrepo.Absent} // before this there was no file
		}
		if n.Written = append([]string{ours}, n.Written...); len(n.Written) > 2 {
			n.Written = n.Written[:2]
		}
		if err := setNote(ws, name, n); err != nil {
			return nil, err
		}
	}
	crashpoint.At("tasks.noted")
	if now == ours {
		return nil, nil
	}
	err = folder.Write(name, content, now)
	if errors.Is(err, userrepo.ErrChanged) {
		now, err := folder.Digest(name)
		return edited(folder, name, now, ours), err
	}
	if err != nil || now != userrepo.Absent {
		return nil, err
	}
	n.Written = []string{ours} // from now on a missing file counts as deleted
	return nil, setNote(ws, name, n)
}

// edited returns the drift of a file that somebody has changed.
func edited(folder *userrepo.Folder, name, now, ours string) *task.Drift {
	return new(driftOf(name, saysOf(filepath.Join(folder.Path, name), now), now, ours))
}

// driftOf returns the difference between an artifact as it was written and as it is.
func driftOf(name, text, theirs, ours string) task.Drift {
	return task.Drift{Name: task.DriftArtifact, What: name, Text: text, Theirs: theirs, Ours: ours}
}

// saysOf returns, in words, what happened to a file.
func saysOf(path, now string) string {
	switch now {
	case userrepo.Absent:
		return path + " was deleted"
	case userrepo.NoFile, userrepo.TooLong:
		return path + " is " + now + " now"
	}
	return path + " was edited"
}
