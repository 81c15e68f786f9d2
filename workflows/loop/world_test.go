package loop_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

// world replaces all activities: it knows what a scripted agent does in each iteration and attempt, and keeps the
// ledger as the real activities do.
type world struct {
	hasty bool // the end was recorded hastily

	t      *testing.T
	mu     sync.Mutex
	script map[int][]try // by iteration, attempts in order; the last one repeats
	ideas  map[int][]try

	openErr    error
	baseline   try
	anew       try             // what an amended verify command measures for the kept code
	kept       try             // what verify measures for the code without changes that have no number
	afresh     func(asked) try // from scratch; nil: as before
	control    *try            // how the base is judged from scratch, nil if as the baseline was
	stop       string
	ledgerAt   int
	ledger     []loop.Event
	last       api.Entry // the last append that was made
	unsaid     string    // the ledger's head before the last step recorded something
	state      loop.State
	head       string
	commits    int
	reverts    []string
	steps      []string // "iteration.attempt name"
	agents     []api.Call
	budgets    []map[loop.Resource]metric.Decimal // the budget of each agent call
	told       []string                           // the iteration that the ledger was at when an agent started
	calls      map[string]int
	settleErr  error
	onSettle   func(n int) string // returns a loop-stop
	mended     []string           // what the host has mended and the ledger does not have
	checked    int
	interrupts int
	runs       int
	stepping   func(context.Context, asked) (stepped, error)            // instead of step
	committing func(context.Context, api.Commit) (api.Committed, error) // instead of commit
	taking     func(api.Take) api.Taken                                 // nil: a candidate always goes on top
	kind       any                                                      // the workflow, Improve unless it says so
	resume     *loop.State                                              // what Open finds in the ledger
	since      []loop.Event                                             // and the events of the iteration that was under way
	says       string                                                   // the description of the last commit
	unjudged   string                                                   // and if nobody has judged that commit
	slow       time.Duration                                            // what an agent takes
	commands   []string
	notices    []api.Notify
	notify     func(api.Notify) error // nil accepts everything
	apply      func(api.Apply) (api.Applied, error)
	host       func(name string, do func() error) error // decides about each activity of the host
	place      func(api.Place) (api.Placed, error)
	dead       string          // the queue of a host that is gone
	desk       string          // the queue of the host that an agent has last worked on
	lost       map[string]bool // commits that only a lost host had
	entries    map[string]int  // how many events the ledger had at an entry
	cancelled  chan struct{}   // gets one for each activity that the workflow cancels
}

func newWorld(t *testing.T, script map[int][]try) *world {
	return &world{t: t, script: script, ideas: map[int][]try{}, head: "base", baseline: try{Metric: "10"}, kept: try{NoNumber: true}, calls: map[string]int{}, entries: map[string]int{}, lost: map[string]bool{}, cancelled: make(chan struct{}, 9)}
}

