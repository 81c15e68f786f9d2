package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// AfterPlan returns what follows from planning a task (S3): the task gets its plan and tier, or a person is asked
// first. A person is asked about a task that is unclear, can't be assessed, has a blocker, or has an invalid plan. What
// the planner spent counts against the task; its time does not count as executing time (S8).
func AfterPlan(s State, c charter.Charter, j Job, p stewardapi.TaskPlanned) []loop.Event {
	id := j.Task
	t := s.Find(id)
	n := next{State: s}
	used := usageOf(p.Usage)
	acted := func(outcome, cause string) loop.Event {
		return loop.Event{Type: loop.ActionTaken, Task: id, Usage: used, Action: &task.Action{What: task.Commanded, Name: "plan", Outcome: outcome, Reason: cause}}
	}
	switch {
	case t == nil:
		return nil
	case p.Interrupted || s.HaltRequested != "" || t.Outcome != "" || t.State != task.Planning || t.Plan != nil: // the planner gave way, or a person stopped the task: it is planned again later
		if *used == (loop.Usage{}) {
			return nil
		}
		return []loop.Event{{Type: loop.TaskInterrupted, Task: id, Reason: t.Interrupted, Note: "its planner", Usage: used}}
	case p.Exhausted != "": // its cost decides whether a person is asked for more
		return []loop.Event{acted("exhausted", "the planner was "+p.Ending())}
	case p.RateLimit != nil:
		n.events = append(n.events, acted(task.RateLimited, until(*p.RateLimit)))
		return n.limited(*t, *p.RateLimit)
	}
	ask := func(stop, text string, points []string) []loop.Event {
		cause := strings.TrimSpace(text + " " + strings.Join(points, "; "))
		n.events = append(n.events, acted("asked", loop.Clip(cause, 500)))
		n.to(*t, task.Waiting, task.Evidence{Reason: cause, Stop: stop}, question(id, text, points))
		return n.events
	}
	switch {
	case len(p.Unclear) > 0:
		return ask(StopAmbiguity, "the planner asks:", p.Unclear)
	case len(p.Blockers) > 0:
		return ask(StopDependency, "it is blocked:", p.Blockers)
	case len(p.Problems) > 0:
		return ask(StopAmbiguity, "the plan is not valid:", p.Problems)
	case p.Plan == nil:
		return ask(StopAmbiguity, "there is no plan: the planner ended with: "+p.Ending(), nil)
	case p.Tier == "":
		return ask(StopAmbiguity, "its risk can't be assessed: set a tier with setTier, then answer replan", nil)
	}
	tier, plan := cmp.Or(t.PersonsTier(), p.Tier), *p.Plan
	plan.Base, plan.Governance, plan.Charter = p.Base, p.Governance, s.Charter
	if p.Estimate.N > 0 || plan.Cost == nil {
		plan.Cost = &p.Estimate
	}
	plan.Needs = risk.NeedsApproval(tier, p.Governs, p.Production, *plan.Cost, t.Cost.CostUSD, c.Limits.CostUSD)
	planned := acted("planned", "")
	planned.Action.Tree = p.Plan.Hash
	events := []loop.Event{planned, {Type: loop.PlanMade, Task: id, TaskPlan: &plan, Told: int64(j.Notes)}}
	if text := n.meetings(p.Meets); text != "" { // each task has its own branch, so nothing is lost, but the second proposal to be applied may conflict
		events = append(events, loop.Event{Type: loop.Warned, Task: id, Reason: loop.Clip(text, 2000)})
	}
	if t.PersonsTier() == "" {
		events = append(events, loop.Event{Type: loop.TierSet, Task: id, Tier: p.Tier, By: p.TierBy, TierReasons: p.TierReasons})
	}
	return append(events, tight(loop.Fold(s, events), c, id)...)
}

// meetings names the tasks still at work that may change the same files, with the files, "" for none.
func (n *next) meetings(meetings []stewardapi.Meeting) string {
	var paths []string
	tasks := map[string][]string{}
	for _, m := range meetings {
		if t := n.Find(m.Task); t == nil || t.Outcome != "" { // it ended after the planner was asked
			continue
		}
		if tasks[m.On] == nil {
			paths = append(paths, m.On)
		}
		tasks[m.On] = append(tasks[m.On], m.Task)
	}
	if len(paths) == 0 {
		return ""
	}
	shown := list.Map(paths[:min(len(paths), mostMeetings)], func(files string) string {
		return firstNames(tasks[files]) + " (" + files + ")"
	})
	text := "other tasks may change the same files: " + strings.Join(shown, "; ")
	if n := len(paths) - len(shown); n > 0 {
		text += fmt.Sprintf("; and in %d more places", n)
	}
	return text
}

