package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/act"
	"pawl/internal/assess"
	"pawl/internal/charter"
	"pawl/internal/detect"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/task"
)

// AfterPlan is what follows from planning a task (S3): its plan and tier, or what a person is asked
// first. An unclear task, one that can't be assessed, one with a blocker or with a plan that is not
// valid is a question.
func AfterPlan(s State, c charter.Charter, j Job, p act.TaskPlanned) []loop.Event {
	id := j.Task
	t := s.Find(id)
	if t == nil || t.Outcome != "" || t.State != task.Planning || t.Plan != nil {
		return nil // it was cancelled meanwhile
	}
	n := next{State: s}
	used := &loop.Usage{ActiveMs: p.Usage.ActiveMs, ToolCalls: int64(p.Usage.ToolCalls), InputTokens: p.Usage.Tokens, CostUSD: p.Usage.CostUSD}
	ask := func(why string, choices ...string) []loop.Event {
		n.events = append(n.events, loop.Event{Type: loop.ActionTaken, Task: id, Usage: used, Action: &task.Action{
			What: task.Commanded, Name: "plan", Outcome: "asked", Reason: loop.Clip(why, 500), ActiveMs: p.Usage.ActiveMs,
		}})
		n.to(*t, task.Waiting, task.Evidence{Reason: why}, loop.Event{Type: loop.GateOpened, Task: id, Gate: &loop.Gate{
			Kind: loop.GateQuestion, Task: id, Summary: loop.Clip(fmt.Sprintf("%q: %s", id, why), 2000), Choices: choices,
		}})
		return n.events
	}
	switch {
	case len(p.Unclear) > 0:
		return ask("the planner asks: "+strings.Join(p.Unclear, "; "), Replan, Cancel)
	case len(p.Blockers) > 0:
		return ask("it is blocked: "+strings.Join(p.Blockers, "; "), Replan, Cancel)
	case len(p.Problems) > 0:
		return ask("the plan is not valid: "+strings.Join(p.Problems, "; "), Replan, Cancel)
	case p.Plan == nil:
		return ask("there is no plan: the planner "+p.Ending(), Replan, Cancel)
	case p.Tier == "":
		return ask("its risk can't be assessed: set a tier with setTier, then answer replan", Replan, Cancel)
	}
	tier, plan := cmp.Or(t.PersonsTier(), p.Tier), *p.Plan
	plan.Base, plan.Governance = p.Base, p.Governance
	if p.Estimate.N > 0 || plan.Cost == nil {
		plan.Cost = &p.Estimate
	}
	plan.Needs = assess.NeedsApproval(tier, p.Governs, p.Production, *plan.Cost, t.Cost.CostUSD, c.Limits.CostUSD)
	events := []loop.Event{
		{Type: loop.ActionTaken, Task: id, Action: &task.Action{What: task.Commanded, Name: "plan", Outcome: "planned", Tree: p.Plan.Hash, ActiveMs: p.Usage.ActiveMs}},
		{Type: loop.PlanMade, Task: id, TaskPlan: &plan, Usage: used, Told: int64(j.Notes)},
	}
	for _, overlap := range p.Overlaps { // each has a branch of its own: nothing is lost, but the second to be applied may conflict
		events = append(events, loop.Event{Type: loop.Warned, Task: id, Reason: loop.Clip(overlap, 500)})
	}
	if t.PersonsTier() == "" {
		events = append(events, loop.Event{Type: loop.TierSet, Task: id, Tier: p.Tier, By: p.TierBy, Reason: strings.Join(p.Why, "; ")})
	}
	return events
}

// byPerson marks a tier that a person has set: nothing else changes it.
const byPerson = "a person"

// AfterBegin is what follows when the loop of a step runs.
func AfterBegin(s State, j Job) []loop.Event {
	e := loop.Event{Type: loop.StepBegun, Task: j.Task, Step: j.Step.ID, LoopID: j.Loop}
	if !MayBegin(s, j) {
		e.Reason = "the task has changed since: the loop is ended"
	}
	return []loop.Event{e}
}

// MayBegin reports whether what a step was to be begun for still holds: the task executes that plan, is
// approved where it has to be, and nobody has begun the step.
func MayBegin(s State, j Job) bool {
	t, n := s.Find(j.Task), next{State: s}
	if t == nil || t.Outcome != "" || t.State != task.Executing || t.Plan == nil || t.Plan.Hash != j.Plan || len(n.unapproved(*t)) > 0 {
		return false
	}
	return slices.ContainsFunc(t.Steps, func(st Step) bool { return st.ID == j.Step.ID && st.Status == Pending })
}

// AfterTell is what follows when a child loop has a message.
func AfterTell(j Job) []loop.Event {
	return []loop.Event{{Type: loop.ChildTold, Task: j.Task, LoopID: j.Loop, Message: j.Message, Note: j.Note}}
}

