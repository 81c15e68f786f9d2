package loop_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/tier"
)

// untaken returns the error of an activity that no worker starts in time.
func untaken(spent ...any) error {
	return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil, spent...)
}

// openElsewhere returns what another host makes of the ledger.
func (w *world) openElsewhere(in api.Open) (api.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if in.Ledger != w.at() {
		return api.Opened{}, temporal.NewNonRetryableApplicationError(in.Ledger+" is not "+w.at(), string(fault.LedgerAhead), nil)
	}
	o := api.Opened{
		Site: api.Site{Ref: in.Loop + ".2", Host: "other", Queue: "pawl@other", Desk: "/elsewhere"}, Terms: api.Terms{Contract: theHash},
		Repo: in.Spec.Repo.Path, Branch: "pawl/" + in.Loop, Base: "base", InScope: 1,
	}
	if in.Ledger != "" {
		s := w.state
		s.Ledger = in.Ledger
		o.State = &s
	}
	if w.head != "base" && (o.State == nil || w.head != o.State.Head) {
		w.lost[w.head] = true
	}
	return o, nil
}

// isStep reports whether an activity runs something.
func isStep(name string) bool {
	return slices.Contains([]string{api.CallName, api.CheckName, api.VerifyName, api.GuardName, api.TestName}, name)
}

// belongs checks that a host gets only work that it can do: the loop has its own name there, and an agent has worked
// on the desk there.
func (w *world) belongs(queue string, in any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	suffix := map[string]string{"pawl@other": ".2"}[queue]
	var ref string
	step := func(s api.Step) {
		ref = s.Ref
		assert.False(w.t, w.lost[s.Head], "%s was on a host that is gone", s.Head)
	}
	switch in := in.(type) {
	case api.Call:
		step(in.Step)
		if in.Desk == 0 {
			w.desk = queue
		}
	case api.Check:
		step(in.Step)
		if in.Desk != 0 {
			return
		}
		if in.AsIs {
			assert.Equal(w.t, w.desk, queue, "the desk is elsewhere")
		} else {
			w.desk = queue
		}
	case api.Verify:
		step(in.Step)
	case api.Guard:
		step(in.Step)
	case api.Test:
		step(in.Step)
	case api.Commit:
		ref = in.Ref
		if in.Desk == 0 {
			assert.Equal(w.t, w.desk, queue, "the desk is elsewhere")
		}
	case api.Take:
		ref, w.desk = in.Ref, queue
		assert.False(w.t, w.lost[in.Commit], "%s was on a host that is gone", in.Commit)
	case api.Settle:
		ref = in.Ref
	case api.Record:
		ref = in.Ref
	case api.Propose:
		ref = in.Ref
	case api.Close:
		ref = in.Ref
	default:
		return
	}
	assert.Equal(w.t, "default-test-workflow-id"+suffix, ref)
}

// gone reports a host as gone, with what the repository has.
func (w *world) gone(in api.Place) (api.Placed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return api.Placed{Gone: true, Why: "it is silent", Ledger: w.at(), Since: slices.Clone(w.ledger[w.entries[in.Ledger]:])}, nil
}

// dies lets the world's host die at its n-th activity: before it begins it, or after it has done it but could not
// report it.
func (w *world) dies(n int, done bool) (where *string) {
	where, w.place = new(string), w.gone
	did := 0
	w.host = func(name string, do func() error) error {
		w.mu.Lock()
		did++
		dead := did == n
		w.mu.Unlock()
		if !dead {
			return do()
		}
		w.mu.Lock()
		w.dead = "pawl@test"
		w.mu.Unlock()
		if *where = name; done {
			if err := do(); err != nil {
				return err
			}
		}
		return untaken(api.Live{Usage: loop.Usage{ActiveMs: 50, ToolCalls: 1}})
	}
	return where
}

// thin returns how many activities lie between two deaths that are tried.
func thin() int {
	if tier.Nightly {
		return 1
	}
	return 2
}

// disturbed is a loop that a test disturbs, and how it ends if nobody does.
type disturbed struct {
	kind        string
	world       func() *world
	doc         json.RawMessage
	undisturbed played
}

// answering gives each gate its first answer.
func answering(t *testing.T) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		for i := range 60 {
			at(t, env, time.Duration(i+1)*time.Minute, func(s loop.State) {
				if s.Gate != nil {
					env.SignalWorkflow(s.Gate.Answers[0], map[string]any{"hash": s.Gate.Hash, "gate": s.Gate.ID})
				}
			})
		}
	}
}