// mostMeetings is how many of these names and files a warning shows: every plan has such a warning.
const mostMeetings = 5

// firstNames returns the first of these names, and how many there are more.
func firstNames(names []string) string {
	text := strings.Join(names[:min(len(names), mostMeetings)], ", ")
	if n := len(names) - mostMeetings; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// question asks a person about a task's plan. Several points are shown as a list; of very many, only the first.
func question(id, text string, points []string) loop.Event {
	var shown []string
	room := 1700
	for i, point := range points {
		point = loop.Clip(strings.Join(strings.Fields(point), " "), 1000)
		if room -= len(point); room < 0 {
			shown = append(shown, fmt.Sprintf("and %d more", len(points)-i))
			break
		}
		shown = append(shown, point)
	}
	g := loop.Gate{Kind: loop.GateQuestion, Task: id, Choices: []string{Replan, Cancel}}
	g.Summary = strings.TrimSpace(fmt.Sprintf("%q: %s %s", id, loop.Clip(text, 1700), strings.Join(shown, "; ")))
	if len(shown) > 1 {
		g.Points = shown
	}
	return loop.Event{Type: loop.GateOpened, Task: id, Gate: &g}
}

// AfterAssess returns what follows from assessing a plan again, because the charter or governance files changed (S12). A
// person is asked about new reasons for an approval, and about a plan that is no longer valid.
func AfterAssess(s State, c charter.Charter, j Job, p stewardapi.TaskPlanned) []loop.Event {
	n := next{State: s, charter: c}
	t := s.Find(j.Task)
	if t == nil || p.Interrupted || !n.wanted(*t, j) {
		return nil
	}
	reasons, stop := p.Problems, StopAmbiguity
	if p.Plan == nil && len(reasons) == 0 {
		reasons, stop = p.Blockers, StopDependency
	}
	if len(reasons) > 0 || p.Plan == nil {
		text := "the charter or the governance files have changed, and the plan is no longer valid:"
		n.to(*t, task.Waiting, task.Evidence{Reason: text + " " + strings.Join(reasons, "; "), Stop: stop}, question(t.ID, text, reasons))
		return n.events
	}
	plan := *t.Plan
	plan.Governance, plan.Charter = p.Governance, s.Charter
	if plan.Cost == nil {
		plan.Cost = &p.Estimate
	}
	set := loop.Event{Type: loop.TierSet, Task: t.ID, Tier: p.Tier, By: p.TierBy, TierReasons: p.TierReasons, TaskPlan: &plan, How: "assessed once more"}
	if tier := t.PersonsTier(); tier != "" { // a person's tier stays, even if it was set during the assessment
		set.Tier, set.By, set.TierReasons, set.Reason = tier, t.TierBy, nil, t.TierNote
	}
	// The estimate stays. The cost so far is compared with the limit before every action.
	plan.Needs = risk.NeedsApproval(set.Tier, p.Governs, p.Production, *plan.Cost, metric.Decimal{}, c.Limits.CostUSD)
	return []loop.Event{set}
}

// Who set a tier that no rule and no planner may change.
const (
	byPerson  = "a person"
	byCharter = "the charter" // the task of a schedule or a trigger has it from the charter
)

// AfterBegin returns what follows when the loop of a step was started: its task gives way to nobody any more.
func AfterBegin(s State, j Job) []loop.Event {
	e := loop.Event{Type: loop.StepBegun, Task: j.Task, Step: j.Step.ID, LoopID: j.Loop}
	if j.Do == Adopt {
		e.How = "adopted"
	}
	if j.Cap != nil {
		e.Limits = map[loop.Resource]metric.Decimal{loop.CostUSD: *j.Cap}
	}
	n := next{State: s}
	if t := s.Find(j.Task); t == nil || !n.wanted(*t, j) {
		e.Reason = "the task has changed since: the loop is ended"
	}
	n.events = append(n.events, e)
	if t := loop.Fold(s, n.events).Find(j.Task); t != nil && t.State == task.Executing && t.Interrupted != "" {
		n.events = append(n.events, loop.Event{Type: loop.TaskInterrupted, Task: j.Task})
	}
	return n.events
}

// AfterJoin returns what follows from joining the work of several steps, which is an action, or from failing to.
func AfterJoin(s State, c charter.Charter, j Job, out stewardapi.Joined) []loop.Event {
	t := s.Find(j.Task)
	if t == nil || t.Outcome != "" {
		return nil
	}
	n := next{State: s, charter: c}
	a := task.Action{What: task.Commanded, Name: "join the steps before " + j.Step.ID, Outcome: "joined", Tree: out.Head}
	if len(out.Conflicts) > 0 {
		a.Outcome, a.Reason = "conflict", strings.Join(out.Conflicts, ", ")
		a.Error = "conflict in " + loop.Clip(a.Reason, 200)
	}
	n.events = append(n.events, loop.Event{Type: loop.ActionTaken, Task: t.ID, Action: &a})
	if len(out.Conflicts) > 0 && n.wanted(*t, j) {
		n.stuckBy(*t, StopConflict, "the work of the steps before "+j.Step.ID+" cannot be joined: they conflict in "+loop.Clip(a.Reason, 500), a.Name)
	}
	return n.events
}

// AfterTell returns what follows when a message reached a child loop, or can't reach it any more: failed says why.
func AfterTell(j Job, failed string) []loop.Event {
	event := loop.Event{Type: loop.ChildTold, Task: j.Task, LoopID: j.Loop, Message: j.Message, Note: j.Note, Reason: failed}
	if j.Message == loop.MessagePause {
		event.How = j.Choice
	}
	return []loop.Event{event}
}

// CannotBegin returns what follows when a step can't be started: a person is asked.
func CannotBegin(s State, j Job, cause string) []loop.Event {
	n := next{State: s}
	t := s.Find(j.Task)
	if t == nil || !n.wanted(*t, j) {
		return nil
	}
	n.stuck(*t, task.Finding{Rule: "blocked", Stop: true, Text: cause, State: t.State, Action: "begin " + j.Step.ID})
	return n.events
}

// AfterChild returns what follows from a child's report: an action, loop detection (S8), perhaps a finished step.
func AfterChild(s State, c charter.Charter, e task.ChildEvent) []loop.Event {
	e = s.counted(e)
	t, st, left := s.child(e.Loop)
	if t == nil {
		return nil // the loop works for no task
	}
	reported := loop.Event{Type: loop.ChildReported, Task: t.ID, LoopID: e.Loop, Child: &e}
	switch {
	case left: // its cost counts
		return []loop.Event{reported}
	case e.Seq == 0 && e.Event == task.ChildEnded: // nobody knows how far the loop came
	case e.Seq < st.Seq || e.Seq != 0 && e.Seq == st.Seq && e.Event == st.Said: // it is older than what the steward knows, or known
		return nil
	}
	n := next{State: s, charter: c, events: []loop.Event{reported}}
	switch e.Event {
	case task.ChildAsks:
		if !s.pausedBySteward(*st, *e.Gate) && t.State == task.Executing {
			n.waitAt(*t, WaitingFor{Loop: e.Loop, Kind: e.Gate.Kind, What: e.Gate.Summary})
		}
	case task.ChildAnswered, task.ChildStands:
		if st.Status == Asking {
			n.back(*t, e)
		}
	case task.IterationEnded:
		n.back(*t, e) // the report of the answer may have been lost
		n.act(*t, iterated(*st, e))
		if l := e.Result.RateLimit; l != nil {
			if t = loop.Fold(s, n.events).Find(t.ID); t.State == task.Executing && t.Until.IsZero() {
				return n.limited(*t, *l)
			}
		}
	case task.ChildSleeps: // the loop wakes up by itself; a task that sleeps does not go in circles
		if l := e.Result.RateLimit; l != nil && !l.Until.IsZero() && t.State == task.Executing && t.Until.Before(l.Until) {
			return n.limited(*t, *l)
		}
	case task.ChildEnded:
		n.childEnded(*t, *st, e)
	}
	return n.events
}

// counted returns a report as it counts. A loop that was reset in Temporal, or that nobody knows any more, may report
// less than before: its end counts, and takes back neither what it has spent nor its work.
func (s State) counted(e task.ChildEvent) task.ChildEvent {
	if e.Result == nil {
		return e
	}
	r := *e.Result
	if _, st, left := s.child(e.Loop); st != nil {
		r.Usage = r.Usage.Max(st.Usage)
		if !left && e.Event == task.ChildEnded && e.Seq < st.Seq {
			e.Seq = 0
			r.Head, r.Base, r.Branch, r.Proposal = "", "", "", nil
		}
	}
	e.Result = &r
	return e
}

// Lost returns the report for a loop that will never report its end: it has failed.
func Lost(id, cause string) task.ChildEvent {
	return task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{
		Status: string(loop.Failed), ErrorCode: string(fault.LoopNotFound), Reason: cause,
	}}
}

