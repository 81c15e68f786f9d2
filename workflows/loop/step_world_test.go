package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
)

// try is what the scripted agent does in one attempt, and how the judges decide about it.
type try struct {
	Says       string // the description
	Idea       string // at ideate
	Fails      bool   // the agent exits 1
	GivesUp    string
	Nothing    bool // no change
	Tree       string
	Violations []api.Violation
	NewFile    bool // it adds a file that needs approval
	Check      bool // the check fails
	Metric     string
	Crash      bool // verify exits 1
	NoNumber   bool
	Unlayered  bool // the machine keeps no caches apart
	Setup      bool // setup fails
	Timeout    bool
	Blind      bool          // the guard sees no code
	Guard      bool          // the guard fails
	Hang       bool          // the agent never ends by itself
	Exhausted  loop.Resource // a budget was used up while it worked
	Failure    string        // it says that it failed, and exits 0
	Denied     string        // the role may not do it
}

// asked is a step of any kind, as the world gets it.
type asked struct {
	api.Step
	Command string
	AsIs    bool      // of a check
	Call    *api.Call // of an agent
	Test    *api.Test
	Verify  *api.Verify
	Tests   int // that must pass in a guard
	Known   *loop.Tested
}

// stepped is the world's result: the fields of all kinds that tests need.
type stepped struct {
	ExitCode                   int
	TimedOut, Interrupted      bool
	Failure, Log, Digest, Stop string
	Exhausted                  loop.Resource
	ElapsedMs                  int64
	Violates                   bool
	Metric                     *metric.Decimal
	Metrics                    map[string]metric.Decimal
	NoNumber                   string
	Tests                      *loop.Tests
	Ledger, Denied             string
	Usage                      loop.Usage
	Description, Idea, GiveUp  string
	Regenerate                 bool
	Plan                       *loop.Plan
	Opinion                    *api.Opinion
	Class                      result.Class
	Refused                    *api.Refused
	Withheld                   []string
	Unlayered                  bool
	Recalled                   time.Time
	Passing                    int // tests in a guard
	Tested                     *loop.Tested
	Leftovers                  []string
	Altered                    []string
	Failing                    *api.Failing
	Vanished                   string
	Files                      int  // of a canary
	Unmoved, Hollow            bool // of a canary
	Emptied                    int
	Seen                       bool // by a command
}

// as returns a step's result as its activity does.
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

func (w *world) tryOf(script map[int][]try, k api.Key) try {
	tries := script[k.Iteration]
	if len(tries) == 0 {
		return try{Says: fmt.Sprintf("change %d", k.Iteration), Metric: "10", Tree: fmt.Sprintf("t%d", k.Iteration)}
	}
	return tries[max(min(k.Attempt, len(tries)), 1)-1] // the only try of a candidate has attempt 0
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
		told, err := w.append(api.Entry{Ref: in.Ref, Ledger: in.Call.Ledger, Events: in.Call.Events}, api.Appended{})
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
	judged, again := strings.CutPrefix(in.Key.Name, "scratch-")
	if suspect, cut := strings.CutSuffix(judged, "-again"); cut { // of a suspicious improvement
		judged, again = suspect, w.afresh != nil
	}
	name, contract, _ := strings.Cut(judged, "-")
	if again {
		if t = w.scratch(in); t.Setup {
			return out, wire.Encode(fault.New(fault.PreconditionFailed, "the setup command fails").Advise("Run it in a fresh clone."), nil)
		}
	}
	if contract != "" { // by an amended command
		t = w.anew
	}
	if name == "reference" { // of changes without a number
		name, t = "verify", w.kept
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
			return stepped{Violates: true, Failure: "it did not run, because the change violates a policy"}, nil
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
			d := metric.MustDecimal(t.Metric)
			out.Metric = &d
		}
	case "guard":
		if t.Guard {
			out.ExitCode = 1
		}
	}
	out.Unlayered = t.Unlayered
	return out, nil
}

func (w *world) commit(_ context.Context, in api.Commit) (api.Committed, error) {
	w.count(api.CommitName)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tryOf(w.script, api.Key{Iteration: in.Iteration, Attempt: in.Attempt})
	tree := t.Tree
	if tree == "" {
		tree = fmt.Sprintf("tree-%d.%d", in.Iteration, in.Attempt)
	}
	if t.Nothing {
		return api.Committed{NoChange: true}, nil
	}
	if len(t.Violations) > 0 {
		return api.Committed{Tree: tree, Violations: t.Violations}, nil
	}
	several := metric.Several(in.Description, metric.Shape{Areas: 2, Files: 2, Hunks: 2})
	if in.OneChange && several != "" {
		return api.Committed{Tree: tree, Several: several}, nil
	}
	if t.NewFile && in.AllowNew != theHash {
		return api.Committed{Tree: tree, NewFiles: []string{"new.go"}, NewFilesHash: theHash}, nil
	}
	w.commits++
	w.says = in.Description
	w.head = fmt.Sprintf("commit-%d", w.commits)
	return api.Committed{Commit: w.head, Tree: tree, Files: []string{"a.go"}, Area: "a.go", Note: several}, nil
}
