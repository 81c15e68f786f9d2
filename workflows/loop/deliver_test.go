package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	loopworkflow "pawl/workflows/loop"
)

// delivery scripts a Deliver loop: the results of each step, by its name, in the order in which the steps of that
// name run. The last result repeats. A step without results succeeds.
type delivery struct {
	*world
	outs      map[string][]stepped
	changes   []api.Committed // by commit; after the last one, each commit has a change of its own
	ran       []string        // names of steps and commits, in order
	scratched []string        // the steps from scratch, by iteration
	n         map[string]int
	asked     []api.Call
	limits    map[string][]int64 // in milliseconds, of each step by its name
	known     []string           // the run on the unchanged code that each was compared with
	before    []string           // the run that each run of the tests was compared with
}

func deliver(t *testing.T, outs map[string][]stepped) *delivery {
	w := newWorld(t, nil)
	w.kind = loopworkflow.Deliver
	return &delivery{world: w, outs: outs, n: map[string]int{}, limits: map[string][]int64{}}
}

func (d *delivery) step(ctx context.Context, in asked) (stepped, error) {
	d.mu.Lock()
	name := in.Key.Name
	if strings.HasPrefix(name, "reviewer") {
		name = "reviewer"
	}
	plain, again := strings.CutPrefix(name, "scratch-")
	switch {
	case in.Test != nil && in.Key.Iteration == 0:
		name = "baseline"
	case in.Key.Iteration == 0 && (name == "check" || strings.HasPrefix(name, "guard")):
		name = "unchanged " + name
	case again:
		d.scratched = append(d.scratched, fmt.Sprintf("%d %s", in.Key.Iteration, plain))
	default:
		d.ran = append(d.ran, name)
	}
	d.limits[name] = append(d.limits[name], in.LimitMs)
	d.mu.Unlock()
	out := stepped{}
	if list := d.outs[name]; len(list) > 0 {
		out = list[min(d.n[name], len(list)-1)]
	} else if last := d.outs[plain]; again && len(last) > 0 { // as before
		out = last[min(d.n[plain]-1, len(last)-1)]
	}
	d.n[name]++
	if out.ElapsedMs == 0 {
		out.ElapsedMs = 100
	}
	out.Log, out.Digest = fmt.Sprintf("/log/%s%d", name, d.n[name]), "feedface"
	if in.Test != nil && name == "baseline" {
		if out.Tests == nil {
			out.Tests = &loop.Tests{Passed: 3}
		}
	} else if in.Test != nil && again {
		out.Tests = &loop.Tests{Passed: 3}
	} else if in.Test != nil {
		d.known = append(d.known, in.Test.Known+map[bool]string{true: ", or fewer"}[in.Test.Fewer])
		d.before = append(d.before, in.Test.Before)
		if out.Tests == nil {
			out.Tests = &loop.Tests{Passed: 3}
		}
	}
	if in.Call != nil {
		d.asked = append(d.asked, *in.Call)
		if out.Usage == (loop.Usage{}) {
			out.Usage = loop.Usage{AgentCalls: 1, ToolCalls: 1}
		}
		if len(in.Call.Events) > 0 {
			told, err := d.append(api.Entry{Ref: in.Ref, Ledger: in.Call.Ledger, Events: in.Call.Events}, api.Appended{})
			if err != nil {
				return out, err
			}
			out.Ledger, d.unsaid = told.Ledger, in.Call.Ledger
		}
		if out.Opinion != nil && out.Opinion.Decision == "" && out.Opinion.Note == "hang" {
			<-ctx.Done()
		}
	}
	return out, nil
}

func (d *delivery) commit(_ context.Context, in api.Commit) (api.Committed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran = append(d.ran, "commit")
	if len(d.changes) > 0 {
		c := d.changes[0]
		d.changes = d.changes[1:]
		if c.NoChange || len(c.Violations) > 0 {
			return c, nil
		}
	}
	d.commits++
	d.head = fmt.Sprintf("commit-%d", d.commits)
	file := fmt.Sprintf("%c.go", 'a'+(d.commits-1)%26)
	return api.Committed{Commit: d.head, Tree: "tree-" + d.head, Files: []string{file}, Area: file}, nil
}