// Gone says that nobody knows a loop any more.
const Gone = "neither Temporal nor this host knows the loop any more"

// waitAt lets a task wait for the answer to a question of one of its loops.
func (n *next) waitAt(t Task, w WaitingFor) {
	evidence := task.Evidence{Reason: fmt.Sprintf("the loop %s asks: %s", w.Loop, w.What)}
	if w.Kind == string(loop.GateGuard) {
		evidence.Stop = StopGuardrail
	}
	n.to(t, task.Waiting, evidence)
}

// pausedBySteward reports whether a loop waits because the steward paused it. The loop's report may arrive before the
// ledger has the steward's message. A loop that a person paused waits for a person.
func (s State) pausedBySteward(st Step, g task.ChildGate) bool {
	return g.Kind == string(loop.GatePause) && (g.By == loop.StewardName(s.Steward) || g.By == "" && st.Told == loop.MessagePause)
}

// limited lets a task sleep until a rate limit ends. If that time is unknown, it asks a person.
func (n *next) limited(t Task, l task.RateLimit) []loop.Event {
	if l.Until.IsZero() {
		cause := "an agent has used up its rate limit, and nobody knows when it ends: " + cmp.Or(loop.Clip(l.Said, 300), "it says nothing")
		n.stuckBy(t, StopResources, cause, cmp.Or(t.Step, "plan"))
		return n.events
	}
	n.events = append(n.events, loop.Event{Type: loop.RateLimited, Task: t.ID, RateLimit: &l})
	return n.events
}

