package steward

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Answer returns what a message does to a steward, or an error that says why it is refused. It changes nothing: the
// caller applies the events, and the validator of an update drops them.
func Answer(s State, c charter.Charter, name string, m Message) (rules.Reply, error) {
	reply, err := answer(s, c, name, m)
	return reply, fault.About(fault.Steward(s.Steward), err)
}

func answer(s State, c charter.Charter, name string, m Message) (rules.Reply, error) {
	if s.Status.Ended() || s.HaltRequested != "" {
		return rules.Reply{}, fault.New(fault.GateClosed, "the steward %s is being ended, or has ended", s.Steward)
	}
	if name == MessageSubmit {
		return submit(s, c, m)
	}
	id, err := m.id()
	if err != nil {
		return rules.Reply{}, err
	}
	a := answering{at: s, charter: c, name: name, Message: m, id: id}
	if id != "" {
		if a.task = s.Find(id); a.task == nil {
			return rules.Reply{}, fault.New(fault.LoopNotFound, "the steward %s has no task %q", s.Steward, loop.Clip(id, 80)).
				Advise("`" + shell.Join("pawl", "steward", "show", s.Steward) + "` lists those that it has.")
		}
		if a.task.Outcome != "" {
			return rules.Reply{}, fault.New(fault.GateClosed, "the task %s is over (%s)", id, a.task.Outcome)
		}
	}
	handle := handlers[name]
	if handle == nil {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "there is no message %q", name)
	}
	if aboutTask[name] && a.task == nil {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "%s needs a task: which one?", name)
	}
	return handle(a)
}

// answering is a message and the steward that gets it.
type answering struct {
	Message
	at      State
	charter charter.Charter
	name    string
	id      string
	task    *Task // nil if the message names none
}

// handlers has the handler of each message but submit.
var handlers = map[string]func(answering) (rules.Reply, error){
	loop.MessageApprove: answering.gate, loop.MessageAnswer: answering.gate, loop.MessageExtend: answering.gate,
	MessageSetTier: answering.setTier, MessagePrioritize: answering.prioritize, MessageInterrupt: answering.interrupt,
	loop.MessagePause: answering.pause, loop.MessageContinue: answering.carryOn, loop.MessageSteer: answering.steer,
	loop.MessageSetMode: answering.setMode, MessageHold: answering.hold, MessageResume: answering.resume, loop.MessageHalt: answering.halt,
}

// aboutTask are the messages that have to name a task.
var aboutTask = map[string]bool{MessageSetTier: true, MessagePrioritize: true, MessageInterrupt: true, loop.MessageSteer: true}

// gate answers the gate that the message names, or the gate of the task that it names.
func (a answering) gate() (rules.Reply, error) {
	g, err := a.open()
	if earlier := a.again(); earlier != nil && a.Gate == "" {
		// Two plans with the same text have the same hash. What approved the first must not approve the second.
		f := rules.AnsweredBefore(fault.GateClosed, *earlier, a.name, a.Choice)
		if err == nil && rules.CheckHash(g, a.name, a.Hash) == nil {
			f = f.Advise(rules.NameIt(g))
		}
		return rules.Reply{}, f
	}
	if err != nil {
		return rules.Reply{}, err
	}
	if !slices.Contains(Answers(g.Kind), a.name) {
		return rules.Reply{}, fault.New(fault.GateMismatch, "gate %s (%s) is answered by %s, not by %s", g.ID, g.Kind, strings.Join(Answers(g.Kind), " or "), a.name)
	}
	if err := rules.CheckHash(g, a.name, a.Hash); err != nil {
		return rules.Reply{}, err
	}
	if a.name == loop.MessageAnswer && !slices.Contains(g.Choices, a.Choice) {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "%q is not a choice here", loop.Clip(a.Choice, 80)).
			Advise("Choose one of: " + strings.Join(g.Choices, ", ") + ".")
	}
	closed := closed(g, a.name, a.Choice, a.By, a.Note)
	closed.Answer.Task = g.Task
	if a.Hash != "" {
		closed.Answer.Hash = g.Hash
	}
	if g.Kind == loop.GateBudget && a.name == loop.MessageExtend {
		if closed.Limits, err = a.extension(g.Task); err != nil {
			return rules.Reply{}, err
		}
	}
	if g.About != "" {
		closed.Drift = copied(find(a.at.Drift, func(d task.Drift) bool { return about(d) == g.About }))
	}
	n := next{State: a.at, charter: a.charter}
	if d := closed.Drift; d != nil { // the answer replaces an earlier one about the same thing
		n.events = a.at.forgotten([]task.Drift{{Name: d.Name, What: d.What, Well: "it differs in another way now"}})
	}
	n.events = append(n.events, closed)
	if t := a.at.Find(g.Task); t != nil {
		a.sendOn(&n, *t)
	}
	if closed.Drift != nil {
		if err := a.settle(&n, *closed.Drift); err != nil {
			return rules.Reply{}, err
		}
	}
	return rules.Reply{Text: strings.TrimSpace(fmt.Sprintf("%s: %s %s", g.ID, a.name, a.Choice)), Events: n.events}, nil
}

