// Package gates connects people with a long-lived workflow: it takes their messages, opens gates, waits for
// answers and escalates. It needs only a journal: no repository and no spec of a loop. Rules decide what a message
// does. The caller decides what a gate is about. Start at Keeper.Handle and Keeper.Wait.
package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/lib/list"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/workflows/journal"
)

// State is a state with gates in it.
type State[S any] interface {
	journal.State[S]
	// Waits returns the open gate with that ID, nil if it is not open.
	Waits(id string) *loop.Gate
	// AnswerTo returns how the gate with that ID was closed, nil if nobody closed it.
	AnswerTo(id string) *loop.Answer
	// Halting returns why the workflow is being ended, "" if it is not.
	Halting() string
}

// Rules are the decisions and actions that a keeper needs from its owner.
type Rules struct {
	Messages []loop.MessageName
	// Others are the signals that are no messages: their owner receives them.
	Others []string
	// Check returns what a message does, or why it is refused. It changes nothing: the validator of an update calls it
	// and drops the result. Only the validator says what time it is; to a handler it is zero, because histories have
	// recorded what handlers accepted when none of them looked at the clock.
	Check func(name string, payload []byte, now time.Time) (rules.Reply, error)
	// Answers returns the messages that close a gate of that kind.
	Answers func(loop.GateKind) []string
	// Patience returns how long a gate may wait before people are reminded.
	Patience func(loop.Gate) time.Duration
	// Record writes the pending events to the ledger while a gate waits: when it opens, and with late set each time
	// that its patience has run out.
	Record func(ctx workflow.Context, summary string, late bool) error
	// Notify tells people that a gate opened or was escalated. It does not wait for them.
	Notify func(ctx workflow.Context, event loop.Type, gate, reason string)
	// Show updates what people see.
	Show func(ctx workflow.Context)
}

// Keeper opens gates and takes messages for one workflow. Make one with New.
type Keeper[S State[S]] struct {
	journal *journal.Journal[S]
	rules   Rules
	halting string // why a halt that waits for its turn ends the workflow
}

// New returns a keeper over a journal.
func New[S State[S]](j *journal.Journal[S], r Rules) *Keeper[S] {
	return &Keeper[S]{journal: j, rules: r}
}

// Halting returns why the workflow is being ended, "" if it is not. It knows of a halt that waits for an entry being
// written, however often that is tried.
func (k *Keeper[S]) Halting() string { return cmp.Or(k.journal.State().Halting(), k.halting) }

// announce lets Halting know of a halt until its turn is over.
func (k *Keeper[S]) announce(name string, raw converter.RawValue) (done func()) {
	reply, err := k.check(name, raw, time.Time{})
	if err != nil || name != loop.MessageHalt {
		return func() {}
	}
	for _, e := range reply.Events {
		k.halting = cmp.Or(e.Reason, "halted")
	}
	return func() { k.halting = "" }
}

// Handle registers every message as a signal and as an update, before anything blocks. Both are treated the same: the
// message is decoded and judged, and its events are emitted.
func (k *Keeper[S]) Handle(ctx workflow.Context) error {
	for _, m := range k.rules.Messages {
		channel := workflow.GetSignalChannelWithOptions(ctx, m.Name, workflow.SignalChannelOptions{Description: m.Description})
		workflow.Go(ctx, func(ctx workflow.Context) { k.pump(ctx, m.Name, channel) })
		options := workflow.UpdateHandlerOptions{Description: m.Description, Validator: func(ctx workflow.Context, raw converter.RawValue) error {
			_, err := k.check(m.Name, raw, workflow.Now(ctx))
			// The validator alone looks: what is found depends on this program's version, and a replay must not.
			if f := rules.Carried(raw.Payload().GetData()); err == nil && f != nil {
				err = f
			}
			return wire.Refusal(err)
		}}
		err := workflow.SetUpdateHandlerWithOptions(ctx, m.Name, func(ctx workflow.Context, raw converter.RawValue) (string, error) {
			return k.update(ctx, m.Name, raw)
		}, options)
		if err != nil {
			return err
		}
	}
	workflow.Go(ctx, k.refuseUnknown)
	return nil
}

