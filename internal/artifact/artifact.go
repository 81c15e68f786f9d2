// Package artifact writes STATUS_LEDGER.md and LAST_KNOWN_STATE.md from a steward's state (S7). Both are pure
// functions: the same state gives the same bytes. A task is one line, and no time in them changes by itself, so a diff
// shows what has happened. Titles and summaries are other people's words: they stay on one line and are never read as
// Markdown. The package writes no files. Start at Status.
package artifact

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pawl/internal/charter"
	"pawl/internal/evidence"
	"pawl/internal/markdown"
	"pawl/internal/shell"
	"pawl/internal/steward"
	"pawl/internal/task"
)

const written = "<!-- pawl writes this file from its ledger. If you change it, pawl asks you whether it is to stay so. -->\n\n"

// Status returns STATUS_LEDGER.md: objective, active task and its tier, what comes next, what waits for a person with
// the commands to answer it, all tasks, drift, indicators.
func Status(s steward.State, c charter.Charter) []byte {
	var w page
	w.line("# Status of %s", plain(s.Steward))
	w.line("")
	w.WriteString(written)
	w.line("- State: %s", position(s))
	if t := active(s); t != nil {
		w.line("- Current objective: %s", plain(t.Title))
		w.line("- Active task: %s, %s", code(t.ID), t.State)
		w.line("- Risk tier: %s", tier(*t))
	} else {
		w.line("- Current objective: none")
		w.line("- Active task: none")
	}
	w.section("Next actions")
	for _, next := range next(s) {
		w.line("- %s", next)
	}
	w.section("Waits for a person")
	waits(&w, s)
	w.section(fmt.Sprintf("Tasks (%d)", s.TasksCount))
	tasks, more := listed(s)
	for _, t := range tasks {
		w.line("- %s", taskLine(s, *t))
	}
	w.queued(more)
	w.none(len(s.Tasks))
	w.section("Drift")
	drift(&w, s)
	if s.Remote != "" {
		w.section("Remote")
		w.line("- %s", plain(s.Remote))
	}
	w.section("Indicators")
	i := s.Indicators
	w.line("- Actions: %d, of which errors: %d", i.Actions, i.Errors)
	w.line("- Longest repetition now: %d of %d", i.Repeats, c.Limits.SameResult)
	w.line("- Executing time: %s", (time.Duration(i.ExecutingMs) * time.Millisecond).Round(time.Second))
	w.line("- Transitions: %d, milestones: %d", i.Transitions, i.Milestones)
	w.line("- Tasks done: %d, cancelled: %d", i.Done, i.Cancelled)
	w.line("- Spent: $%.2f, %d tokens", s.Usage.CostUSD.Float(), s.Usage.Tokens)
	return []byte(w.String())
}

// LastKnown returns LAST_KNOWN_STATE.md: the position of the machine and the entry of the ledger that it follows. Each
// task that is not over has its step, its loops with their heads, and the loop detection that stopped it.
func LastKnown(s steward.State, _ charter.Charter) []byte {
	var w page
	w.line("# Last known state of %s", plain(s.Steward))
	w.line("")
	w.WriteString(written)
	w.line("- State machine position: %s", position(s))
	w.line("- Ledger: %s", hash(s.Ledger))
	w.line("- Base: %s", hash(s.Base))
	w.section("Tasks that are not over")
	n := 0
	tasks, more := listed(s)
	for _, t := range tasks {
		if t.Outcome != "" {
			continue
		}
		n++
		w.line("- %s", taskLine(s, *t))
		if t.Plan != nil {
			w.line("  - plan %s, base %s, head %s", hash(t.Plan.Hash), hash(cmp.Or(t.Base, t.Plan.Base)), hash(t.Head))
		}
		for _, step := range t.Steps {
			w.line("  - step %s: %s, loop %s, head %s", code(step.ID), step.Doing(), code(step.Loop), hash(step.Head))
		}
		if t.Tripped != "" {
			w.line("  - loop detected: rule %s, since %s", code(t.Tripped), at(t.Since))
		}
	}
	w.queued(more)
	w.none(n)
	w.section("Waits for a person")
	waits(&w, s)
	w.section("Drift")
	drift(&w, s)
	return []byte(w.String())
}

// maxQueued is how many tasks are listed that have not begun. Each entry of the ledger has the page, and a queue may be
// long.
const maxQueued = 100

