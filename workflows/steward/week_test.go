package steward

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/testflow"
	"pawl/test/harness/tier"
)

// weekCharter has a schedule that skips a slot while its task is not over, and limits so small that a week reaches
// all of them.
const weekCharter = `{"kind":"steward","name":"crew","repo":{"path":"/src/shop"},
	"limits":{"parallel":2,"costUSD":4,"retries":2,"noProgress":6,"actions":40},
	"schedules":[{"name":"nightly","every":"6h","overlap":"skip","task":{"body":"Look around."}}],
	"defaults":{"scope":["**"],"verify":{"command":"true"},"test":{"command":"true"},"agent":{"command":["agent"]},"approvals":{"tools":["*"]}}}`

// week is a steward in one week: a seed decides what loops do, people come now and then, activities fail before and
// after they have done their work, and runs continue in new ones. Its loops live outside Temporal, so they continue
// whichever run the steward is in.
type week struct {
	t    *testing.T
	seed uint64
	mu   sync.Mutex // activities run beside the steward
	env  *testsuite.TestWorkflowEnvironment
	runs int
	calm bool // from now on everything succeeds, and people answer everything

	ledger   []loop.Event
	state    steward.State // the fold of the ledger
	approved map[string]string
	begun    map[string]int // how often each loop was started
	tries    map[string]int // loops of a step since a person last let its task continue
	loops    map[string]*weekLoop
	drawn    map[string]int
	sent     []string // tasks that people have submitted
	slots    []string
	visits   int
	counts   map[string]int
}

// weekLoop is a loop as its steward sees it.
type weekLoop struct {
	status string // running, paused, asking, ended
	seq    int64
	plan   string
	here   bool // its workflow is in this run's environment
	freed  bool // a person has answered it: it runs whatever else runs
	cost   int
	last   task.ChildEvent
}

// draw returns a number below n. It depends only on the seed and on what the number is for.
func (w *week) draw(what string, n int) int {
	w.drawn[what]++
	h := fnv.New64a()
	fmt.Fprintln(h, w.seed, what, w.drawn[what])
	return int(h.Sum64() >> 3 % uint64(n))
}

// fails reports whether an activity fails now: a worker was killed, or something else was not available.
func (w *week) fails(what string) error {
	if !w.calm && w.draw("fails "+what, 12) == 0 {
		w.counts["failed activities"]++
		return errors.New("the worker was killed")
	}
	return nil
}

func (w *week) open(context.Context, stewardapi.OpenSteward) (Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Opened{Site: api.Site{Ref: "crew", Queue: "q", Host: "h"}, Base: "b0", Onto: "main"}, w.fails("open")
}

// record appends its input once: an attempt whose report was lost has written it already.
func (w *week) record(_ context.Context, in stewardapi.RecordTasks) (out stewardapi.TasksRecorded, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fails("record"); err != nil {
		return out, err
	}
	for _, e := range in.Events {
		if e.Seq <= int64(len(w.ledger)) {
			require.Equal(w.t, w.ledger[e.Seq-1].Type, e.Type, "an entry that is written again is the same one")
			continue
		}
		require.Equal(w.t, int64(len(w.ledger)+1), e.Seq, "the ledger has every event once, in order")
		before := w.state
		w.ledger, w.state = append(w.ledger, e), w.state.Apply(e)
		w.check(before, e)
	}
	out.Ledger = fmt.Sprintf("l%d", len(w.ledger))
	return out, w.fails("report")
}

