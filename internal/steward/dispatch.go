package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// dispatch starts as many loops and planners as may run at once (limits.parallel): by priority, and started tasks
// before others. A task gives way only to a strictly higher priority. A loop that asks a person keeps its slot, because
// an answer lets it continue at once. If another task needs the slot, the steward first tells that loop to pause as
// soon as it is answered.
func (n *next) dispatch() {
	if n.Paused {
		return
	}
	free := n.charter.Limits.Parallel - n.busy()
	asking := n.asking()
	var gaveWay []string
	for _, p := range n.inOrder() {
		t := *p
		if t.Outcome != "" || t.State == task.Waiting || !n.ready(t) {
			continue
		}
		wants := n.wants(t)
		for ; len(wants) > 0 && free > 0; wants = wants[1:] {
			if n.do(t, wants, free) {
				free--
			}
		}
		if len(wants) == 0 {
			continue
		}
		if len(asking) > 0 {
			n.issue(asking[0])
			asking = asking[1:]
		} else if !n.active(t) { // it has no slot yet: another task may give way
			gaveWay = append(gaveWay, n.giveWay(t, gaveWay))
		}
	}
}

// ready reports whether a task may start or has started.
func (n *next) ready(t Task) bool {
	return t.State != task.Idle || (!n.Held && !t.Held && n.Mode != spec.ModeAnswer && !n.buffered(t))
}

// buffered reports whether a schedule's task waits for the task of an earlier slot.
func (n *next) buffered(t Task) bool {
	return overlapOf(n.charter, t.Source) == charter.Buffer && n.openOf(t.Source).ID != t.ID // in order of arrival
}

// busy counts the slots in use: by loops that run or could continue at any time, and by jobs that start something.
func (n *next) busy() (count int) {
	for _, t := range n.Tasks {
		count += len(t.Ending)
		for _, st := range t.Steps {
			if st.Status == Running || st.Status == Asking && st.Told != loop.MessagePause {
				count++
			}
		}
	}
	for _, j := range n.underWay {
		if n.takes(j) {
			count++
		}
	}
	return count
}

// takes reports whether a job that is under way uses a slot of its own.
func (n *next) takes(j Job) bool {
	starts := j.Do == Begin || j.Do == Tell && j.Message == loop.MessageContinue
	return j.Do == Plan || starts && !n.runs(j.Task, j.Loop)
}

// runs reports whether the state lists a loop of a task as one that runs or asks.
func (n *next) runs(id, loop string) bool {
	t := n.Find(id)
	return t != nil && slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Loop == loop && (st.Status == Running || st.Status == Asking) })
}

// Asks reports whether a loop asks a person, as far as the state knows.
func (s State) Asks(id string) bool {
	_, st, left := s.child(id)
	return st != nil && !left && st.Status == Asking
}

// asking returns the messages that pause loops that ask, so that they give up their slots.
func (n *next) asking() (jobs []Job) {
	for _, t := range n.Tasks {
		for _, st := range t.Steps {
			if st.Status == Asking && st.Told != loop.MessagePause {
				jobs = append(jobs, Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessagePause, Choice: loop.PauseStep})
			}
		}
	}
	return jobs
}

// active reports whether anything runs for the task.
func (n *next) active(t Task) bool {
	return len(n.does(Plan, t.ID)) > 0 || slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Status == Running })
}

// wants returns the jobs that a task could do now, besides those under way. do completes the one that it issues. An
// empty job says that an idle task may start.
func (n *next) wants(t Task) (jobs []Job) {
	switch t.State {
	case task.Idle:
		if reason := n.afterNothing(t, Job{}); reason != "" {
			n.blocked(t, reason)
			return nil
		}
		if len(t.After) > 0 {
			return nil
		}
		return []Job{{}}
	case task.Planning:
		if j := (Job{Do: Plan, Task: t.ID}); t.Plan == nil && len(n.does(Plan, t.ID)) == 0 && n.stopped(j) == nil {
			return []Job{j}
		}
		return nil
	}
	if !t.Until.IsZero() {
		return nil
	}
	done := map[string]bool{}
	for _, st := range t.Steps {
		done[st.ID] = st.Status == Over
	}
	for i, st := range t.Steps {
		switch {
		case st.Status == Paused:
			if !slices.ContainsFunc(n.does(Tell, t.ID), func(j Job) bool { return j.Loop == st.Loop }) {
				jobs = append(jobs, Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageContinue})
			}
		case st.Status == Pending && n.Mode == spec.ModeMission && t.Plan != nil && i < len(t.Plan.Steps) && !slices.ContainsFunc(t.Plan.Steps[i].After, func(id string) bool { return !done[id] }):
			if !slices.ContainsFunc(n.does(Begin, t.ID), func(j Job) bool { return j.Step.ID == st.ID }) {
				jobs = append(jobs, Job{Do: Begin, Task: t.ID, Step: t.Plan.Steps[i], From: st.Kept})
			}
		}
	}
	return jobs
}

// planned starts the plan of a task once the ledger has it.
func (n *next) planned(t Task) {
	if stop := n.stopped(Job{Do: goOn, Task: t.ID}); stop != nil {
		n.stop(t, *stop)
		return
	}
	if n.Mode == spec.ModePlan || n.outdated(t) { // plan mode starts nothing, and an outdated plan is assessed first
		return
	}
	n.to(t, task.Executing, n.fit(t))
}