// bothKinds returns loops of both kinds that pass most of what a loop can pass.
func bothKinds(t *testing.T) []disturbed {
	improving := func() *world {
		return newWorld(t, map[int][]try{
			1: {{Says: "a", Metric: "11"}}, 2: {{Says: "bad", Guard: true, Metric: "12"}, {Says: "b", Metric: "12"}}, 3: {{Says: "c", NewFile: true, Metric: "9"}}, 4: {{Says: "d", Metric: "13"}},
		})
	}
	delivering := func() *world {
		d := deliver(t, map[string][]stepped{"test": {failing("TestA"), failing("TestA"), passing}, "reviewer": {opinion("APPROVED", "fine")}})
		d.stepping, d.committing = d.step, d.commit
		return d.world
	}
	all := []disturbed{
		{kind: "improve", world: improving, doc: specOf(map[string]any{
			"guard": map[string]any{"command": "guard"}, "check": map[string]any{"command": "check"}, "newFiles": "ask", "breakpoints": []string{"verify"},
			"limits": map[string]any{"iterations": 4}, "approvals": map[string]any{"plan": "required", "diff": "required"},
		})},
		{kind: "improve", world: improving, doc: specOf(map[string]any{ // the ledger learns of a commit only after everything is judged
			"guard": map[string]any{"command": "guard"}, "newFiles": "allow", "breakpoints": []string{"log"},
			"limits": map[string]any{"iterations": 4}, "approvals": map[string]any{"diff": "required"},
		})},
		{kind: "deliver", world: delivering, doc: specOfDelivery(map[string]any{
			"agent": reviewer, "breakpoints": []string{"test"}, "limits": map[string]any{"iterations": 4}, "approvals": map[string]any{"plan": "required", "diff": "required"},
		})},
	}
	for i, c := range all {
		all[i].undisturbed = play(t, c.world(), c.doc, answering(t))
		require.Nil(t, all[i].undisturbed.err)
	}
	return all
}

// The host dies at each of its activities, in loops of both kinds. Each loop ends as it would have ended, an
// iteration later if that iteration's work was lost. play checks its ledger, and the world checks what the other host
// can have.
func TestALoopGoesOnElsewhereWhereverItsHostDies(t *testing.T) {
	for _, c := range bothKinds(t) {
		undisturbed := c.undisturbed
		interrupted := map[string]bool{}
		for _, done := range []bool{false, true} {
			for n := 1; ; n += thin() {
				w := c.world()
				where := w.dies(n, done)
				p := play(t, w, c.doc, answering(t))
				if *where == "" {
					require.Greater(t, n, 12, "that was all of it")
					break
				}
				at := fmt.Sprintf("%s: thing %d, %s, done: %v", c.kind, n, *where, done)
				require.Nil(t, p.err, at)
				require.Equal(t, undisturbed.final.Status, p.final.Status, at)
				if made := p.result.Proposal; made != nil || c.kind == "deliver" { // the world makes none for a head that is a revert
					require.Equal(t, "approved", made.State, at)
				}
				moved := strings.Count(toJSON(t, p.types()), `"loop_moved"`)
				if *where == api.CloseName && done {
					require.Zero(t, moved, "%s: it was over", at)
					continue
				}
				require.Equal(t, "other", p.final.Host, at)
				require.LessOrEqual(t, moved, 2, at)
				last := p.ledger[len(p.ledger)-1]
				require.Equal(t, last.Seq, p.final.Seq, "%s: all is in the ledger", at)
				spent := 0
				for _, e := range p.ledger {
					if e.Type == loop.StepEnded && e.Usage.ActiveMs == 50 {
						spent++
					}
					if e.Type == loop.IterationSucceeded && e.Metric != nil {
						require.NotEmpty(t, e.Record.Commit, at)
						require.False(t, w.lost[e.Record.Commit], at)
					}
				}
				require.Equal(t, isStep(*where), spent == 1, "%s: what it has spent stays spent", at)
				if strings.Contains(strings.Join(p.course(), "\n"), " interrupted") {
					interrupted[*where] = true
				} else {
					require.Equal(t, undisturbed.course(), p.course(), at)
				}
			}
		}
		require.True(t, interrupted[api.CommitName], "a change that is only on the desk is lost")
		require.False(t, interrupted[api.CloseName])
	}
}

// People send messages while another host is being looked for, at each activity of the host that is gone.
func TestWhatPeopleSayWhileTheHostIsGoneCounts(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 3}, "approvals": map[string]any{"plan": "required"}})
	for message, check := range map[string]func(t *testing.T, at string, p played){
		"halt": func(t *testing.T, at string, p played) {
			require.Equal(t, loop.Halted, p.final.Status, at)
			require.Equal(t, string(fault.Cancelled), p.final.ErrorCode, at)
		},
		"pause": func(t *testing.T, at string, p played) {
			require.Equal(t, 1, strings.Count(toJSON(t, p.types()), `"autonomy_resumed"`), at)
			require.Equal(t, loop.Completed, p.final.Status, at)
		},
		"steer": func(t *testing.T, at string, p played) {
			told := 0
			for _, a := range p.agents {
				told += len(a.Guidance)
			}
			require.Equal(t, 1, told, at)
			require.Equal(t, loop.Completed, p.final.Status, at)
		},
	} {
		for i := range 16 {
			n, before := 3+i/2, i%2 == 0 // it is sent before the host dies, at the end of its last activity
			w := newWorld(t, nil)
			where := w.dies(n, n%2 == 0)
			dying, did := w.host, 0
			p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
				say := sync.OnceFunc(func() { env.SignalWorkflow(message, map[string]any{"note": "mind the gap"}) })
				w.host = func(name string, do func() error) error {
					if did++; did == n-1 && before {
						defer say()
					}
					return dying(name, do)
				}
				w.place = func(in api.Place) (api.Placed, error) {
					if !before {
						say()
					}
					return w.gone(in)
				}
				for i := range 20 {
					at(t, env, time.Duration(i+1)*time.Hour, func(s loop.State) {
						if s.Gate != nil {
							env.SignalWorkflow(s.Gate.Answers[0], map[string]any{"hash": s.Gate.Hash})
						}
					})
				}
			})
			require.NotEmpty(t, *where)
			require.Equal(t, 1, strings.Count(toJSON(t, p.types()), `"message_received"`))
			check(t, fmt.Sprintf("%s: thing %d, %s, before: %v", message, n, *where, before), p)
		}
	}
}