func until(l task.RateLimit) string {
	if l.Until.IsZero() {
		return "rate limit"
	}
	return "rate limit until " + l.Until.UTC().Format(time.RFC3339)
}

// Slept returns what follows when a sleeping task's time has come.
func Slept(s State, id string, until time.Time) []loop.Event {
	if t := s.Find(id); t == nil || t.Outcome != "" || !t.Until.Equal(until) {
		return nil
	}
	return []loop.Event{{Type: loop.RateLimitOver, Task: id}}
}

// child finds the task and the step that a loop works for, or has worked for: left says that the task has given the
// step's plan up, and that the loop has not ended yet.
func (s *State) child(id string) (t *Task, st *Step, left bool) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if st := find(t.Ending, func(st Step) bool { return st.Loop == id }); st != nil {
			return t, st, true
		}
		if st := find(t.Steps, func(st Step) bool { return st.Loop == id && st.atWork() }); st != nil {
			return t, st, false
		}
	}
	return nil, nil, false
}

// iterated returns a child's iteration as an action.
func iterated(st Step, e task.ChildEvent) task.Action {
	r := e.Result
	a := task.Action{
		What: task.Iterated, Name: "iteration of " + st.ID, Step: "", Loop: e.Loop, Outcome: "discarded", Reason: r.Reason, Metric: r.Metric, Tree: r.Tree,
		Progress: r.Kept, ActiveMs: r.Usage.ActiveMs - st.Counted,
	}
	if r.Kept {
		a.Outcome = "kept"
	} else if r.RateLimit != nil {
		a.Outcome, a.Reason = task.RateLimited, until(*r.RateLimit)
	} else if r.ErrorCode != "" || reason.Failed(r.Reason) {
		a.Error = strings.TrimSpace(r.ErrorCode + " " + r.Reason)
	}
	return a
}

// act records an action and the result of loop detection: the agent is told a warning, a limit stops the task.
func (n *next) act(t Task, a task.Action) {
	n.events = append(n.events, loop.Event{Type: loop.ActionTaken, Task: t.ID, Action: &a})
	updated := loop.Fold(n.State, n.events).Find(t.ID)
	if updated == nil || updated.State != task.Executing && (updated.State != task.Waiting || !updated.atLoop()) {
		return
	}
	for _, f := range stuck.Check(updated.Window, n.charter.Limits, updated.State) {
		if f.Stop {
			n.stuck(*updated, f)
			return
		}
		n.events = append(n.events, loop.Event{Type: loop.LoopWarned, Task: t.ID, Finding: &f})
	}
}

// stuckBy is stuck for a rule that counts nothing.
func (n *next) stuckBy(t Task, rule, cause, action string) {
	n.stuck(t, task.Finding{Rule: rule, Stop: true, Count: 1, Text: cause, State: t.State, Action: action})
}