// specOfDelivery returns a Deliver spec with a test's changes.
func specOfDelivery(change map[string]any) json.RawMessage {
	doc := map[string]any{"kind": "deliver", "test": map[string]any{"command": "go test ./..."}, "verify": map[string]any{"command": ""}}
	for k, v := range change {
		doc[k] = v
	}
	return specOf(doc)
}

// run plays the delivery to its end.
func (d *delivery) run(doc json.RawMessage, prepare ...func(*testsuite.TestWorkflowEnvironment)) played {
	d.t.Helper()
	d.stepping, d.committing = d.step, d.commit
	return play(d.t, d.world, doc, func(env *testsuite.TestWorkflowEnvironment) {
		for _, p := range prepare {
			p(env)
		}
	})
}

// phases returns the phases that were entered, in order.
func (p played) phases() string {
	var all []string
	for _, e := range p.ledger {
		if e.Type == loop.PhaseEntered {
			all = append(all, string(e.Phase))
		}
	}
	return strings.Join(all, " ")
}

var (
	failing = func(names ...string) stepped {
		return stepped{ExitCode: 1, Tests: &loop.Tests{Failed: len(names), Failing: names, Signature: strings.Join(names, "+")}}
	}
	passing  = stepped{Tests: &loop.Tests{Passed: 3}}
	broke    = stepped{ExitCode: 1, Tests: &loop.Tests{Failed: 1, Broken: true, Signature: "build"}}
	exit1    = stepped{ExitCode: 1}
	reviewer = map[string]any{"roles": map[string]any{"reviewer": map[string]any{"command": "review"}}}
)

func opinion(decision, note string) stepped {
	return stepped{Opinion: &api.Opinion{Decision: decision, Note: note, Why: "unclear"}}
}

func TestL6_EveryCourseOfDeliver(t *testing.T) {
	for name, c := range map[string]struct {
		outs    map[string][]stepped
		changes []api.Committed
		spec    map[string]any
		phases  string
		code    fault.Code
		exit    string
	}{
		"straight through": {phases: "plan write test verify complete"},
		"fixed": {
			outs:   map[string][]stepped{"test": {failing("A"), failing("A"), passing}},
			phases: "plan write test fix test verify complete",
		},
		"flaky": {
			outs:   map[string][]stepped{"test": {failing("A"), passing}},
			phases: "plan write test verify complete",
		},
		"regenerated": {
			outs:   map[string][]stepped{"test": {broke, passing}, "fixer": {{Regenerate: true}}},
			phases: "plan write test fix write test verify complete",
		},
		"tests are not required": {
			spec:   map[string]any{"test": map[string]any{"required": false, "command": ""}, "verify": map[string]any{"command": "check"}},
			phases: "plan write verify complete",
		},
		"verify sends it back": {
			outs: map[string][]stepped{"verify": {exit1, {}}}, spec: map[string]any{"verify": map[string]any{"command": "check"}},
			phases: "plan write test verify write test verify complete",
		},
		"iterations used up": {
			outs: map[string][]stepped{"verify": {exit1}}, spec: map[string]any{"verify": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 2}},
			phases: "plan write test verify write test verify", code: fault.MaxIterations, exit: "max_steps",
		},
		"fixes used up": {
			outs: map[string][]stepped{"test": {broke}}, spec: map[string]any{"limits": map[string]any{"fixAttempts": 2}},
			phases: "plan write test fix test fix test", code: fault.MaxFixAttempts, exit: "max_steps",
		},
		"no fix is allowed": {
			outs: map[string][]stepped{"test": {broke}}, spec: map[string]any{"limits": map[string]any{"fixAttempts": 0}},
			phases: "plan write test", code: fault.TestFailed, exit: "interrupted",
		},
		"the fixer gives up": {
			outs:   map[string][]stepped{"test": {broke}, "fixer": {{GiveUp: "too hard"}}},
			phases: "plan write test fix", code: fault.TestFailed, exit: "interrupted",
		},
		"the writer fails for good": {
			outs:   map[string][]stepped{"writer": {exit1}},
			phases: "plan write", code: fault.AgentFailed, exit: "interrupted",
		},
		"the writer hangs": {
			outs:   map[string][]stepped{"writer": {{TimedOut: true, ExitCode: -1}}},
			phases: "plan write", code: fault.PhaseTimeout, exit: "timeout",
		},
		"the tests hang": {
			outs:   map[string][]stepped{"test": {{TimedOut: true, ExitCode: -1, Tests: &loop.Tests{}}}},
			phases: "plan write test", code: fault.PhaseTimeout, exit: "timeout",
		},
		"the same failure over and over": {
			outs: map[string][]stepped{"test": {broke, broke, broke, passing}}, spec: map[string]any{"limits": map[string]any{"fixAttempts": 5}},
			phases: "plan write test fix test fix test fix write test verify complete",
		},
		"reviewed": {
			outs: map[string][]stepped{"reviewer": {opinion("", ""), opinion("APPROVED", "fine")}}, spec: map[string]any{"agent": reviewer},
			phases: "plan write test verify complete",
		},
		"refused by the reviewer once": {
			outs: map[string][]stepped{"reviewer": {opinion("REJECTED", "more tests"), opinion("APPROVED", "")}}, spec: map[string]any{"agent": reviewer},
			phases: "plan write test verify write test verify complete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := deliver(t, c.outs)
			d.changes = c.changes
			p := d.run(specOfDelivery(c.spec))
			require.Equal(t, c.phases, p.phases())
			if c.code == "" {
				require.Nil(t, p.err)
				require.Equal(t, "completed", p.result.ExitStatus)
				require.Equal(t, loop.Completed, p.final.Status)
				return
			}
			require.NotNil(t, p.err)
			require.Equal(t, string(c.code), p.err.Type())
			require.Equal(t, c.exit, p.result.ExitStatus)
			require.NotEmpty(t, p.result.Recovery, "L11: the hint of the source")
		})
	}
}