// check checks what must be true for every event.
func (w *week) check(before steward.State, e loop.Event) {
	t := before.Find(e.Task)
	switch e.Type {
	case loop.TaskSubmitted:
		require.Nil(w.t, before.Find(e.Submitted.ID), "%s was taken twice", e.Submitted.ID)
	case loop.GateClosed:
		if e.Message == loop.MessageApprove {
			require.Equal(w.t, t.Plan.Hash, e.Gate.Hash, "%s was approved for another plan", e.Task)
			w.approved[e.Task] = e.Gate.Hash
		}
		w.sentOn(e.Task)
	case loop.MessageReceived:
		w.sentOn(e.Task)
	case loop.TaskStateChanged:
		require.Equal(w.t, t.State, e.From, "%s was not in that state", e.Task)
		if e.From == task.Waiting && e.To == task.Idle {
			require.Contains(w.t, e.Evidence.Answer, "ann", "WAITING_FOR_HUMAN became IDLE without a person")
		}
		require.False(w.t, e.From == task.Idle && e.To == task.Executing)
	case loop.StepBegun:
		if e.Reason != "" {
			return
		}
		if t.Tier == task.T1 || t.Tier == task.T2 || len(t.Plan.Needs) > 0 {
			require.Equal(w.t, t.Plan.Hash, w.approved[e.Task], "%s (%s) was begun without an approval of exactly its plan", e.Task, t.Tier)
		}
		step := e.Task + " " + e.Step
		w.tries[step]++
		require.LessOrEqual(w.t, w.tries[step], 1+2, "%s is tried more often than retries say", step)
	case loop.ActionTaken:
		after := w.state.Find(e.Task)
		if t.State == task.Executing && e.Action.What == task.Iterated {
			require.LessOrEqual(w.t, after.Window.SinceProgress, 6+1, "%s goes on without progress", e.Task)
			require.LessOrEqual(w.t, after.Window.Actions-after.Window.Granted, 40+1, "%s goes on beyond its actions", e.Task)
		}
	case loop.TaskEnded:
		require.Empty(w.t, t.Outcome, "%s ended twice", e.Task)
		w.counts[e.Outcome]++
	case loop.GateEscalated, loop.TaskInterrupted, loop.LoopDetected:
		w.counts[string(e.Type)]++
	}
	running := 0
	for _, t := range w.state.Tasks {
		for _, st := range t.Steps {
			if l := w.loops[st.Loop]; st.Status == steward.Running && (l == nil || !l.freed) {
				running++
			}
		}
	}
	if e.Type == loop.StepBegun {
		require.LessOrEqual(w.t, running, 2, "more loops than limits.parallel")
	}
}

// sentOn records that a person let a task continue: earlier tries no longer count.
func (w *week) sentOn(id string) {
	for step := range w.tries {
		if id == "" || strings.HasPrefix(step, id+" ") {
			delete(w.tries, step)
		}
	}
}

func (w *week) plan(_ context.Context, in stewardapi.PlanTask) (out stewardapi.TaskPlanned, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fails("plan"); err != nil {
		return out, err
	}
	of := "plan " + in.Task
	switch n := w.draw(of, 12); {
	case w.calm:
	case n == 0:
		out.Unclear = []string{"what is meant?"}
		return out, nil
	case n == 1:
		out.Problems = []string{"the plan is wrong"}
		return out, nil
	case n == 2:
		return out, temporal.NewNonRetryableApplicationError("the desk is gone", "PRECONDITION_FAILED", nil)
	}
	sum := sha256.Sum256(fmt.Append(nil, of, w.seed, w.drawn[of]))
	p := &task.Plan{Hash: hex.EncodeToString(sum[:]), By: "planner", Steps: []task.Step{{ID: "x", Kind: "deliver"}}}
	if w.draw(of+" steps", 3) == 0 {
		p.Steps = append(p.Steps, task.Step{ID: "y", Kind: "improve"}, task.Step{ID: "z", Kind: "deliver", After: []string{"x", "y"}})
	}
	out.Plan, out.Base, out.TierBy = p, "b0", "rules"
	if out.Tier = in.Tier; out.Tier == "" {
		out.Tier = []task.Tier{task.T3, task.T3, task.T2, task.T1}[w.draw(of+" tier", 4)]
	}
	out.Governs = out.Tier == task.T1
	return out, nil
}

func (w *week) read(_ context.Context, in stewardapi.ReadChild) (stewardapi.ChildRead, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.loops[in.Loop]
	if l == nil {
		return stewardapi.ChildRead{}, w.fails("read")
	}
	e := l.last
	if l.status == "running" {
		e = w.event(in.Loop, task.ChildStands, nil)
	}
	return stewardapi.ChildRead{Found: true, Event: e}, w.fails("read")
}

func (w *week) join(context.Context, stewardapi.Join) (stewardapi.Joined, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return stewardapi.Joined{Branch: "joined"}, w.fails("join")
}

func (w *week) validate(context.Context, stewardapi.Validate) (stewardapi.Validated, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return stewardapi.Validated{}, w.fails("validate")
}