// CannotBegin is what follows when a step can't be begun: a person is asked.
func CannotBegin(s State, j Job, why string) []loop.Event {
	t := s.Find(j.Task)
	if t == nil || !MayBegin(s, j) {
		return nil
	}
	n := next{State: s}
	n.stuck(*t, task.Finding{Rule: "blocked", Stop: true, Text: why, State: t.State, Action: "begin " + j.Step.ID})
	return n.events
}

// AfterChild is what follows from what a child loop says of itself: an action with its result, whether
// the task goes in circles (S8), whether a step is done.
func AfterChild(s State, c charter.Charter, e task.ChildEvent) []loop.Event {
	t, st := s.child(e.Loop)
	if t == nil || (e.Seq != 0 && (e.Seq < st.Seq || (e.Seq == st.Seq && e.Event == st.Said))) {
		return nil // of a plan that was given up, or known already
	}
	n := next{State: s, charter: c}
	n.events = append(n.events, loop.Event{Type: loop.ChildReported, Task: t.ID, LoopID: e.Loop, Child: &e})
	switch e.Event {
	case task.ChildAsks:
		ours := e.Gate.Kind == string(loop.GatePause) && st.Told == loop.MessagePause
		if !ours && t.State == task.Executing {
			n.to(*t, task.Waiting, task.Evidence{Reason: fmt.Sprintf("the loop %s asks: %s", e.Loop, e.Gate.Summary)})
		}
	case task.ChildAnswered, task.ChildStands:
		if st.Status == Asking && t.State == task.Waiting && t.WaitingFor != nil && t.WaitingFor.Loop == e.Loop {
			n.to(*t, task.Executing, task.Evidence{Answer: "at the loop " + e.Loop})
		}
	case task.IterationEnded:
		n.act(*t, iterated(*st, e))
	case task.ChildEnded:
		n.childEnded(*t, *st, e)
	}
	return n.events
}

// child finds the task and the step that a loop works for.
func (s *State) child(id string) (*Task, *Step) {
	for i := range s.Tasks {
		for k := range s.Tasks[i].Steps {
			if st := &s.Tasks[i].Steps[k]; st.Loop == id && st.Status != Over && st.Status != Pending {
				return &s.Tasks[i], st
			}
		}
	}
	return nil, nil
}

// iterated is the action that an iteration of a child is.
func iterated(st Step, e task.ChildEvent) task.Action {
	r := e.Result
	a := task.Action{
		What: task.Iterated, Name: "iteration of " + st.ID, Step: "", Loop: e.Loop, Outcome: "discarded", Reason: r.Reason, Metric: r.Metric, Tree: r.Tree,
		Progress: r.Kept, ActiveMs: r.Usage.ActiveMs - st.Counted,
	}
	if r.Kept {
		a.Outcome = "kept"
	} else if r.ErrorCode != "" || strings.HasPrefix(r.Reason, "error:") {
		a.Error = strings.TrimSpace(r.ErrorCode + " " + r.Reason)
	}
	return a
}

// act records an action and what loop detection says of it: a warning is told to the agent, a limit
// stops the task.
func (n *next) act(t Task, a task.Action) {
	n.events = append(n.events, loop.Event{Type: loop.ActionTaken, Task: t.ID, Action: &a})
	after := Fold(n.State, n.events).Find(t.ID)
	atChild := after != nil && after.State == task.Waiting && after.WaitingFor != nil && after.WaitingFor.Loop != ""
	if after == nil || (after.State != task.Executing && !atChild) {
		return
	}
	for _, f := range detect.Check(after.Window, n.charter.Limits, after.State, 0) {
		if f.Stop {
			n.stuck(*after, f)
			return
		}
		n.events = append(n.events, loop.Event{Type: loop.LoopWarned, Task: t.ID, Finding: &f})
	}
}

// stuck stops a task and asks a person (S9): with the rule, the counts, the state and what was being done.
func (n *next) stuck(t Task, f task.Finding) {
	n.events = append(n.events, loop.Event{Type: loop.LoopDetected, Task: t.ID, Finding: &f})
	summary := fmt.Sprintf("%q: %s", t.ID, f.Text)
	if f.Action != "" {
		summary += "; at: " + f.Action
	}
	gate := loop.Event{Type: loop.GateOpened, Task: t.ID, Finding: &f, Gate: &loop.Gate{
		Kind: GateStuck, Task: t.ID, Summary: loop.Clip(summary, 2000), Choices: choices[GateStuck],
	}}
	if t.State == task.Waiting { // one of its loops asks, another goes in circles
		n.events = append(n.events, gate)
		return
	}
	n.to(t, task.Waiting, task.Evidence{Reason: f.Text}, gate)
}

