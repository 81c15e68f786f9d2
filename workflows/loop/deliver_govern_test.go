package loop_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// events returns the events of a type, in order.
func (p played) events(of loop.Type) (all []loop.Event) {
	for _, e := range p.ledger {
		if e.Type == of {
			all = append(all, e)
		}
	}
	return all
}

// A change that is blocked, or that adds files, is on the desk only, however long nobody answers.
func TestL9_WhatAPersonIsToMendStaysOnTheDesk(t *testing.T) {
	violation := api.Committed{Violations: []api.Violation{{Rule: "scope", Path: "README"}}}
	d := deliver(t, nil)
	d.changes = []api.Committed{violation}
	p := d.run(specOfDelivery(map[string]any{"approvals": map[string]any{"escalateAfter": "1h"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, 150*time.Minute, func(s loop.State) {
			require.Equal(t, loop.GateGuard, s.Gate.Kind)
			require.Equal(t, 2, s.Gate.Escalated)
			env.SignalWorkflow("continue", nil)
		})
	})
	require.Nil(t, p.err)
	require.Zero(t, d.calls["park"])
	require.Equal(t, []string{"writer", "commit", "commit", "test"}, d.ran, "what the person has made of it is judged: no agent writes over it")
	require.Equal(t, 1, p.events(loop.ChangeJudged)[0].Judgement.Iteration)
}

func TestE3_WhatTheReviewerRejectedIsRejected(t *testing.T) {
	d := deliver(t, map[string][]stepped{"reviewer": {opinion("REJECTED", "more tests")}})
	p := d.run(specOfDelivery(map[string]any{"agent": reviewer, "limits": map[string]any{"iterations": 2}}))
	require.Equal(t, string(fault.MaxIterations), p.result.ErrorCode)
	require.Equal(t, "rejected", p.result.Proposal.State)
	rejected := p.events(loop.ProposalRejected)
	require.Len(t, rejected, 2)
	require.Equal(t, "reviewer", rejected[0].Proposal.By)
	require.Equal(t, "more tests", rejected[0].Note)
}

// The record says why the change is not kept, what it changed, and what shows that.
func TestL5_AnIterationThatEndsTheLoopHasItsRecord(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {broke}, "writer": {{Description: "first"}}, "fixer": {{Description: "second"}}})
	p := d.run(specOfDelivery(map[string]any{"limits": map[string]any{"fixAttempts": 1}}))
	require.Equal(t, string(fault.MaxFixAttempts), p.result.ErrorCode)
	require.Nil(t, p.result.Proposal, "A7: tests fail, so there is nothing to apply")
	require.NotContains(t, p.types(), loop.ProposalMade)
	last := p.final.Iterations[0]
	require.Equal(t, "tests still fail, and no fix is left (limits.fixAttempts is 1)", last.Reason)
	require.Equal(t, []string{"a.go", "b.go"}, last.Files, "of the write and of the fix")
	require.Equal(t, "second", last.Description)
	require.Equal(t, "commit-2", last.Commit, "it passed the guard and stays on the branch")
	require.NotEmpty(t, last.Evidence)
	require.Empty(t, d.reverts)

	d = deliver(t, nil)
	p = d.run(specOfDelivery(map[string]any{"breakpoints": []string{"test"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(loop.State) { env.SignalWorkflow("halt", nil) })
	})
	require.Equal(t, "interrupted", p.final.Iterations[0].Reason)
	require.Equal(t, []string{"a.go"}, p.final.Iterations[0].Files)

	p = play(t, newWorld(t, map[int][]try{1: {{Denied: "the role writer is not permitted canEditSource"}}}), specOf(nil), nil)
	require.Equal(t, "the role writer is not permitted canEditSource", p.final.Iterations[0].Reason)
}

