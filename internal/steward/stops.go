package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// The names of the stop conditions, as they appear in the evidence of a waiting task.
const (
	StopPerson     = "person"
	StopConflict   = "conflict"
	StopGuardrail  = "guardrail"
	StopApproval   = "approval"
	StopResources  = "resources"
	StopCircle     = "circle"
	StopCheckIn    = "checkIn"
	StopAmbiguity  = "ambiguity"
	StopDependency = "dependency"
)

// Stop is a condition that stops a task until a person answers (S6).
type Stop struct {
	Name      string
	Immediate bool   // what runs for the task is interrupted at once
	At        string // where its loops pause: loop.PauseNow, PauseStep or PauseIteration
	Source    string // the condition in the words of the source
	When      string // what the condition means in pawl

	of    []Do                                         // the actions before which it is checked; nil: a planner or a loop reports it
	holds func(n *next, t Task, j Job) (reason string) // returns "" if the condition does not hold
	asks  func(n *next, t Task, reason string)         // moves the task to WAITING_FOR_HUMAN; nil: nothing else is asked
}

var (
	anything = []Do{Plan, Assess, Begin, Join, Adopt, Propose, goOn}
	work     = []Do{Plan, Begin, Join, Adopt, goOn} // all but the end of a task, which costs nothing
	loops    = []Do{Begin, Join, Adopt}
)

// Stops is the table of the stop conditions, in the order in which they are checked.
var Stops []Stop

func init() { // in init, because the rows refer to functions that read Stops
	Stops = []Stop{
		{
			Name: StopPerson, Immediate: true, At: loop.PauseNow, Source: "Explicit \"STOP\" command; emergency override; system shutdown",
			When: "`pause` or `halt`, of the task or of the steward, or a file `loop-stop`, seen when a step ends",
			of:   anything, holds: (*next).stoppedByPerson,
		},
		{
			Name: StopConflict, Immediate: true, At: loop.PauseNow, Source: "Cannot reconcile state across sources; git conflict cannot be resolved",
			When: "the ledger is not where the steward left it (a drift gate), or the steward cannot join the work of several steps",
			of:   anything, holds: (*next).conflict,
		},
		{
			Name: StopGuardrail, Immediate: true, At: loop.PauseNow, Source: "Critical guardrail violation",
			When: "a policy blocks a loop (a secret, a sealed file, a permission), or a step has a command that the charter does not allow",
			of:   loops, holds: (*next).unlawful, asks: (*next).stuckByGuardrail,
		},
		{
			Name: StopApproval, At: loop.PauseStep, Source: "Approval required",
			When: "a plan needs approval, and nobody has approved it by its hash: one of T1 or T2, of governance files, of production, or above `limits.costUSD`",
			of:   []Do{Begin, Join, Adopt, Propose, goOn}, holds: (*next).needsApproval, asks: (*next).waitsForApproval,
		},
		{
			Name: StopResources, Immediate: true, At: loop.PauseNow, Source: "Resource exhaustion",
			When: "the task's budget or a loop's own budget is used up, or an agent's rate limit has no known end",
			of:   work, holds: (*next).moneyIsSpent, asks: (*next).waitsForMoney,
		},
		{
			Name: StopCircle, Immediate: true, At: loop.PauseNow, Source: "Loop detected",
			When: "the task goes in circles, or a step has failed too often",
			of:   work, holds: circles(false), asks: asksCircle(false),
		},
		{
			Name: StopCheckIn, At: loop.PauseIteration, Source: "If in EXECUTING > 60 minutes without milestone → CHECK",
			When: "`limits.executing` has passed without a milestone",
			of:   work, holds: circles(true), asks: asksCircle(true),
		},
		{
			Name: StopDependency, At: loop.PauseStep, Source: "Dependency blocked",
			When: "a task that must be done before was cancelled, or planning has found a blocker",
			of:   []Do{Plan}, holds: (*next).afterNothing, asks: (*next).blocked,
		},
		{
			Name: StopAmbiguity, At: loop.PauseStep, Source: "Ambiguity detected",
			When: "the planner asks, the plan is not valid, or its risk cannot be assessed",
		},
	}
}

// pauseAt returns where the loops of a task pause if it waits for that condition.
func pauseAt(name string) string {
	if s := find(Stops, func(s Stop) bool { return s.Name == name }); s != nil {
		return s.At
	}
	return loop.PauseStep
}

