package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/outcome"
	"pawl/internal/wire"
	"pawl/workflows"
)

// try is what the scripted agent does in one attempt, and what the judges make of it.
type try struct {
	Says       string // the description
	Idea       string // at ideate
	Fails      bool   // the agent exits 1
	GivesUp    string
	Nothing    bool // no change
	Tree       string
	Violations []act.Violation
	NewFile    bool // it adds a file that needs approval
	Check      bool // the check fails
	Metric     string
	Crash      bool // verify exits 1
	NoNumber   bool
	Timeout    bool
	Blind      bool          // the guard sees no code
	Guard      bool          // the guard fails
	Hang       bool          // the agent never ends by itself
	Exhausted  loop.Resource // a budget was crossed while it worked
	Failure    string        // it says that it failed, and exits 0
	Denied     string        // the role may not do it
}

// asked is a step of whatever kind, as the world is asked for it.
type asked struct {
	act.Step
	Command string
	AsIs    bool      // of a check
	Call    *act.Call // of an agent
	Test    *act.Test
	Verify  *act.Verify
	Tests   int // that a guard has to pass
}

// stepped is what the world says came of it: of the result of each kind, what tests need.
type stepped struct {
	ExitCode                   int
	TimedOut, Interrupted      bool
	Failure, Log, Digest, Stop string
	Exhausted                  loop.Resource
	ElapsedMs                  int64
	Violates                   bool
	Metric                     *evidence.Decimal
	Metrics                    map[string]evidence.Decimal
	NoNumber                   string
	Tests                      *loop.Tests
	Ledger, Denied             string
	Usage                      loop.Usage
	Description, Idea, GiveUp  string
	Regenerate                 bool
	Plan                       *loop.Plan
	Opinion                    *act.Opinion
	Class                      outcome.Class
	Refused                    *act.Refused
	Withheld                   []string
	Passing                    int  // tests in a guard
	Files                      int  // of a canary
	Seen                       bool // by one
}

