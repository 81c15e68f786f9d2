package steward

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
)

// Do is the sort of a job.
type Do string

// The sorts of jobs.
const (
	Plan   Do = "plan"   // plan and assess the task
	Assess Do = "assess" // assess its existing plan again
	Drop   Do = "drop"   // stop planning it
	Begin  Do = "begin"  // start a step's loop, or adopt the loop that runs
	Tell   Do = "tell"   // send a message to a child loop
	End    Do = "end"    // end the steward
)

// Further actions that Stopped checks. Join and Adopt are parts of Begin; Propose is the end of a task.
const (
	Join    Do = "join"    // combine the work of several steps in one commit
	Adopt   Do = "adopt"   // use an existing loop for the step
	Propose Do = "propose" // end the task with its one proposal
	goOn    Do = "go on"   // keep running what runs for the task
)

// Job is something to do outside the workflow. Key identifies it, so that it starts only once.
type Job struct {
	Do      Do
	Task    string
	Step    task.Step // Begin
	Loop    string    // Begin, Tell
	After   []Step    // Begin: the steps on whose work this one builds
	Last    bool      // Begin: this step's proposal is the task's
	Message string    // Tell
	Choice  string    // Tell: when a pause takes effect
	Note    string    // Tell, Plan
	Notes   int       // Plan: how many notes Note combines
	Plan    string    // Begin: the hash of the step's plan; Assess: the hash of the plan to assess
	// Cap is the most that the loop of a Begin, or the planner of a Plan, may cost; nil means no limit. A loop's cap is
	// reserved as soon as the job is issued.
	Cap  *metric.Decimal
	From string // Begin: the branch of an earlier attempt whose work is kept
}

// Key identifies the job among those under way.
func (j Job) Key() string {
	return strings.Join([]string{string(j.Do), j.Task, j.Step.ID, j.Loop, j.Message}, " ")
}

// Next returns what follows from a state that the ledger has: either events that happen now, or jobs to do that are not
// under way yet. The caller records the events before it asks again, so nothing is done before the ledger has the
// reason for it. Every job has passed Stopped (S6). The same input gives the same answer.
func Next(s State, c charter.Charter, underWay []Job) ([]loop.Event, []Job) {
	n := next{State: s, charter: c, underWay: underWay}
	halting := s.HaltRequested != ""
	if !halting {
		n.settle()
	}
	if len(n.events) > 0 {
		return n.events, nil
	}
	n.ending()
	if halting {
		n.halt()
	} else {
		n.leave()
		n.dispatch()
	}
	if len(n.events) > 0 {
		return n.events, nil
	}
	return nil, n.jobs
}

// next collects events and jobs.
type next struct {
	State
	charter  charter.Charter
	underWay []Job
	events   []loop.Event
	jobs     []Job
}

// issue adds a job, unless it is under way.
func (n *next) issue(j Job) {
	if !slices.ContainsFunc(n.underWay, func(job Job) bool { return job.Key() == j.Key() }) {
		n.jobs = append(n.jobs, j)
	}
}

// does returns the jobs of that sort for a task that are under way or were just issued.
func (n *next) does(do Do, id string) (jobs []Job) {
	return list.Filter(slices.Concat(n.underWay, n.jobs), func(j Job) bool { return j.Do == do && j.Task == id })
}

// to moves a task to a state. If the table refuses that, a bug of this package, the task stays, with a warning.
func (n *next) to(t Task, state task.State, e task.Evidence, further ...loop.Event) {
	event, err := change(t, state, e)
	if err != nil {
		n.events = append(n.events, loop.Event{Type: loop.Warned, Task: t.ID, Reason: err.Error()})
		return
	}
	n.events = append(append(n.events, event), further...)
}

// ending ends the loops of plans that were given up, even if their task is over.
func (n *next) ending() {
	for _, t := range n.Tasks {
		for _, st := range t.Ending {
			if st.Told != loop.MessageHalt {
				n.issue(Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageHalt, Note: "the steward has given up the plan that this loop belongs to"})
			}
		}
	}
}

// halt ends the steward after its loops.
func (n *next) halt() {
	open := false
	for _, t := range n.Tasks {
		open = open || slices.ContainsFunc(t.Ending, func(st Step) bool { return st.Told != loop.MessageHalt })
		for _, st := range t.Steps {
			if st.atWork() && st.Told != loop.MessageHalt {
				open = true
				n.issue(Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageHalt, Note: "its steward was ended: " + n.HaltRequested})
			}
		}
	}
	if !open {
		n.jobs = append(n.jobs, Job{Do: End})
	}
}

// leave handles tasks that must not stay in their state.
func (n *next) leave() {
	for _, t := range n.Tasks {
		if t.Outcome != "" {
			n.drop(t)
			continue
		}
		if len(t.Notes) > 0 && t.State == task.Executing {
			for _, st := range t.Steps {
				if st.Status == Running {
					n.issue(Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessageSteer, Note: t.Notes[0]})
				}
			}
		}
		if n.outdated(t) {
			if j := (Job{Do: Assess, Task: t.ID, Plan: t.Plan.Hash}); n.stopped(j) == nil {
				n.issue(j)
			}
		}
		switch t.State {
		case task.Executing:
			n.executing(t)
		case task.Planning:
			if stop := n.stopped(Job{Do: Plan, Task: t.ID}); stop != nil && t.Plan == nil {
				n.stop(t, *stop)
				n.drop(t)
			} else if t.Plan != nil {
				n.planned(t)
			}
		case task.Waiting:
			n.drop(t)
			if w := t.WaitingFor; w == nil || w.Loop == "" || t.Stop != "" { // else the other steps continue
				n.pauseAll(t, pauseAt(t.Stop))
			}
		}
	}
}

