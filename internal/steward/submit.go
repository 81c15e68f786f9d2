package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// submit adds a task. A task whose ID or dedupe key is known already is the same task.
func submit(s State, c charter.Charter, m Message) (rules.Reply, error) {
	if len(m.Task) == 0 || string(m.Task) == "null" {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "submit needs a task").Advise(`Give it: {"task": {"title": "…", "body": "…"}}.`)
	}
	t, err := task.DecodeTask(m.Task, charter.Specs)
	if err != nil {
		return rules.Reply{}, err
	}
	if earlier := s.known(t); earlier != nil {
		reply := rules.Reply{Text: s.again(*earlier, t)}
		if m.Trigger != nil {
			reply.Events = []loop.Event{triggered(m, earlier.Task, "duplicate")}
		}
		return reply, nil
	}
	if missed := s.overlapping(c, t); missed != "" {
		return rules.Reply{Text: missed, Events: []loop.Event{triggered(m, "", "missed: "+missed)}}, nil
	}
	if len(s.Queue) >= c.Limits.Queue && m.Trigger == nil { // a schedule or trigger can't be told to try again later
		return rules.Reply{}, fault.New(fault.QueueFull, "the queue is full (limits.queue: %d)", c.Limits.Queue).
			Advise("Submit the task again later.")
	}
	var without []loop.Event
	if m.Trigger != nil { // nor can it be told what is wrong
		t.After = slices.DeleteFunc(slices.Clone(t.After), func(id string) bool {
			unknown := s.knownBy(Key("id "+id)) == nil
			if unknown {
				without = append(without, loop.Event{Type: loop.Warned, Reason: fmt.Sprintf("%s: a task names %s in `after`, but there is no such task, so it does not wait for it", m.By, loop.Clip(id, 80))})
			}
			return unknown
		})
	}
	derived := t.ID == ""
	if t, err = task.Admit(t, func(id string) bool { return s.knownBy(Key("id "+id)) != nil }); err != nil {
		return rules.Reply{}, err
	}
	if derived {
		t.ID = s.unused(t.ID)
	}
	named := map[string]bool{}
	t.After = slices.DeleteFunc(t.After, func(id string) bool {
		duplicate := named[id]
		named[id] = true
		return duplicate || s.knownBy(Key("id "+id)).Done
	})
	t.Source = cmp.Or(t.Source, m.By, "a person")
	var events []loop.Event
	if m.Trigger != nil {
		events = append(events, triggered(m, t.ID, "accepted"))
	}
	events = append(append(events, without...), loop.Event{Type: loop.TaskSubmitted, Task: t.ID, By: m.By, Submitted: &t})
	ahead := 0
	for i := range s.Tasks {
		if queued := &s.Tasks[i]; queued.Outcome == "" && queued.State == task.Idle && queued.Priority >= t.Priority {
			ahead++
		}
	}
	text := fmt.Sprintf("task %s, %d before it in the queue", t.ID, ahead)
	if n := len(t.After); n > 0 {
		text += "; it waits until " + strings.Join(t.After[:min(n, 5)], ", ")
		if n > 5 {
			text += fmt.Sprintf(" and %d more", n-5)
		}
		text += map[bool]string{true: " is done", false: " are done"}[n == 1]
	}
	return rules.Reply{Text: text, Events: events}, nil
}

func triggered(m Message, id, result string) loop.Event {
	tr := task.Trigger{From: "person"}
	if m.Trigger != nil {
		tr = *m.Trigger
	}
	tr.Task, tr.Result = id, result
	return loop.Event{Type: loop.TriggerReceived, By: m.By, Trigger: &tr}
}

// overlapping says why a schedule's slot is skipped: the task of an earlier slot is not over, and the schedule has
// `overlap: skip`. It returns "" if the slot is not skipped.
func (s State) overlapping(c charter.Charter, t task.Task) string {
	if open := s.openOf(t.Source); open != nil && overlapOf(c, t.Source) == charter.Skip {
		return fmt.Sprintf("the task %s of the previous slot is not over", open.ID)
	}
	return ""
}

// openOf returns the first task from a source that is not over, or nil.
func (s State) openOf(source string) *Task {
	return find(s.Tasks, func(t Task) bool { return t.Source == source && t.Outcome == "" })
}

// overlapOf returns what a schedule does while the task of an earlier slot is not over; "" for no schedule.
func overlapOf(c charter.Charter, source string) string {
	if sc := find(c.Schedules, func(sc charter.Schedule) bool { return task.Scheduled+sc.Name == source }); sc != nil {
		return cmp.Or(sc.Overlap, charter.Skip)
	}
	return ""
}

// known returns the task that t repeats, or nil.
func (s State) known(t task.Task) *Known {
	return cmp.Or(s.knownBy(Key("id "+t.ID)), s.knownBy(Key("dedupe "+t.Dedupe))) // no task has an empty key
}

// again says that t repeats a task: where that one is, or how it ended and how t can be submitted all the same.
func (s State) again(k Known, t task.Task) string {
	end := map[bool]string{true: Done, false: Cancelled}[k.Done] // an old task is known by its keys only
	if t := s.Find(k.Task); t != nil {
		if t.Outcome == "" {
			return fmt.Sprintf("the task %s is there already: %s", k.Task, t.State)
		}
		end = t.Outcome
		if t.Reason != "" {
			end += " (" + loop.Clip(t.Reason, 200) + ")"
		}
	}
	key := "ID"
	if t.ID != k.Task {
		key = "dedupe key"
	}
	return fmt.Sprintf("the task %s was submitted before and has ended: %s. It does not start again; to do it once more, submit it with another %s", k.Task, end, key)
}

func (s State) knownBy(key string) *Known {
	return find(s.Known, func(k Known) bool { return k.Key == key })
}

func (s State) unused(id string) string {
	unique := id
	for n := 2; s.knownBy(Key("id "+unique)) != nil; n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	return unique
}