// refuseUnknown refuses the signals whose name no message has. Temporal takes a signal of any name, and its sender learns
// nothing more from it.
func (k *Keeper[S]) refuseUnknown(ctx workflow.Context) {
	for workflow.Await(ctx, func() bool { return len(k.unknown(ctx)) > 0 }) == nil {
		if k.journal.Turn(ctx, func() { k.dismiss(ctx) }) != nil {
			return
		}
	}
}

// unknown returns the names of signals that have arrived and that nobody receives.
func (k *Keeper[S]) unknown(ctx workflow.Context) []string {
	names := slices.DeleteFunc(workflow.GetUnhandledSignalNames(ctx), func(name string) bool {
		return slices.Contains(k.rules.Others, name) || slices.ContainsFunc(k.rules.Messages, func(m loop.MessageName) bool { return m.Name == name })
	})
	slices.Sort(names)
	return names
}

// dismiss refuses the unknown signals that have arrived.
func (k *Keeper[S]) dismiss(ctx workflow.Context) {
	names := list.Map(k.rules.Messages, func(m loop.MessageName) string { return m.Name })
	for _, name := range k.unknown(ctx) {
		channel := workflow.GetSignalChannel(ctx, name)
		var raw converter.RawValue
		for channel.ReceiveAsync(&raw) {
			shown := loop.Clip(name, 80)
			k.refuse(ctx, shown, fault.New(fault.InvalidMessage, "there is no message %q; there are: %s", shown, strings.Join(names, ", ")))
		}
	}
}

// update handles one update. It judges the update again at its turn, because another answer may have come first.
func (k *Keeper[S]) update(ctx workflow.Context, name string, raw converter.RawValue) (text string, err error) {
	defer k.announce(name, raw)()
	turn := k.journal.Turn(ctx, func() {
		var reply rules.Reply
		if reply, err = k.check(name, raw, time.Time{}); err == nil {
			text = reply.Text
			k.accept(ctx, reply)
		}
	})
	if turn != nil {
		return "", turn
	}
	return text, wire.Refusal(err)
}

// pump handles signals in order.
func (k *Keeper[S]) pump(ctx workflow.Context, name string, channel workflow.ReceiveChannel) {
	for {
		var raw converter.RawValue
		channel.Receive(ctx, &raw)
		done := k.announce(name, raw)
		_ = k.journal.Turn(ctx, func() { k.signal(ctx, name, raw) }) // after Cancel nothing counts any more
		done()
	}
}

// Drain lets the pumps handle the signals that have arrived with this workflow task, before continue-as-new. It lets every
// ready coroutine run, takes no time and adds nothing to the history. A pump that waits for its turn keeps the journal
// from being quiet.
func (k *Keeper[S]) Drain(ctx workflow.Context) {
	done, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { set.SetValue(nil) }) // the youngest coroutine runs last
	_ = done.Get(ctx, nil)
}

// signal handles one signal. If it can't be decoded, or does not fit the state, it is recorded and changes nothing
// else.
func (k *Keeper[S]) signal(ctx workflow.Context, name string, raw converter.RawValue) {
	reply, err := k.check(name, raw, time.Time{})
	if err == nil {
		err = found(ctx, raw)
	}
	if err != nil {
		k.refuse(ctx, name, err)
		return
	}
	k.accept(ctx, reply)
}

// found returns why a signal is refused if it contains a credential. The result is in the history, because another
// version of this program may find more.
func found(ctx workflow.Context, raw converter.RawValue) error {
	var f *fault.Error
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return rules.Carried(raw.Payload().GetData()) }).Get(&f)
	if err != nil || f == nil {
		return err
	}
	return f
}

func (k *Keeper[S]) check(name string, raw converter.RawValue, now time.Time) (rules.Reply, error) {
	return k.rules.Check(name, raw.Payload().GetData(), now)
}

func (k *Keeper[S]) accept(ctx workflow.Context, reply rules.Reply) {
	k.Emit(ctx, reply.Events...)
	k.rules.Show(ctx)
}