// sorted returns the names in a map, in order: what is drawn for them must not depend on chance.
func sorted[T any](m map[string]T) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// run runs the steward until it continues in a new run, or ends.
func (w *week) run(from time.Time, resume Resume) (next *workflow.ContinueAsNewError) {
	w.env = testflow.Environment(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	w.env.SetStartTime(from)
	w.env.SetDetachedChildWait(false)
	w.env.SetStartWorkflowOptions(startOptions("crew"))
	for name, f := range map[string]any{
		stewardapi.OpenStewardName: w.open, stewardapi.RecordTasksName: w.record, stewardapi.PlanTaskName: w.plan, stewardapi.ReadChildName: w.read, stewardapi.ValidateName: w.validate, stewardapi.JoinName: w.join,
	} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	w.env.RegisterWorkflowWithOptions(Steward, workflow.RegisterOptions{Name: "Steward"})
	for _, kind := range []string{"Deliver", "Improve"} {
		w.env.RegisterWorkflowWithOptions(w.child, workflow.RegisterOptions{Name: kind})
	}
	// Loops that an earlier run started are not in this environment.
	w.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, _, name string, _ any) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if l := w.loops[id]; l == nil || l.status == "ended" {
				return errors.New("unknown external workflow execution")
			}
			w.env.RegisterDelayedCallback(func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.told(id, name)
			}, 0)
			return nil
		}).Maybe()
	w.mu.Lock()
	w.runs++
	for _, id := range sorted(w.loops) {
		w.loops[id].here = false
		if w.loops[id].status == "running" {
			w.lives(id)
		}
	}
	// The run never ends at the moment of a message. Temporal rejects the end of a run that has not seen a message,
	// but the test environment loses the message.
	lasts := time.Duration(4+w.draw("lasts", 20))*time.Hour + 30*time.Second
	w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, lasts)
	w.env.RegisterDelayedCallback(w.visit, time.Hour)
	w.env.RegisterDelayedCallback(w.hand, time.Second)
	w.env.RegisterDelayedCallback(w.slot, 6*time.Hour-time.Duration(from.Unix()%(6*3600))*time.Second)
	w.mu.Unlock()
	w.env.ExecuteWorkflow("Steward", json.RawMessage(weekCharter), resume)
	require.True(w.t, w.env.IsWorkflowCompleted())
	if err := w.env.GetWorkflowError(); err != nil {
		require.ErrorAs(w.t, err, &next)
	}
	return next
}

// A steward runs through a week of schedules, interrupts, rejections, escalations, crashes and new runs. After every
// event: no task is lost or run twice, no T1 or T2 is worked on without an approval of exactly its plan, only a
// person changes WAITING_FOR_HUMAN to IDLE, and no limit is passed. Then people answer everything, and every task
// ends.
func TestS1_AWeekLosesNothing(t *testing.T) {
	seeds := uint64(1)
	if tier.Nightly {
		seeds = 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := &week{
				t: t, seed: seed, state: steward.New("crew"), approved: map[string]string{}, begun: map[string]int{}, tries: map[string]int{},
				loops: map[string]*weekLoop{}, drawn: map[string]int{}, counts: map[string]int{},
			}
			start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
			next := w.run(start, Resume{})
			for next != nil {
				var resume Resume
				require.NoError(t, converter.GetDefaultDataConverter().FromPayload(next.Input.GetPayloads()[1], &resume))
				w.calm = w.env.Now().Sub(start) > 7*24*time.Hour
				require.Less(t, w.runs, 200, "it never ends")
				next = w.run(w.env.Now(), resume)
			}
			w.over()
		})
	}
}

// over checks what must be true when everything is over.
func (w *week) over() {
	came, triggers := map[string]int{}, map[string]int{}
	for _, e := range w.ledger {
		switch e.Type {
		case loop.TaskSubmitted:
			came[e.Submitted.ID]++
		case loop.TriggerReceived:
			triggers[e.Trigger.Delivery]++
			if e.Trigger.Result == "accepted" {
				came["accepted "+e.Trigger.Delivery]++
			}
		}
	}
	for _, id := range w.sent {
		require.Equal(w.t, 1, came[id], "%s was lost, or taken twice", id)
	}
	for _, slot := range w.slots {
		require.NotZero(w.t, triggers[slot], "the slot of %s was lost", slot)
		require.LessOrEqual(w.t, came["accepted "+slot], 1, "the slot of %s was taken twice", slot)
	}
	require.Equal(w.t, w.state.TasksCount, w.counts[steward.Done]+w.counts[steward.Cancelled], "every task came to its end")
	for id, l := range w.loops {
		require.Equal(w.t, "ended", l.status, "%s goes on", id)
	}
	require.Equal(w.t, loop.Halted, w.state.Status)
	w.t.Logf("%d events, %d runs, %d loops, %d tasks, %d slots: %v", len(w.ledger), w.runs, len(w.loops), w.state.TasksCount, len(w.slots), w.counts)
}