// The event names it, and a person may be asked for more.
func TestA2_TheIterationsOfADeliveryAreABudget(t *testing.T) {
	doc := map[string]any{"verify": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1}}
	p := deliver(t, map[string][]stepped{"verify": {exit1}}).run(specOfDelivery(doc))
	require.Equal(t, loop.Iterations, p.events(loop.BudgetExhausted)[0].ExhaustedBudget)
	require.Equal(t, "verify failed: exit 1, and the limit of 1 iteration is reached", p.result.Reason)
	require.Equal(t, "verify", string(p.final.Phase))

	doc["limits"] = map[string]any{"iterations": 1, "onExhausted": "ask"}
	d := deliver(t, map[string][]stepped{"verify": {exit1, {}}})
	p = d.run(specOfDelivery(doc), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Iterations, s.Gate.Budget)
			require.Equal(t, "verify failed: exit 1, and the limit of 1 iteration is reached (1 of 1): extend it, or reject and the loop ends", s.Gate.Summary)
			env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"iterations": 2}})
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, 2, p.result.Iterations)
	require.Contains(t, d.asked[1].Repair, "verify failed", "the writer is told")
	require.Len(t, p.events(loop.BudgetExhausted), 1)
}

// The ledger computes the amended contract itself, and accepts the amendment only if the hashes are the same.
func TestL8_AnExtensionKeepsThePlan(t *testing.T) {
	plan := stepped{Plan: &loop.Plan{Hash: strings.Repeat("ab", 32), Text: "first this, then that"}}
	doc := specOfDelivery(map[string]any{
		"verify": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1, "onExhausted": "ask"},
		"agent": map[string]any{"roles": map[string]any{"planner": map[string]any{"command": "plan"}}},
	})
	d := deliver(t, map[string][]stepped{"planner": {plan}, "verify": {exit1, {}}})
	p := d.run(doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"iterations": 2}})
		})
	})
	require.Nil(t, p.err)
	s, err := spec.Parse(doc)
	require.NoError(t, err)
	c := rules.Draw(s, "base", "", nil)
	c.Plan = plan.Plan.Hash
	require.Equal(t, c.Hash(), p.events(loop.PlanMade)[0].Contract.Hash)
	amended := p.events(loop.ContractAmended)[0]
	c, err = c.Amended(amended.Amendment, nil)
	require.NoError(t, err)
	require.Equal(t, c.Hash(), amended.Contract.Hash)
}

