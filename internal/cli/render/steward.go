package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
)

// Steward renders the state of a steward: what waits and how to answer, then the steward, its metrics (S13), its tasks.
func (s Style) Steward(st steward.State, now time.Time) string {
	var b strings.Builder
	open, further := st.Open(), st.GatesCount-len(st.Gates)
	if st.Status.Ended() {
		further = 0
	}
	for _, g := range open {
		b.WriteString(s.StewardGate(st.Steward, g, now) + "\n\n")
	}
	b.WriteString(above(0, "and ", further, " more: see `pawl inbox`\n\n"))
	for _, t := range st.Tasks {
		b.WriteString(Around("", s.atChild(st, t), "\n\n"))
	}
	f := s.fields(12)
	f.add("steward", Clean(st.Steward))
	f.add("status", s.status(st.Status)+note(st.Reason))
	if !st.Status.Ended() { // nothing runs, and nothing waits to start
		f.add("state", string(st.State)+standing(st))
		f.add("mode", st.Mode)
		f.add("queue", cmp.Or(first(maxQueued, st.Queue, st.QueueCount, ", "), "empty"))
	}
	i := st.Indicators
	f.add("tasks", fmt.Sprintf("%d done, %d cancelled, %d in all", i.Done, i.Cancelled, st.TasksCount))
	f.add("indicators", fmt.Sprintf("%s, %s, %s, %s, longest repetition now %d", plural(int(i.Actions), "action"), plural(int(i.Milestones), "milestone"),
		plural(int(i.Transitions), "transition"), plural(int(i.Errors), "error"), i.Repeats),
		"executing for "+whole(millis(float64(i.ExecutingMs))))
	f.add("usage", usage(st.Usage))
	f.add("drift", list.Map(st.Drift, func(d task.Drift) string { return s.paint(yellow, Clean(d.Name+" "+d.What)) + ": " + Clean(d.Now()) })...)
	f.add("repository", Clean(st.Repo))
	f.add("base", Short(st.Base))
	f.add("remote", Clean(st.Remote))
	f.add("host", st.Host)
	f.add("ledger", Short(st.Ledger))
	f.add("started", s.when(st.StartedAt))
	f.add("validated", s.when(st.ValidatedAt))
	b.WriteString(f.String())
	if len(st.Tasks) > 0 {
		b.WriteString("\n\n" + s.tasks(st))
		b.WriteString(s.unlisted(st))
	}
	return b.String()
}

// unlisted returns how many tasks the table lacks: of those that have started, are in the queue, are over.
func (s Style) unlisted(st steward.State) string {
	started, waiting := " more begun", " more in the queue"
	if st.Status.Ended() {
		started, waiting = " more begun, but not finished", " more not begun"
	}
	queued, endedTasks := st.QueueCount, int(st.Indicators.Done+st.Indicators.Cancelled)
	atWork := st.TasksCount - queued - endedTasks
	for _, t := range st.Tasks {
		switch {
		case t.Outcome != "":
			endedTasks--
		case t.State == task.Idle:
			queued--
		default:
			atWork--
		}
	}
	line := func(n int, text string) string { return Around("\n", s.Dim(above(0, "and ", n, text)), "") }
	return line(atWork, started) + line(queued, waiting) + line(endedTasks, " more ended; the ledger has them")
}

func standing(st steward.State) string {
	switch {
	case st.Paused:
		return ", paused: `pawl steward continue " + Clean(shell.Quote(st.Steward)) + "` resumes"
	case st.Held:
		return ", held: starts no more tasks until `pawl steward resume " + Clean(shell.Quote(st.Steward)) + "`"
	}
	return ""
}

// maxQueued is how many queued tasks are named.
const maxQueued = 5

func usage(u task.Usage) string {
	tokens := plural(int(u.Tokens), "token") + above(0, " (", int(u.OutputTokens), " output)")
	return fmt.Sprintf("$%s, %s, %s, %s active", u.CostUSD.String(), tokens, plural(u.ToolCalls, "tool call"), whole(millis(float64(u.ActiveMs))))
}

// atChild returns a note that a task waits at one of its loops, where a person has to answer.
func (s Style) atChild(st steward.State, t steward.Task) string {
	if !st.AtLoop(t) || t.Outcome != "" {
		return ""
	}
	w := t.WaitingFor
	text := s.Hang(s.Bold("Waiting: "+cmp.Or(Clean(w.What), "the loop "+Clean(w.Loop)+" asks")), 2) + "\n"
	return text + s.Hang(s.Dim("gate "+Clean(w.Gate)+" of the loop "+Clean(w.Loop)+", for task "+Clean(t.ID)), 2) + "\n  pawl show " + Clean(shell.Quote(w.Loop))
}

// StewardReport renders a steward's tasks, and how to see, approve and apply their proposals.
func (s Style) StewardReport(st steward.State) string {
	var w strings.Builder
	w.WriteString(s.tasks(st) + "\n\nEach task that is done has a proposal, which changes nothing before you apply it:")
	for _, t := range st.Tasks {
		if t.Proposal != "" && len(t.Loops) > 0 {
			last := t.Loops[len(t.Loops)-1]
			w.WriteString("\n  " + strings.Join(proposalNext(last, loop.Proposal{State: "open", Hash: t.Proposal}), " · "))
		}
	}
	return w.String()
}

