package loop_test

import (
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
	"pawl/internal/loop/rules"
)

// at calls do after a while, with the loop's state at that time.
func at(t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, do func(loop.State)) {
	env.RegisterDelayedCallback(func() { do(query(t, env)) }, after)
}

func TestA1_EverythingMissingIsNamedAtOnce(t *testing.T) {
	for _, mode := range []string{"answer", "plan"} {
		p := play(t, newWorld(t, nil), specOf(map[string]any{"mode": mode}), nil)
		require.NotNil(t, p.err)
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
		require.ErrorContains(t, p.err, "the mode mission (`mode` is "+mode+")")
		require.NotContains(t, p.types(), loop.AutonomyStarted)
		require.NotContains(t, p.types(), loop.IterationStarted)
	}
}

func TestA2_ABudgetThatIsUsedUpAsks(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 2, "onExhausted": "ask"}})
	t.Run("extended", func(t *testing.T) {
		p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(s loop.State) {
				require.Equal(t, loop.Waiting, s.Status)
				require.Equal(t, loop.GateBudget, s.Gate.Kind)
				require.Equal(t, loop.Iterations, s.Gate.Budget)
				env.SignalWorkflow("extend", map[string]any{"hash": theHash, "limits": map[string]any{"iterations": 9}})
				env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"iterations": 2}})
				env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "by": "ann", "limits": map[string]any{"iterations": 3}})
				env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "by": "bob", "limits": map[string]any{"iterations": 99}})
			})
			at(t, env, 2*time.Hour, func(s loop.State) {
				require.Equal(t, 3, s.Iteration)
				env.SignalWorkflow("reject", map[string]any{"by": "ann"})
			})
		})
		require.Equal(t, 3, p.result.Iterations)
		require.Equal(t, "max_steps", p.result.ExitStatus)
		require.Contains(t, p.result.Reason, "ann did not extend it")
		var amended []loop.Event
		refused := 0
		for _, e := range p.ledger {
			switch e.Type {
			case loop.ContractAmended:
				amended = append(amended, e)
			case loop.MessageRefused:
				refused++
			}
		}
		require.Len(t, amended, 1)
		require.Equal(t, "ann", amended[0].Contract.ApprovedBy)
		require.NotEqual(t, theHash, amended[0].Contract.Hash, "an amendment has a hash of its own")
		require.JSONEq(t, `{"limits": {"iterations": 3}}`, string(amended[0].Amendment))
		require.Equal(t, 3, refused, "a wrong hash, an extension by nothing, and one after the first")
	})
	t.Run("in the middle of an iteration", func(t *testing.T) {
		doc := specOf(map[string]any{"limits": map[string]any{"iterations": 1, "toolCalls": 1, "onExhausted": "ask"}, "agent": map[string]any{"ideas": true}})
		w := newWorld(t, nil)
		w.ideas[1] = []try{{Idea: "try it"}}
		p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(s loop.State) {
				require.Equal(t, loop.ToolCalls, s.Gate.Budget)
				require.Equal(t, "modify", string(s.Phase))
				env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"toolCalls": 5}})
			})
			at(t, env, 2*time.Hour, func(loop.State) { env.SignalWorkflow("reject", nil) })
		})
		require.Equal(t, []string{"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify"}, p.steps)
	})
}

// An agent uses all the time that there is. Its change is undone, and the loop ends by its budget and not by the
// step.
func TestE2_TimeThatIsUsedUpInAStep(t *testing.T) {
	w := newWorld(t, nil)
	w.slow = time.Minute
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"activeTime": "90s"}}), nil)
	require.Equal(t, "timeout", p.result.ExitStatus)
	require.Equal(t, string(fault.BudgetExhausted), p.result.ErrorCode)
	require.Contains(t, p.result.Reason, "activeTime")
	require.Equal(t, []string{"1 no 10", "2 no 10 interrupted"}, p.course())
}