func TestL1_TheGuardFollowsEveryWriteAndFix(t *testing.T) {
	spec := specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint", "retries": 0}})
	d := deliver(t, map[string][]stepped{"guard": {exit1, {}, {}}, "test": {broke, passing}})
	p := d.run(spec)
	require.Equal(t, []string{"writer", "commit", "guard", "writer", "commit", "guard", "test", "fixer", "commit", "guard", "test"}, d.ran)
	require.Equal(t, []string{"commit-1"}, d.reverts, "what the guard does not let pass is off the branch")
	require.Equal(t, 2, d.asked[1].Attempt)
	require.Equal(t, "change without a description", p.events(loop.IterationSucceeded)[0].Record.Description, "the agents said nothing, but changed something")
	require.Equal(t, "default", p.final.LastGuard.Policy)
	require.True(t, p.final.LastGuard.Passed)
}

func TestL9_AGuardThatGoesOnFailingBlocks(t *testing.T) {
	spec := specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint", "retries": 0}, "limits": map[string]any{"reworks": 1}})
	d := deliver(t, map[string][]stepped{"guard": {exit1, exit1, exit1, {}}})
	p := d.run(spec, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Blocked, s.Status)
			require.Equal(t, loop.GateGuard, s.Gate.Kind)
			require.True(t, s.LastGuard.Blocked)
			env.SignalWorkflow("continue", nil)
		})
		at(t, env, 2*time.Hour, func(s loop.State) {
			require.Equal(t, loop.Blocked, s.Status, "continue judges again and waives nothing")
			env.SignalWorkflow("continue", nil)
		})
	})
	require.Equal(t, "plan write test verify complete", p.phases())
	require.Equal(t, []string{"commit-1", "commit-2", "commit-3"}, d.reverts)
	require.Equal(t, []string{"writer", "commit", "guard", "writer", "commit", "guard", "commit", "guard", "commit", "guard", "test"}, d.ran)

	d = deliver(t, nil)
	d.changes = []api.Committed{{Violations: []api.Violation{{Rule: "sealed", Path: "guard.sh", Blocks: true}}}}
	p = d.run(specOfDelivery(nil), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, []string{"writer", "commit"}, d.ran, "nothing of the spec runs on a change that violates a policy")
			env.SignalWorkflow("reject", map[string]any{"by": "ann", "note": "leave the guard"})
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"writer", "commit", "writer", "commit", "test"}, d.ran, "what is rejected is dropped, and written anew")
	require.Equal(t, "the blocked change was rejected by ann: leave the guard", d.asked[1].Repair)

	d = deliver(t, nil)
	d.changes = []api.Committed{{Violations: []api.Violation{{Rule: "sealed", Path: "guard.sh", Blocks: true}}}}
	p = d.run(specOfDelivery(nil), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) { env.SignalWorkflow("halt", nil) })
	})
	require.Equal(t, string(fault.GuardBlocked), p.result.ErrorCode, "to end the loop there is halt")
}

