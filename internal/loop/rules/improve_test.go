package rules_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

var protocol = rules.Improve{Direction: metric.Higher, MinDelta: metric.Threshold{Value: metric.MustDecimal("0.1")}, Discards: 10, ShiftAfter: 5, Calls: 10, Guard: true, Approval: rules.Approval{Reworks: 2, Diff: spec.Required}}

func reworked(reason string, n int) rules.Tries {
	return rules.Tries{Reworked: map[string]int{reason: n}, Calls: n + 1}
}

func TestP2_AfterIdea(t *testing.T) {
	for _, c := range []struct {
		name  string
		tries rules.Tries
		v     rules.IdeaVerdict
		want  string
	}{
		{"an idea is carried out", rules.Tries{}, rules.IdeaVerdict{Idea: "x"}, "modify"},
		{"an agent that fails costs the iteration", rules.Tries{}, rules.IdeaVerdict{Failed: "exit 1"}, "finish"},
		{"no idea costs the iteration", rules.Tries{}, rules.IdeaVerdict{None: true}, "finish"},
		{"a discarded idea is refused", rules.Tries{}, rules.IdeaVerdict{Idea: "x", Discarded: 3}, "again"},
		{"but once only", rules.Tries{}, rules.IdeaVerdict{Idea: "x", Discarded: 3, Again: true}, "modify"},
		{"and not with the last agent call", rules.Tries{Calls: 10}, rules.IdeaVerdict{Idea: "x", Discarded: 3}, "modify"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, brief(protocol.AfterIdea(c.tries, c.v))) })
	}
	require.Equal(t, `the idea "x" was tried in iteration 3 and discarded`, protocol.AfterIdea(rules.Tries{}, rules.IdeaVerdict{Idea: "x", Discarded: 3}).Reason)
}

func TestP3_AfterWriterAndCheck(t *testing.T) {
	require.Equal(t, "check", brief(protocol.AfterWriter(false)))
	require.Equal(t, "error:agent", protocol.AfterWriter(true).Reason)
	for _, c := range []struct {
		name         string
		tries        rules.Tries
		passed       bool
		want, reason string
	}{
		{"what passes is committed", rules.Tries{}, true, "commit", ""},
		{"a syntax error is reworked", rules.Tries{}, false, "rework", reason.CheckFailed},
		{"twice", reworked(reason.CheckFailed, 1), false, "rework", reason.CheckFailed},
		{"and then discarded", reworked(reason.CheckFailed, 2), false, "finish", reason.CheckFailed},
		{"other reworks do not count", reworked(reason.GuardFailed, 2), false, "rework", reason.CheckFailed},
		{"no agent call is left", rules.Tries{Calls: 10}, false, "finish", reason.CheckFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := protocol.AfterCheck(c.tries, c.passed)
			require.Equal(t, c.want, brief(m))
			require.Equal(t, c.reason, m.Reason)
			require.Equal(t, m.Do == rules.Rework, m.To == phase.Modify)
		})
	}
	none := protocol
	none.Reworks = 0
	require.Equal(t, "finish", brief(none.AfterCommit(rules.Tries{}, rules.CommitVerdict{Several: "it is in 2 folders"})), "limits.reworks bounds that one too")
}

func TestP4_AfterCommit(t *testing.T) {
	for _, c := range []struct {
		name         string
		v            rules.CommitVerdict
		want, reason string
	}{
		{"what is committed is measured", rules.CommitVerdict{}, "verify", ""},
		{"nothing", rules.CommitVerdict{Nothing: true}, "finish", "no-change"},
		{"a violation", rules.CommitVerdict{Rule: "scope"}, "finish", "policy:scope"},
		{"a violation that wants a person", rules.CommitVerdict{Rule: "sealed", Blocks: true, Where: "sealed: a_test.go"}, "block", "sealed: a_test.go"},
		{"a tree that was judged", rules.CommitVerdict{Repeated: true}, "finish", "repeat"},
		{"a violation counts before a repetition", rules.CommitVerdict{Rule: "scope", Repeated: true}, "finish", "policy:scope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := protocol.AfterCommit(rules.Tries{}, c.v)
			require.Equal(t, c.want, brief(m))
			require.Equal(t, c.reason, m.Reason)
			require.False(t, m.Measured, "P7: the row carries the reference")
		})
	}
}