// again returns the answer by whose hash this one was given before, or nil.
func (a answering) again() *loop.Answer {
	given := a.at.Answered
	if a.id != "" {
		given = slices.DeleteFunc(slices.Clone(given), func(x loop.Answer) bool { return x.Task != a.id })
	}
	return rules.Repeated(given, a.name, "", a.Hash)
}

// settle carries out an answer about drift for the tasks: cancel ends the task that the drift concerns, a loop that is
// gone has ended once a person accepts that, and tasks that waited for somebody to check the ledger continue.
func (a answering) settle(n *next, d task.Drift) error {
	if a.Choice == Cancel {
		t := a.at.Find(d.Task)
		if t == nil || t.Outcome != "" {
			return fault.New(fault.InvalidMessage, "the task %s is over already", d.Task).Advise("Choose " + Keep + ".")
		}
		a.end(n, *t, cmp.Or(a.Note, d.Text))
	}
	if a.Choice == Keep && d.Name == task.DriftEngine && d.Well == "" {
		state := loop.Fold(a.at, n.events)
		n.events = append(n.events, AfterChild(state, a.charter, Lost(d.What, d.Text))...)
	}
	if rest := slices.ContainsFunc(a.at.Drift, func(o task.Drift) bool { return o.Name == task.DriftLedger && !same(o, d) }); rest || d.Name != task.DriftLedger {
		return nil
	}
	for _, t := range a.at.Tasks {
		if t.Outcome == "" && t.State == task.Waiting && t.doubted() && (a.Choice != Cancel || t.ID != d.Task) {
			n.resume(t.ID, a.said(a.Choice))
		}
	}
	return nil
}

// open returns the gate that an answer is for. The answer names the gate, or a task that has only one.
func (a answering) open() (loop.Gate, error) {
	found := list.Filter(a.at.Gates, func(g loop.Gate) bool { return (a.Gate == "" || g.ID == a.Gate) && (a.id == "" || g.Task == a.id) })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return loop.Gate{}, fault.New(fault.GateMismatch, "%d gates wait: say which one", len(found)).Advise("Name it, with --gate or as the message's `gate`: " + a.named(found) + ".")
	case a.task != nil && a.task.atLoop():
		return loop.Gate{}, fault.New(fault.GateMismatch, "the task %s waits at its loop %s", a.id, a.task.WaitingFor.Loop).
			Advise("Answer there: `pawl show " + a.task.WaitingFor.Loop + "` says how.")
	case a.at.AnswerTo(a.Gate) != nil:
		return loop.Gate{}, rules.AnsweredBefore(fault.GateClosed, *a.at.AnswerTo(a.Gate), a.name, a.Choice)
	case a.at.Waits(a.Gate) != nil:
		subject := cmp.Or(a.at.Waits(a.Gate).Task, "the steward itself")
		return loop.Gate{}, fault.New(fault.GateMismatch, "the gate %s is of %s, not of %s", a.Gate, subject, a.id).Advise("Answer it without naming a task, or name its own.")
	case a.Gate != "" && len(a.at.Gates) > 0:
		return loop.Gate{}, fault.New(fault.GateMismatch, "the gate %s is not open", loop.Clip(a.Gate, 80))
	}
	return loop.Gate{}, fault.New(fault.GateClosed, "no such gate is open: there is nothing to %s", a.name)
}