// stuck stops a task and asks a person (S9). The question names the rule, the counts, the state and the work under way.
func (n *next) stuck(t Task, f task.Finding) {
	n.events = append(n.events, loop.Event{Type: loop.LoopDetected, Task: t.ID, Finding: &f})
	summary := fmt.Sprintf("%q: %s", t.ID, f.Text)
	if f.Action != "" && !strings.Contains(f.Text, f.Action) {
		summary += "; at: " + f.Action
	}
	gate := loop.Event{Type: loop.GateOpened, Task: t.ID, Finding: &f, Gate: &loop.Gate{
		Kind: GateStuck, Task: t.ID, Summary: loop.Clip(summary, 2000), Choices: choices[GateStuck], About: f.Rule,
	}}
	if t.State == task.Waiting { // one of its loops asks, while another goes in circles
		n.events = append(n.events, gate)
		return
	}
	n.to(t, task.Waiting, task.Evidence{Reason: f.Text, Stop: cmp.Or(stopOf[f.Rule], StopCircle)}, gate)
}

// childEnded handles the end of a step's loop: the step is done, or starts again, or a person is asked.
func (n *next) childEnded(t Task, st Step, e task.ChildEvent) {
	r := e.Result
	a := task.Action{
		What: task.StepStarted, Name: "step " + st.ID, Step: st.ID, Loop: e.Loop, Outcome: r.Status, Reason: r.Reason, Metric: r.Metric, Tree: r.Tree,
		ActiveMs: r.Usage.ActiveMs - st.Counted,
	}
	rejected := r.Proposal != nil && r.Proposal.State == "rejected"
	spent, stopped := r.ErrorCode == string(fault.BudgetExhausted), r.ErrorCode == string(fault.Cancelled)
	switch { // only the last is a failure of the step
	case r.Status == string(loop.Completed) && !rejected:
		a.Progress, a.Milestone = true, true
	case r.RateLimit != nil:
		a.Outcome, a.Reason = task.RateLimited, until(*r.RateLimit)
	case spent:
		a.Outcome = task.Spent
	case rejected, stopped:
		a.Outcome = task.Stopped
	default:
		a.Error = strings.TrimSpace(r.ErrorCode + " " + r.Reason)
	}
	n.back(t, e)
	n.act(*loop.Fold(n.State, n.events).Find(t.ID), a)
	if a.Milestone {
		n.events = append(n.events, loop.Event{Type: loop.MilestoneReached, Task: t.ID, Step: st.ID, Reason: milestone(t, st.ID)})
		if r.Proposal.Unseen() && !slices.Equal(task.Last(t.Plan.Steps), []string{st.ID}) { // else a person decides about it as the task's
			updated := loop.Fold(n.State, n.events).Find(t.ID)
			n.stuckBy(*updated, "marked", "what the step "+st.ID+" has made is for a person to judge: "+r.Proposal.Why, "pawl diff "+e.Loop)
		}
		return
	}
	updated := loop.Fold(n.State, n.events).Find(t.ID)
	elsewhere := updated.State == task.Waiting && updated.atLoop() // another loop asks
	if updated.State != task.Executing && !elsewhere {
		return // loop detection stopped it
	}
	switch {
	case rejected:
		n.stuckBy(*updated, "rejected", "a person has rejected what the step "+st.ID+" has made", a.Name)
	case elsewhere && (spent || r.RateLimit != nil): // checked before the step starts again
	case r.RateLimit != nil:
		n.limited(*updated, *r.RateLimit)
	case spent && n.moneyIsSpent(*updated, Job{}) != "":
		n.waitsForMoney(*updated, n.moneyIsSpent(*updated, Job{}))
	case spent && (st.Cap == nil || r.Usage.CostUSD.Cmp(*st.Cap) < 0): // else it used up its share, and gets another one
		n.stuckBy(*updated, StopResources, "the loop of the step "+st.ID+" has used up a budget of its own: "+r.Reason, a.Name)
	case stopped:
		n.stuckBy(*updated, "halted", "the loop of the step "+st.ID+" was halted: "+r.Reason, a.Name)
	}
}

// back lets a task continue that waited for a question of a loop: somebody answered it there, or ended the loop.
func (n *next) back(t Task, e task.ChildEvent) {
	if t.State == task.Waiting && t.WaitingFor != nil && t.WaitingFor.Loop == e.Loop {
		n.resume(t.ID, "at the loop "+e.Loop)
	}
}

func milestone(t Task, step string) string {
	if t.Plan != nil {
		if i := slices.IndexFunc(t.Plan.Steps, func(p task.Step) bool { return p.ID == step }); i >= 0 && t.Plan.Steps[i].Milestone != "" {
			return t.Plan.Steps[i].Milestone
		}
	}
	return "step " + step
}
