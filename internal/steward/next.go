package steward

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/act"
	"pawl/internal/charter"
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/task"
)

// Do is what a job is about.
type Do string

// The jobs.
const (
	Plan  Do = "plan"  // plan and assess the task
	Begin Do = "begin" // begin a step: start its loop, or adopt the one that runs
	Tell  Do = "tell"  // send a message to a child loop
	End   Do = "end"   // the steward is over
)

// Job is something to be done in the world. The same job is not begun twice: Key names it.
type Job struct {
	Do      Do
	Task    string
	Step    task.Step // Begin
	Loop    string    // Begin, Tell
	After   []Step    // Begin: the steps on whose work it stands
	Last    bool      // Begin: the step whose proposal is that of the task
	Message string    // Tell
	Choice  string    // Tell: of a pause, when it takes effect
	Note    string    // Tell, Plan
	Notes   int       // Plan: how much guidance that is
	Plan    string    // Begin: the hash of the plan that has the step
}

// Key names the job among those under way.
func (j Job) Key() string {
	return strings.Join([]string{string(j.Do), j.Task, j.Step.ID, j.Loop, j.Message}, " ")
}

// Next says what follows from a state that the ledger has: events that happen now, or else the jobs to
// be done. The caller records the events before it asks again, so that nothing is done in the world
// before the ledger has what led to it. Asking twice gives the same answer.
func Next(s State, c charter.Charter) ([]loop.Event, []Job) {
	n := next{State: s, charter: c}
	n.ending()
	switch {
	case s.HaltRequested != "":
		n.halt()
	default:
		n.leave()
		n.dispatch()
	}
	if len(n.events) > 0 {
		return n.events, nil
	}
	return nil, n.jobs
}

// next collects what is to be done.
type next struct {
	State
	charter charter.Charter
	events  []loop.Event
	jobs    []Job
}

// to moves a task on. What the table refuses is a fault of this package, which the state shows as a
// warning rather than to go on against the table.
func (n *next) to(t Task, state task.State, e task.Evidence, more ...loop.Event) {
	event, err := change(t, state, e)
	if err != nil {
		n.events = append(n.events, loop.Event{Type: loop.Warned, Task: t.ID, Reason: err.Error()})
		return
	}
	n.events = append(append(n.events, event), more...)
}

// ending ends the loops of plans that were given up, also of tasks that are over.
func (n *next) ending() {
	for _, t := range n.Tasks {
		for _, l := range t.Ending {
			n.jobs = append(n.jobs, Job{Do: Tell, Task: t.ID, Loop: l, Message: loop.MessageHalt, Note: "the steward has given up the plan that this loop belongs to"})
		}
	}
}

// halt ends the steward: its loops first.
func (n *next) halt() {
	for _, t := range n.Tasks {
		for _, st := range t.Steps {
			if st.Loop != "" && st.Status != Over && st.Status != Pending && st.Told != loop.MessageHalt {
				n.jobs = append(n.jobs, Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageHalt, Note: "its steward was ended: " + n.HaltRequested})
			}
		}
	}
	if len(n.jobs) == 0 {
		n.jobs = append(n.jobs, Job{Do: End})
	}
}

// leave moves tasks on whose state has something that must not be left as it is.
func (n *next) leave() {
	for _, t := range n.Tasks {
		if t.Outcome != "" {
			continue
		}
		if len(t.Notes) > 0 && t.State == task.Executing {
			for _, st := range t.Steps {
				if st.Status == Running {
					n.jobs = append(n.jobs, Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageSteer, Note: t.Notes[0]})
				}
			}
		}
		switch t.State {
		case task.Executing:
			n.executing(t)
		case task.Planning:
			if t.Paused || n.Paused {
				n.to(t, task.Waiting, task.Evidence{Reason: paused})
			}
		case task.Waiting:
			if w := t.WaitingFor; w == nil || w.Loop == "" { // else the other steps go on
				n.pauseAll(t, "step")
			}
		}
	}
}