// named returns how to name one of these gates: those that the answer fits, if there are any.
func (a answering) named(gates []loop.Gate) string {
	fits := slices.DeleteFunc(slices.Clone(gates), func(g loop.Gate) bool {
		return !slices.Contains(Answers(g.Kind), a.name) || rules.CheckHash(g, a.name, a.Hash) != nil
	})
	if len(fits) == 0 {
		fits = gates
	}
	return strings.Join(list.Map(fits[:min(len(fits), 5)], func(g loop.Gate) string { return g.ID }), " or ")
}

// sendOn lets the task continue as the answer says (S2). Only a person's answer ends WAITING_FOR_HUMAN.
func (a answering) sendOn(n *next, t Task) {
	said := a.name
	if a.name == loop.MessageAnswer {
		said = a.Choice
	}
	switch said {
	case loop.MessageApprove:
		// A task with steps goes to EXECUTING. Otherwise its plan starts once the ledger has the approval.
		n.resume(t.ID, a.said("approved"))
	case loop.MessageExtend, Continue, Keep, Restore:
		n.resume(t.ID, a.said(said))
	case Replan:
		n.to(t, task.Planning, task.Evidence{Answer: a.said(said)})
		if a.Note != "" && !t.Began.IsZero() { // else the person only lets it continue without the task that it waited for
			n.events = append(n.events, loop.Event{Type: loop.MessageReceived, Task: t.ID, Message: loop.MessageSteer, By: a.By, Note: a.Note})
		}
	case Cancel:
		a.cancel(n, t, cmp.Or(a.Note, "cancelled by "+cmp.Or(a.By, "a person")))
	case Intervene:
		n.events = append(n.events, loop.Event{Type: loop.MessageReceived, Task: t.ID, Message: Intervene, By: a.By, Note: a.Note})
	}
}

// said returns an answer as evidence.
func (a answering) said(choice string) string {
	text := choice + " by " + cmp.Or(a.By, "a person")
	if a.Note != "" {
		text += ": " + a.Note
	}
	return text
}

func (a answering) cancel(n *next, t Task, reason string) {
	n.to(t, task.Idle, task.Evidence{Answer: a.said(Cancel), Note: reason})
	n.finish(t, Cancelled, reason)
}

// end cancels a task in any state. A task at work goes to IDLE through WAITING_FOR_HUMAN (S2).
func (a answering) end(n *next, t Task, reason string) {
	if t.State == task.Executing {
		n.to(t, task.Waiting, task.Evidence{Reason: reason, Stop: StopPerson})
		t.State = task.Waiting
	}
	a.cancel(n, t, reason)
}

// extension returns the new cost limit of a task. A limit that leaves nothing to spend is refused.
func (a answering) extension(id string) (map[loop.Resource]metric.Decimal, error) {
	var limits struct {
		CostUSD *metric.Decimal `json:"costUSD"`
	}
	d := json.NewDecoder(strings.NewReader(string(a.Limits)))
	d.DisallowUnknownFields()
	if err := d.Decode(&limits); err != nil || limits.CostUSD == nil {
		return nil, fault.New(fault.InvalidMessage, "extend needs the new limit").Advise(`Say what the task may cost in all: {"limits": {"costUSD": 5}}.`)
	}
	if t := a.at.Find(id); t != nil && limits.CostUSD.Cmp(t.Cost.CostUSD) <= 0 {
		return nil, fault.New(fault.InvalidMessage, "the new limit has to be more than the $%s that the task has cost", t.Cost.CostUSD).
			Advise("Give the total that it may cost, not the increase.")
	}
	return map[loop.Resource]metric.Decimal{loop.CostUSD: *limits.CostUSD}, nil
}