func TestL2_AFailureThatNamesNoTestAndPassesUnchangedIsFlaky(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {{ExitCode: 1, Tests: &loop.Tests{}}, passing}})
	p := d.run(specOfDelivery(nil))
	require.Nil(t, p.err)
	require.Equal(t, []string{"a failure that names no test"}, p.final.LastTest.Tests.Flaky)
}

func TestL2_WithoutTestsTheSkipIsRecorded(t *testing.T) {
	d := deliver(t, nil)
	p := d.run(specOfDelivery(map[string]any{"test": map[string]any{"required": false}, "verify": map[string]any{"command": "check"}}))
	for _, e := range p.ledger {
		if e.Type == loop.TestsSkipped {
			require.Equal(t, "test.required is false", e.Reason)
			return
		}
	}
	t.Fatal("nothing says that the tests were skipped")
}

func TestL3_FixAttemptsAreCountedByIteration(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {broke, passing, broke, passing}, "verify": {exit1, {}}})
	p := d.run(specOfDelivery(map[string]any{"verify": map[string]any{"command": "check"}, "limits": map[string]any{"fixAttempts": 1}}))
	require.Nil(t, p.err)
	require.Equal(t, "plan write test fix test verify write test fix test verify complete", p.phases())
	require.Equal(t, 1, p.final.FixAttempts)
}

func TestL8_APlanIsApprovedWithTheContractAndStays(t *testing.T) {
	plan := stepped{Plan: &loop.Plan{Hash: strings.Repeat("ab", 32), Text: "first this, then that"}}
	d := deliver(t, map[string][]stepped{"planner": {exit1, plan}})
	p := d.run(specOfDelivery(map[string]any{
		"agent": map[string]any{"roles": map[string]any{"planner": map[string]any{"command": "plan"}}}, "approvals": map[string]any{"plan": "required"},
	}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, "first this, then that", s.Plan.Text)
			require.Equal(t, s.Contract.Hash, s.Gate.Hash)
			require.NotEqual(t, theHash, s.Gate.Hash, "the contract has the plan")
			env.SignalWorkflow("approve", map[string]any{"hash": theHash})
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash})
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"planner", "planner", "writer", "commit", "test"}, d.ran)
}

func TestE3_OnlyAPersonOrTheReviewerApproves(t *testing.T) {
	d := deliver(t, nil)
	p := d.run(specOfDelivery(nil))
	require.Equal(t, "open", p.result.Proposal.State, "nobody has looked at it")

	d = deliver(t, map[string][]stepped{"reviewer": {opinion("APPROVED", "")}})
	p = d.run(specOfDelivery(map[string]any{"agent": reviewer}))
	require.Equal(t, "approved", p.result.Proposal.State)
	require.Equal(t, "reviewer", p.result.Proposal.By)

	d = deliver(t, map[string][]stepped{"reviewer": {opinion("APPROVED", "")}})
	p = d.run(specOfDelivery(map[string]any{"agent": reviewer, "approvals": map[string]any{"diff": "required"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.GateDiff, s.Gate.Kind, "the reviewer's word is not enough here")
			env.SignalWorkflow("reject", map[string]any{"note": "rename it", "by": "ann"})
		})
		at(t, env, 2*time.Hour, func(s loop.State) {
			require.Equal(t, 2, s.Iteration, "a rejection goes back to write")
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash, "by": "ann"})
		})
	})
	require.Equal(t, "approved", p.result.Proposal.State)
	require.Equal(t, "plan write test verify write test verify complete", p.phases())
	require.Contains(t, d.asked[2].Repair, "rename it", "the writer is told")
}