// listed returns the tasks in the order in which they came. Of those that have not begun it returns the first
// maxQueued; more counts the others.
func listed(s steward.State) (tasks []*steward.Task, more int) {
	queued := 0
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Outcome == "" && t.State == task.Idle {
			if queued++; queued > maxQueued {
				more++
				continue
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, more
}

// waits lists the gates of the steward and of its loops.
func waits(w *page, s steward.State) {
	n := 0
	for _, g := range s.Open() {
		n++
		about := ""
		if g.Task != "" {
			about = " of task " + code(g.Task)
		}
		if !g.OpenedAt.IsZero() {
			about += ", since " + at(g.OpenedAt)
		}
		first, points := g.Listed()
		w.line("- %s %s%s: %s", g.Kind, code(g.ID), about, plain(first))
		for _, point := range points {
			w.line("  - %s", plain(point))
		}
		for _, way := range steward.Ways(s.Steward, g) {
			w.line("  - %s: %s", plain(way.What), code(way.Command))
		}
	}
	for _, t := range s.Tasks {
		if s.AtLoop(t) {
			n++
			w.line("- %s %s of loop %s, task %s: %s", plain(t.WaitingFor.Kind), code(t.WaitingFor.Gate), code(t.WaitingFor.Loop), code(t.ID), plain(t.WaitingFor.What))
			w.line("  - how to answer it: %s", code(shell.Join("pawl", "show", t.WaitingFor.Loop)))
		}
	}
	w.none(n)
}

func drift(w *page, s steward.State) {
	for _, d := range s.Drift {
		w.line("- %s %s: %s (found %s, recorded %s)", d.Name, code(d.What), plain(d.Now()), hash(d.Theirs), hash(d.Ours))
	}
	w.none(len(s.Drift))
}

// active returns the task that is being worked on, else one that waits; nil if there is none, for example if the
// steward has ended.
func active(s steward.State) *steward.Task {
	if s.Status.Ended() {
		return nil
	}
	for _, state := range []task.State{task.Executing, task.Planning, task.Waiting} {
		for i := range s.Tasks {
			if s.Tasks[i].State == state && s.Tasks[i].Outcome == "" {
				return &s.Tasks[i]
			}
		}
	}
	return nil
}

// next says what happens next, in order.
func next(s steward.State) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Status.Ended() {
		add("None: the steward has ended")
		return all
	}
	n := len(s.Open())
	for _, t := range s.Tasks {
		if s.AtLoop(t) {
			n++
		}
	}
	if n > 0 {
		add("A person answers what waits below: %d", n)
	}
	if s.Paused {
		add("Nothing continues until %s", code(shell.Join("pawl", "steward", "continue", s.Steward)))
		return all
	}
	for _, t := range s.Tasks {
		switch {
		case t.Outcome != "":
		case t.State == task.Planning:
			add("The planner makes the plan of task %s", code(t.ID))
		case t.State == task.Executing && t.Step != "":
			add("Work continues on step %s of task %s", code(t.Step), code(t.ID))
		case t.State == task.Executing:
			add("The next step of task %s starts", code(t.ID))
		}
	}
	switch {
	case s.Held:
		add("No task starts until %s", code(shell.Join("pawl", "steward", "resume", s.Steward)))
	case len(s.Queue) > 0:
		add("Task %s starts as soon as there is room; %d in the queue", code(s.Queue[0]), len(s.Queue))
	case len(all) == 0:
		add("Somebody submits a task")
	}
	return all
}

func position(s steward.State) string {
	if s.Status.Ended() {
		return fmt.Sprintf("%s (%s)", s.Status, plain(s.Reason))
	}
	text := string(s.State)
	if s.Paused {
		text += ", paused"
	}
	if s.Held {
		text += ", held"
	}
	return text
}

// taskLine returns everything about a task on one line.
func taskLine(s steward.State, t steward.Task) string {
	state := string(t.State)
	if t.Outcome == "" {
		state = s.Position(t)
	}
	if why := s.StandstillOf(t, at); why != "" {
		state += ", " + plain(why)
	}
	text := fmt.Sprintf("%s: %s, %s, tier %s, priority %d", code(t.ID), plain(t.Title), state, tier(t), t.Priority)
	if t.Step != "" {
		text += ", step " + code(t.Step)
	}
	if t.Outcome != "" {
		text += ", " + t.Outcome
	}
	if t.Reason != "" {
		text += " (" + plain(t.Reason) + ")"
	}
	return text
}

func tier(t steward.Task) string {
	switch {
	case t.Tier == "":
		return "not assessed"
	case t.TierBy == "":
		return string(t.Tier)
	}
	return fmt.Sprintf("%s by %s", t.Tier, plain(t.TierBy))
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func hash(h string) string {
	if h == "" {
		return "none"
	}
	return code(h)
}

// page is a page of Markdown.
type page struct{ strings.Builder }

func (w *page) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *page) section(title string) { w.line("\n## %s\n", title) }

// queued says how many tasks of the queue are not listed.
func (w *page) queued(n int) {
	if n > 0 {
		w.line("- and %d more not begun", n)
	}
}

// none says that a section is empty, if it is.
func (w *page) none(entries int) {
	if entries == 0 {
		w.line("Nothing.")
	}
}

// plain returns somebody's text on one line, at most 200 characters, with all Markdown escaped.
func plain(text string) string {
	return cmp.Or(markdown.Text(evidence.Description(text)), "–")
}

func code(text string) string { return cmp.Or(markdown.Code(text), "none") }
