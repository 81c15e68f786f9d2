package stewards

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

	"pawl/activities/hosted"
	"pawl/activities/recording"
	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/held"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/task"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// What a steward writes into the project's .pawl folder is a copy of what its ledger has, for people.
// Whether a file there is still as it was written, a note in the store says, one for each file.

// exported is the note of a file.
type exported struct {
	// Written are the digests of what was written, the last one first. The one before counts as well:
	// a crash may have come between note and file.
	Written []string `json:"written"`
	// Kept is what a person has made of the file and wants to keep.
	Kept *string `json:"kept,omitempty"`
}

func noteFile(ws *hosted.Workspace, name string) string {
	return filepath.Join(ws.Store, "pawl-exports", strings.ReplaceAll(name, "/", ",")+".json")
}

// note returns the note of a file; the empty one where there is none, or a power cut has torn it.
func note(ws *hosted.Workspace, name string) (exported, error) {
	var n exported
	err := durable.ReadJSON(noteFile(ws, name), &n)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrTorn) {
		return exported{}, nil
	}
	return n, err
}

func setNote(ws *hosted.Workspace, name string, n exported) error {
	path := noteFile(ws, name)
	if err := os.MkdirAll(held.At(filepath.Dir(path)), 0o700); err != nil {
		return err
	}
	return durable.WriteJSON(path, n)
}

// ownsFolder reports whether the project's folder is this steward's, and takes it where no other
// steward at work has it.
func ownsFolder(ws *hosted.Workspace) (bool, error) {
	path := filepath.Join(ws.Store, "pawl-exports", "owner.json")
	var owner string
	err := durable.ReadJSON(path, &owner)
	if err == nil && owner != ws.Ref {
		other, err := workspace.Read(ws.Machine.Home, owner)
		if err == nil && !other.Closed && other.Store == ws.Store {
			return false, nil
		}
	}
	if err == nil && owner == ws.Ref {
		return true, nil
	}
	if err := os.MkdirAll(held.At(filepath.Dir(path)), 0o700); err != nil {
		return false, err
	}
	return true, durable.WriteJSON(path, ws.Ref)
}