// Stopping says why an action must not happen now. Without a Stop it is just not wanted now, and nobody is asked.
type Stopping struct {
	Stop *Stop
	Why  string
}

// Stopped is asked before every action (S6): planning, starting a step, adopting a loop, joining work, telling a loop
// to continue, making a proposal. It returns nil if the action may happen: it is still wanted, no stop condition holds,
// and the charter allows its commands. Messages that only stop or guide a loop need no check.
func Stopped(s State, c charter.Charter, j Job) *Stopping {
	n := next{State: s, charter: c}
	return n.stopped(j)
}

func (n *next) stopped(j Job) *Stopping {
	switch {
	case j.Do == Drop || j.Do == End || j.Do == Tell && j.Message != loop.MessageContinue:
		return nil
	case j.Do == Tell:
		j.Do = goOn
	}
	t := n.Find(j.Task)
	if t == nil || !n.wanted(*t, j) {
		return &Stopping{Why: "the task has changed since"}
	}
	for i, stop := range Stops {
		if !slices.Contains(stop.of, j.Do) {
			continue
		}
		if reason := stop.holds(n, *t, j); reason != "" {
			return &Stopping{&Stops[i], reason}
		}
	}
	if n.outdated(*t) && slices.Contains(loops, j.Do) {
		return &Stopping{Why: outdated}
	}
	if !t.Until.IsZero() && j.Do != Propose && j.Do != goOn {
		return &Stopping{Why: "an agent's rate limit ends at " + t.Until.Format("15:04")}
	}
	return nil
}

// outdated says why a step does not start yet.
const outdated = "the charter or the governance files have changed since its risk was assessed: it is assessed again first"

// stop moves a task to WAITING_FOR_HUMAN, unless it is just not wanted now. While a steward is being ended, nobody calls
// it: the loops of a task are ended then, and it stays in its state.
func (n *next) stop(t Task, s Stopping) {
	switch {
	case s.Stop == nil:
	case s.Stop.asks == nil:
		n.to(t, task.Waiting, task.Evidence{Reason: s.Why, Stop: s.Stop.Name})
	default:
		s.Stop.asks(n, t, s.Why)
	}
}

// wanted reports whether the reason for an action still holds: the task's state, its plan, a step not started.
func (n *next) wanted(t Task, j Job) bool {
	switch {
	case t.Outcome != "":
		return false
	case j.Do == Plan:
		return t.State == task.Planning && t.Plan == nil
	case j.Do == Assess:
		return t.Plan != nil && t.Plan.Hash == j.Plan && (t.State == task.Executing || t.State == task.Planning)
	case j.Do == goOn || j.Do == Propose:
		return t.State == task.Executing || t.State == task.Planning && t.Plan != nil
	}
	return t.State == task.Executing && t.Plan != nil && t.Plan.Hash == j.Plan &&
		slices.ContainsFunc(t.Steps, func(st Step) bool { return st.ID == j.Step.ID && st.Status == Pending })
}

func (n *next) stoppedByPerson(t Task, _ Job) string {
	switch {
	case n.HaltRequested != "":
		return "the steward is being ended: " + n.HaltRequested
	case t.Paused || n.Paused:
		return "paused by a person"
	}
	return ""
}

// conflict says that the record itself is in doubt. Nothing is done until a person has looked at it.
func (n *next) conflict(Task, Job) string {
	if d := find(n.Drift, func(d task.Drift) bool { return d.Name == task.DriftLedger }); d != nil {
		return d.Text
	}
	return ""
}

// LongCommand is how many bytes of a command are shown in a sentence. A shorter one is shown whole, so that it can be
// pasted.
const LongCommand = 800

// unlawful says how the loop of a step violates the present charter, which may have changed since the plan.
func (n *next) unlawful(t Task, j Job) string {
	sp, err := LoopSpec(n.State, n.charter, j, "", "")
	if err != nil {
		return fmt.Sprintf("the step %s is not valid any more: %s", j.Step.ID, loop.Clip(strings.ReplaceAll(err.Error(), "\n", "; "), 500))
	}
	for _, command := range risk.Commands(sp) {
		if ok, reason := risk.Allowed(n.charter, command); !ok {
			return fmt.Sprintf("the step %s may not use the command `%s`: %s", j.Step.ID, loop.Clip(command, LongCommand), reason)
		}
	}
	return ""
}