// A step that is run again after its budget was extended has the time that there is then, not that of its first try.
func TestE2_AnExtensionGivesTheStepItsTimeBack(t *testing.T) {
	w := newWorld(t, nil)
	w.slow = time.Minute
	doc := specOf(map[string]any{"limits": map[string]any{"activeTime": "30s", "iterations": 1, "onExhausted": "ask"}})
	p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			env.SignalWorkflow("extend", map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"activeTime": "1h"}})
		})
		at(t, env, 2*time.Hour, func(loop.State) { env.SignalWorkflow("reject", nil) })
	})
	require.Len(t, p.agents, 2)
	require.Less(t, p.agents[0].LimitMs, time.Minute.Milliseconds())
	require.Greater(t, p.agents[1].LimitMs, time.Minute.Milliseconds())
	require.Equal(t, []string{"0.0 verify", "1.1 modify", "1.1 modify", "1.1 verify"}, p.steps)
}

// A person takes all the time that there is.
func TestE2_TheWallClockCountsEverything(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"wallClock": "90m"}, "breakpoints": []string{"verify"}})
	p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, 2*time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
	})
	require.Equal(t, "timeout", p.result.ExitStatus)
	require.Contains(t, p.result.Reason, "wallClock")
	require.Equal(t, []string{string(fault.BudgetExhausted), string(fault.WallClockExceeded)}, []string{p.result.ErrorCode, p.result.Cause}, "E5")
	require.Equal(t, []string{"0.0 verify", "1.1 modify"}, p.steps, "no step begins after it")
}

// The clock goes on while the loop waits: a total that has been used up by then would only open the gate again.
func TestA2_AWallClockIsExtendedBeyondThePresent(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"wallClock": "90m", "onExhausted": "ask"}, "breakpoints": []string{"verify"}})
	var late, ample heard
	p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, 2*time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
		at(t, env, 4*time.Hour, func(s loop.State) {
			extend := func(total string) any {
				return raw(t, map[string]any{"hash": s.Gate.Hash, "limits": map[string]any{"wallClock": total}})
			}
			env.UpdateWorkflow("extend", "1", late.callback(), extend("3h"))
			env.UpdateWorkflow("extend", "2", ample.callback(), extend("9h"))
		})
		at(t, env, 5*time.Hour, func(loop.State) { env.SignalWorkflow("halt", nil) })
	})
	require.ErrorContains(t, late.rejected, "limits.wallClock has to be more than 4h")
	require.ErrorContains(t, late.rejected, "such as wallClock=8h")
	require.NoError(t, ample.rejected)
	require.Equal(t, 1, strings.Count(fmt.Sprint(p.types()), string(loop.BudgetExhausted)), "nobody was asked again")
}

func TestP5_ACommandThatIsAtFaultIsAmended(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "a", NoNumber: true}}, 2: {{Says: "b", NoNumber: true}}, 3: {{Says: "c", Metric: "102"}}})
	w.anew = try{Metric: "100"}
	var first, second string
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 3}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, []string{"answer", "amend"}, s.Gate.Answers)
			env.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"scope": []string{"elsewhere"}}})
			env.SignalWorkflow("amend", map[string]any{"by": "ann", "spec": map[string]any{"verify": map[string]any{"command": "weigh"}}})
		})
		at(t, env, 2*time.Hour, func(s loop.State) {
			require.Equal(t, loop.GateContract, s.Gate.Kind)
			first = s.Gate.Hash
			env.SignalWorkflow("reject", nil)
		})
		at(t, env, 3*time.Hour, func(s loop.State) {
			require.Equal(t, loop.GateQuestion, s.Gate.Kind, "what was not approved is still the question")
			env.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"verify": map[string]any{"command": "weigh --well"}}})
		})
		at(t, env, 4*time.Hour, func(s loop.State) {
			second = s.Gate.Hash
			env.SignalWorkflow("approve", map[string]any{"hash": first})
			env.SignalWorkflow("approve", map[string]any{"hash": second, "by": "ann"})
		})
	})
	require.NotEqual(t, first, second)
	require.Equal(t, 2, p.calls[api.AmendName])
	require.Equal(t, second, p.final.Contract.Hash)
	require.Equal(t, []loop.Seal{{Path: "measure.sh"}}, p.final.Contract.Sealed)
	require.Contains(t, p.commands, "weigh --well")
	require.Equal(t, []string{"1 no 10 error:no-number", "2 no 10 error:no-number", "3 yes 102"}, p.course())
	require.Equal(t, "100", p.final.Baseline.String(), "it is measured anew before anything is compared")
	require.Equal(t, "2", p.result.Delta.String())
}