func TestP3_ASealedFileCostsAReworkThenTheIteration(t *testing.T) {
	sealed, secret := rules.CommitVerdict{Rule: "sealed", Blocks: true, Sealed: true, Where: "sealed: a_test.go"}, rules.CommitVerdict{Rule: "secrets", Blocks: true, Where: "secrets: a.go:3"}
	both := sealed
	both.Sealed = false
	block := protocol
	block.BlockSealed = true
	policy := reason.Policy + spec.RuleSealed
	for _, c := range []struct {
		name         string
		rules        rules.Improve
		tries        rules.Tries
		v            rules.CommitVerdict
		want, reason string
	}{
		{"it is reworked", protocol, rules.Tries{}, sealed, "rework", policy},
		{"once", protocol, reworked(policy, 1), sealed, "finish", policy},
		{"other reworks do not count", protocol, reworked(reason.GuardFailed, 2), sealed, "rework", policy},
		{"not without an agent call", protocol, rules.Tries{Calls: 10}, sealed, "finish", policy},
		{"it blocks where the spec says so", block, rules.Tries{}, sealed, "block", sealed.Where},
		{"a secret blocks", protocol, rules.Tries{}, secret, "block", secret.Where},
		{"a secret beside it blocks too", protocol, rules.Tries{}, both, "block", sealed.Where},
		{"the scope is no reason to ask again", protocol, rules.Tries{}, rules.CommitVerdict{Rule: "scope"}, "finish", "policy:scope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.rules.AfterCommit(c.tries, c.v)
			require.Equal(t, c.want, brief(m))
			require.Equal(t, c.reason, m.Reason)
		})
	}
	require.Equal(t, sealed.Where, protocol.AfterCommit(rules.Tries{}, sealed).Why, "the agent is told where")
}

func TestP2_SeveralChangesAreReworkedOnce(t *testing.T) {
	several := rules.CommitVerdict{Several: "it is in 2 folders"}
	first := protocol.AfterCommit(rules.Tries{}, several)
	require.Equal(t, "rework", brief(first))
	require.Equal(t, []string{reason.NotAtomic, "not-atomic: it is in 2 folders"}, []string{first.Reason, first.Why})
	last := protocol.AfterCommit(reworked(reason.NotAtomic, 1), several)
	require.Equal(t, "finish", brief(last))
	require.Equal(t, reason.NotAtomic, last.Reason)
	several.Rule = "scope"
	require.Equal(t, "policy:scope", protocol.AfterCommit(rules.Tries{}, several).Reason, "a policy comes first")
	for use, want := range map[string]bool{"command": true, "claude": false} {
		s := valid
		s.Agent.Use = use
		require.Equal(t, want, s.Atomic() == spec.Rework, use)
		s.Limits.Atomic = new(spec.Note)
		require.Equal(t, spec.Note, s.Atomic())
	}
}

func TestL9_ARejectedChangeIsDropped(t *testing.T) {
	blocked := protocol.AfterCommit(rules.Tries{}, rules.CommitVerdict{Rule: "secrets", Blocks: true, Where: "secrets: a.go:3"})
	dropped := protocol.AfterReject(blocked, "ann", "no")
	require.Equal(t, "finish", brief(dropped))
	require.Equal(t, "policy:secrets", dropped.Reason)
	again := rules.Deliver{}.AfterReject(rules.Move{Do: rules.Block}, "ann", "leave the tests")
	require.Equal(t, "rework", brief(again))
	require.Equal(t, "the blocked change was rejected by ann: leave the tests", again.Reason)
	require.Equal(t, phase.None, again.To, "L6: a rework stays in its phase")
	for _, halted := range []rules.End{protocol.AfterHalt("halted by ann"), rules.Deliver{}.AfterHalt("halted by ann")} {
		require.Equal(t, fault.GuardBlocked, halted.Code)
		require.Equal(t, "halted by ann", halted.Reason)
	}
}

func TestP5_AfterVerifyAndGuard(t *testing.T) {
	unguarded := protocol
	unguarded.Guard = false
	for _, c := range []struct {
		name         string
		rules        rules.Improve
		v            rules.Measurement
		want, reason string
	}{
		{"a better number is guarded", protocol, rules.Measurement{Number: true, Better: true}, "guard", ""},
		{"or decided on at once", unguarded, rules.Measurement{Number: true, Better: true}, "decide", ""},
		{"a crash", protocol, rules.Measurement{Failed: true, Number: true}, "finish", "error:verify-crash"},
		{"no number", protocol, rules.Measurement{}, "finish", "error:no-number"},
		{"a timeout ends the loop", protocol, rules.Measurement{TimedOut: true, Failed: true}, "finish and stop", "error:timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.rules.AfterVerify(c.v)
			require.Equal(t, c.want, brief(m))
			require.Equal(t, c.reason, m.Reason)
			require.False(t, m.Measured)
		})
	}
	require.Equal(t, "decide", brief(protocol.AfterGuard(rules.Tries{}, true)))
	require.Equal(t, "rework", brief(protocol.AfterGuard(reworked(reason.GuardFailed, 1), false)))
	last := protocol.AfterGuard(reworked(reason.GuardFailed, 2), false)
	require.Equal(t, "finish judged", brief(last), "P5.5: at most two reworks")
	require.False(t, last.Measured, "P7: the row carries the reference")
}

