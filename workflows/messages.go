package workflows

import (
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// IterationsView is what the query `iterations` answers: the last ones, how many there are, and
// the ledger commit that has them all.
type IterationsView struct {
	Iterations []loop.Iteration `json:"iterations"`
	Count      int              `json:"count"`
	Ledger     string           `json:"ledger"`
}

// EventsView is what the query `events` answers: the last ones, those after a sequence number
// where one is given.
type EventsView struct {
	Events []loop.Event `json:"events"`
	Seq    int64        `json:"seq"`
	Ledger string       `json:"ledger"`
}

// handle registers queries, signals and updates before anything blocks. Signals and updates
// take one path: a message is decoded, judged by govern.Answer, and its events are emitted.
func (r *run) handle(ctx workflow.Context) error {
	if err := r.handleQueries(ctx); err != nil {
		return err
	}
	for _, m := range loop.Messages {
		channel := workflow.GetSignalChannelWithOptions(ctx, m.Name, workflow.SignalChannelOptions{Description: m.Description})
		workflow.Go(ctx, func(ctx workflow.Context) { r.pump(ctx, m.Name, channel) })
		options := workflow.UpdateHandlerOptions{Description: m.Description, Validator: func(ctx workflow.Context, raw converter.RawValue) error {
			_, err := r.judge(m.Name, raw)
			return typed(err)
		}}
		err := workflow.SetUpdateHandlerWithOptions(ctx, m.Name, func(ctx workflow.Context, raw converter.RawValue) (string, error) {
			// Somebody else's answer may have come first, so it is judged again in turn.
			if err := workflow.Await(ctx, func() bool { return !r.busy }); err != nil {
				return "", err
			}
			reply, err := r.judge(m.Name, raw)
			if err != nil {
				return "", typed(err)
			}
			r.accept(ctx, reply)
			return reply.Text, nil
		}, options)
		if err != nil {
			return err
		}
	}
	return nil
}

// pump takes signals in their order. One that can't be understood, or that fits nothing, is
// recorded and changes nothing else.
func (r *run) pump(ctx workflow.Context, name string, channel workflow.ReceiveChannel) {
	for {
		var raw converter.RawValue
		if more := channel.Receive(ctx, &raw); !more {
			return
		}
		if err := workflow.Await(ctx, func() bool { return !r.busy }); err != nil {
			return
		}
		r.signal(ctx, name, raw)
	}
}

func (r *run) signal(ctx workflow.Context, name string, raw converter.RawValue) {
	reply, err := r.judge(name, raw)
	if err != nil {
		r.refuse(ctx, name, err)
		return
	}
	r.accept(ctx, reply)
}

// drain takes the signals that have arrived and were not read, before continue-as-new.
func (r *run) drain(ctx workflow.Context) {
	for _, m := range loop.Messages {
		channel := workflow.GetSignalChannel(ctx, m.Name)
		var raw converter.RawValue
		for channel.ReceiveAsync(&raw) {
			r.signal(ctx, m.Name, raw)
		}
	}
}

// judge decodes a message and asks what it does. It changes nothing.
func (r *run) judge(name string, raw converter.RawValue) (govern.Reply, error) {
	m, err := loop.DecodeMessage(raw.Payload().GetData())
	if err != nil {
		return govern.Reply{}, err
	}
	return govern.Answer(r.state, r.spec, name, m)
}

func (r *run) accept(ctx workflow.Context, reply govern.Reply) {
	for _, e := range reply.Events {
		r.emit(ctx, e)
	}
	r.show(ctx)
}

// The bound on refused messages that wait to be recorded: a flood must not fill the ledger.
const maxRefused = 100

func (r *run) refuse(ctx workflow.Context, name string, err error) {
	refused := 0
	for _, e := range r.pending {
		if e.Type == loop.MessageRefused {
			refused++
		}
	}
	if refused >= maxRefused {
		workflow.GetLogger(ctx).Warn("message refused and not recorded", "message", name, "reason", err.Error())
		return
	}
	r.emit(ctx, loop.Event{Type: loop.MessageRefused, Message: name, Reason: loop.Clip(err.Error(), 500), ErrorCode: string(fault.CodeOf(err))})
}

// typed turns a fault into what the caller of an update gets: the code is the error's type.
func typed(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), string(fault.CodeOf(err)), nil)
}

func (r *run) handleQueries(ctx workflow.Context) error {
	queries := []struct {
		name, description string
		handler           any
	}{
		{"state", "The loop's state", func() (loop.State, error) { return r.state, nil }},
		{"iterations", "The last iterations", func() (IterationsView, error) {
			return IterationsView{r.state.Iterations, r.state.KeptCount + r.state.Discarded, r.state.Ledger}, nil
		}},
		{"events", "The last events; the argument, a number, asks for those after it", func(after int64) (EventsView, error) {
			v := EventsView{Events: []loop.Event{}, Seq: r.state.Seq, Ledger: r.state.Ledger}
			for _, e := range r.recent {
				if e.Seq > after {
					v.Events = append(v.Events, e)
				}
			}
			return v, nil
		}},
		{"gate", "What the loop waits for, if anything", func() (*loop.Gate, error) { return r.state.Gate, nil }},
		{"contract", "What was or is to be approved", func() (ContractView, error) { return r.contractView(), nil }},
	}
	for _, q := range queries {
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, workflow.QueryHandlerOptions{Description: q.description}); err != nil {
			return err
		}
	}
	return nil
}

// ContractView is what the query `contract` answers: everything that the hash binds, and what
// a person wants to know before approving it.
type ContractView struct {
	Contract    *loop.Contract    `json:"contract"`
	Spec        spec.Spec         `json:"spec"`
	Baseline    *evidence.Decimal `json:"baseline"`
	InScope     int               `json:"inScope"`
	Protections []string          `json:"protections"`
}

func (r *run) contractView() ContractView {
	return ContractView{r.state.Contract, r.spec, r.state.Baseline, r.opened.InScope, r.protections()}
}

// protections are those that hold everywhere, and those that the loop's host has told of.
func (r *run) protections() []string {
	return Protected(r.opened.Protections)
}

// Protected are the protections of a host that has told of its own.
func Protected(byHost []string) []string {
	if len(byHost) == 0 {
		return Protections
	}
	return append(slices.Clone(Protections[:2]), byHost...)
}

// Protections are what holds whatever the agent does, the first two on every host; the last is of
// hosts that tell nothing about a sandbox.
var Protections = []string{
	"the agent works on a clone of its own; your branch and tree are never touched",
	"changes outside the scope and to sealed files never reach the branch",
	"no sandbox: agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI",
}
