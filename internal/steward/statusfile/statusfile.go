// Package statusfile writes STATUS_LEDGER.md and LAST_KNOWN_STATE.md from a steward's state (S7). Both are pure
// functions: the same state gives the same bytes. A task is one line, and no time in them changes by itself, so a diff
// shows what has happened. Titles and summaries are other people's words: they stay on one line and are never read as
// Markdown. The package writes no files. Start at Status.
package statusfile

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/metric"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

const written = "<!-- pawl writes this file from its ledger. If you change it, pawl asks you whether it is to stay so. -->\n\n"

// Status returns STATUS_LEDGER.md: objective, active task and its tier, what comes next, what waits for a person with
// the commands to answer it, all tasks, drift, indicators.
func Status(s steward.State, c charter.Charter) []byte {
	w := begun("Status", "State", s)
	if t := active(s); t != nil {
		w.line("- Current objective: %s\n- Active task: %s, %s\n- Risk tier: %s", plain(t.Title), code(t.ID), t.State, tier(*t))
	} else {
		w.line("- Current objective: none\n- Active task: none")
	}
	waiting := waits(s)
	w.section("Next actions", next(s, len(waiting)))
	w.section("Waits for a person", waiting)
	w.section(fmt.Sprintf("Tasks (%d)", s.TasksCount), listed(s, func(t steward.Task) string { return taskLine(s, t) }))
	w.section("Drift", list.Map(s.Drift, drift))
	if s.Remote != "" {
		w.section("Remote", []string{plain(s.Remote)})
	}
	i := s.Indicators
	w.section("Indicators", []string{
		fmt.Sprintf("Actions: %d, of which errors: %d", i.Actions, i.Errors),
		fmt.Sprintf("Longest repetition now: %d of %d", i.Repeats, c.Limits.SameResult),
		fmt.Sprintf("Executing time: %s", (time.Duration(i.ExecutingMs) * time.Millisecond).Round(time.Second)),
		fmt.Sprintf("Transitions: %d, milestones: %d", i.Transitions, i.Milestones),
		fmt.Sprintf("Tasks done: %d, cancelled: %d", i.Done, i.Cancelled),
		fmt.Sprintf("Spent: $%.2f, %d tokens", s.Usage.CostUSD.Float(), s.Usage.Tokens),
	})
	return []byte(w.String())
}

// LastKnown returns LAST_KNOWN_STATE.md: the position of the machine and the entry of the ledger that it follows. Each
// task that is not over has its step, its loops with their heads, and the loop detection that stopped it.
func LastKnown(s steward.State, _ charter.Charter) []byte {
	w := begun("Last known state", "State machine position", s)
	w.line("- Ledger: %s\n- Base: %s", hash(s.Ledger), hash(s.Base))
	w.section("Tasks that are not over", listed(s, func(t steward.Task) string {
		if t.Outcome != "" {
			return ""
		}
		text := taskLine(s, t)
		if t.Plan != nil {
			text += under("plan %s, base %s, head %s", hash(t.Plan.Hash), hash(cmp.Or(t.Base, t.Plan.Base)), hash(t.Head))
		}
		for _, step := range t.Steps {
			text += under("step %s: %s, loop %s, head %s", code(step.ID), step.Doing(), code(step.Loop), hash(step.Head))
		}
		if t.Tripped != "" {
			text += under("loop detected: rule %s, since %s", code(t.Tripped), at(t.Since))
		}
		return text
	}))
	w.section("Waits for a person", waits(s))
	w.section("Drift", list.Map(s.Drift, drift))
	return []byte(w.String())
}

// maxQueued is how many tasks are listed that have not begun. Each entry of the ledger has the page, and a queue may be
// long.
const maxQueued = 100

// listed returns the items of the tasks in the order in which they came, without empty ones. It counts the tasks that
// have not begun beyond the first maxQueued.
func listed(s steward.State, item func(steward.Task) string) (items []string) {
	queued := 0
	for _, t := range s.Tasks {
		if t.Outcome == "" && t.State == task.Idle {
			if queued++; queued > maxQueued {
				continue
			}
		}
		if text := item(t); text != "" {
			items = append(items, text)
		}
	}
	if further := queued - maxQueued; further > 0 {
		items = append(items, fmt.Sprintf("and %d more not begun", further))
	}
	return items
}