// executing moves a task on that is complete, that a person has paused, or that may not go on without
// an approval.
func (n *next) executing(t Task) {
	switch needs := n.unapproved(t); {
	case t.Paused || n.Paused:
		n.to(t, task.Waiting, task.Evidence{Reason: paused})
	case len(needs) > 0:
		n.to(t, task.Waiting, task.Evidence{Reason: "it needs an approval: " + strings.Join(needs, "; ")}, n.tierGate(t, needs))
	case len(t.Steps) > 0 && !slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Status != Over }):
		done := "all steps are done"
		if t.Proposal != "" {
			done = "proposal " + t.Proposal[:min(12, len(t.Proposal))]
		}
		n.to(t, task.Idle, task.Evidence{Done: done}, loop.Event{Type: loop.TaskEnded, Task: t.ID, Outcome: Done, Actions: t.Actions, Reason: done, Commit: t.Proposal, Head: t.Head})
	default:
		if over, limit := n.overCost(t); over {
			n.to(t, task.Waiting, task.Evidence{Reason: "its cost has come to its limit"}, n.budgetGate(t, limit))
		}
	}
}

// paused is why a task waits that a person has paused.
const paused = "paused by a person"

// unapproved are the reasons why a person has to approve a task's plan, none where one has, or nobody has to.
func (n *next) unapproved(t Task) []string {
	if t.Plan == nil || t.ApprovedBy != "" {
		return nil
	}
	needs := slices.Clone(t.Plan.Needs)
	if len(needs) == 0 && (t.Tier == task.T1 || t.Tier == task.T2) { // a person has said so since
		needs = append(needs, "the tier is "+string(t.Tier))
	}
	return needs
}

func (n *next) tierGate(t Task, needs []string) loop.Event {
	return loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: GateTier, Task: t.ID, Hash: t.Plan.Hash, Choices: choices[GateTier],
		Summary: loop.Clip(fmt.Sprintf("%s: the plan of %q needs an approval: %s", cmp.Or(t.Tier, "no tier"), t.ID, because(needs, t.TierWhy)), 2000),
	}}
}

// because are the reasons for an approval, with those for the tier.
func because(needs []string, tier string) string {
	text := strings.Join(needs, "; ")
	if tier != "" {
		text += " (" + tier + ")"
	}
	return text
}

// limit is what a task may cost, nil for anything.
func (n *next) limit(t Task) *evidence.Decimal {
	if t.CostLimit != nil {
		return t.CostLimit
	}
	return n.charter.Limits.CostUSD
}

// overCost reports whether a task has spent what it may, and that is not all that there was to do.
func (n *next) overCost(t Task) (over bool, limit evidence.Decimal) {
	l := n.limit(t)
	if l == nil {
		return false, limit
	}
	return t.Cost.CostUSD.Cmp(*l) >= 0 && t.Cost.CostUSD.Sign() > 0, *l
}

func (n *next) budgetGate(t Task, limit evidence.Decimal) loop.Event {
	summary := fmt.Sprintf("%q has cost %s US dollars; its limit is %s", t.ID, t.Cost.CostUSD, limit)
	sum := sha256.Sum256([]byte(n.Steward + " " + t.ID + " " + summary))
	return loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: loop.GateBudget, Task: t.ID, Limit: &limit, Hash: hex.EncodeToString(sum[:]), Budget: loop.CostUSD, Choices: choices[loop.GateBudget], Summary: summary,
	}}
}

// Remainder is what a task may still cost, nil for anything: the cap of the loop that is begun next.
func Remainder(s State, c charter.Charter, t Task) *evidence.Decimal {
	n := next{State: s, charter: c}
	limit := n.limit(t)
	if limit == nil {
		return nil
	}
	left := limit.Sub(t.Cost.CostUSD)
	return &left
}

// pauseAll pauses what runs for a task.
func (n *next) pauseAll(t Task, when string) {
	for _, st := range t.Steps {
		if st.Status == Running && st.Told != loop.MessagePause {
			n.jobs = append(n.jobs, Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessagePause, Choice: when})
		}
	}
}

