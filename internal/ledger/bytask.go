package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"pawl/internal/steward"
)

// byTask is the form of a steward's state. StateFile names the tasks, and each task has its own file. So the size of
// an entry does not depend on how many tasks are in the queue. Ledgers of earlier versions have the tasks themselves
// in StateFile; their next entry has this form.
type byTask struct{}

// named is a state with the IDs of its tasks.
type named struct {
	steward.State
	Tasks []string `json:"tasks"` // instead of those of State
}

func (byTask) write(before, after steward.State, all bool) map[string][]byte {
	files := map[string][]byte{}
	had := map[string]*steward.Task{}
	if !all {
		for i := range before.Tasks {
			had[before.Tasks[i].ID] = &before.Tasks[i]
		}
	}
	n := named{State: after, Tasks: make([]string, len(after.Tasks))}
	for i := range after.Tasks {
		t := &after.Tasks[i]
		n.Tasks[i] = t.ID
		if was := had[t.ID]; was == nil || !reflect.DeepEqual(was, t) {
			files[TaskStateFile(t.ID)] = indent(t)
		}
		delete(had, t.ID)
	}
	for id := range had { // the steward has forgotten these tasks
		files[TaskStateFile(id)] = nil
	}
	files[StateFile] = indent(n)
	return files
}

func (byTask) read(file []byte, more func(names []string) (map[string][]byte, error)) (steward.State, bool, error) {
	var n struct {
		steward.State
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := json.Unmarshal(file, &n); err != nil {
		return n.State, false, err
	}
	whole := false
	var names []string
	for _, t := range n.Tasks {
		var id string
		if whole = !bytes.HasPrefix(t, []byte{'"'}); whole {
			break
		}
		if err := json.Unmarshal(t, &id); err != nil {
			return n.State, false, err
		}
		names = append(names, TaskStateFile(id))
	}
	if whole {
		var s steward.State
		return s, true, json.Unmarshal(file, &s)
	}
	files, err := more(names)
	if err != nil {
		return n.State, false, err
	}
	n.State.Tasks = make([]steward.Task, len(names))
	for i, name := range names {
		if err := json.Unmarshal(files[name], &n.State.Tasks[i]); err != nil {
			return n.State, false, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return n.State, false, nil
}