func TestP5_5_OnlyWhatTheMetricWouldKeepIsGuarded(t *testing.T) {
	unguarded := protocol
	unguarded.Guard = false
	better := rules.Measurement{Number: true, Better: true}
	require.Equal(t, "guard", brief(protocol.AfterVerify(better)))
	require.Equal(t, "decide", brief(unguarded.AfterVerify(better)))
	require.Equal(t, "decide", brief(protocol.AfterVerify(rules.Measurement{Number: true})), "no guard could save it")
	require.Equal(t, "error:no-number", protocol.AfterVerify(rules.Measurement{}).Reason)
}

func TestP6_Decide(t *testing.T) {
	for _, c := range []struct {
		direction, reference, metric string
		kept                         bool
		delta                        string
	}{
		{"higher", "84.7", "84.8", true, "0.1"},
		{"higher", "84.7", "84.75", false, "0.05"},
		{"higher", "84.7", "84.7", false, "0"},
		{"lower", "10", "9.9", true, "-0.1"},
		{"lower", "10", "10.1", false, "0.1"},
	} {
		r := protocol
		r.Direction = c.direction
		m, delta := r.Decide(metric.MustDecimal(c.reference), metric.MustDecimal(c.metric))
		require.Equal(t, c.kept, m.Kept, c)
		require.Zero(t, delta.Cmp(metric.MustDecimal(c.delta)), c)
		require.True(t, m.Measured && m.Judged && m.Do == rules.Finish)
	}
}

func TestP5_TheReferenceDecidesWhetherACommandIsAtFault(t *testing.T) {
	law := protocol
	law.Version = 6
	for n, moves := range map[int]string{1: "review", 2: "ask", 3: "review", 4: "ask"} {
		m := law.After(loop.State{NoNumbers: n})
		require.Equal(t, moves == "ask", m.Do == rules.AskPerson, n)
	}
	question := law.After(loop.State{NoNumbers: 2})
	require.Equal(t, rules.Enter, law.AfterReference(question, "").Do)
	asks := law.AfterReference(question, "exit 1")
	require.Equal(t, []string{rules.Retry, rules.HaltLoop}, asks.Choices)
	require.Contains(t, asks.Reason, "neither: exit 1")
	law.Version = 5
	require.Equal(t, rules.AskPerson, law.After(loop.State{NoNumbers: 3}).Do, "as before")
}

func TestP5_NoNumberTwiceInARowAsks(t *testing.T) {
	require.Equal(t, "review", brief(protocol.After(loop.State{NoNumbers: 1})))
	asks := protocol.After(loop.State{NoNumbers: 2})
	require.Equal(t, "ask", brief(asks))
	require.Equal(t, []string{"retry", "halt"}, asks.Choices)
	require.Equal(t, "review", brief(protocol.AfterAnswer(rules.Retry, "ann")))
	halts := protocol.AfterAnswer(rules.HaltLoop, "ann")
	require.Equal(t, loop.Halted, halts.End.Status)
	require.Equal(t, "halted by ann: verify prints no number", halts.End.Reason)
}

func TestP5_AVerifyTimeoutSaysHowLongItMayTake(t *testing.T) {
	r := rules.ImproveOf(valid, 1)
	require.Equal(t, "verify took longer than 30s", r.AfterVerify(rules.Measurement{TimedOut: true}).End.Reason)
}