// Emit emits events in a turn. It first completes a gate that one of them opens.
func (k *Keeper[S]) Emit(ctx workflow.Context, events ...loop.Event) {
	for _, e := range events {
		if e.Type == loop.GateOpened && e.Gate.ID == "" {
			e.Gate = new(k.Opened(ctx, *e.Gate))
		}
		k.journal.Emit(ctx, e)
	}
}

// maxRefused limits the refused messages that wait to be recorded: a flood must not fill the ledger.
const maxRefused = 100

func (k *Keeper[S]) refuse(ctx workflow.Context, name string, err error) {
	refused := slices.DeleteFunc(k.journal.Pending(), func(e loop.Event) bool { return e.Type != loop.MessageRefused })
	if len(refused) >= maxRefused {
		workflow.GetLogger(ctx).Warn("message refused and not recorded", "message", name, "reason", err.Error())
		return
	}
	k.journal.Emit(ctx, loop.Event{Type: loop.MessageRefused, Message: name, Reason: loop.Clip(err.Error(), 500), ErrorCode: string(fault.CodeOf(err))})
}

// Wait opens a gate and waits until a person answers it. ok is false if the workflow is being ended instead. If nobody
// answers in time, people are reminded and the wait continues.
func (k *Keeper[S]) Wait(ctx workflow.Context, g loop.Gate) (a loop.Answer, ok bool, err error) {
	err = k.journal.Turn(ctx, func() {
		g = k.Opened(ctx, g)
		k.journal.Emit(ctx, loop.Event{Type: loop.GateOpened, Gate: &g, Reason: g.Summary})
	})
	if err != nil {
		return a, false, err
	}
	if err := k.rules.Record(ctx, "gate "+g.ID+": "+g.Summary, false); err != nil {
		return a, false, err
	}
	if k.open(g.ID) {
		k.rules.Notify(ctx, loop.GateOpened, g.ID, g.Summary)
	}
	if err := k.Watch(ctx, g.ID); err != nil {
		return a, false, err
	}
	if answer := k.journal.State().AnswerTo(g.ID); answer != nil && k.journal.State().Halting() == "" {
		return *answer, true, nil
	}
	return a, false, nil
}

// Opened completes a gate that will be opened by the journal's next event.
func (k *Keeper[S]) Opened(ctx workflow.Context, g loop.Gate) loop.Gate {
	g.ID = fmt.Sprintf("%s-%d", g.Kind, k.journal.State().Last()+1)
	g.OpenedAt = workflow.Now(ctx).UTC()
	if g.Answers == nil { // otherwise the gate accepts fewer messages than its kind
		g.Answers = k.rules.Answers(g.Kind)
	}
	return g
}

// Watch waits for an open gate to close, on a durable timer that reminds people.
func (k *Keeper[S]) Watch(ctx workflow.Context, id string) error {
	for k.open(id) {
		patience := k.rules.Patience(*k.journal.State().Waits(id))
		timerCtx, stop := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(timerCtx, patience, workflow.TimerOptions{Summary: "waiting for an answer to " + markdown.Text(id)})
		err := workflow.Await(ctx, func() bool { return !k.open(id) || timer.IsReady() })
		stop()
		if err != nil {
			return err
		}
		if !k.open(id) {
			return nil
		}
		reason := "nobody answered for " + workflow.Now(ctx).Sub(k.journal.State().Waits(id).OpenedAt).Round(time.Second).String()
		err = k.journal.Turn(ctx, func() {
			if g := k.journal.State().Waits(id); g != nil {
				k.journal.Emit(ctx, loop.Event{Type: loop.GateEscalated, Gate: g, Reason: reason})
			}
		})
		if err != nil {
			return err
		}
		if err := k.rules.Record(ctx, "nobody answered "+id+" yet", true); err != nil {
			return err
		}
		if k.open(id) {
			k.rules.Notify(ctx, loop.GateEscalated, id, reason)
		}
	}
	return nil
}

// open reports whether the gate waits and the workflow is not being ended.
func (k *Keeper[S]) open(id string) bool {
	s := k.journal.State()
	return s.Waits(id) != nil && s.Halting() == ""
}