// childEnded is the end of a step's loop: the step is done, is begun again, or a person is asked.
func (n *next) childEnded(t Task, st Step, e task.ChildEvent) {
	r := e.Result
	a := task.Action{
		What: task.StepStarted, Name: "step " + st.ID, Step: st.ID, Loop: e.Loop, Outcome: r.Status, Reason: r.Reason, Metric: r.Metric, Tree: r.Tree,
		ActiveMs: r.Usage.ActiveMs - st.Counted,
	}
	rejected := r.Proposal != nil && r.Proposal.State == "rejected"
	if r.Status == string(loop.Completed) && !rejected {
		a.Progress, a.Milestone = true, true
		n.back(t, e)
		n.act(*Fold(n.State, n.events).Find(t.ID), a)
		n.events = append(n.events, loop.Event{Type: loop.MilestoneReached, Task: t.ID, Step: st.ID, Reason: milestone(t, st.ID)})
		return
	}
	a.Error = strings.TrimSpace(r.ErrorCode + " " + r.Reason)
	n.back(t, e)
	n.act(*Fold(n.State, n.events).Find(t.ID), a)
	after := Fold(n.State, n.events).Find(t.ID)
	if after.State != task.Executing {
		return // loop detection has stopped it
	}
	switch why := ""; {
	case rejected:
		n.stuck(*after, task.Finding{Rule: "rejected", Stop: true, Count: 1, Text: "a person has rejected what the step " + st.ID + " has made", State: after.State, Action: a.Name})
	case r.ErrorCode == string(fault.BudgetExhausted) && n.spentUp(*after):
		_, limit := n.overCost(*after)
		n.to(*after, task.Waiting, task.Evidence{Reason: "its cost has come to its limit"}, n.budgetGate(*after, limit))
	case r.ErrorCode == string(fault.Cancelled):
		why = "the loop of the step " + st.ID + " was halted: " + r.Reason
		n.stuck(*after, task.Finding{Rule: "halted", Stop: true, Count: 1, Text: why, State: after.State, Action: a.Name})
	case after.Retries > n.charter.Limits.Retries:
		why = fmt.Sprintf("the step %s has failed %d times (%s); it may be tried again %d times", st.ID, after.Retries, a.Error, n.charter.Limits.Retries)
		n.stuck(*after, task.Finding{Rule: "retries", Stop: true, Count: int64(after.Retries), Limit: int64(n.charter.Limits.Retries), Text: why, State: after.State, Action: a.Name})
	}
}

// back lets a task go on that waited for what a loop asked, and the loop has ended: somebody has
// answered there, or ended it.
func (n *next) back(t Task, e task.ChildEvent) {
	if t.State == task.Waiting && t.WaitingFor != nil && t.WaitingFor.Loop == e.Loop {
		n.to(t, task.Executing, task.Evidence{Answer: "at the loop " + e.Loop})
	}
}

// spentUp reports whether a task has spent what it may.
func (n *next) spentUp(t Task) bool { over, _ := n.overCost(t); return over }

func milestone(t Task, step string) string {
	if t.Plan != nil {
		if i := slices.IndexFunc(t.Plan.Steps, func(p task.Step) bool { return p.ID == step }); i >= 0 && t.Plan.Steps[i].Milestone != "" {
			return t.Plan.Steps[i].Milestone
		}
	}
	return "step " + step
}

// AfterValidation is what follows from looking whether all is as recorded (S11, S12). What has no task
// is shown and asked about once.
func AfterValidation(s State, v act.Validated) []loop.Event {
	events := []loop.Event{{Type: loop.StewardValidated, Reason: found(v)}}
	return append(events, Drifted(s, v.Drift)...)
}

// Drifted records drift that is not known yet, and asks about it.
func Drifted(s State, drift []task.Drift) (events []loop.Event) {
	for _, d := range drift {
		if slices.ContainsFunc(s.Drift, func(known task.Drift) bool { return same(known, d) }) ||
			slices.ContainsFunc(s.Accepted, func(known task.Drift) bool { return same(known, d) && known.Theirs == d.Theirs }) {
			continue
		}
		answers := []string{Keep}
		if d.Name == task.DriftArtifact { // nothing else can be put back
			answers = append(answers, Restore)
		}
		events = append(events, loop.Event{Type: loop.DriftFound, Drift: &d}, loop.Event{Type: loop.GateOpened, Drift: &d, Gate: &loop.Gate{
			Kind: GateDrift, Choices: answers, Summary: loop.Clip(d.Text, 2000), About: d.Name + " " + d.What,
		}})
	}
	return events
}

func found(v act.Validated) string {
	text := "all is as recorded"
	if n := len(v.Drift); n > 0 {
		text = fmt.Sprintf("%d differences", n)
	}
	if v.Remote != "" {
		text += "; " + v.Remote
	}
	return text
}

// Estimate is what a plan was expected to cost beside what it has, as people are shown it.
func Estimate(t Task) (expected string, actual evidence.Decimal) {
	if t.Plan == nil {
		return (*task.Cost)(nil).String(), t.Cost.CostUSD
	}
	return t.Plan.Cost.String(), t.Cost.CostUSD
}