// TestP10_NoCourseOfAnIterationLeavesTheTable runs iterations with random agents, checks, trees, measurements and
// guards. Every phase is entered as the table allows, nothing is kept without a measurement and a guard that passed,
// reworks and calls are limited, and every iteration ends.
func TestP10_NoCourseOfAnIterationLeavesTheTable(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	flip := func(n int) bool { return random.Intn(n) == 0 }
	machine := kind.Improve.Machine(kind.Version(), true)
	reached := map[string]int{}
	for range 5000 {
		r := protocol
		r.Reworks, r.Calls, r.Guard = random.Intn(4), 1+random.Intn(10), flip(2)
		at, tries := phase.Review, rules.Tries{Reworked: map[string]int{}}
		measured, guarded := false, false
		var value metric.Decimal
		move := rules.Move{Do: rules.Enter, To: phase.Ideate}
		for steps := 0; move.Do != rules.Finish; steps++ {
			require.Less(t, steps, 200, "it never ends")
			if move.To != phase.None {
				require.NoError(t, machine.Check(at, move.To))
				at = move.To
			}
			if move.Do == rules.Rework {
				tries.Reworked[move.Reason]++
				require.LessOrEqual(t, tries.Reworked[move.Reason], r.Reworks)
				measured, guarded = false, false
			}
			switch {
			case move.Do == rules.RunCheck:
				move = r.AfterCheck(tries, !flip(3))
			case at == phase.Ideate:
				tries.Calls++
				move = r.AfterIdea(tries, rules.IdeaVerdict{None: flip(9), Discarded: random.Intn(2), Again: move.Do == rules.Again})
			case at == phase.Modify:
				tries.Calls++
				require.LessOrEqual(t, tries.Calls, r.Calls+1, "E4")
				move = r.AfterWriter(flip(9))
			case at == phase.Commit:
				v := rules.CommitVerdict{Nothing: flip(9), Rule: []string{"", "", "", "scope", "sealed"}[random.Intn(5)], Repeated: flip(9), Several: []string{"", "", "x"}[random.Intn(3)]}
				v.Sealed = v.Rule == "sealed"
				v.Blocks = v.Sealed || flip(20)
				if move = r.AfterCommit(tries, v); move.Do == rules.Block && flip(2) {
					move = r.AfterReject(move, "ann", "")
				}
			case at == phase.Verify:
				v := rules.Measurement{TimedOut: flip(20), Failed: flip(9), Number: !flip(9)}
				value = loop.Count(random.Int63n(3))
				decided, _ := r.Decide(metric.MustDecimal("1"), value)
				v.Better = decided.Kept
				measured = v.Reason() == ""
				move = r.AfterVerify(v)
			case at == phase.Guard:
				guarded = !flip(3)
				move = r.AfterGuard(tries, guarded)
			case at == phase.Decide:
				move, _ = r.Decide(metric.MustDecimal("1"), value)
			}
		}
		require.True(t, !move.Kept || measured && (guarded || !r.Guard), "kept without proof")
		reached[move.Reason]++
	}
	for _, reason := range []string{"", reason.AgentFailed, reason.CheckFailed, reason.NotAtomic, reason.NoChange, reason.Repeated, reason.Policy + "scope", reason.Policy + "sealed", reason.VerifyFailed, reason.NoNumber, reason.VerifySlow, reason.GuardFailed} {
		require.Positive(t, reached[reason], "no iteration came to %q", reason)
	}
}

func TestE3_WhoIsAskedAboutAProposal(t *testing.T) {
	person := rules.Approval{Diff: spec.Required, Reworks: 1}
	both, reviewer, nobody := person, person, person
	both.Reviewer, reviewer.Reviewer = true, true
	reviewer.Diff, nobody.Diff = spec.Auto, spec.Auto
	require.Equal(t, "ask", brief(person.AfterProposal()))
	require.Equal(t, "review", brief(both.AfterProposal()))
	require.Equal(t, "review", brief(reviewer.AfterProposal()))
	require.Equal(t, "finish", brief(nobody.AfterProposal()), "it stays open")
	for _, c := range []struct {
		name  string
		rules rules.Approval
		asked int
		o     rules.Opinion
		want  string
	}{
		{"the reviewer's approval is enough", reviewer, 1, rules.Opinion{Decision: rules.SaysApproved}, "finish approved"},
		{"or a person is asked too", both, 1, rules.Opinion{Decision: rules.SaysApproved}, "ask"},
		{"a rejection counts, whoever else would be asked", both, 1, rules.Opinion{Decision: rules.SaysRejected}, "finish"},
		{"no decision is asked for again", reviewer, 1, rules.Opinion{}, "review"},
		{"as often as a change is reworked", reviewer, 2, rules.Opinion{}, "finish"},
		{"then a person decides", both, 2, rules.Opinion{}, "ask"},
		{"no time is left to ask again", reviewer, 1, rules.Opinion{TimedOut: true}, "finish"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, brief(c.rules.AfterOpinion(c.asked, c.o))) })
	}
}