// LoopSpec returns the spec for a step's loop, which starts from the branch base, and whose work is for the branch target.
func LoopSpec(s State, c charter.Charter, j Job, base, target string) (spec.Spec, error) {
	t := s.Find(j.Task)
	if t == nil || t.Plan == nil {
		return spec.Spec{}, fmt.Errorf("the task %s has no plan", j.Task)
	}
	return c.Loop(j.Step, charter.Caps{
		Loop: j.Loop, Task: t.ID, Goal: task.Goal(t.Title, t.Source), Plan: t.Plan.Hash, ApprovedBy: t.ApprovedBy, From: base, Base: t.Base, Onto: target, Last: j.Last, CostUSD: j.Cap,
	})
}

// needsApproval returns the reasons why the task's plan still needs an approval, "" if it was approved or needs none.
func (n *next) needsApproval(t Task, _ Job) string {
	if t.Plan == nil || t.ApprovedBy != "" {
		return ""
	}
	return needsInWords(t.Needs())
}

func (n *next) waitsForApproval(t Task, reason string) {
	n.to(t, task.Waiting, task.Evidence{Reason: "it needs an approval: " + reason, Stop: StopApproval}, n.tierGate(t))
}

func (n *next) moneyIsSpent(t Task, _ Job) string {
	if limit := n.limit(t); limit != nil && t.Cost.CostUSD.Cmp(*limit) >= 0 {
		return "its cost has reached its limit"
	}
	return ""
}

func (n *next) waitsForMoney(t Task, reason string) {
	n.to(t, task.Waiting, task.Evidence{Reason: reason, Stop: StopResources}, n.budgetGate(t, *n.limit(t)))
}

// circle returns the first exceeded limit of loop detection, or nil; with checkIn, that between iterations.
func (n *next) circle(t Task, checkIn bool) *task.Finding {
	for _, f := range stuck.Check(t.Window, n.charter.Limits, t.State) {
		if f.Stop && checkIn == (f.Rule == stuck.Executing) {
			return &f
		}
	}
	for _, st := range t.Steps { // the last report may have come while the task waited for something else
		if limit := n.charter.Limits.Retries; st.Failed > limit && !checkIn {
			return &task.Finding{
				Rule: "retries", Stop: true, Count: int64(st.Failed), Limit: int64(limit), State: t.State, Action: "step " + st.ID,
				Text: fmt.Sprintf("the step %s has failed %s (%s); limits.retries is %d", st.ID, metric.Counted(st.Failed, "time"), lastError(t, st.ID), limit),
			}
		}
	}
	return nil
}

// lastError says why a step failed the last time.
func lastError(t Task, step string) string {
	for _, a := range slices.Backward(t.Log) {
		if a.Step == step && a.Error != "" {
			return a.Error
		}
	}
	return "see its loops"
}

func circles(checkIn bool) func(*next, Task, Job) string {
	return func(n *next, t Task, _ Job) string {
		if f := n.circle(t, checkIn); f != nil {
			return f.Text
		}
		return ""
	}
}

func asksCircle(checkIn bool) func(*next, Task, string) {
	return func(n *next, t Task, _ string) {
		if f := n.circle(t, checkIn); f != nil {
			n.stuck(t, *f)
		}
	}
}

func (n *next) stuckByGuardrail(t Task, reason string) {
	n.stuckBy(t, StopGuardrail, reason, cmp.Or(t.Step, "begin a step"))
}

// afterNothing names a task that has to be done first and never will be.
func (n *next) afterNothing(t Task, _ Job) string {
	for _, id := range t.After {
		blocker := n.Find(id)
		if blocker == nil {
			return fmt.Sprintf("the task %s, which has to be done first, is not known", id)
		}
		if blocker.Outcome == Cancelled {
			return fmt.Sprintf("the task %s, which has to be done first, was cancelled", id)
		}
	}
	return ""
}

// stopOf has the stop conditions of the rules of loop detection, and of the steward itself, that do not mean a circle.
var stopOf = map[string]string{
	StopGuardrail: StopGuardrail, StopConflict: StopConflict, StopResources: StopResources,
	stuck.Executing: StopCheckIn, "halted": StopPerson, "blocked": StopDependency, "rejected": StopAmbiguity,
	"marked": StopApproval,
}