func TestL10_ThePhasesTimeIsThatOfOneEntryAndOfAllThatRunsInIt(t *testing.T) {
	limits := map[string]any{"phaseTimeout": "1m", "fixAttempts": 5, "reworks": 1}
	d := deliver(t, map[string][]stepped{"test": {failing("A"), failing("A"), failing("A", "B"), failing("A", "B"), passing}})
	p := d.run(specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint"}, "limits": limits}))
	require.Nil(t, p.err)
	require.Equal(t, []int64{59900, 59900, 59900}, d.limits["guard"], "of each entry anew, after the agent's 100 ms")
	require.Equal(t, []int64{60000}, d.limits["unchanged guard"], "whatever guard.timeout is")
	require.Equal(t, []int64{60000}, d.limits["baseline"])
	require.Equal(t, []int64{60000, 60000}, d.limits["fixer"])
	require.Equal(t, int64(60000), d.limits["test"][0], "no phase lasts longer, whatever test.timeout is")
	require.Equal(t, int64(59900), d.limits["test"][1], "the second run is in the same phase")

	hung := stepped{TimedOut: true, ExitCode: -1, ElapsedMs: 60000}
	for name, outs := range map[string]map[string][]stepped{
		"write":  {"guard": {hung}},
		"verify": {"reviewer": {hung}},
	} {
		d := deliver(t, outs)
		p := d.run(specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint"}, "limits": limits, "agent": reviewer}))
		require.Equal(t, string(fault.PhaseTimeout), p.result.ErrorCode, name)
		require.Equal(t, name, string(p.final.Phase))
		if name == "write" {
			require.Equal(t, []string{"commit-1"}, d.reverts, "the guard has not let it pass")
		}
	}
	slow := hung
	slow.ElapsedMs = 1000
	d = deliver(t, map[string][]stepped{"guard": {slow, {}}})
	require.Nil(t, d.run(specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint", "timeout": "1s"}})).err, "guard.timeout is the guard's failure")
}

// A pause near the end of a call must not leave too little time for what follows in the phase.
func TestL10_AStepThatIsRunAgainHasTheTimeOfItsPhaseAgain(t *testing.T) {
	spec := specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint"}, "limits": map[string]any{"phaseTimeout": "1m"}})
	d := deliver(t, map[string][]stepped{"writer": {{Interrupted: true, ElapsedMs: 40000}, {ElapsedMs: 50000}}})
	p := d.run(spec)
	require.Nil(t, p.err)
	require.Equal(t, []int64{60000, 60000}, d.limits["writer"])
	require.Equal(t, []int64{10000}, d.limits["guard"])
	require.Equal(t, int64(90100), p.final.Iterations[0].PhaseMs["write"], "the record has all of it")

	cut := slices.IndexFunc(p.ledger, func(e loop.Event) bool { return e.Reason == "interrupted" })
	p.ledger = p.ledger[:cut+1]
	again := cutOffAfter(t, p, loop.LoopFailed)
	again.since = p.ledger[slices.IndexFunc(p.ledger, func(e loop.Event) bool { return e.Type == loop.CheckpointCreated }):]
	require.Nil(t, again.run(spec).err)
	require.Equal(t, []int64{59900}, again.limits["guard"], "in another run, too")
}

func TestL4_ABreakpointPausesEachTimeThatItsPhaseIsEntered(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {broke, passing}})
	paused := 0
	p := d.run(specOfDelivery(map[string]any{"breakpoints": []string{"test"}}), func(env *testsuite.TestWorkflowEnvironment) {
		for i := range 2 {
			at(t, env, time.Duration(i+1)*time.Hour, func(s loop.State) {
				require.Equal(t, loop.Paused, s.Status)
				paused++
				env.SignalWorkflow("continue", nil)
			})
		}
	})
	require.Nil(t, p.err)
	require.Equal(t, 2, paused)
	require.Equal(t, 2, strings.Count(p.phases(), "test"))
}

// The note of the rejection is in the record.
func TestARejectionIsToldToTheWriterAlsoByAnotherRun(t *testing.T) {
	d := deliver(t, map[string][]stepped{"reviewer": {opinion("REJECTED", "more tests"), opinion("APPROVED", "")}})
	p := d.run(specOfDelivery(map[string]any{"agent": reviewer}))
	again := cutOffAfter(t, p, loop.IterationFailed)
	again.run(specOfDelivery(nil))
	require.Contains(t, again.asked[0].Repair, "more tests")
}

// The changes of others on the base are not part of the next proposal.
func TestA7_AProposalThatIsRejectedOnAMovedBaseIsFollowedByOneOnIt(t *testing.T) {
	moved := func(api.Apply) (api.Applied, error) {
		return api.Applied{Branch: "main", Moved: &loop.Proposal{Hash: otherHash, Base: "moved", Head: "merged", Files: 1, State: "open"}}, nil
	}
	d := deliver(t, nil)
	d.apply = moved
	p := d.run(specOfDelivery(map[string]any{"approvals": map[string]any{"diff": "required"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash, "apply": "ff"})
		})
		at(t, env, 2*time.Hour, func(s loop.State) {
			require.Equal(t, otherHash, s.Gate.Hash)
			env.SignalWorkflow("reject", map[string]any{"note": "higher"})
		})
		at(t, env, 3*time.Hour, func(s loop.State) {
			require.Equal(t, "moved", s.Proposal.Base)
			require.Equal(t, "base", s.Base, "the contract's")
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash, "gate": s.Gate.ID}) // in this world the hash is that of the first
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, "approved", p.result.Proposal.State)
	require.Equal(t, "moved", p.result.Proposal.Base)
	require.Equal(t, "the change is tested and verified", p.result.Reason, "on the new base, after the rejection")

	d = deliver(t, nil)
	d.apply = moved
	p = d.run(specOfDelivery(map[string]any{"approvals": map[string]any{"diff": "required"}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash, "apply": "ff"})
		})
		at(t, env, 2*time.Hour, func(s loop.State) { env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash}) })
	})
	require.Nil(t, p.err)
	require.Equal(t, "the change is tested and verified, but not on top of the new base", p.result.Reason)
}