func TestL10_EveryPhaseEndsWithinItsTime(t *testing.T) {
	d := deliver(t, map[string][]stepped{"fixer": {{TimedOut: true, ExitCode: -1}}, "test": {broke}})
	p := d.run(specOfDelivery(nil))
	require.Equal(t, string(fault.PhaseTimeout), p.result.ErrorCode)
	require.Equal(t, "fix", string(p.final.Phase), "the state says in which phase")
	last := p.final.Iterations[len(p.final.Iterations)-1]
	require.Equal(t, map[string]int64{"write": 100, "test": 100, "fix": 100}, last.PhaseMs)
}

func TestL10_TestsThatTookTooLongDidNotFailByTheirNames(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {{TimedOut: true, ExitCode: -1, ElapsedMs: 2000, Tests: &loop.Tests{}}}})
	p := d.run(specOfDelivery(nil))
	require.Equal(t, "took too long and was ended after 2s", p.final.LastTest.Reason)
}

func TestL4_BreakpointsOfDeliver(t *testing.T) {
	for _, at := range []string{"plan", "write", "test", "verify", "complete"} {
		d := deliver(t, nil)
		p := d.run(specOfDelivery(map[string]any{"breakpoints": []string{at}}), func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() {
				s := query(t, env)
				require.Equal(t, loop.Paused, s.Status, at)
				require.Contains(t, s.PauseReason, "breakpoint")
				require.Equal(t, at, string(s.Phase))
				env.SignalWorkflow("continue", nil)
			}, time.Hour)
		})
		require.Nil(t, p.err, at)
	}
}

// cutOffAfter returns another run of a delivery, from the ledger as it was after the first event of a type.
func cutOffAfter(t *testing.T, p played, last loop.Type) *delivery {
	t.Helper()
	var cut []loop.Event
	for _, e := range p.ledger {
		if cut = append(cut, e); e.Type == last {
			break
		}
	}
	again := deliver(t, nil)
	s := loop.Fold(loop.State{}, cut)
	again.head, again.ledger, again.ledgerAt, again.state = s.Head, cut, 1, s
	left := s
	left.Ledger = again.at()
	again.resume = &left
	return again
}

// A run was lost in the middle of an iteration, and another run continues it.
func TestDeliverGoesOnFromItsLedger(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {passing}})
	p := d.run(specOfDelivery(map[string]any{"breakpoints": []string{"test"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
	})
	require.Nil(t, p.err)
	again := cutOffAfter(t, p, loop.GateOpened)
	q := again.run(specOfDelivery(nil), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Paused, s.Status, "it goes on only after an explicit continue")
			env.SignalWorkflow("continue", nil)
		})
	})
	require.Equal(t, "completed", q.result.ExitStatus)
	require.Equal(t, []string{"1 no - interrupted", "2 yes -"}, q.course())
}

// It says why, and leaves the ledger as it is.
func TestALedgerThatNoRunCanContinueIsRefused(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {passing}})
	p := d.run(specOfDelivery(nil))
	for kind, why := range map[string]string{"deliver": "the loop of this ledger has ended (completed)", "improve": "the loop of this ledger is of kind improve, this one of kind deliver"} {
		again := cutOffAfter(t, p, loop.AutonomyCompleted)
		again.resume.Kind = kind
		entries := len(again.ledger)
		q := again.run(specOfDelivery(nil))
		require.Contains(t, q.err.Error(), why)
		require.Equal(t, string(fault.PreconditionFailed), q.err.Type())
		require.Len(t, again.ledger, entries)
	}
}