// drop stops planning that is under way.
func (n *next) drop(t Task) {
	if len(n.does(Plan, t.ID)) > 0 {
		n.issue(Job{Do: Drop, Task: t.ID})
	}
}

// executing ends a task whose steps are done, or stops one that may not continue.
func (n *next) executing(t Task) {
	done := t.complete()
	j := Job{Do: goOn, Task: t.ID}
	if done {
		j.Do = Propose
	}
	switch stop := n.stopped(j); {
	case stop != nil:
		n.stop(t, *stop)
	case t.asks() != nil: // it also waited for something else, which was answered
		n.waitAt(t, *t.asks())
	case done:
		text := "all steps are done, but no loop has kept a change: there is nothing to apply"
		if t.Proposal != "" {
			text = "proposal " + t.Proposal[:min(12, len(t.Proposal))]
		}
		n.to(t, task.Idle, task.Evidence{Done: text})
		n.finish(t, Done, text)
	case !t.Until.IsZero():
		n.pauseAll(t, loop.PauseStep)
	}
}

// tierGate asks a person to approve a task's plan.
func (n *next) tierGate(t Task) loop.Event {
	return loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: GateTier, Task: t.ID, Hash: t.Plan.Hash, Choices: choices[GateTier],
		Summary: loop.Clip(fmt.Sprintf("%s: the plan of %q needs an approval: %s", cmp.Or(t.Tier, "no tier"), t.ID, needsWithTier(t)), 2000),
	}}
}

// needsWithTier returns the needs of a task's plan in words. It says who set the tier, or by which rules, and each fact
// once.
func needsWithTier(t Task) string {
	if t.PersonsTier() != "" {
		needs := t.Needs()
		set := risk.TierNeed(t.Tier)
		set.Text += " (set by " + strings.TrimSuffix(t.TierBy+": "+t.TierNote, ": ") + ")"
		if i := slices.IndexFunc(needs, isTierNeed); i >= 0 {
			needs = slices.Clone(needs)
			needs[i] = set
		} else {
			needs = append(slices.Clip(needs), set)
		}
		return needsInWords(needs)
	}
	needs, reasons := t.Needs(), t.TierReasons
	if hasNeed(needs, task.NeedEstimate) {
		reasons = list.Filter(reasons, func(r task.TierReason) bool { return r.Rule != risk.Cost })
	}
	if slices.ContainsFunc(reasons, func(r task.TierReason) bool { return r.Rule == risk.Governance }) { // it names the files
		needs = list.Filter(needs, func(need task.Need) bool { return need.Kind != task.NeedGovernance })
	}
	byRules := task.BesideAll(reasons, t.Tier)
	i := slices.IndexFunc(needs, isTierNeed)
	switch {
	case byRules == "":
		return needsInWords(needs)
	case i < 0:
		return needsInWords(needs) + " (" + byRules + ")"
	}
	needs = slices.Clone(needs)
	needs[i].Text = byRules
	return needsInWords(needs)
}

func isTierNeed(need task.Need) bool { return need.Kind == task.NeedTier }

func hasNeed(needs []task.Need, kind task.NeedKind) bool {
	return slices.ContainsFunc(needs, func(need task.Need) bool { return need.Kind == kind })
}

// needsInWords returns needs as one sentence.
func needsInWords(needs []task.Need) string {
	texts := list.Map(needs, func(need task.Need) string { return need.Text })
	return strings.Join(texts, "; ")
}

// limit returns what a task may cost; nil means no limit.
func (n *next) limit(t Task) *metric.Decimal {
	if t.CostLimit != nil {
		return t.CostLimit
	}
	return n.charter.Limits.CostUSD
}

func (n *next) budgetGate(t Task, limit metric.Decimal) loop.Event {
	summary := fmt.Sprintf("%q has cost %s US dollars; its limit is %s", t.ID, t.Cost.CostUSD, limit)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(n.Steward+" "+t.ID+" "+summary)))
	return loop.Event{Type: loop.GateOpened, Task: t.ID, Gate: &loop.Gate{
		Kind: loop.GateBudget, Task: t.ID, Limit: &limit, Cost: &t.Cost.CostUSD, Hash: hash, Budget: loop.CostUSD, Choices: choices[loop.GateBudget], Summary: summary,
	}}
}

// pauseAll pauses the loops of a task that run. One that was told to pause later is told again.
func (n *next) pauseAll(t Task, boundary string) {
	for _, st := range t.Steps {
		wasTold := st.Told == loop.MessagePause && !rules.Sooner(boundary, st.PauseAt)
		if st.Status == Running && !wasTold {
			n.issue(Job{Do: Tell, Task: t.ID, Loop: st.Loop, Message: loop.MessagePause, Choice: boundary})
		}
	}
}