func TestLoopStopEndsADeliveryBetweenItsPhases(t *testing.T) {
	d := deliver(t, map[string][]stepped{"writer": {{Stop: "there is a loop-stop"}}})
	p := d.run(specOfDelivery(nil))
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Equal(t, "there is a loop-stop", p.result.Reason)
	require.Equal(t, []string{"writer", "commit"}, d.ran)
}

// The check runs after each edit, before the guard command, on the commit.
func TestL1_TheCheckIsPartOfTheGuard(t *testing.T) {
	spec := specOfDelivery(map[string]any{"check": map[string]any{"command": "lint"}, "guard": map[string]any{"command": "guard"}, "limits": map[string]any{"reworks": 1}})
	d := deliver(t, map[string][]stepped{"check": {exit1, {}, {}}, "test": {broke, passing}})
	p := d.run(spec)
	require.Nil(t, p.err)
	require.Equal(t, []string{"writer", "commit", "check", "writer", "commit", "check", "guard", "test", "fixer", "commit", "check", "guard", "test"}, d.ran)
	require.Equal(t, []string{"commit-1"}, d.reverts)
	require.Contains(t, d.asked[1].Repair, "the check failed")
	require.Equal(t, "error:syntax", p.events(loop.ChangeJudged)[0].Judgement.Reason)

	d = deliver(t, map[string][]stepped{"check": {exit1}})
	p = d.run(spec, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Blocked, s.Status)
			require.Contains(t, s.Gate.Summary, "the check: exit 1, after 1 rework")
			env.SignalWorkflow("halt", nil)
		})
	})
	require.Equal(t, string(fault.GuardBlocked), p.result.ErrorCode)
}

func TestE4_TheStepsOfACycleAreNamed(t *testing.T) {
	d := deliver(t, map[string][]stepped{"test": {broke}})
	p := d.run(specOfDelivery(map[string]any{"limits": map[string]any{"steps": 2, "onExhausted": "ask"}}))
	require.Equal(t, []string{"max_steps", string(fault.BudgetExhausted), string(fault.CycleTermination)}, []string{p.result.ExitStatus, p.result.ErrorCode, p.result.Cause})
	require.Equal(t, loop.Steps, p.events(loop.BudgetExhausted)[0].ExhaustedBudget)
	require.Equal(t, string(fault.CycleTermination), p.final.Cause)
	require.Contains(t, p.result.Recovery, "limits.steps")
}

// The diff shows it afterwards. Nothing of it is kept, and the loop continues.
func TestE1_WhatAReadOnlyRoleHasDoneIsADenial(t *testing.T) {
	answer := opinion("APPROVED", "")
	answer.Denied = "the role reviewer changed source"
	p := deliver(t, map[string][]stepped{"reviewer": {answer}}).run(specOfDelivery(map[string]any{"agent": reviewer}))
	require.Nil(t, p.err)
	denied := p.events(loop.PermissionDenied)
	require.Len(t, denied, 1)
	require.Equal(t, []string{"reviewer", string(fault.PermissionDenied), answer.Denied}, []string{denied[0].Role, denied[0].ErrorCode, denied[0].Reason})
}