// A person approves while nobody starts the activity that records the gate. The answer is for the gate that people
// see, and the other host has the same gate.
func TestAnAnswerToAGateThatIsBeingRecordedCounts(t *testing.T) {
	w := newWorld(t, nil)
	where := w.dies(2, false)
	var answered heard
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 1}, "approvals": map[string]any{"plan": "required"}})
	p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		w.place = func(in api.Place) (api.Placed, error) {
			last := in.Sent[len(in.Sent)-1]
			require.Equal(t, loop.GateOpened, last.Type)
			env.UpdateWorkflow("approve", "1", answered.callback(), raw(t, map[string]string{"hash": theHash, "by": "ann", "gate": last.Gate.ID}))
			return w.gone(in)
		}
	})
	require.Equal(t, api.RecordName, *where)
	require.NoError(t, answered.rejected)
	require.NoError(t, answered.failed)
	require.Equal(t, "ann", p.final.Contract.ApprovedBy)
	require.Equal(t, "other", p.final.Host)
	require.Equal(t, 1, strings.Count(toJSON(t, p.types()), `"gate_opened"`))
}

// verify took too long, which would have ended the loop, but nobody has recorded that.
func TestAnEndThatIsLostWithItsChangeIsNone(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 2}})
	script := map[int][]try{1: {{Says: "x", Timeout: true}}}
	require.NotNil(t, play(t, newWorld(t, script), doc, nil).err)
	w := newWorld(t, script)
	where := w.dies(6, false)
	p := play(t, w, doc, nil)
	require.Equal(t, api.SettleName, *where)
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 no 10 interrupted", "2 no 10"}, p.course())
}

// The host is busy, or nobody can tell, or no other host can continue. The ledger has no sign of that.
func TestALoopWaitsForAHostThatIsNotGone(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 2}})
	undisturbed := play(t, newWorld(t, nil), doc, nil)
	for name, place := range map[string]func(*world) (api.Placed, error){
		"it lives": func(*world) (api.Placed, error) { return api.Placed{Why: "it asks for work"}, nil },
		"nobody can tell": func(*world) (api.Placed, error) {
			return api.Placed{}, temporal.NewNonRetryableApplicationError("no", "no", nil)
		},
		"no other can go on":     func(w *world) (api.Placed, error) { return w.gone(api.Place{Ledger: w.at()}) },
		"the ledger moves again": func(w *world) (api.Placed, error) { return api.Placed{Gone: true, Ledger: w.at()}, nil },
	} {
		w := newWorld(t, nil)
		left, asked := 0, 0
		w.place = func(in api.Place) (api.Placed, error) {
			require.Equal(t, "test", in.Host)
			w.openErr = temporal.NewNonRetryableApplicationError("no git here", string(fault.PreconditionFailed), nil)
			if strings.Contains(name, "moves") {
				w.openErr = temporal.NewNonRetryableApplicationError("it is ahead", string(fault.LedgerAhead), nil)
			}
			asked++
			return place(w)
		}
		w.host = func(_ string, do func() error) error {
			if left++; left%3 != 0 {
				return untaken()
			}
			return do()
		}
		p := play(t, w, doc, nil)
		require.Nil(t, p.err, name)
		require.Equal(t, undisturbed.types(), p.types(), name)
		require.Equal(t, "test", p.final.Host, name)
		require.Greater(t, asked, 15, name)
	}
}

func TestALedgerThatAnotherRunHasTakenEndsTheLoop(t *testing.T) {
	w := newWorld(t, nil)
	w.dies(7, false)
	w.place = func(api.Place) (api.Placed, error) {
		return api.Placed{}, temporal.NewNonRetryableApplicationError("another run has it", string(fault.LedgerAhead), nil)
	}
	p := play(t, w, specOf(nil), nil)
	require.Equal(t, string(fault.LedgerAhead), p.err.Type())
	require.Zero(t, p.calls[api.CloseName])
}
