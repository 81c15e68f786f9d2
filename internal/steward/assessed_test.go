package steward

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
)

// twoSteps has a task of two steps, the first of which runs.
func twoSteps(t *testing.T) *office {
	o := open(t, limits())
	o.emit(loop.Event{Type: loop.StewardOpened, Commit: "charter 1"}, loop.Event{Type: loop.StewardValidated, Governance: "rules 1"})
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "one", Kind: "deliver"}, task.Step{ID: "two", Kind: "improve", After: []string{"one"}})
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])
	require.Empty(t, o.assessed)
	return o
}

func TestS12_AnAssessmentIsMadeOnceMoreWhenCharterOrGovernanceChange(t *testing.T) {
	for name, changed := range map[string]loop.Event{
		"charter":    {Type: loop.StewardOpened, Commit: "charter 2"},
		"governance": {Type: loop.StewardValidated, Governance: "rules 2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoSteps(t)
			hash := o.s.Find("a").Plan.Hash
			o.emit(changed)
			o.end("s-a-one", "completed", "")
			for _, j := range o.next(nil) {
				require.NotEqual(t, Begin, j.Do, "no step is begun by an assessment of before")
			}
			o.tiers["a"] = task.T1
			o.settle()
			require.Equal(t, []string{"a"}, o.assessed)
			require.Equal(t, 0, o.started["s-a-two"])
			require.Equal(t, task.Waiting, o.s.Find("a").State)
			require.Equal(t, GateTier, o.s.Gates[0].Kind)
			require.Equal(t, hash, o.s.Gates[0].Hash, "it is the same plan")
			o.answer("a", loop.MessageApprove, Message{Hash: hash, By: "me"})
			o.settle()
			require.Equal(t, 1, o.started["s-a-two"])
			require.Equal(t, []string{"a"}, o.assessed, "once is enough")
		})
	}
}

func TestS12_AnApprovalHoldsForWhatItWasGivenFor(t *testing.T) {
	o := twoSteps(t)
	o.emit(loop.Event{Type: loop.StewardValidated, Governance: "rules 2"})
	o.tiers["a"] = task.T2
	o.settle()
	o.answer("a", loop.MessageApprove, Message{Hash: o.s.Gates[0].Hash, By: "me"})
	o.settle()
	o.emit(loop.Event{Type: loop.StewardValidated, Governance: "rules 3"})
	o.settle()
	require.Equal(t, []string{"a", "a"}, o.assessed)
	require.Equal(t, "me", o.s.Find("a").ApprovedBy, "nothing has come to it")
	require.Empty(t, o.s.Gates)
	o.emit(loop.Event{Type: loop.StewardValidated, Governance: "rules 4"})
	o.tiers["a"] = task.T1
	o.settle()
	require.Empty(t, o.s.Find("a").ApprovedBy)
	require.Equal(t, GateTier, o.s.Gates[0].Kind)
}

func TestS12_APlanThatIsNotValidAnyMoreIsAQuestion(t *testing.T) {
	o := twoSteps(t)
	o.emit(loop.Event{Type: loop.StewardOpened, Commit: "charter 2"})
	o.problems = []string{"the step two: the command `x` may not be used"}
	o.settle()
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.Equal(t, loop.GateQuestion, o.s.Gates[0].Kind)
	require.Contains(t, o.s.Gates[0].Summary, "no longer valid: the step two")
	require.Equal(t, "paused", o.loops["s-a-one"])
	o.answer("a", loop.MessageAnswer, Message{Choice: Cancel})
	o.settle()
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
}

// The tier that a person set stays.
func TestS12_ATierThatAPersonHasSetStays(t *testing.T) {
	o := twoSteps(t)
	o.answer("a", MessageSetTier, Message{Tier: task.T0})
	o.emit(loop.Event{Type: loop.StewardOpened, Commit: "charter 2"})
	o.tiers["a"] = task.T2
	o.settle()
	require.Equal(t, []string{"a"}, o.assessed)
	require.Equal(t, task.T0, o.s.Find("a").Tier)
	require.Equal(t, "a person", o.s.Find("a").TierBy)
	require.Empty(t, o.s.Gates)
}

// The tasks of schedules and triggers have the tier that the charter gives them.
func TestS5_ATierOfTheCharterIsNotCalledThatOfWhoHandsATaskIn(t *testing.T) {
	for by, want := range map[string]string{"schedule nightly": "the charter", "trigger alerts": "the charter", "ann": "a person"} {
		o := open(t, limits())
		source := by
		if by == "ann" {
			source = "schedule nightly" // a person may write any source
		}
		doc, err := json.Marshal(task.Task{ID: "n", Body: "x", Tier: task.T2, Source: source})
		require.NoError(t, err)
		require.NoError(t, o.say(MessageSubmit, Message{Task: doc, By: by, Trigger: &task.Trigger{}}))
		o.tiers["n"] = task.T3
		o.settle()
		require.Equal(t, `T2: the plan of "n" needs an approval: the tier is T2 (set by `+want+`)`, o.s.Gates[0].Summary)
	}
}

