// Package journal keeps the state of a long-lived workflow: numbered events fold into it, and entries in the ledger
// contain both. It knows no repository, no gate and no kind of workflow. Such a state changes nowhere else. Start at
// Journal.Emit and Journal.Append.
package journal

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// State is a state into which events fold.
type State[S any] interface {
	// Apply returns the state after the event.
	Apply(loop.Event) S
	// At returns the state as people see it: with the ledger commit that it follows.
	At(ledger string) S
	// Stamp fills in where an event happened: the loop, the iteration and the phase.
	Stamp(loop.Event) loop.Event
	// Last returns the number of the last event that was applied.
	Last() int64
}

// Recent is how many events a journal can show; the ledger has them all.
const Recent = 100

// MostRecent limits the total size of these events, in bytes. Query answers and the next run's input contain them,
// and Temporal refuses both above 2 MB.
const MostRecent = 256 << 10

// mostBytes limits an entry of only pending events: Temporal refuses an activity's input above 2 MB.
const mostBytes = 1 << 20

// Journal is a state, its events, and its position in the ledger. Make one with New.
type Journal[S State[S]] struct {
	state   S
	ledger  string         // the entry that state and pending events follow
	recent  []loop.Event   // the last events, for people
	pending []loop.Event   // in the state and not in the ledger
	sending []loop.Event   // what an append under way records beyond the pending events
	turn    workflow.Mutex // held while an entry is written; messages wait, so state and ledger have the same order
	waiting int            // how many wait for a turn
}

// Saved is a journal between two runs of a workflow.
type Saved[S any] struct {
	State   S            `json:"state"`
	Ledger  string       `json:"ledger,omitempty"`
	Recent  []loop.Event `json:"recent"`
	Pending []loop.Event `json:"pending"`
}

// New returns a journal that begins with a state, or continues from one that another run saved.
func New[S State[S]](ctx workflow.Context, saved Saved[S]) *Journal[S] {
	return &Journal[S]{state: saved.State, ledger: saved.Ledger, recent: saved.Recent, pending: saved.Pending, turn: workflow.NewMutex(ctx)}
}

// Save returns the data from which the next run continues.
func (j *Journal[S]) Save() Saved[S] {
	return Saved[S]{State: j.state, Ledger: j.ledger, Recent: newest(j.recent), Pending: j.pending}
}

// Light reports whether the pending events are small enough for the next run. Else they are recorded first.
func (j *Journal[S]) Light() bool { return len(fitting(j.pending)) == len(j.pending) }

// State returns the state, with the ledger commit that it follows.
func (j *Journal[S]) State() S { return j.state.At(j.ledger) }

// Ledger returns the ledger commit that the state follows, "" before the first.
func (j *Journal[S]) Ledger() string { return j.ledger }

// Pending returns the events that the ledger lacks.
func (j *Journal[S]) Pending() []loop.Event { return slices.Clone(j.pending) }

// Unrecorded returns the events that the ledger lacks, and those of an append under way.
func (j *Journal[S]) Unrecorded() []loop.Event { return slices.Concat(j.pending, j.sending) }

// Since returns the recent events after a number.
func (j *Journal[S]) Since(seq int64) []loop.Event {
	return append([]loop.Event{}, list.Filter(newest(j.recent), func(e loop.Event) bool { return e.Seq > seq })...)
}

// Emit records that something happened: the event is numbered, applied, and kept for the ledger. All but the writer of
// entries call it within Turn, or an entry being written would have events with the same numbers.
func (j *Journal[S]) Emit(ctx workflow.Context, e loop.Event) {
	e = j.number(ctx, e, j.state.Last()+1)
	j.apply(e)
	j.pending = append(j.pending, e)
}

// Resume continues from the state of a ledger that another run left.
func (j *Journal[S]) Resume(s S, ledger string) {
	j.state, j.ledger, j.pending = s, ledger, nil
}