// exportArtifacts writes what an entry has for people into the project's folder, and returns the digests of what was
// written, what was found changed there, and what had been and is no more.
func exportArtifacts(ctx context.Context, ws *hosted.Workspace, in act.RecordTasks, head string) (digests map[string]string, drift, well []task.Drift, err error) {
	names := []string{ledger.StatusFile}
	if in.Milestone {
		names = append(names, ledger.LastKnownFile)
	}
	for _, e := range in.Events {
		if e.Type == loop.PlanMade {
			names = append(names, ledger.TaskPlanFile(e.Task))
		}
	}
	answered := answersOf(in.Events)
	for name := range answered {
		if name != userrepo.FolderName { // the folder itself is no file of the ledger
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	files, err := ws.Objects.ReadLedger(ctx, head, names...)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading what is to be exported: %w", err)
	}
	digests = map[string]string{}
	for name, content := range files {
		digests[name] = recording.HashOf(content)
	}
	owns, err := ownsFolder(ws)
	if err != nil || !owns {
		return digests, nil, nil, err
	}
	folder, err := folder(ctx, ws)
	var pre *userrepo.Precondition
	if errors.As(err, &pre) {
		return digests, []task.Drift{driftOf(ws, userrepo.FolderName, pre.What, "", "")}, nil, nil
	}
	if userrepo.Unwritten(err) || err == nil && folder == nil {
		return digests, nil, nil, nil
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("opening the project's folder: %w", err)
	}
	defer folder.Close()
	missing, deleted, err := gone(ws, folder)
	if err != nil {
		return nil, nil, nil, err
	}
	if deleted != nil {
		said := answered[userrepo.FolderName]
		switch {
		case said.choice == steward.Restore:
			all, err := ws.Objects.ReadLedger(ctx, head, missing...)
			if err != nil {
				return nil, nil, nil, fmt.Errorf("reading what is to be restored: %w", err)
			}
			for name, content := range all {
				files[name], answered[name] = content, answer{driftOf(ws, name, "", userrepo.Absent, ""), steward.Restore}
			}
			names = slices.Sorted(maps.Keys(files))
		case said.choice == steward.Keep && said.drift.Theirs == deleted.Theirs:
			if err := keepAway(ws, missing); err != nil {
				return nil, nil, nil, err
			}
		default:
			return digests, []task.Drift{*deleted}, nil, nil
		}
	}
	for _, name := range names {
		content, has := files[name]
		if !has {
			continue
		}
		d, err := exportFile(ws, folder, name, content, answered[name])
		if err != nil && !userrepo.Unwritten(err) {
			return nil, nil, nil, fmt.Errorf("writing %s: %w", filepath.Join(folder.Path, name), err)
		}
		if d != nil {
			drift = append(drift, *d)
		}
	}
	state, err := ws.StewardBook.State(ctx, head)
	if err == nil {
		well, err = wellAgain(ws, folder, state.Drift)
	}
	return digests, drift, well, err
}

// gone returns the files that pawl has written into the folder, and one drift about all of them, if every one was deleted:
// then somebody does not want the folder, and is asked once. There is no drift as long as one of several files is there.
func gone(ws *hosted.Workspace, folder *userrepo.Folder) (missing []string, d *task.Drift, err error) {
	all := ""
	absent := func(name string) (bool, error) {
		n, err := note(ws, name)
		if err != nil || len(n.Written) == 0 || slices.Contains(n.Written, userrepo.Absent) || n.Kept != nil && *n.Kept == userrepo.Absent {
			return true, err // it says nothing
		}
		now, err := folder.Digest(name)
		if err == nil && now == userrepo.Absent {
			missing, all = append(missing, name), all+name+" "+n.Written[0]+"\n"
		}
		return now == userrepo.Absent, err
	}
	for _, name := range []string{ledger.StatusFile, ledger.LastKnownFile} { // these are nearly always there
		if is, err := absent(name); err != nil || !is {
			return nil, nil, err
		}
	}
	notes, err := os.ReadDir(held.At(filepath.Dir(noteFile(ws, ""))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, file := range notes {
		name, is := strings.CutSuffix(strings.ReplaceAll(file.Name(), ",", "/"), ".json")
		if !is || !strings.Contains(name, "/") { // not of a task
			continue
		}
		if is, err := absent(name); err != nil || !is {
			return nil, nil, err
		}
	}
	if len(missing) < 2 {
		return nil, nil, nil
	}
	digest := recording.HashOf([]byte(all))
	text := fmt.Sprintf("%s was deleted: the %d files that pawl wrote there are gone", folder.Path, len(missing))
	return missing, new(driftOf(ws, userrepo.FolderName, text, "nothing of "+digest, digest)), nil
}

// keepAway notes that a person wants these files to stay deleted.
func keepAway(ws *hosted.Workspace, names []string) error {
	for _, name := range names {
		n, err := note(ws, name)
		if err != nil {
			return err
		}
		n.Kept = new(userrepo.Absent)
		if err := setNote(ws, name, n); err != nil {
			return err
		}
	}
	return nil
}

// wellAgain is which of the artifacts that were found changed are as they were written, or kept, again.
func wellAgain(ws *hosted.Workspace, folder *userrepo.Folder, known []task.Drift) (well []task.Drift, err error) {
	for _, d := range known {
		if d.Name != task.DriftArtifact || d.Well != "" {
			continue
		}
		path, how := folder.Path, "can be used"
		if d.What != userrepo.FolderName {
			path, how = filepath.Join(folder.Path, d.What), "is as pawl has written it"
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
			case n.Kept != nil && *n.Kept == now:
				how = "is as you have kept it"
			default:
				continue
			}
		}
		well = append(well, driftOf(ws, d.What, path+" "+how+" again", "", ""))
	}
	return well, nil
}

// answer is a person's word on an artifact that was found changed.
type answer struct {
	drift  task.Drift
	choice string
}

// answersOf are those that an entry brings, by file.
func answersOf(events []loop.Event) map[string]answer {
	out := map[string]answer{}
	for _, e := range events {
		if e.Type == loop.GateClosed && e.Drift != nil && e.Drift.Name == task.DriftArtifact && e.Answer != nil {
			out[e.Drift.What] = answer{*e.Drift, e.Answer.Choice}
		}
	}
	return out
}

// exportFile writes one file, unless it is not as pawl has left it. Theirs is left alone for as long as
// it is what they have kept; ours is written over what was found, where a person wants that.
func exportFile(ws *hosted.Workspace, folder *userrepo.Folder, name string, content []byte, said answer) (*task.Drift, error) {
	n, err := note(ws, name)
	if err != nil {
		return nil, err
	}
	now, err := folder.Digest(name)
	if err != nil {
		return nil, err
	}
	ours := recording.HashOf(content)
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
		d := driftOf(ws, name, saysOf(filepath.Join(folder.Path, name), now), now, ours)
		return &d, nil
	}
	if len(n.Written) == 0 || n.Written[0] != ours || n.Kept != nil {
		n.Kept = nil
		if len(n.Written) == 0 && now == userrepo.Absent {
			n.Written = []string{userrepo.Absent} // the one before: there was none
		}
		if n.Written = append([]string{ours}, n.Written...); len(n.Written) > 2 {
			n.Written = n.Written[:2]
		}
		if err := setNote(ws, name, n); err != nil {
			return nil, err
		}
	}
	crash.At("tasks.noted")
	if now == ours {
		return nil, nil
	}
	if err := folder.Write(name, content); err != nil || now != userrepo.Absent {
		return nil, err
	}
	n.Written = []string{ours} // from now on it was deleted where it is not there
	return nil, setNote(ws, name, n)
}

// driftOf is a difference between an artifact as it was written and as it is.
func driftOf(ws *hosted.Workspace, name, text, theirs, ours string) task.Drift {
	return task.Drift{Name: task.DriftArtifact, What: name, Text: text, Theirs: theirs, Ours: ours}
}

// saysOf says in words what has become of a file.
func saysOf(path, now string) string {
	switch now {
	case userrepo.Absent:
		return path + " was deleted"
	case userrepo.NoFile, userrepo.TooLong:
		return path + " is " + now + " now"
	}
	return path + " was edited"
}