// waits returns the gates of the steward and of its loops.
func waits(s steward.State) (items []string) {
	for _, g := range s.Open() {
		about := ""
		if g.Task != "" {
			about = " of task " + code(g.Task)
		}
		if !g.OpenedAt.IsZero() {
			about += ", since " + at(g.OpenedAt)
		}
		first, points := g.Listed()
		text := fmt.Sprintf("%s %s%s: %s", g.Kind, code(g.ID), about, whole(first))
		for _, point := range points {
			text += under("%s", whole(point))
		}
		for _, way := range steward.Ways(s.Steward, g) {
			text += under("%s: %s", plain(way.What), code(way.Command))
		}
		items = append(items, text)
	}
	for _, t := range s.Tasks {
		if f := t.WaitingFor; s.AtLoop(t) {
			items = append(items, fmt.Sprintf("%s %s of loop %s, task %s: %s", plain(f.Kind), code(f.Gate), code(f.Loop), code(t.ID), whole(f.What))+
				under("how to answer it: %s", code(shell.Join("pawl", "show", f.Loop))))
		}
	}
	return items
}

func drift(d task.Drift) string {
	return fmt.Sprintf("%s %s: %s (found %s, recorded %s)", d.Name, code(d.What), whole(d.Now()), hash(d.Theirs), hash(d.Ours))
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

// next says what happens next, in order; waiting is how much waits for a person.
func next(s steward.State, waiting int) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.Status.Ended() {
		add("None: the steward has ended")
		return lines
	}
	if waiting > 0 {
		add("A person answers what waits below: %d", waiting)
	}
	if s.Paused {
		add("Nothing continues until %s", code(shell.Join("pawl", "steward", "continue", s.Steward)))
		return lines
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
	case len(lines) == 0:
		add("Somebody submits a task")
	}
	return lines
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
	if reason := s.StandstillOf(t, at); reason != "" {
		state += ", " + plain(reason)
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

// begun returns the beginning of a page about a steward.
func begun(title, state string, s steward.State) *page {
	w := &page{}
	w.line("# %s of %s\n\n%s- %s: %s", title, plain(s.Steward), written, state, position(s))
	return w
}

func (w *page) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// section adds a list with a heading.
func (w *page) section(title string, items []string) {
	w.line("\n## %s\n", title)
	for _, item := range items {
		w.line("- %s", item)
	}
	if len(items) == 0 {
		w.line("Nothing.")
	}
}

// under returns a line that belongs to the item before it.
func under(format string, args ...any) string { return "\n  - " + fmt.Sprintf(format, args...) }

// plain returns somebody's text on one line with all Markdown escaped, and without what follows the first 200 characters
// of prose.
func plain(text string) string { return spans(text, metric.MaxDescription) }

// whole is plain for a text that tells people what to decide: it is never cut.
func whole(text string) string { return spans(text, maxWhole) }

const maxWhole = 4000

// spans returns the first line of a text with Markdown escaped, except that what stands between two backticks is code:
// a command stays as it is, so that it can be pasted, and is never cut. Prose beyond room characters is left out.
func spans(text string, room int) string {
	parts := strings.Split(metric.FirstLine(text, maxWhole), "`")
	var line strings.Builder
	add := func(span string) {
		if strings.HasSuffix(line.String(), "`") && strings.HasPrefix(span, "`") {
			line.WriteString(" ") // else the two would be one span
		}
		line.WriteString(span)
	}
	for i, part := range parts {
		opened := i%2 == 1
		closed := opened && i < len(parts)-1
		if closed && strings.TrimSpace(part) != "" {
			add(markdown.Code(part))
			continue
		}
		if opened { // a backtick that begins no code
			part = "`" + part
		}
		prose := []rune(part)
		if closed {
			prose = append(prose, '`')
		}
		if len(prose) <= room {
			room -= len(prose)
			add(escaped(string(prose)))
			continue
		}
		add(escaped(string(prose[:room]) + "…"))
		break
	}
	return cmp.Or(strings.TrimSpace(line.String()), "–")
}

// escaped is markdown.Text for a part of a line: it keeps the spaces at both ends.
func escaped(part string) string {
	text := markdown.Text(part)
	if text == "" {
		return part[:min(len(part), 1)]
	}
	if strings.HasPrefix(part, " ") {
		text = " " + text
	}
	if strings.HasSuffix(part, " ") {
		text += " "
	}
	return text
}

func code(text string) string { return cmp.Or(markdown.Code(text), "none") }