// as is a step's result as its activity returns it.
func as[O any](s stepped, err error) (out O, _ error) {
	if err != nil {
		return out, err
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}

// world stands in for all activities: it knows what a scripted agent does in each iteration and
// attempt, and keeps the ledger as the real one does.
type world struct {
	t      *testing.T
	mu     sync.Mutex
	script map[int][]try // by iteration, attempts in order; the last one repeats
	ideas  map[int][]try

	openErr    error
	baseline   try
	anew       try // what an amended verify command measures of what is kept
	stop       string
	ledgerAt   int
	ledger     []loop.Event
	unsaid     string // where the ledger was before the last step recorded something
	state      loop.State
	head       string
	commits    int
	reverts    []string
	steps      []string // "iteration.attempt name"
	agents     []act.Call
	budgets    []map[loop.Resource]evidence.Decimal // what each agent call was given
	told       []string                             // the iteration that the ledger was at when an agent started
	calls      map[string]int
	settleErr  error
	onSettle   func(n int) string // returns a loop-stop
	checked    int
	interrupts int
	runs       int
	stepping   func(context.Context, asked) (stepped, error)            // instead of step
	committing func(context.Context, act.Commit) (act.Committed, error) // instead of commit
	taking     func(act.Take) act.Taken                                 // nil: a candidate always goes on top
	kind       any                                                      // the workflow, Improve unless it says so
	resume     *loop.State                                              // what Open finds in the ledger
	slow       time.Duration                                            // what an agent takes
	commands   []string
	notices    []act.Notify
	notify     func(act.Notify) error // nil takes everything
	apply      func(act.Apply) (act.Applied, error)
	host       func(name string, do func() error) error // what becomes of what a host is to do
	place      func(act.Place) (act.Placed, error)
	desk       string          // the queue of the host that an agent has last worked on
	lost       map[string]bool // commits that were on a host alone that is gone
	entries    map[string]int  // how many events the ledger had at an entry
	cancelled  chan struct{}   // gets one for each activity that the workflow cancels
}

func newWorld(t *testing.T, script map[int][]try) *world {
	return &world{t: t, script: script, ideas: map[int][]try{}, head: "base", baseline: try{Metric: "10"}, calls: map[string]int{}, entries: map[string]int{}, lost: map[string]bool{}, cancelled: make(chan struct{}, 9)}
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
		act.CallName: onHost(w, act.CallName, func(ctx context.Context, in act.Call) (act.Called, error) {
			return as[act.Called](step(ctx, asked{Step: in.Step, Call: &in}))
		}),
		act.CheckName: onHost(w, act.CheckName, func(ctx context.Context, in act.Check) (act.Checked, error) {
			return as[act.Checked](step(ctx, asked{Step: in.Step, Command: in.Command, AsIs: in.AsIs}))
		}),
		act.VerifyName: onHost(w, act.VerifyName, func(ctx context.Context, in act.Verify) (act.Measured, error) {
			return as[act.Measured](step(ctx, asked{Step: in.Step, Command: in.Command, Verify: &in}))
		}),
		act.GuardName: onHost(w, act.GuardName, func(ctx context.Context, in act.Guard) (act.Outcome, error) {
			out, err := step(ctx, asked{Step: in.Step, Command: in.Command, Tests: in.Tests})
			passing := out.Passing
			outcome, err := as[act.Outcome](out, err)
			outcome.Tests = passing
			return outcome, err
		}),
		act.CanaryName: onHost(w, act.CanaryName, func(ctx context.Context, in act.Canary) (act.Canaried, error) {
			return as[act.Canaried](step(ctx, asked{Step: in.Step, Command: in.Guard + in.Test}))
		}),
		act.TestName: onHost(w, act.TestName, func(ctx context.Context, in act.Test) (act.Tested, error) {
			return as[act.Tested](step(ctx, asked{Step: in.Step, Command: in.Command, Test: &in}))
		}),
		act.OpenName: w.open, act.ProgressName: w.progress, act.AmendName: onHost(w, act.AmendName, w.amend),
		act.CommitName: onHost(w, act.CommitName, commit), act.SettleName: onHost(w, act.SettleName, w.settle),
		act.TakeName:   onHost(w, act.TakeName, w.take),
		act.RecordName: onHost(w, act.RecordName, w.record), act.ProposeName: onHost(w, act.ProposeName, w.propose), act.CloseName: onHost(w, act.CloseName, w.close),
		act.PlaceName: func(_ context.Context, in act.Place) (act.Placed, error) { return w.place(in) },
		act.NotifyName: func(_ context.Context, in act.Notify) error {
			w.mu.Lock()
			w.notices = append(w.notices, in)
			w.mu.Unlock()
			if w.notify == nil {
				return nil
			}
			return w.notify(in)
		},
		act.ApplyName: onHost(w, act.ApplyName, func(_ context.Context, in act.Apply) (act.Applied, error) { return w.apply(in) }),
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// onHost is an activity that the world's host has a say in.
func onHost[I, O any](w *world, name string, f func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (out O, err error) {
		if w.host == nil {
			return f(ctx, in)
		}
		w.belongs(activity.GetInfo(ctx).TaskQueue, in)
		err = w.host(name, func() (err error) {
			out, err = f(ctx, in)
			return err
		})
		return out, err
	}
}

func (w *world) count(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[name]++
}

func (w *world) open(_ context.Context, in act.Open) (act.Opened, error) {
	w.count(act.OpenName)
	if w.openErr != nil {
		return act.Opened{}, w.openErr
	}
	if in.Moved {
		return w.openElsewhere(in)
	}
	return act.Opened{
		Site: act.Site{Ref: in.Loop, Host: "test", Queue: "pawl@test", Desk: "/desk"}, Terms: act.Terms{Contract: theHash},
		Repo: in.Spec.Repo.Path, Branch: "pawl/" + in.Loop, Base: "base", InScope: 1, Stop: w.stop, State: w.resume,
	}, nil
}

func (w *world) append(in act.Entry, out act.Appended) (act.Appended, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A step that was cancelled couldn't say what it had recorded first: that is not recorded again.
	if n := len(w.ledger); w.unsaid != "" && in.Ledger == w.unsaid && len(in.Events) > 0 && in.Events[0].Seq <= w.ledger[n-1].Seq {
		in.Ledger, in.Events = w.at(), in.Events[w.ledger[n-1].Seq-in.Events[0].Seq+1:]
	}
	if want := w.at(); in.Ledger != want {
		return out, temporal.NewNonRetryableApplicationError("fenced: "+in.Ledger+" is not "+want, string(fault.LedgerAhead), nil)
	}
	for _, e := range in.Events {
		if e.Head == "" {
			e = act.Fill(e, out)
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

// theHash is that of the first contract; an amended one has that of its spec.
const theHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (w *world) amend(_ context.Context, in act.Amend) (act.Terms, error) {
	w.count(act.AmendName)
	c := govern.Draw(in.Spec, in.Base, "", []loop.Seal{{Path: "measure.sh"}})
	return act.Terms{Contract: c.Hash(), Sealed: c.Sealed}, nil
}

// proposed completes the event that asks for a proposal.
func proposed(base, head string, events []loop.Event) *loop.Proposal {
	for i, e := range events {
		if e.Type == loop.ProposalMade && base != head && !strings.HasPrefix(head, "revert-of-") {
			p := &loop.Proposal{Hash: theHash, Base: base, Head: head, Files: 1, State: "open"}
			events[i] = act.Fill(e, act.Appended{Proposal: p})
			return p
		}
	}
	return nil
}

func (w *world) settle(_ context.Context, in act.Settle) (act.Appended, error) {
	w.count(act.SettleName)
	out := act.Appended{}
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

func (w *world) take(_ context.Context, in act.Take) (act.Taken, error) {
	w.count(act.TakeName)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taking == nil {
		return act.Taken{}, nil
	}
	return w.taking(in), nil
}

func (w *world) record(_ context.Context, in act.Record) (act.Appended, error) {
	w.count(act.RecordName)
	if in.Park {
		w.count("park")
	}
	return w.appendOr(in.Entry, act.Appended{})
}

func (w *world) propose(_ context.Context, in act.Propose) (act.Appended, error) {
	w.count(act.ProposeName)
	return w.appendOr(in.Entry, act.Appended{Proposal: proposed(in.Base, in.Head, in.Events)})
}

// appendOr appends as the script has it: not at all, or with a loop-stop.
func (w *world) appendOr(in act.Entry, out act.Appended) (act.Appended, error) {
	if w.settleErr != nil {
		return act.Appended{}, w.settleErr
	}
	out, err := w.append(in, out)
	if err == nil && w.onSettle != nil {
		out.Stop = w.onSettle(w.state.Iteration)
	}
	return out, err
}

func (w *world) close(_ context.Context, in act.Close) (act.Appended, error) {
	w.count(act.CloseName)
	return w.append(in.Entry, act.Appended{Proposal: proposed(in.Base, in.Head, in.Events)})
}

func (w *world) progress(_ context.Context, in act.Progress) (act.Spent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checked++
	return act.Spent{Running: true}, nil
}

func (w *world) tryOf(script map[int][]try, k act.Key) try {
	tries := script[k.Iteration]
	if len(tries) == 0 {
		return try{Says: fmt.Sprintf("change %d", k.Iteration), Metric: "10", Tree: fmt.Sprintf("t%d", k.Iteration)}
	}
	return tries[max(min(k.Attempt, len(tries)), 1)-1] // a candidate's only one is 0
}

func (w *world) step(_ context.Context, in asked) (stepped, error) {
	w.mu.Lock()
	w.commands = append(w.commands, in.Command)
	w.steps = append(w.steps, fmt.Sprintf("%d.%d %s", in.Key.Iteration, in.Key.Attempt, in.Key.Name))
	if in.Call != nil {
		w.agents = append(w.agents, *in.Call)
		w.budgets = append(w.budgets, in.Call.Budget)
	}
	w.mu.Unlock()
	out := stepped{ElapsedMs: 100, Log: "/log", Digest: "feedface"}
	if w.slow > 0 && in.Call != nil {
		took := min(w.slow, time.Duration(in.LimitMs)*time.Millisecond)
		out.ElapsedMs, out.TimedOut = took.Milliseconds(), took < w.slow
		if out.TimedOut {
			out.ExitCode = -1
		}
	}
	if in.Call != nil && len(in.Call.Events) > 0 {
		told, err := w.append(act.Entry{Ref: in.Ref, Ledger: in.Call.Ledger, Events: in.Call.Events}, act.Appended{})
		if err != nil {
			return out, err
		}
		out.Ledger, w.unsaid = told.Ledger, in.Call.Ledger
	}
	if in.Call != nil && w.state.Status == loop.Running {
		w.mu.Lock()
		w.told = append(w.told, fmt.Sprint(w.state.Iteration))
		w.mu.Unlock()
	}
	t := w.tryOf(w.script, in.Key)
	if in.Key.Iteration == 0 {
		t = w.baseline
	}
	name, contract, _ := strings.Cut(in.Key.Name, "-")
	if contract != "" { // by an amended command
		t = w.anew
	}
	switch name {
	case "canary":
		out.Files, out.Seen = 2, !t.Blind
	case "ideate":
		t = w.tryOf(w.ideas, in.Key)
		out.Idea, out.Usage = t.Idea, loop.Usage{AgentCalls: 1, ToolCalls: 1}
	case "modify":
		out.Usage = loop.Usage{AgentCalls: 1, ToolCalls: 1}
		out.Description, out.GiveUp = t.Says, t.GivesUp
		if t.Denied != "" {
			return out, wire.Encode(fault.New(fault.PermissionDenied, "%s", t.Denied).Advise("Grant it."), nil)
		}
		if out.Exhausted, out.Failure = t.Exhausted, t.Failure; t.Exhausted != "" {
			out.Usage = loop.Usage{AgentCalls: 1, ToolCalls: 7, InputTokens: 900, OutputTokens: 101}
		}
		if t.Fails {
			out.ExitCode = 1
		}
		if t.Hang && in.Key.Repeat == 0 {
			<-w.cancelled
			w.mu.Lock()
			w.interrupts++
			w.mu.Unlock()
			out.Interrupted = true
		}
	case "check":
		if in.AsIs && len(t.Violations) > 0 {
			return stepped{Violates: true, Failure: "not run, the change violates a policy"}, nil
		}
		if t.Check {
			out.ExitCode = 1
		}
	case "verify":
		switch {
		case t.Timeout:
			out.TimedOut, out.ExitCode = true, -1
		case t.Crash:
			out.ExitCode = 1
		case t.NoNumber:
			out.NoNumber = "nothing"
		default:
			d := evidence.MustDecimal(t.Metric)
			out.Metric = &d
		}
	case "guard":
		if t.Guard {
			out.ExitCode = 1
		}
	}
	return out, nil
}

func (w *world) commit(_ context.Context, in act.Commit) (act.Committed, error) {
	w.count(act.CommitName)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tryOf(w.script, act.Key{Iteration: in.Iteration, Attempt: in.Attempt})
	tree := t.Tree
	if tree == "" {
		tree = fmt.Sprintf("tree-%d.%d", in.Iteration, in.Attempt)
	}
	if t.Nothing {
		return act.Committed{NoChange: true}, nil
	}
	if len(t.Violations) > 0 {
		return act.Committed{Tree: tree, Violations: t.Violations}, nil
	}
	several := evidence.Several(in.Description, evidence.Shape{Areas: 2, Files: 2, Hunks: 2})
	if in.OneChange && several != "" {
		return act.Committed{Tree: tree, Several: several}, nil
	}
	if t.NewFile && in.AllowNew != theHash {
		return act.Committed{Tree: tree, NewFiles: []string{"new.go"}, NewFilesHash: theHash}, nil
	}
	w.commits++
	w.head = fmt.Sprintf("commit-%d", w.commits)
	return act.Committed{Commit: w.head, Tree: tree, Files: []string{"a.go"}, Area: "a.go", Note: several}, nil
}

func newRandom(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 1)) }

// specOf returns a spec with what a test changes about it. Its evidence is the source's: one measurement.
func specOf(change map[string]any) json.RawMessage {
	doc := map[string]any{
		"goal": "make it better", "repo": map[string]any{"path": "/repo"}, "scope": []string{"**"},
		"verify":    map[string]any{"command": "measure", "evidence": "single"},
		"agent":     map[string]any{"command": "agent"},
		"limits":    map[string]any{"iterations": 5, "toolCalls": 1000, "activeTime": "10h"},
		"approvals": map[string]any{"plan": "auto", "diff": "auto", "tools": []string{"*"}},
		"validate":  map[string]any{"canary": false},
	}
	for k, v := range change {
		if inner, ok := v.(map[string]any); ok {
			merged := map[string]any{}
			if old, ok := doc[k].(map[string]any); ok {
				for ik, iv := range old {
					merged[ik] = iv
				}
			}
			for ik, iv := range inner {
				merged[ik] = iv
			}
			v = merged
		}
		doc[k] = v
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

// played is a finished run of Improve in the test environment.
type played struct {
	*world
	env    *testsuite.TestWorkflowEnvironment
	result loop.Result
	err    *temporal.ApplicationError
	final  loop.State
}

// play runs Improve against the world until it ends, and holds it to what must always be so:
// the state is the fold of the ledger, and nothing is left unjudged on the branch.
func play(t *testing.T, w *world, doc json.RawMessage, prepare func(*testsuite.TestWorkflowEnvironment)) played {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(doc)
	require.NoError(t, err)
	env := runOnce(t, w, converter.NewRawValue(payload), workflows.Resume{}, prepare)
	for runs := 1; ; runs++ {
		var again *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &again) {
			break
		}
		require.Less(t, runs, 100)
		w.runs = runs + 1
		var spec json.RawMessage
		var resume workflows.Resume
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &spec, &resume))
		payload, err := converter.GetDefaultDataConverter().ToPayload(spec)
		require.NoError(t, err)
		env = runOnce(t, w, converter.NewRawValue(payload), resume, prepare)
	}
	p := played{world: w, env: env}
	if err := env.GetWorkflowError(); err != nil {
		require.ErrorAs(t, err, &p.err)
		_ = p.err.Details(&p.result)
	} else {
		require.NoError(t, env.GetWorkflowResult(&p.result))
	}
	p.final = query(t, env)
	if len(w.ledger) > 0 && (p.err == nil || p.err.Type() != string(fault.LedgerAhead)) {
		folded := w.state
		folded.Ledger = p.final.Ledger
		require.Equal(t, toJSON(t, folded), toJSON(t, p.final), "the state must be the fold of the ledger")
	}
	lawful(t, w.ledger)
	return p
}

// runOnce executes one run of the workflow.
func runOnce(t *testing.T, w *world, input converter.RawValue, resume workflows.Resume, prepare func(*testsuite.TestWorkflowEnvironment)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	env.SetOnActivityCanceledListener(func(*activity.Info) { w.cancelled <- struct{}{} })
	kind := w.kind
	if kind == nil {
		kind = workflows.Improve
	}
	env.RegisterWorkflow(kind)
	w.register(env)
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(kind, input, resume)
	require.True(t, env.IsWorkflowCompleted())
	return env
}

func query(t *testing.T, env *testsuite.TestWorkflowEnvironment) loop.State {
	t.Helper()
	v, err := env.QueryWorkflow("state")
	require.NoError(t, err)
	var s loop.State
	require.NoError(t, v.Get(&s))
	return s
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(b)
}

func (p played) types() []loop.Type {
	var out []loop.Type
	for _, e := range p.ledger {
		out = append(out, e.Type)
	}
	return out
}

// course is the sequence of iterations as "n kept|discarded reason".
func (p played) course() []string {
	var out []string
	for _, e := range p.ledger {
		if e.Record != nil {
			word := "no"
			if e.Record.Kept {
				word = "yes"
			}
			metric := "-"
			if e.Record.Metric != nil {
				metric = e.Record.Metric.String()
			}
			line := fmt.Sprintf("%d %s %s", e.Record.N, word, metric)
			if e.Record.Reason != "" {
				line += " " + e.Record.Reason
			}
			out = append(out, line)
		}
	}
	return out
}