// dispatch gives work to as many loops as may run at once: by priority, what has begun before what has
// not. A task gives way only to one of strictly higher priority.
func (n *next) dispatch() {
	if n.Paused {
		return
	}
	free := n.charter.Limits.Parallel - n.busy()
	var gaveWay []Task
	for _, t := range n.inOrder() {
		if t.Outcome != "" || t.State == task.Waiting || !n.ready(t) {
			continue
		}
		wants := n.wants(t)
		for len(wants) > 0 && free > 0 {
			n.do(t, wants[0])
			wants, free = wants[1:], free-1
		}
		if len(wants) > 0 && !n.active(t) { // it has nothing yet: who gives way to it?
			gaveWay = append(gaveWay, n.giveWay(t, gaveWay)...)
		}
	}
}

// ready reports whether a task may be begun, or has been.
func (n *next) ready(t Task) bool {
	return t.State != task.Idle || (!n.Held && !t.Held && n.Mode != spec.ModeAnswer && !n.buffered(t))
}

// buffered reports whether a schedule's task waits for that of the slot before.
func (n *next) buffered(t Task) bool {
	if overlapOf(n.charter, t.Source) != charter.Buffer {
		return false
	}
	for _, before := range n.Tasks { // in the order in which they came
		if before.ID == t.ID {
			return false
		}
		if before.Source == t.Source && before.Outcome == "" {
			return true
		}
	}
	return false
}

// busy counts what runs now: loops, and tasks that are being planned.
func (n *next) busy() (count int) {
	for _, t := range n.Tasks {
		if t.Outcome != "" {
			continue
		}
		if t.State == task.Planning && t.Plan == nil {
			count++
		}
		for _, st := range t.Steps {
			if st.Status == Running {
				count++
			}
		}
	}
	return count
}

// active reports whether anything runs for the task.
func (n *next) active(t Task) bool {
	return (t.State == task.Planning && t.Plan == nil) || slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Status == Running })
}

// want is one thing that a task could have done for it now.
type want struct {
	step   task.Step
	paused string // the loop that may go on
}

// wants are what could be done for a task at once. Planning that is under way, or done, wants nothing.
func (n *next) wants(t Task) (all []want) {
	switch t.State {
	case task.Idle:
		if failed := n.failed(t); failed != "" {
			n.blocked(t, failed)
			return nil
		}
		if len(t.After) > 0 {
			return nil
		}
		return []want{{}}
	case task.Planning:
		n.planning(t)
		return nil
	}
	done := map[string]bool{}
	for _, st := range t.Steps {
		done[st.ID] = st.Status == Over
	}
	for i, st := range t.Steps {
		switch {
		case st.Status == Paused && st.Told == loop.MessagePause:
			all = append(all, want{paused: st.Loop})
		case st.Status == Pending && n.Mode == spec.ModeMission && t.Plan != nil && i < len(t.Plan.Steps) && !slices.ContainsFunc(t.Plan.Steps[i].After, func(id string) bool { return !done[id] }):
			all = append(all, want{step: t.Plan.Steps[i]})
		}
	}
	return all
}

// planning goes on with a task that is being planned: it is planned, or its plan is begun, once the
// ledger has it.
func (n *next) planning(t Task) {
	if t.Plan == nil {
		n.jobs = append(n.jobs, Job{Do: Plan, Task: t.ID, Note: strings.Join(t.Notes, "\n"), Notes: len(t.Notes)})
		return
	}
	if needs := n.unapproved(t); len(needs) > 0 {
		n.to(t, task.Waiting, task.Evidence{Reason: "it needs an approval: " + strings.Join(needs, "; ")}, n.tierGate(t, needs))
		return
	}
	if n.Mode == spec.ModePlan { // and begins nothing
		return
	}
	approval := "nobody has to: " + string(t.Tier)
	if t.ApprovedBy != "" {
		approval = t.ApprovedBy
	}
	n.to(t, task.Executing, task.Evidence{Plan: t.Plan.Hash, Tier: t.Tier, Estimate: t.Plan.Cost.String(), Approval: approval, Written: n.Ledger})
}