// Adopt takes over events that the ledger already has. events are the ledger's events after the entry that this journal
// knows, the pending ones first. It reports whether there were more than the pending ones.
func (j *Journal[S]) Adopt(events []loop.Event, ledger string) (hasMore bool) {
	n := min(len(events), len(j.pending))
	j.pending = j.pending[n:]
	for _, e := range events[n:] {
		j.apply(e)
	}
	j.ledger = ledger
	return len(events) > n
}

// Recorded notes that the ledger has the first n pending events, through an entry that Append did not write.
func (j *Journal[S]) Recorded(n int, ledger string) {
	j.pending, j.ledger = j.pending[n:], ledger
}

// Turn calls f when no entry is being written. Its error is the context's.
func (j *Journal[S]) Turn(ctx workflow.Context, f func()) error {
	j.waiting++
	err := j.turn.Lock(ctx)
	j.waiting--
	if err != nil {
		return err
	}
	defer j.turn.Unlock()
	f()
	return nil
}

// Quiet reports whether no entry is being written, and no message that was taken waits for a turn.
func (j *Journal[S]) Quiet() bool { return !j.turn.IsLocked() && j.waiting == 0 }

// Append writes an entry with the pending events and more. If more is empty and the pending events exceed mostBytes,
// the entry has only the first of them; Pending tells whether some are left. The events in more have happened only when
// write has returned. write may ask for the entry several times. It gets the same entry until something else is
// emitted, so that a second recipient recognises it. With adopted, write says that the ledger has the entry already and
// that it has called Adopt.
func (j *Journal[S]) Append(ctx workflow.Context, more []loop.Event, write func(entry func() api.Entry) (out api.Appended, adopted bool, err error)) (api.Appended, error) {
	if err := j.turn.Lock(ctx); err != nil {
		return api.Appended{}, err
	}
	defer j.turn.Unlock()
	j.sending = more
	defer func() { j.sending = nil }()
	sent := 0
	out, adopted, err := write(func() api.Entry {
		if seq := j.state.Last(); len(more) > 0 && more[0].Seq != seq+1 {
			for i := range more {
				more[i] = j.number(ctx, more[i], seq+int64(i)+1)
			}
		}
		events := j.Pending()
		if len(more) == 0 {
			events = fitting(events)
		}
		sent = len(events)
		return api.Entry{Ledger: j.ledger, Events: append(events, more...)}
	})
	if err != nil || adopted {
		return out, err
	}
	for _, e := range more {
		j.apply(api.Fill(e, out))
	}
	j.pending, j.ledger = slices.Clone(j.pending[sent:]), out.Ledger
	return out, nil
}

// fitting returns the first of the events, as many as an entry may hold, but at least one.
func fitting(events []loop.Event) []loop.Event {
	size := 0
	for i, e := range events {
		doc, err := json.Marshal(e)
		if err != nil {
			return events // the writer reports the error
		}
		if size += len(doc); size > mostBytes && i > 0 {
			return events[:i]
		}
	}
	return events
}

// newest returns the last of the events, as many as MostRecent allows. The journal appends behind them, so whoever
// appends to the result gets a copy.
func newest(events []loop.Event) []loop.Event {
	size := 0
	for i, e := range slices.Backward(events) {
		doc, err := json.Marshal(e)
		if size += len(doc); err != nil || size > MostRecent {
			return slices.Clip(events[i+1:])
		}
	}
	return slices.Clip(events)
}

func (j *Journal[S]) number(ctx workflow.Context, e loop.Event, seq int64) loop.Event {
	e = j.state.Stamp(e)
	e.Seq, e.Time = seq, workflow.Now(ctx).UTC()
	return e
}

func (j *Journal[S]) apply(e loop.Event) {
	j.state = j.state.Apply(e)
	j.recent = append(j.recent, e) // most of the time without a copy: events are large
	if len(j.recent) > Recent {
		j.recent = j.recent[len(j.recent)-Recent:]
	}
}