func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	step, commit := w.step, w.commit
	if w.stepping != nil {
		step = w.stepping
	}
	if w.committing != nil {
		commit = w.committing
	}
	for name, f := range map[string]any{
		api.CallName: onHost(w, api.CallName, func(ctx context.Context, in api.Call) (api.Called, error) {
			return as[api.Called](step(ctx, asked{Step: in.Step, Call: &in}))
		}),
		api.CheckName: onHost(w, api.CheckName, func(ctx context.Context, in api.Check) (api.Checked, error) {
			return as[api.Checked](step(ctx, asked{Step: in.Step, Command: in.Command, AsIs: in.AsIs}))
		}),
		api.VerifyName: onHost(w, api.VerifyName, func(ctx context.Context, in api.Verify) (api.Measured, error) {
			return as[api.Measured](step(ctx, asked{Step: in.Step, Command: in.Command, Verify: &in}))
		}),
		api.GuardName: onHost(w, api.GuardName, func(ctx context.Context, in api.Guard) (api.Outcome, error) {
			out, err := step(ctx, asked{Step: in.Step, Command: in.Command, Tests: in.Tests, Known: in.Known})
			passing := out.Passing
			outcome, err := as[api.Outcome](out, err)
			outcome.Tests = passing
			return outcome, err
		}),
		api.CanaryName: onHost(w, api.CanaryName, func(ctx context.Context, in api.Canary) (api.Canaried, error) {
			return as[api.Canaried](step(ctx, asked{Step: in.Step, Command: in.Guard + in.Test}))
		}),
		api.TestName: onHost(w, api.TestName, func(ctx context.Context, in api.Test) (api.Tested, error) {
			return as[api.Tested](step(ctx, asked{Step: in.Step, Command: in.Command, Test: &in}))
		}),
		api.OpenName: w.open, api.ProgressName: w.progress, api.AmendName: onHost(w, api.AmendName, w.amend),
		api.CommitName: onHost(w, api.CommitName, commit), api.SettleName: onHost(w, api.SettleName, w.settle),
		api.TakeName:   onHost(w, api.TakeName, w.take),
		api.RecordName: onHost(w, api.RecordName, w.record), api.ProposeName: onHost(w, api.ProposeName, w.propose), api.CloseName: onHost(w, api.CloseName, w.close),
		api.PlaceName: func(_ context.Context, in api.Place) (api.Placed, error) { return w.place(in) },
		api.NotifyName: func(_ context.Context, in api.Notify) error {
			w.mu.Lock()
			w.notices = append(w.notices, in)
			w.mu.Unlock()
			if w.notify == nil {
				return nil
			}
			return w.notify(in)
		},
		api.ApplyName: onHost(w, api.ApplyName, func(_ context.Context, in api.Apply) (api.Applied, error) { return w.apply(in) }),
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// onHost returns an activity whose result w.host decides.
func onHost[I, O any](w *world, name string, f func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (out O, err error) {
		if w.host == nil {
			return f(ctx, in)
		}
		queue := activity.GetInfo(ctx).TaskQueue
		w.mu.Lock()
		dead := queue == w.dead
		w.mu.Unlock()
		if dead {
			return out, untaken()
		}
		w.belongs(queue, in)
		err = w.host(name, func() (err error) {
			out, err = f(ctx, in)
			return err
		})
		return out, err
	}
}

// scratch returns how the judges decide from scratch.
func (w *world) scratch(in asked) try {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := try{Metric: w.baseline.Metric}
	if w.state.Best != nil {
		t.Metric = w.state.Best.String()
	}
	switch {
	case in.At == "base" && in.Scratch: // the control
		if w.control == nil {
			return w.baseline
		}
		return *w.control
	case w.afresh != nil:
		return w.afresh(in)
	}
	return t
}

func (w *world) count(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[name]++
}

func (w *world) open(_ context.Context, in api.Open) (api.Opened, error) {
	w.count(api.OpenName)
	if w.openErr != nil {
		return api.Opened{}, w.openErr
	}
	if in.Moved {
		return w.openElsewhere(in)
	}
	return api.Opened{
		Site: api.Site{Ref: in.Loop, Host: "test", Queue: "pawl@test", Desk: "/desk"}, Terms: api.Terms{Contract: theHash},
		Repo: in.Spec.Repo.Path, Branch: "pawl/" + in.Loop, Base: "base", InScope: 1, Stop: w.stop, State: w.resume, Since: w.since, Unjudged: w.unjudged,
	}, nil
}

func (w *world) append(in api.Entry, out api.Appended) (api.Appended, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A cancelled step could not report what it had recorded first. That is not recorded again.
	if n := len(w.ledger); w.unsaid != "" && in.Ledger == w.unsaid && len(in.Events) > 0 && in.Events[0].Seq <= w.ledger[n-1].Seq {
		in.Ledger, in.Events = w.at(), in.Events[w.ledger[n-1].Seq-in.Events[0].Seq+1:]
	}
	if in.Ledger != w.at() && in.Ledger == w.last.Ledger && reflect.DeepEqual(in.Events, w.last.Events) {
		out.Ledger = w.at()
		return out, nil
	}
	w.last = in
	if want := w.at(); in.Ledger != want {
		return out, temporal.NewNonRetryableApplicationError("fenced: "+in.Ledger+" is not "+want, string(fault.LedgerAhead), nil)
	}
	for _, e := range in.Events {
		if e.Head == "" {
			e = api.Fill(e, out)
		}
		if n := len(w.ledger); n > 0 && e.Seq != w.ledger[n-1].Seq+1 {
			w.t.Errorf("event %s has sequence %d after %d", e.Type, e.Seq, w.ledger[n-1].Seq)
		}
		w.ledger = append(w.ledger, e)
		w.state = w.state.Apply(e)
	}
	if c := w.state.LastChange; c != nil {
		assert.False(w.t, w.lost[c.Commit], "agents are shown the last change, and %s is lost", c.Commit)
	}
	for _, e := range in.Events {
		if i := slices.Index(w.mended, e.Reason); e.Type == loop.Warned && i >= 0 {
			w.mended = slices.Delete(w.mended, i, i+1)
		}
	}
	out.Mended = slices.Clone(w.mended)
	w.unsaid = ""
	w.ledgerAt++
	out.Ledger = w.at()
	w.entries[out.Ledger] = len(w.ledger)
	return out, nil
}

func (w *world) at() string {
	if w.ledgerAt == 0 {
		return ""
	}
	return fmt.Sprintf("ledger-%d", w.ledgerAt)
}

// theHash is the hash of the first contract. An amended contract has the hash of its spec.
const theHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (w *world) amend(_ context.Context, in api.Amend) (api.Terms, error) {
	w.count(api.AmendName)
	c := rules.Draw(in.Spec, in.Base, "", []loop.Seal{{Path: "measure.sh"}})
	return api.Terms{Contract: c.Hash(), Sealed: c.Sealed}, nil
}

// proposed completes the event that asks for a proposal.
func (w *world) proposed(base, head string, events []loop.Event) *loop.Proposal {
	for i, e := range events {
		if e.Type == loop.ProposalMade && base != head && (!strings.HasPrefix(head, "revert-of-") || w.state.KeptCount > 0) {
			p := &loop.Proposal{Hash: theHash, Base: base, Head: head, Files: 1, State: "open"}
			events[i] = api.Fill(e, api.Appended{Proposal: p})
			return p
		}
	}
	return nil
}

func (w *world) settle(_ context.Context, in api.Settle) (api.Appended, error) {
	w.count(api.SettleName)
	out := api.Appended{}
	if r := in.Revert; r != nil {
		assert.False(w.t, w.lost[r.Commit], "%s was on a host that is gone", r.Commit)
		w.mu.Lock()
		w.reverts = append(w.reverts, r.Commit)
		w.head = "revert-of-" + r.Commit
		if r.GoOn {
			w.head = fmt.Sprintf("again-%d-%s", len(w.reverts), r.Parent)
		}
		out.Head = w.head
		w.mu.Unlock()
	}
	return w.appendOr(in.Entry, out)
}

func (w *world) take(_ context.Context, in api.Take) (api.Taken, error) {
	w.count(api.TakeName)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taking == nil {
		return api.Taken{}, nil
	}
	return w.taking(in), nil
}

func (w *world) record(_ context.Context, in api.Record) (api.Appended, error) {
	w.count(api.RecordName)
	if in.Park {
		w.count("park")
	}
	return w.appendOr(in.Entry, api.Appended{})
}

func (w *world) propose(_ context.Context, in api.Propose) (api.Appended, error) {
	w.count(api.ProposeName)
	return w.appendOr(in.Entry, api.Appended{Proposal: w.proposed(in.Base, in.Head, in.Events)})
}

// appendOr appends as the script says: not at all, or with a loop-stop.
func (w *world) appendOr(in api.Entry, out api.Appended) (api.Appended, error) {
	if w.settleErr != nil {
		return api.Appended{}, w.settleErr
	}
	out, err := w.append(in, out)
	if err == nil && w.onSettle != nil {
		out.Stop = w.onSettle(w.state.Iteration)
	}
	return out, err
}

func (w *world) close(_ context.Context, in api.Close) (api.Appended, error) {
	w.count(api.CloseName)
	w.hasty = in.Hasty
	return w.append(in.Entry, api.Appended{Proposal: w.proposed(in.Base, in.Head, in.Events)})
}

func (w *world) progress(_ context.Context, in api.Progress) (api.Spent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checked++
	return api.Spent{Running: true}, nil
}