func TestP5_AnAmendedCommandThatMeasuresNothingIsAskedAboutAgain(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "a", NoNumber: true}}, 2: {{Says: "b", NoNumber: true}}})
	w.anew = try{NoNumber: true}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 3}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(loop.State) {
			env.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"verify": map[string]any{"command": "weigh"}}})
		})
		at(t, env, 2*time.Hour, func(s loop.State) { env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash}) })
		at(t, env, 3*time.Hour, func(s loop.State) {
			require.Contains(t, s.Gate.Summary, "the amended verify command measures nothing")
			env.SignalWorkflow("answer", map[string]any{"choice": "halt"})
		})
	})
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Equal(t, "10", p.final.Baseline.String())
}

// TestE3_AnApprovalOfAnAmendmentCountsOnce: a contract that is amended back has its old hash. An approval of it that is
// sent again, or late, does not count.
func TestE3_AnApprovalOfAnAmendmentCountsOnce(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "a", NoNumber: true}}, 2: {{Says: "b", NoNumber: true}}})
	w.anew = try{NoNumber: true}
	amend := func(env *testsuite.TestWorkflowEnvironment, to string) {
		env.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"verify": map[string]any{"command": to}}})
	}
	var first string
	play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 3}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, 1*time.Hour, func(loop.State) { amend(env, "weigh") })
		at(t, env, 2*time.Hour, func(s loop.State) {
			first = s.Gate.Hash
			env.SignalWorkflow("approve", map[string]any{"hash": first, "by": "ann"})
		})
		at(t, env, 3*time.Hour, func(loop.State) { amend(env, "weigh --well") })
		at(t, env, 4*time.Hour, func(s loop.State) {
			require.NotContains(t, rules.Ways("x", *s.Gate, s.Budget)[0].Command, "--gate")
			env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash})
		})
		at(t, env, 5*time.Hour, func(loop.State) { amend(env, "weigh") })
		at(t, env, 6*time.Hour, func(s loop.State) {
			require.Equal(t, first, s.Gate.Hash)
			require.Contains(t, rules.Ways("x", *s.Gate, s.Budget)[0].Command, "--gate "+s.Gate.ID, "what people are shown counts")
			env.SignalWorkflow("approve", map[string]any{"hash": first, "by": "ann"})
		})
		at(t, env, 7*time.Hour, func(s loop.State) {
			require.NotEqual(t, first, s.Contract.Hash)
			require.Equal(t, loop.GateContract, s.Gate.Kind, "it waits for somebody to look at it")
			env.SignalWorkflow("approve", map[string]any{"hash": first, "gate": s.Gate.ID})
		})
		at(t, env, 8*time.Hour, func(s loop.State) {
			require.Equal(t, first, s.Contract.Hash)
			env.SignalWorkflow("answer", map[string]any{"choice": "halt"})
		})
	})
}

func TestA5_AModeAwayFromMissionHaltsForGood(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{2: {{Says: "x", Hang: true}}}), specOf(nil), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Second, func(loop.State) {
			env.SignalWorkflow("setMode", map[string]any{"mode": "mission"})
			env.SignalWorkflow("setMode", map[string]any{"mode": "plan", "by": "ann"})
			env.SignalWorkflow("setMode", map[string]any{"mode": "mission"})
		})
	})
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Contains(t, p.result.Reason, "the mode was changed to plan by ann")
	require.Contains(t, p.types(), loop.AutonomyHalted)
}