func TestS4_ATierThatAPersonLowersNeedsNoApproval(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T2)
	o.settle()
	require.Equal(t, []task.Need{{Kind: task.NeedTier, Text: "the tier is T2"}}, o.s.Find("a").Plan.Needs)
	o.answer("a", MessageSetTier, Message{Tier: task.T3, By: "ann", Note: "it is small"})
	require.Empty(t, o.s.Find("a").Plan.Needs)
	require.Empty(t, o.s.Gates, "nothing is asked any more")
	require.Equal(t, "ann: it is small", o.s.Find("a").TierNote)
	o.settle()
	require.Equal(t, 1, o.started["s-a-one"])
}

func TestS4_AnOpenQuestionNamesTheTierThatAPersonHasSet(t *testing.T) {
	c := limits()
	c.Governance = []string{"rules/**"}
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T2)
	o.settle()
	gate := o.s.Gates[0]
	require.Equal(t, `T2: the plan of "a" needs an approval: the tier is T2`, gate.Summary)
	o.answer("a", MessageSetTier, Message{Tier: task.T1, By: "ann", Note: "it is delicate"})
	require.Len(t, o.s.Gates, 1)
	want := `T1: the plan of "a" needs an approval: the tier is T1 (set by a person: ann: it is delicate)`
	require.Equal(t, want, o.s.Gates[0].Summary)
	require.Equal(t, want, o.s.Find("a").WaitingFor.What)
	require.Equal(t, gate.ID, o.s.Gates[0].ID, "it is the same question, about the same plan")
	require.Equal(t, gate.Hash, o.s.Gates[0].Hash)
	o.answer("a", MessageSetTier, Message{Tier: task.T2})
	require.Equal(t, `T2: the plan of "a" needs an approval: the tier is T2 (set by a person)`, o.s.Gates[0].Summary)
	require.Zero(t, o.started["s-a-one"])
	for tier, want := range map[task.Tier]string{
		task.T1: "the tier is T1 (set by a person); the estimate is high", task.T0: "the estimate is high; the tier is T0 (set by a person)",
	} {
		n, asks := next{State: o.s}, *o.s.Find("a")
		asks.Tier, asks.TierBy, asks.TierNote = tier, byPerson, ""
		needs := []task.Need{{Kind: task.NeedEstimate, Text: "the estimate is high"}}
		if tier == task.T1 {
			needs = append([]task.Need{risk.TierNeed(tier)}, needs...)
		}
		plan := *asks.Plan
		plan.Needs = needs
		asks.Plan = &plan
		require.Contains(t, n.tierGate(asks).Gate.Summary, want, "it is the tier that was set")
	}
	o.answer("a", loop.MessageApprove, Message{Hash: gate.Hash, By: "ann"})
	o.settle()
	require.Equal(t, 1, o.started["s-a-one"])
}

func TestS12_GovernanceFilesThatHaveChangedAreNoticedBeforeTheNextStep(t *testing.T) {
	o := twoSteps(t)
	require.Empty(t, AfterRecord(o.s, stewardapi.TasksRecorded{Governance: "rules 1"}))
	require.Empty(t, AfterRecord(o.s, stewardapi.TasksRecorded{}))
	o.end("s-a-one", "completed", "")
	warned := AfterRecord(o.s, stewardapi.TasksRecorded{Governance: "rules 2"})[0]
	warned.Seq = o.s.Seq + 1
	o.s = o.s.Apply(warned)
	o.settle()
	require.Equal(t, []string{"a"}, o.assessed)
}

func TestATaskThatThereIsNotIsNamedWithTheCommandThatListsThem(t *testing.T) {
	err := open(t, limits()).say(loop.MessagePause, Message{Task: id("nope")})
	require.ErrorContains(t, err, "`pawl steward show s` lists those that it has")
}

// TestWhatATierMeansNowIsSaid sets tiers of a task in each of its positions.
func TestWhatATierMeansNowIsSaid(t *testing.T) {
	o := open(t, limits())
	says := func(tier task.Tier, want string) {
		t.Helper()
		reply, err := Answer(o.s, o.c, MessageSetTier, Message{Task: id("a"), Tier: tier, By: "ann"})
		require.NoError(t, err)
		require.Equal(t, "a is "+string(tier)+": "+want, reply.Text)
	}
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	says(task.T1, "a person has to approve its plan")
	says(task.T0, "its plan is asked about only if it may change governance files or touches production")
	usd := metric.MustDecimal("5")
	o.c.Limits.CostUSD = &usd
	says(task.T3, "its plan is asked about only if it may change governance files, touches production or is expected to cost more than limits.costUSD")
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
	says(task.T0, "its plan needs no approval")
	says(task.T2, "a step that runs ends, then its plan is asked about: the tier is T2")
	o.answer("a", loop.MessagePause, Message{})
	o.settle()
	says(task.T1, "its plan is asked about before it goes on: the tier is T1")
	o.answer("a", loop.MessageContinue, Message{})
	o.answer("a", MessageSetTier, Message{Tier: task.T2})
	o.settle()
	require.Equal(t, GateTier, o.s.Gates[0].Kind)
	says(task.T1, "its plan waits for an approval: the tier is T1")
	says(task.T3, "its plan needs no approval")
	o.answer("a", loop.MessageApprove, Message{Hash: o.s.Gates[0].Hash, By: "bob"})
	says(task.T1, "its plan is approved already (bob), so nothing more is asked")
	says(task.T0, "its plan is approved already (bob), so nothing more is asked")
	o.settle()
	require.Empty(t, o.s.Gates)
}
