package steward

import (
	"cmp"
	"slices"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

// derive computes the steward's state, the queue and the counts from the tasks, and forgets the tasks that ended first.
func (s *State) derive() {
	var ended []*Task
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Outcome != "" && len(t.Ending) == 0 {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *Task) int { return a.Ended.Compare(b.Ended) })
	forgotten := list.Map(ended[:max(0, len(ended)-KeepEnded)], func(t *Task) string { return t.ID })
	s.Tasks = slices.DeleteFunc(s.Tasks, func(t Task) bool { return slices.Contains(forgotten, t.ID) })
	if n := len(s.Known) - 2*len(s.Tasks) - KeepKnown; n > 0 { // each task has an ID and a dedupe key
		s.Known = slices.DeleteFunc(slices.Clone(s.Known), func(k Known) bool {
			if n == 0 || s.Find(k.Task) != nil {
				return false
			}
			n--
			return true
		})
	}
	s.Queue = []string{}
	s.State = task.Idle
	longest := 0
	for _, t := range s.inOrder() {
		if t.Outcome != "" {
			continue
		}
		switch t.State {
		case task.Idle:
			s.Queue = append(s.Queue, t.ID)
		default:
			if rank[t.State] > rank[s.State] && (t.Interrupted == "" || s.State == task.Idle) {
				s.State = t.State
			}
		}
		longest = max(longest, t.Window.Repeats())
	}
	s.Indicators.Repeats = int64(longest)
	s.GatesCount, s.QueueCount, s.DriftCount = len(s.Gates), len(s.Queue), len(s.Drift)
	switch {
	case s.Status.Ended():
	case s.Paused:
		s.Status = loop.Paused
	case s.State == task.Waiting:
		s.Status = loop.Waiting
	default:
		s.Status = loop.Running
	}
}

// rank orders states: the steward shows the state of the task with the highest rank.
var rank = map[task.State]int{task.Waiting: 1, task.Planning: 2, task.Executing: 3}

// inOrder returns the tasks in the order in which they get work: by priority, started ones first, then by arrival.
func (s *State) inOrder() []*Task {
	tasks := make([]*Task, len(s.Tasks))
	for i := range s.Tasks {
		tasks[i] = &s.Tasks[i]
	}
	slices.SortStableFunc(tasks, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(began(a), began(b)))
	})
	return tasks
}

func began(t *Task) int64 {
	if t.Began.IsZero() {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	return t.Began.UnixMilli()
}

// without returns a list without an entry, nil if nothing is left.
func without(list []string, item string) []string {
	if rest := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item }); len(rest) > 0 {
		return rest
	}
	return nil
}