func (a answering) setTier() (rules.Reply, error) {
	tier := cmp.Or(a.Tier, task.Tier(a.Choice))
	if !slices.Contains(task.Tiers, tier) {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "%q is not a tier", loop.Clip(string(tier), 80)).Advise("Choose one of: T0, T1, T2, T3.")
	}
	set := loop.Event{Type: loop.TierSet, Task: a.id, Tier: tier, By: byPerson, Reason: strings.TrimPrefix(a.By+": "+a.Note, ": ")}
	if a.Note == "" {
		set.Reason = a.By
	}
	events := a.asked(set)
	return rules.Reply{Text: fmt.Sprintf("%s is %s: %s", a.id, tier, a.followsTier(loop.Fold(a.at, events))), Events: events}, nil
}

// followsTier says what the tier that a person has set means for the task as it stands now: whether its plan is asked about.
func (a answering) followsTier(now State) string {
	n := next{State: now, charter: a.charter}
	t := now.Find(a.id)
	needs := n.needsApproval(*t, Job{})
	isTierGate := func(g loop.Gate) bool { return g.Kind == GateTier && g.Task == a.id }
	asksByTier := t.Tier == task.T1 || t.Tier == task.T2
	switch {
	case t.Plan == nil && asksByTier:
		return "a person has to approve its plan"
	case t.Plan == nil && a.charter.Limits.CostUSD == nil:
		return "its plan is asked about only if it may change governance files or touches production"
	case t.Plan == nil:
		return "its plan is asked about only if it may change governance files, touches production or is expected to cost more than limits.costUSD"
	case t.ApprovedBy != "":
		return "its plan is approved already (" + t.ApprovedBy + "), so nothing more is asked"
	case needs != "" && slices.ContainsFunc(now.Gates, isTierGate):
		return "its plan waits for an approval: " + needs
	case needs != "" && t.State == task.Executing:
		return "a step that runs ends, then its plan is asked about: " + needs
	case needs != "":
		return "its plan is asked about before it goes on: " + needs
	}
	return "its plan needs no approval"
}

// asked sets the tier that a person chose, and updates an open question about the plan's approval: the question names
// the new tier, or closes, and the task continues, if no approval is needed any more.
func (a answering) asked(set loop.Event) []loop.Event {
	i := slices.IndexFunc(a.at.Gates, func(g loop.Gate) bool { return g.Kind == GateTier && g.Task == a.id })
	if i < 0 {
		return []loop.Event{set}
	}
	g := a.at.Gates[i]
	n := next{State: a.at, charter: a.charter, events: []loop.Event{set}}
	t := *loop.Fold(a.at, n.events).Find(a.id)
	if n.needsApproval(t, Job{}) != "" {
		g.Summary = n.tierGate(t).Gate.Summary
		n.events[0].Gate = &g
		return n.events
	}
	n.events = append(n.events, closed(g, a.name, string(set.Tier), a.By, a.Note))
	n.resume(a.id, a.said("tier "+string(set.Tier)))
	return n.events
}

// maxPriority is the largest priority, and its negative the smallest.
const maxPriority = 1000

func (a answering) prioritize() (rules.Reply, error) {
	p := a.Priority
	if n, err := strconv.Atoi(a.Choice); p == nil && err == nil {
		p = &n
	}
	if p == nil || *p < -maxPriority || *p > maxPriority {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "prioritize needs a priority from %d to %d", -maxPriority, maxPriority)
	}
	return a.prioritized(*p), nil
}

func (a answering) prioritized(p int) rules.Reply {
	return rules.Reply{Text: fmt.Sprintf("%s has the priority %d", a.id, p), Events: []loop.Event{{Type: loop.TaskPrioritized, Task: a.id, Priority: &p, By: a.By}}}
}