func (s Style) tasks(st steward.State) string {
	head := []string{"TASK", "TIER", "STATE", "PRIORITY", "STEPS", "ACTIONS", "COST", "TITLE"}
	return s.table(head, list.Map(st.Tasks, func(t steward.Task) []string {
		return []string{
			Clean(t.ID), string(t.Tier), s.doing(st, t), itoa(t.Priority), steps(t), itoa(t.Actions), "$" + t.Cost.CostUSD.String(), Clean(t.Title),
		}
	}), "PRIORITY", "ACTIONS", "STEPS", "COST", "TIER", "TITLE")
}

// doing returns the state of a task, or its outcome.
func (s Style) doing(st steward.State, t steward.Task) string {
	return st.Position(t) + Around(", ", Clean(st.StandstillOf(t, s.when)), "")
}

func steps(t steward.Task) string {
	if len(t.Steps) == 0 {
		return ""
	}
	finishedSteps := list.Filter(t.Steps, func(step steward.Step) bool { return step.Status == steward.Over })
	return itoa(len(finishedSteps)) + "/" + itoa(len(t.Steps))
}

// Task renders one task of a steward, with its open gates.
func (s Style) Task(st steward.State, t steward.Task, now time.Time) string {
	var b strings.Builder
	for _, g := range st.Open() {
		if g.Task == t.ID {
			b.WriteString(s.stewardGate(st.Steward, g, now, true) + "\n\n")
		}
	}
	b.WriteString(Around("", s.atChild(st, t), "\n\n"))
	f := s.fields(12)
	f.add("task", Clean(t.ID))
	f.add("title", Clean(t.Title))
	f.add("state", s.doing(st, t)+note(t.Reason))
	if t.Tier != "" {
		reason := Clean(cmp.Or(t.TierNote, task.BesideAll(t.TierReasons, t.Tier)))
		f.add("tier", string(t.Tier)+", set by "+cmp.Or(Clean(t.TierBy), "–")+Around(": ", reason, ""))
	}
	f.add("priority", itoa(t.Priority))
	f.add("after", Clean(strings.Join(t.After, ", ")))
	f.add("source", Clean(t.Source))
	if p := t.Plan; p != nil {
		because := list.Map(t.Needs(), func(need task.Need) string { return need.Text })
		needs := "needs an approval: "
		if t.ApprovedBy != "" {
			needs = "needed an approval: "
		}
		made := digest(p.Hash) + ", made by " + cmp.Or(Clean(p.By), "–") + Around(", approved by ", Clean(t.ApprovedBy), "")
		f.add("plan", made, cmp.Or(titled(needs, because, "; "), "needs no approval"))
		f.add("estimate", risk.Compared(*cmp.Or(p.Cost, &task.Cost{}), t.Cost.CostUSD))
	}
	f.add("cost", usage(t.Cost))
	f.add("cost limit", known("$", t.CostLimit, ", raised by a person"))
	f.add("actions", itoa(t.Actions)+", "+plural(t.Retries, "failed attempt"))
	f.add("progress", s.when(t.ProgressAt))
	f.add("stopped by", Clean(t.Tripped))
	f.add("work", Around(Short(t.Base)+" → ", Short(t.Head), ""))
	if t.Outcome == steward.Done { // before that it is the proposal of a step
		f.add("proposal", digest(t.Proposal))
	}
	f.add("submitted", s.when(t.Submitted))
	b.WriteString(f.String())
	if len(t.Steps) > 0 {
		b.WriteString("\n\n" + s.table([]string{"STEP", "STATUS", "HEAD", "LOOP"}, list.Map(t.Steps, func(step steward.Step) []string {
			return []string{Clean(step.ID), step.Doing(), Short(step.Head), Clean(step.Loop)}
		}), "HEAD"))
	}
	if len(t.Log) > 0 {
		b.WriteString("\n\n" + s.table([]string{"ACTION", "RESULT", "METRIC", "WHY"}, list.Map(t.Log, func(a task.Action) []string {
			return []string{Clean(a.Name), Clean(a.Outcome), number(a.Metric), Clean(cmp.Or(a.Error, a.Reason))}
		}), "METRIC") + more(t.Actions, len(t.Log)))
	}
	return b.String()
}

// Submitted renders the body of a task, unless its title or the plan, which are shown too, has it whole.
func (s Style) Submitted(title, body, plan string) string {
	body = strings.TrimSpace(body)
	if body == "" || body == title || strings.Contains(plan, body) {
		return ""
	}
	return s.Bold("What was submitted") + "\n  " + strings.Join(written(body), "\n  ")
}

// Plan renders the PLAN.md of a task, which an approval covers to the byte. If text is empty, it says where the plan is.
func (s Style) Plan(st steward.State, t steward.Task, text string) string {
	if text == "" {
		return "PLAN.md is not on this host. In the repository: " + shell.Join("git", "show", Short(st.Ledger)+":tasks/"+t.ID+"/PLAN.md")
	}
	return s.Bold("PLAN.md") + "\n  " + strings.Join(written(text), "\n  ")
}