// fit returns the evidence that a task may execute (S1), with the ledger entry whose artifacts show it.
func (n *next) fit(t Task) task.Evidence {
	approval := string(t.Tier) + " needs no approval"
	switch {
	case n.needsApproval(t, Job{}) != "":
		approval = ""
	case t.ApprovedBy != "":
		approval = "approved by " + t.ApprovedBy
	}
	return task.Evidence{Plan: t.Plan.Hash, Tier: t.Tier, Estimate: t.Plan.Cost.String(), Approval: approval, Written: n.Ledger}
}

// resume lets a waiting task continue after that answer. It executes its plan, or is planned if it has none. It keeps
// waiting if the plan still needs an approval.
func (n *next) resume(id, answer string) {
	t := loop.Fold(n.State, n.events).Find(id)
	if t.Plan == nil {
		n.to(*t, task.Planning, task.Evidence{Answer: answer})
		return
	}
	if n.needsApproval(*t, Job{}) != "" {
		n.events = append(n.events, n.tierGate(*t))
		return
	}
	e := n.fit(*t)
	e.Answer = answer
	n.to(*t, task.Executing, e)
}

// blocked asks a person about a task that can't start.
func (n *next) blocked(t Task, reason string) {
	summary := fmt.Sprintf("%s; %s does %s without it", reason, Replan, t.ID)
	n.to(t, task.Waiting, task.Evidence{Blocker: reason, Reason: reason, Stop: StopDependency}, loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: loop.GateQuestion, Task: t.ID, Summary: summary, Choices: []string{Replan, Cancel},
	}})
}

// do gives a task the first thing that it wants, and reports whether that uses a free slot.
func (n *next) do(t Task, wants []Job, free int) bool {
	j := wants[0]
	switch {
	case t.State == task.Idle:
		n.to(t, task.Planning, task.Evidence{Trigger: cmp.Or(t.Source, "submitted")})
		return true
	case j.Do == Begin:
		return n.begin(t, j, min(len(wants), free))
	case j.Do == Plan:
		if j.Cap = n.left(t); j.Cap != nil && j.Cap.Sign() <= 0 { // its loops have reserved it all; they may not spend it all
			return false
		}
		j.Note, j.Notes = strings.Join(t.Notes, "\n"), len(t.Notes)
	case n.stopped(j) != nil:
		return false
	}
	n.issue(j)
	return true
}

// begin starts a step with a share of the money that is left. If loops have reserved all of it, the step waits.
func (n *next) begin(t Task, j Job, sharers int) bool {
	j.Loop, j.Plan, j.Last = n.LoopID(t, j.Step.ID), t.Plan.Hash, slices.Contains(task.Last(t.Plan.Steps), j.Step.ID)
	j.After = list.Filter(t.Steps, func(st Step) bool { return slices.Contains(j.Step.After, st.ID) })
	if left := n.left(t); left != nil {
		if left.Sign() <= 0 {
			return false
		}
		j.Cap = new(left.Share(sharers))
	}
	if stop := n.stopped(j); stop != nil {
		if !slices.ContainsFunc(n.events, func(e loop.Event) bool { return e.Task == t.ID }) {
			n.stop(t, *stop)
		}
		return false
	}
	if sp, err := LoopSpec(n.State, n.charter, j, "", ""); err == nil {
		j.Cap = sp.Limits.CostUSD // the spec's own limit may be lower
	}
	n.issue(j)
	return true
}

// left returns what a task may still reserve for loops, after its cost and their reserves; nil means no limit.
func (n *next) left(t Task) *metric.Decimal {
	limit := n.limit(t)
	if limit == nil {
		return nil
	}
	left := limit.Sub(t.Cost.CostUSD)
	for _, st := range slices.Concat(t.Steps, t.Ending) {
		if st.Cap == nil || st.Status == Over || st.Status == Pending {
			continue
		}
		if open := st.Cap.Sub(st.Usage.CostUSD); open.Sign() > 0 {
			left = left.Sub(open)
		}
	}
	for _, j := range n.does(Begin, t.ID) {
		if j.Cap != nil && !n.runs(t.ID, j.Loop) {
			left = left.Sub(*j.Cap)
		}
	}
	return &left
}

// giveWay makes the task of the lowest priority give way to a strictly higher priority, and returns its ID, "" if there
// is none besides those that do so already. Its loops pause at the next boundary of a step. Its planner stops at once,
// because it loses nothing but time.
func (n *next) giveWay(urgent Task, already []string) string {
	var lowest *Task
	for i := range n.Tasks { // called for each task that waits for a slot
		t := &n.Tasks[i]
		begun := t.Outcome == "" && (t.State == task.Executing || t.State == task.Planning) && !slices.Contains(already, t.ID)
		if begun && t.Priority < urgent.Priority && (lowest == nil || t.Priority < lowest.Priority) && n.active(*t) {
			lowest = t
		}
	}
	if lowest == nil {
		return ""
	}
	if lowest.Interrupted != urgent.ID {
		n.events = append(n.events, loop.Event{Type: loop.TaskInterrupted, Task: lowest.ID, Reason: urgent.ID})
	}
	n.drop(*lowest)
	n.pauseAll(*lowest, loop.PauseStep)
	return lowest.ID
}

// LoopID returns the workflow ID of a step's loop: a new one only when the step starts again. It differs for task x with
// step y-z and for task x-y with step z.
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

// Claims returns the files that other tasks at work may change.
func Claims(s State, c charter.Charter, besides string) (claims []stewardapi.Claim) {
	for _, t := range s.Tasks {
		if t.ID == besides || t.Outcome != "" || t.Plan == nil {
			continue
		}
		claim := stewardapi.Claim{Task: t.ID}
		for _, st := range t.Plan.Steps {
			claim.Scope = append(claim.Scope, c.Scope(st)...)
		}
		claims = append(claims, claim)
	}
	return claims
}