// interrupt gives a task a priority above every task at work: tasks give way only to a strictly higher one.
func (a answering) interrupt() (rules.Reply, error) {
	if a.task.State == task.Executing && a.task.Interrupted == "" {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "the task %s is at work already", a.id).
			Advise("You need to do nothing.")
	}
	p := a.task.Priority
	for _, t := range a.at.Tasks {
		if t.ID != a.id && t.Outcome == "" && (t.State == task.Executing || t.State == task.Planning) {
			p = max(p, t.Priority+1)
		}
	}
	if p > maxPriority {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "a task at work has the highest priority, %d, already", maxPriority)
	}
	reply := a.prioritized(p)
	if p == a.task.Priority {
		reply.Text = a.alreadyFirst()
	}
	if a.task.Held {
		reply.Events = append(reply.Events, a.received())
		reply.Events[1].Message = MessageResume
	}
	return reply, nil
}

// alreadyFirst returns the answer to an interrupt that interrupts nothing, and why the task does not start yet.
func (a answering) alreadyFirst() string {
	t := a.task
	text := fmt.Sprintf("no other task at work has the priority %d or a higher one, so %s keeps its own", t.Priority, a.id)
	position := slices.IndexFunc(a.at.Queue, func(id string) bool { return id == a.id })
	switch {
	case a.at.Paused:
		return text + "; nothing goes on until you continue the steward"
	case t.State == task.Waiting:
		return text + "; it waits for a person"
	case t.Paused:
		return text + "; it is paused until you continue it"
	case t.State != task.Idle:
		return text
	case a.at.Held:
		return text + "; no task starts until you resume the steward"
	case a.at.Mode == spec.ModeAnswer:
		return text + "; no task starts in mode " + spec.ModeAnswer
	case len(t.After) > 0:
		return text + "; it waits until " + strings.Join(t.After[:min(len(t.After), 5)], ", ") + " is done"
	case position == 1:
		return text + "; the task " + a.at.Queue[0] + " of the queue comes before it"
	case position > 1:
		return fmt.Sprintf("%s; %d tasks of the queue come before it", text, position)
	}
	return text + "; it starts as soon as a slot is free"
}

// received records the message for the task that it names.
func (a answering) received() loop.Event {
	return loop.Event{Type: loop.MessageReceived, Task: a.id, Message: a.name, By: a.By, Note: a.Note}
}

func (a answering) pause() (rules.Reply, error) {
	if (a.task == nil && a.at.Paused) || (a.task != nil && a.task.Paused) {
		return rules.Reply{Text: "already paused"}, nil
	}
	text := "pausing: the work of its loops is interrupted, and repeated afterwards"
	if a.task != nil && a.task.State == task.Idle {
		text = "paused: it does not start until you continue it"
	}
	return rules.Reply{Text: text, Events: []loop.Event{a.received()}}, nil
}

// carryOn ends a pause or an intervention.
func (a answering) carryOn() (rules.Reply, error) {
	n := next{State: a.at, charter: a.charter, events: []loop.Event{a.received()}}
	if a.task != nil && a.at.Paused {
		command := "`" + shell.Join("pawl", "steward", a.name, a.at.Steward) + "`"
		if !a.task.Paused {
			return rules.Reply{}, fault.New(fault.LoopNotPaused, "the whole steward is paused, not only the task %s", a.id).Advise("Continue everything: " + command + ".")
		}
		return rules.Reply{Text: a.id + " continues when the steward does: " + command, Events: n.events}, nil
	}
	for _, t := range a.at.Tasks {
		if t.Outcome != "" || t.State != task.Waiting || (a.id != "" && t.ID != a.id) || !t.resumable() || t.doubted() || (a.id == "" && t.Paused) {
			continue
		}
		n.resume(t.ID, a.said(loop.MessageContinue))
	}
	sleeps := a.task != nil && !a.task.Until.IsZero()
	if len(n.events) == 1 && !a.at.Paused && !sleeps && (a.task == nil || !a.task.Paused) {
		return rules.Reply{}, fault.New(fault.LoopNotPaused, "nothing is paused")
	}
	return rules.Reply{Text: "going on", Events: n.events}, nil
}