// failed names the task that this one waits for and that has not come to a good end, "" for none.
func (n *next) failed(t Task) string {
	for _, id := range t.After {
		if other := n.Find(id); other == nil || other.Outcome == Cancelled {
			return id
		}
	}
	return ""
}

// blocked asks about a task that can't be begun.
func (n *next) blocked(t Task, failed string) {
	why := fmt.Sprintf("the task %s, which has to be done before, was not", failed)
	n.to(t, task.Waiting, task.Evidence{Blocker: why, Reason: why}, loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: loop.GateQuestion, Task: t.ID, Summary: why, Choices: []string{Replan, Cancel},
	}})
}

// do gives a task one thing to be done.
func (n *next) do(t Task, w want) {
	switch {
	case t.State == task.Idle:
		n.to(t, task.Planning, task.Evidence{Trigger: cmp.Or(t.Source, "submitted")})
	case w.paused != "":
		n.jobs = append(n.jobs, Job{Do: Tell, Task: t.ID, Loop: w.paused, Message: loop.MessageContinue})
	default:
		j := Job{Do: Begin, Task: t.ID, Step: w.step, Loop: n.LoopID(t, w.step.ID), Plan: t.Plan.Hash, Last: isLast(t.Plan.Steps, w.step.ID)}
		for _, st := range t.Steps {
			if slices.Contains(w.step.After, st.ID) {
				j.After = append(j.After, st)
			}
		}
		n.jobs = append(n.jobs, j)
	}
}

// giveWay lets the task of the lowest priority give way to one of strictly higher priority, at the next
// boundary of a step. It returns who has.
func (n *next) giveWay(to Task, already []Task) []Task {
	var lowest *Task
	for _, t := range n.Tasks {
		if t.Outcome != "" || t.State != task.Executing || t.Priority >= to.Priority || !n.active(t) {
			continue
		}
		if slices.ContainsFunc(already, func(a Task) bool { return a.ID == t.ID }) {
			continue
		}
		if lowest == nil || t.Priority < lowest.Priority {
			lowest = &t
		}
	}
	if lowest == nil {
		return nil
	}
	if lowest.Interrupted != to.ID {
		n.events = append(n.events, loop.Event{Type: loop.TaskInterrupted, Task: lowest.ID, Reason: to.ID})
	}
	n.pauseAll(*lowest, "step")
	return []Task{*lowest}
}

// isLast reports whether no other step comes after: that step's proposal is the task's.
func isLast(steps []task.Step, id string) bool {
	return !slices.ContainsFunc(steps, func(st task.Step) bool { return slices.Contains(st.After, id) })
}

// LoopID is the workflow ID of the loop that does a step: the same for who asks again, another one for
// a step that is begun anew, and where another task has that ID: x with the step y-z, x-y with the step z.
func (s State) LoopID(t Task, step string) string {
	used := func(id string) bool {
		return slices.ContainsFunc(s.Tasks, func(t Task) bool { return slices.Contains(t.Loops, id) })
	}
	id := s.Steward + "-" + t.ID + "-" + step
	for n := 2; used(id); n++ {
		id = fmt.Sprintf("%s-%s-%s.%d", s.Steward, t.ID, step, n)
	}
	return id
}

// Claims are the files that other tasks at work may change.
func Claims(s State, c charter.Charter, besides string) (claims []act.Claim) {
	for _, t := range s.Tasks {
		if t.ID == besides || t.Outcome != "" || t.Plan == nil {
			continue
		}
		claim := act.Claim{Task: t.ID}
		for _, st := range t.Plan.Steps {
			claim.Scope = append(claim.Scope, c.Scope(st)...)
		}
		claims = append(claims, claim)
	}
	return claims
}