func TestA7_SuccessProposesADiffAndWaits(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"diff": "required"}, "limits": map[string]any{"iterations": 1}})
	raise := map[int][]try{1: {{Says: "raise", Metric: "11"}}}
	for name, c := range map[string]struct {
		message string
		payload map[string]any
		state   string
	}{
		"approved": {"approve", map[string]any{"hash": theHash, "by": "ann"}, "approved"},
		"rejected": {"reject", map[string]any{"note": "not this way"}, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, newWorld(t, raise), doc, func(env *testsuite.TestWorkflowEnvironment) {
				at(t, env, time.Hour, func(s loop.State) {
					require.Equal(t, loop.Waiting, s.Status)
					require.Equal(t, loop.GateDiff, s.Gate.Kind)
					require.Equal(t, s.Proposal.Hash, s.Gate.Hash)
					require.Equal(t, "open", s.Proposal.State)
					env.SignalWorkflow("approve", map[string]any{"hash": "ffffffffffffffff"})
					env.SignalWorkflow(c.message, c.payload)
				})
			})
			require.Equal(t, "completed", string(p.final.Status))
			require.Equal(t, c.state, p.result.Proposal.State)
		})
	}
	t.Run("halted while it waits", func(t *testing.T) {
		p := play(t, newWorld(t, raise), doc, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(loop.State) { env.SignalWorkflow("halt", nil) })
		})
		require.Equal(t, "open", p.result.Proposal.State)
		require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	})
	t.Run("nothing was kept", func(t *testing.T) {
		p := play(t, newWorld(t, map[int][]try{1: {{Says: "lower", Metric: "9"}}}), doc, nil)
		require.Nil(t, p.result.Proposal)
	})
}

// A loop with every gate gets payloads of all kinds.
func TestMessagesInAnyOrderNeverWedgeALoop(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"plan": "required", "diff": "required"}, "breakpoints": []string{"verify"},
		"limits": map[string]any{"iterations": 2, "onExhausted": "ask"}})
	for seed := range 12 {
		p := play(t, newWorld(t, map[int][]try{1: {{Says: "raise", Metric: "11"}}}), doc, func(env *testsuite.TestWorkflowEnvironment) {
			random := newRandom(seed)
			for i := range 60 {
				at(t, env, time.Duration(i+1)*time.Minute, func(s loop.State) {
					m := loop.Messages[random.IntN(len(loop.Messages))].Name
					if m == "halt" || m == "setMode" {
						return
					}
					hash := []string{"", theHash, "ffffffffffffffff"}[random.IntN(3)]
					if s.Gate != nil && random.IntN(2) == 0 {
						hash = s.Gate.Hash
					}
					payloads := []any{
						map[string]any{"hash": hash}, nil, "nonsense", []int{1}, map[string]any{"hash": hash, "limits": map[string]any{"iterations": s.Iteration + 1}},
						map[string]any{"spec": json.RawMessage(`{"verify":{"command":"x"}}`)}, map[string]any{"sudo": true}, map[string]any{"choice": "retry"},
					}
					env.SignalWorkflow(m, payloads[random.IntN(len(payloads))])
				})
			}
			at(t, env, 3*time.Hour, func(loop.State) { env.SignalWorkflow("halt", nil) })
		})
		approved := ""
		for _, e := range p.ledger {
			switch e.Type {
			case loop.GateClosed:
				if e.Answer.Message == "approve" {
					require.NotEmpty(t, e.Gate.Hash)
				}
			case loop.ProposalApproved:
				approved = e.Proposal.Hash
			}
		}
		if p.final.Proposal != nil && p.final.Proposal.State == "approved" {
			require.Equal(t, theHash, approved)
		}
	}
}

func TestA7_NewFilesAreAskedFor(t *testing.T) {
	doc := specOf(map[string]any{"newFiles": "ask", "limits": map[string]any{"iterations": 1}})
	for answer, want := range map[string]string{"approve": "1 yes 11", "reject": "1 no 10 policy:newFiles"} {
		p := play(t, newWorld(t, map[int][]try{1: {{Says: "add", Metric: "11", NewFile: true}}}), doc, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(s loop.State) {
				require.Equal(t, loop.GateNewFiles, s.Gate.Kind)
				require.Contains(t, s.Gate.Summary, "new.go")
				env.SignalWorkflow(answer, map[string]any{"hash": theHash, "by": "ann"})
			})
		})
		require.Equal(t, []string{want}, p.course())
	}
}