func TestA1_NoPlannerIsAskedWhereAutonomyCannotStart(t *testing.T) {
	d := deliver(t, nil)
	p := d.run(specOfDelivery(map[string]any{"mode": "plan", "agent": map[string]any{"roles": map[string]any{"planner": map[string]any{"command": "plan"}}}}))
	require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
	require.Empty(t, d.ran)
}

func TestVerifyWithATargetHasToPrintANumber(t *testing.T) {
	number := func(text string) stepped { d := metric.MustDecimal(text); return stepped{Metric: &d} }
	d := deliver(t, map[string][]stepped{"verify": {{NoNumber: "there is none"}, number("1"), number("3")}})
	p := d.run(specOfDelivery(map[string]any{"verify": map[string]any{"command": "measure", "target": 2}}))
	require.Nil(t, p.err)
	require.Equal(t, []string{
		"1 no - verify failed: it prints no number (there is none), the target is 2", "2 no 1 verify failed: the metric is 1, the target 2", "3 yes 3",
	}, p.course())
}

// At a breakpoint before the first iteration there is no iteration to record, and the loop enters its first phase
// again.
func TestALoopThatWasAboutToBeginIsTakenUp(t *testing.T) {
	for kind, doc := range map[string]func(map[string]any) json.RawMessage{"deliver": specOfDelivery, "improve": specOf} {
		first := map[string]string{"deliver": "write", "improve": "review"}[kind]
		start := func() *delivery {
			d := deliver(t, nil)
			if kind == "improve" {
				d = &delivery{world: newWorld(t, nil)}
			}
			return d
		}
		run := func(d *delivery, spec json.RawMessage, prepare func(*testsuite.TestWorkflowEnvironment)) played {
			if kind == "deliver" {
				return d.run(spec, prepare)
			}
			return play(t, d.world, spec, prepare)
		}
		p := run(start(), doc(map[string]any{"breakpoints": []string{first}, "limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
		})
		var cut []loop.Event
		for _, e := range p.ledger {
			if cut = append(cut, e); e.Type == loop.GateOpened {
				break
			}
		}
		again := start()
		s := loop.Fold(loop.State{}, cut)
		require.Equal(t, []any{first, 0}, []any{string(s.Phase), s.Iteration})
		again.head, again.ledger, again.ledgerAt, again.state = s.Head, cut, 1, s
		left := s
		left.Ledger = again.at()
		again.resume = &left
		q := run(again, doc(map[string]any{"limits": map[string]any{"iterations": 1}}), func(*testsuite.TestWorkflowEnvironment) {})
		require.Nil(t, q.err, kind)
		require.Len(t, q.course(), 1)
	}
}

// The next fixer sees the failures of the code that it gets, and its fix is compared with that code.
func TestAFixThatIsUndoneTakesItsTestRunAlong(t *testing.T) {
	worse := failing("A", "B")
	worse.Tests.Worse, worse.Tests.Broken = true, true
	d := deliver(t, map[string][]stepped{"test": {broke, worse, passing}})
	p := d.run(specOfDelivery(nil))
	require.Nil(t, p.err)
	require.Equal(t, []string{"commit-2"}, d.reverts)
	require.Equal(t, "/log/test1", d.asked[2].Evidence)
	require.Contains(t, d.asked[2].Repair, "was undone")
	require.Equal(t, []string{"", "/log/test1", "/log/test1"}, d.before)
}

// What would undo every change is said before an agent is called: when a person is asked for the contract.
func TestA1_ACheckThatFailsOnTheUnchangedCodeIsSaidFirst(t *testing.T) {
	commands := map[string]any{"check": map[string]any{"command": "lint"}, "guard": map[string]any{"command": "types"}}
	d := deliver(t, map[string][]stepped{"unchanged check": {exit1}, "test": {passing}})
	p := d.run(specOfDelivery(commands))
	require.Nil(t, p.err, "the change may mend it")
	said := p.events(loop.Warned)
	require.Len(t, said, 1)
	require.Contains(t, said[0].Reason, "the check command fails on the unchanged code (exit 1), so every change that does not mend that is undone: `lint`")
	for _, e := range p.ledger {
		if e.Type == loop.PermissionGranted || e.Type == loop.GateOpened {
			require.Greater(t, e.Seq, said[0].Seq, "nobody was asked or called before")
		}
	}
	require.Equal(t, []string{"writer", "commit", "check", "guard", "test"}, d.ran)

	d = deliver(t, map[string][]stepped{"unchanged guard": {exit1}, "unchanged guard-again": {exit1}})
	p = d.run(specOfDelivery(map[string]any{"guard": commands["guard"], "test": map[string]any{"required": false}, "verify": map[string]any{"command": "check"}}))
	require.Contains(t, p.events(loop.Warned)[0].Reason, "the guard command fails on the unchanged code", "without tests, too")

	d = deliver(t, map[string][]stepped{"unchanged guard": {{Leftovers: []string{"types.out"}}}, "baseline": {{Leftovers: []string{"tests.out"}}}})
	p = d.run(specOfDelivery(commands))
	require.Empty(t, p.events(loop.Warned))
	require.Equal(t, []string{"types.out", "tests.out"}, p.final.Leftovers, "they are no part of a change")
}

// The tests run before the first write, and every later run is compared with that run.
func TestL2_WhatFailsOnTheUnchangedCodeIsKnown(t *testing.T) {
	docker := failing("TestDocker")
	known := stepped{ExitCode: 1, Tests: &loop.Tests{Passed: 4, Failed: 1, Failing: []string{"TestDocker"}, Known: []string{"TestDocker"}, Excused: true, Progress: true, Signature: "docker"}}
	d := deliver(t, map[string][]stepped{"baseline": {docker}, "test": {known}})
	p := d.run(specOfDelivery(nil))
	require.Nil(t, p.err)
	require.Equal(t, "plan write test verify complete", p.phases())
	require.Equal(t, []string{"writer", "commit", "test"}, d.ran, "no fixer is asked, and no test runs again")
	require.Equal(t, []string{"/log/baseline1"}, d.known)
	require.Equal(t, []string{"TestDocker"}, p.final.KnownTests.Tests.Failing)
	require.True(t, p.final.LastTest.Passed)
	require.False(t, p.events(loop.TestsKnown)[0].Judgement.Passed)

	same := known
	same.Tests = &loop.Tests{Passed: 3, Failed: 1, Failing: []string{"TestDocker"}, Known: []string{"TestDocker"}, Excused: true, Signature: "docker"}
	d = deliver(t, map[string][]stepped{"baseline": {docker}, "test": {same}})
	d.changes = []api.Committed{{Commit: "commit-1", Tree: "t", Files: []string{"a"}}, {NoChange: true}}
	p = d.run(specOfDelivery(nil))
	require.Nil(t, p.err)
	require.Equal(t, []string{"writer", "commit", "test", "fixer", "commit", "test"}, d.ran, "the fixer looks, and leaves it")
	require.Contains(t, d.asked[1].Repair, "failed before the first write too (TestDocker)")

	d = deliver(t, map[string][]stepped{"test": {passing}})
	p = d.run(specOfDelivery(nil))
	require.Equal(t, []string{"/log/baseline1"}, d.known, "also where nothing failed: as many have to pass")
	require.True(t, p.final.KnownTests.Passed)

	d = deliver(t, nil)
	d.run(specOfDelivery(map[string]any{"guard": map[string]any{"fewerTests": true}}))
	require.Equal(t, []string{"/log/baseline1, or fewer"}, d.known)

	d = deliver(t, nil)
	p = d.run(specOfDelivery(map[string]any{"test": map[string]any{"required": false}, "verify": map[string]any{"command": "check"}}))
	require.Empty(t, p.events(loop.TestsKnown))
}
