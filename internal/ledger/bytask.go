package ledger

import (
	"encoding/json"
	"fmt"
	"reflect"

	"pawl/internal/lib/list"
	"pawl/internal/steward"
)

// In a steward's entries, StateFile names the tasks, and each task has its own file. So the size of an entry does not
// depend on how many tasks are in the queue.

// named is a state with the IDs of its tasks.
type named struct {
	steward.State
	Tasks []string `json:"tasks"` // instead of those of State
}

func writeByTask(before, after steward.State) map[string][]byte {
	files := map[string][]byte{}
	had := map[string]*steward.Task{}
	for i := range before.Tasks {
		had[before.Tasks[i].ID] = &before.Tasks[i]
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

func readByTask(file []byte, more func(names []string) (map[string][]byte, error)) (steward.State, error) {
	var n named
	if err := json.Unmarshal(file, &n); err != nil {
		return n.State, err
	}
	names := list.Map(n.Tasks, TaskStateFile)
	files, err := more(names)
	if err != nil {
		return n.State, err
	}
	n.State.Tasks = make([]steward.Task, len(names))
	for i, name := range names {
		if err := json.Unmarshal(files[name], &n.State.Tasks[i]); err != nil {
			return n.State, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return n.State, nil
}
