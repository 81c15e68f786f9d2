package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// The files that only a steward's entries have, beside those of its tasks (TaskFile, TaskPlanFile).
const (
	CharterFile   = "charter.json"
	StatusFile    = "STATUS_LEDGER.md"
	LastKnownFile = "LAST_KNOWN_STATE.md"
)

// taskFolder has a folder for each task, named by its ID.
const taskFolder = "tasks/"

// taskID matches an ID that can be the name of a folder in a ledger and in the project.
var taskID = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func checkID(id string) error {
	if !taskID().MatchString(id) {
		return fmt.Errorf("%s can't be the ID of a task", git.Quote(id))
	}
	return nil
}

// TaskFile, TaskPlanFile and TaskStateFile return where an entry has the task as it was submitted, its PLAN.md and
// its present state. A task with an ID that can't be the name of a folder is refused when it is submitted.
func TaskFile(id string) string      { return taskFolder + id + "/TASK.json" }
func TaskPlanFile(id string) string  { return taskFolder + id + "/PLAN.md" }
func TaskStateFile(id string) string { return taskFolder + id + "/" + StateFile }

// Steward is the ledger of a steward.
type Steward struct{ *Book[steward.State] }

// OpenSteward returns the ledger of a steward in store. It reads nothing yet.
func OpenSteward(store *store.Store) *Steward {
	check := func(s steward.State) error {
		if s.Steward == "" {
			return errors.New("it is not the ledger of a steward")
		}
		return nil
	}
	return &Steward{&Book[steward.State]{store: store, begin: steward.New, check: check, write: writeByTask, read: readByTask}}
}

// isSteward reports whether the ledger at head has the file that stewards alone have; Verify checks the content.
func isSteward(ctx context.Context, s *store.Store, head string) (bool, error) {
	files, err := s.ReadLedger(ctx, head, CharterFile)
	return files[CharterFile] != nil, err
}

// Charter returns the steward's charter at head.
func (l *Steward) Charter(ctx context.Context, head string) (c charter.Charter, err error) {
	return c, l.file(ctx, head, CharterFile, &c)
}

// Task returns a task as it was submitted.
func (l *Steward) Task(ctx context.Context, head, id string) (t task.Task, err error) {
	if err := checkID(id); err != nil {
		return t, err
	}
	return t, l.file(ctx, head, TaskFile(id), &t)
}

// Plan returns the PLAN.md of a task, nil if it has none.
func (l *Steward) Plan(ctx context.Context, head, id string) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	name := TaskPlanFile(id)
	files, err := l.store.ReadLedger(ctx, head, name)
	return files[name], err
}

func (l *Steward) file(ctx context.Context, head, name string, v any) error {
	files, err := l.store.ReadLedger(ctx, head, name)
	if err == nil && files[name] == nil {
		err = errors.New("it does not exist")
	}
	if err == nil {
		err = json.Unmarshal(files[name], v)
	}
	if err != nil {
		return fmt.Errorf("reading %s at %s: %w", name, head, err)
	}
	return nil
}

// Entry is that of Book, with the charter and plans, of which events name only the hash, and the submitted tasks. text
// returns the content with a hash. Call Appended once the entry is a commit.
func (l *Steward) Entry(ctx context.Context, prev string, events []loop.Event, text func(hash string) ([]byte, error)) (map[string][]byte, Page[steward.State], error) {
	before, err := l.Read(ctx, prev)
	if err != nil {
		return nil, before, err
	}
	files, page, err := l.Book.Entry(ctx, prev, events)
	if err != nil {
		return nil, page, err
	}
	if page.State.Charter != before.State.Charter {
		if files[CharterFile], err = text(page.State.Charter); err != nil {
			return nil, page, err
		}
	}
	for _, e := range events {
		if e.Submitted != nil {
			err = checkID(e.Submitted.ID)
			files[TaskFile(e.Submitted.ID)] = indent(e.Submitted)
		} else if e.TaskPlan != nil {
			if err = checkID(e.Task); err == nil {
				files[TaskPlanFile(e.Task)], err = text(e.TaskPlan.Hash)
			}
		}
		if err != nil {
			return nil, page, err
		}
	}
	return files, page, nil
}

// Verify checks the ledger of a steward. Besides the rules for every ledger: the charter has the hash that the state
// names; tasks and plans are those of the events; and no other file was added, changed or removed.
func (l *Steward) Verify(ctx context.Context, head string) (Report, error) {
	return l.verify(ctx, head, func(r *Report, e chapter[steward.State]) {
		want := map[string][]byte{}
		for name, content := range e.before {
			if strings.HasPrefix(name, taskFolder) && path.Base(name) != StateFile {
				want[name] = content
			}
		}
		for _, event := range e.events {
			if t := event.Submitted; t != nil {
				want[TaskFile(t.ID)] = indent(t)
			}
			if p := event.TaskPlan; p != nil {
				name := TaskPlanFile(event.Task)
				want[name] = e.Files[name]
				if hash := HashOf(e.Files[name]); hash != p.Hash {
					e.wrong("%s has the hash %s, but %s was made", name, hash, p.Hash)
				}
			}
		}
		for _, t := range e.state.Tasks { // the state has their content
			want[TaskStateFile(t.ID)] = e.Files[TaskStateFile(t.ID)]
		}
		all := maps.Clone(e.Files)
		maps.Copy(all, want)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			content, had := want[name]
			switch {
			case slices.Contains([]string{StateFile, EventsFile, CharterFile, StatusFile, LastKnownFile}, name):
			case !had:
				e.wrong("%s does not belong in a steward's ledger", git.Quote(name))
			case !bytes.Equal(content, e.Files[name]):
				e.wrong("%s does not follow from the events", git.Quote(name))
			}
		}
		if hash := HashOf(e.Files[CharterFile]); hash != e.state.Charter {
			e.wrong("%s has the hash %s, but the state names %s", CharterFile, hash, e.state.Charter)
		}
		r.Terms, r.Ended = e.state.Charter, e.state.Status.Ended()
	})
}

// Verify checks the ledger at head by the rules of its kind.
func Verify(ctx context.Context, s *store.Store, head string) (Report, error) {
	is, err := isSteward(ctx, s, head)
	if err == nil && is {
		return OpenSteward(s).Verify(ctx, head)
	}
	return Open(s).Verify(ctx, head) // if isSteward failed, this reports the damage
}

// HashOf returns the SHA-256 of a text in hexadecimal, by which events name it.
func HashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