// resumable reports whether a task only waits for a person to let it continue.
func (t Task) resumable() bool {
	return t.WaitingFor == nil || (t.WaitingFor.Gate == "" && t.WaitingFor.Loop == "")
}

// doubted reports whether a task waits because the ledger is in doubt. The answer to that lets it continue, and nothing
// else. A task whose steps can't be joined has the same stop, but a gate or a person who has stepped in.
func (t Task) doubted() bool {
	return t.Stop == StopConflict && t.resumable() && (t.WaitingFor == nil || t.WaitingFor.Kind == "")
}

func (a answering) steer() (rules.Reply, error) {
	if strings.TrimSpace(a.Note) == "" {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "steer needs a note: the guidance for the agent")
	}
	if n := len(a.task.Notes); n >= KeepNotes {
		return rules.Reply{}, fault.New(fault.TooManyNotes, "%d notes wait for the loops of %s already", n, a.id)
	}
	return rules.Reply{Text: "the next agent call of " + a.id + " is told", Events: []loop.Event{a.received()}}, nil
}

func (a answering) setMode() (rules.Reply, error) {
	if !slices.Contains([]string{spec.ModeAnswer, spec.ModePlan, spec.ModeMission}, a.Mode) {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "%q is not a mode", loop.Clip(a.Mode, 80)).Advise("Choose one of: answer, plan, mission.")
	}
	if a.id != "" {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "the mode is that of the whole steward, not of the task %s", a.id).
			Advise("Leave `task` out, or hold or pause the task.")
	}
	e := a.received()
	e.Task, e.How = "", a.Mode
	return rules.Reply{Text: "the mode is " + a.Mode, Events: []loop.Event{e}}, nil
}

func (a answering) hold() (rules.Reply, error) {
	if a.task != nil && a.task.State != task.Idle {
		return rules.Reply{}, fault.New(fault.InvalidMessage, "the task %s has started: it can be paused, but not held", a.id).
			Advise(fmt.Sprintf("Pause it: `pawl steward pause %s %s`.", a.at.Steward, a.id))
	}
	return rules.Reply{Text: "holding", Events: []loop.Event{a.received()}}, nil
}

func (a answering) resume() (rules.Reply, error) {
	return rules.Reply{Text: "resuming", Events: []loop.Event{a.received()}}, nil
}

// ended says who has ended a task at work, where, and why.
func (a answering) ended() string {
	text := "halted by " + cmp.Or(a.By, "a person")
	if a.task.Step != "" {
		text += " at the step " + a.task.Step
	}
	if a.Note != "" {
		text += ": " + a.Note
	}
	return text
}

// halt ends the steward, or the named task: one at work then waits for a person (S6), any other one is cancelled.
func (a answering) halt() (rules.Reply, error) {
	reason := cmp.Or(a.Note, "halted by "+cmp.Or(a.By, "a person"))
	if a.task == nil {
		e := a.received()
		e.Reason = reason
		return rules.Reply{Text: "ending the steward and its loops", Events: []loop.Event{e}}, nil
	}
	n := next{State: a.at, charter: a.charter, events: []loop.Event{a.received()}}
	switch a.task.State {
	case task.Executing:
		n.stuckBy(*a.task, "halted", a.ended(), "")
		return rules.Reply{Text: a.id + ": its loops are interrupted; it waits until you say what becomes of it", Events: n.events}, nil
	case task.Idle: // it has not started, so it can't be resumed
		n.finish(*a.task, Cancelled, reason)
	default:
		a.cancel(&n, *a.task, reason)
	}
	return rules.Reply{Text: a.id + " is cancelled", Events: n.events}, nil
}
