package gates_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/test/harness/testflow"
	"pawl/workflows/gates"
	"pawl/workflows/journal"
)

// office is the state of a workflow that is not a loop: it has no repository, and several gates at once.
type office struct {
	Seq      int64                  `json:"seq"`
	Gates    []loop.Gate            `json:"gates"`
	Answered map[string]loop.Answer `json:"answered"`
	Refused  int                    `json:"refused"`
	Why      string                 `json:"why"`
	Late     []string               `json:"late"`
	Halt     string                 `json:"halt"`
	Ledger   string                 `json:"ledger"`
}

func (o office) Apply(e loop.Event) office {
	o.Seq = e.Seq
	switch e.Type {
	case loop.GateOpened:
		o.Gates = append(slices.Clone(o.Gates), *e.Gate)
	case loop.GateClosed:
		o.Gates = slices.DeleteFunc(slices.Clone(o.Gates), func(g loop.Gate) bool { return g.ID == e.Answer.Gate })
		answered := map[string]loop.Answer{e.Answer.Gate: *e.Answer}
		for id, a := range o.Answered {
			answered[id] = a
		}
		o.Answered = answered
	case loop.GateEscalated:
		o.Late = append(slices.Clone(o.Late), e.Gate.ID)
	case loop.MessageRefused:
		o.Refused++
		o.Why = e.Reason
	case loop.MessageReceived:
		o.Halt = e.Note
	}
	return o
}

func (o office) At(ledger string) office       { o.Ledger = ledger; return o }
func (o office) Stamp(e loop.Event) loop.Event { e.Loop = "office"; return e }
func (o office) Last() int64                   { return o.Seq }
func (o office) Halting() string               { return o.Halt }
func (o office) AnswerTo(id string) *loop.Answer {
	if a, ok := o.Answered[id]; ok {
		return &a
	}
	return nil
}

func (o office) Waits(id string) *loop.Gate {
	for _, g := range o.Gates {
		if g.ID == id {
			return &g
		}
	}
	return nil
}

// answer is this office's rule: a message names its gate and one of the gate's choices.
func answer(o office, name string, m loop.Message) (rules.Reply, error) {
	if name == "halt" {
		return rules.Reply{Text: "halting", Events: []loop.Event{{Type: loop.MessageReceived, Message: name, Note: m.Note}}}, nil
	}
	g := o.Waits(m.Gate)
	if g == nil {
		return rules.Reply{}, fault.New(fault.GateClosed, "no gate %q is open", m.Gate)
	}
	return rules.Reply{Text: "thanks", Events: []loop.Event{{
		Type: loop.GateClosed, Gate: g, Answer: &loop.Answer{Gate: g.ID, Message: name, Choice: m.Choice},
	}}}, nil
}

const question, tier loop.GateKind = "question", "tier"

// premises has the office's ledger: one activity writes its entries.
type premises struct {
	ledger  []loop.Event
	told    []string
	late    []bool // of each entry: whether a gate's patience had run out
	stop    int    // the entry at which there is a loop-stop file
	writing func() // runs while an entry is being written
	ends    bool   // by the signal "elsewhere"
}

func (p *premises) write(_ context.Context, in api.Entry) (api.Appended, error) {
	if p.writing != nil {
		p.writing()
	}
	p.ledger = append(p.ledger, in.Events...)
	return api.Appended{Ledger: string(rune('a' + len(p.ledger)))}, nil
}

// open asks about all gates at once and returns the choices in order.
func (p *premises) open(ctx workflow.Context, open []loop.Gate) ([]string, error) {
	j := journal.New(ctx, journal.Saved[office]{})
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	k := gates.New(j, gates.Rules{
		Messages: []loop.MessageName{{Name: "answer"}, {Name: "halt"}}, Others: []string{"elsewhere"},
		Check: func(name string, payload []byte, _ time.Time) (rules.Reply, error) {
			m, err := loop.DecodeMessage(payload)
			if err != nil {
				return rules.Reply{}, err
			}
			return answer(j.State(), name, m)
		},
		Answers:  func(loop.GateKind) []string { return []string{"answer"} },
		Patience: func(loop.Gate) time.Duration { return time.Hour },
		Record: func(ctx workflow.Context, _ string, late bool) error {
			p.late = append(p.late, late)
			_, err := j.Append(ctx, []loop.Event{{Type: loop.Warned}}, func(entry func() api.Entry) (out api.Appended, adopted bool, err error) {
				err = workflow.ExecuteActivity(ctx, "Write", entry()).Get(ctx, &out)
				return out, false, err
			})
			if len(p.late) == p.stop {
				j.Emit(ctx, loop.Event{Type: loop.MessageReceived, Message: "halt", Note: "a file"})
			}
			return err
		},
		Notify: func(_ workflow.Context, event loop.Type, _, _ string) { p.told = append(p.told, string(event)) },
		Show:   func(workflow.Context) {},
	})
	if err := workflow.SetQueryHandler(ctx, "state", func() (office, error) { return j.State(), nil }); err != nil {
		return nil, err
	}
	if err := k.Handle(ctx); err != nil {
		return nil, err
	}
	if p.ends {
		workflow.GetSignalChannel(ctx, "elsewhere").Receive(ctx, nil)
		k.Drain(ctx)
		return []string{j.State().Halt, strconv.Itoa(j.State().Refused)}, nil
	}
	choices := make([]string, len(open))
	wait := workflow.NewWaitGroup(ctx)
	for i, g := range open {
		wait.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wait.Done()
			a, ok, err := k.Wait(ctx, g)
			switch {
			case err != nil:
				choices[i] = "error: " + err.Error()
			case !ok:
				choices[i] = "unanswered"
			default:
				choices[i] = a.Choice
			}
		})
	}
	wait.Wait(ctx)
	return choices, nil
}

func run(t *testing.T, p *premises, gates []loop.Gate, prepare func(*testsuite.TestWorkflowEnvironment)) ([]string, office) {
	t.Helper()
	env := testflow.Environment(nil)
	env.RegisterWorkflow(p.open)
	env.RegisterActivityWithOptions(p.write, activity.RegisterOptions{Name: "Write"})
	prepare(env)
	env.ExecuteWorkflow(p.open, gates)
	require.NoError(t, env.GetWorkflowError())
	var choices []string
	require.NoError(t, env.GetWorkflowResult(&choices))
	return choices, state(t, env)
}

func state(t *testing.T, env *testsuite.TestWorkflowEnvironment) (o office) {
	t.Helper()
	v, err := env.QueryWorkflow("state")
	require.NoError(t, err)
	require.NoError(t, v.Get(&o))
	return o
}

func reply(gate, choice string) json.RawMessage {
	b, _ := json.Marshal(loop.Message{Gate: gate, Choice: choice})
	return b
}

func TestSeveralGatesAreOpenAtOnceAndEachGetsItsOwnAnswer(t *testing.T) {
	p := &premises{}
	choices, end := run(t, p, []loop.Gate{{Kind: question}, {Kind: tier}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			require.Len(t, state(t, env).Gates, 2)
			env.SignalWorkflow("answer", reply(state(t, env).Gates[1].ID, "second"))
		}, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("answer", reply(state(t, env).Gates[0].ID, "first")) }, 2*time.Minute)
	})
	require.Equal(t, []string{"first", "second"}, choices)
	require.Empty(t, end.Gates)
	require.Equal(t, []string{"gate_opened", "gate_opened"}, p.told)
}

func TestNobodyAnsweringIsNoAnswer(t *testing.T) {
	p := &premises{}
	choices, end := run(t, p, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("answer", reply(state(t, env).Gates[0].ID, "at last")) }, 150*time.Minute)
	})
	require.Equal(t, []string{"at last"}, choices)
	require.Len(t, end.Late, 2, "it was told again every hour, and went on waiting")
	require.Equal(t, []string{"gate_opened", "gate_escalated", "gate_escalated"}, p.told)
	require.Equal(t, []bool{false, true, true}, p.late)
}

func TestNobodyIsToldOfAGateIfItsEntryFindsThatTheWorkflowIsToEnd(t *testing.T) {
	for i, told := range [][]string{nil, {"gate_opened"}, {"gate_opened", "gate_escalated"}} {
		p := &premises{stop: i + 1}
		choices, _ := run(t, p, []loop.Gate{{Kind: question}}, func(*testsuite.TestWorkflowEnvironment) {})
		require.Equal(t, []string{"unanswered"}, choices)
		require.Equal(t, told, p.told)
	}
}

func TestARefusedSignalIsRecordedAndARefusedUpdateLeavesNoTrace(t *testing.T) {
	var refused error
	_, end := run(t, &premises{}, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow("answer", reply("another", "x"))
			env.SignalWorkflow("answer", json.RawMessage(`["no message"]`))
			env.UpdateWorkflow("answer", "1", &testsuite.TestUpdateCallback{
				OnReject: func(err error) { refused = err }, OnAccept: func() { t.Error("accepted") }, OnComplete: func(any, error) {},
			}, reply("another", "x"))
		}, time.Minute)
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow("answer", "2", &testsuite.TestUpdateCallback{
				OnReject: func(err error) { t.Error(err) }, OnAccept: func() {},
				OnComplete: func(text any, err error) {
					require.NoError(t, err)
					require.Equal(t, "thanks", text)
				},
			}, reply(state(t, env).Gates[0].ID, "yes"))
		}, 2*time.Minute)
	})
	require.ErrorContains(t, refused, `no gate "another" is open`)
	require.Equal(t, 2, end.Refused, "the two signals")
}

func TestASignalThatNobodyKnowsIsRefusedLikeAnyOther(t *testing.T) {
	p := &premises{}
	_, end := run(t, p, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow("aprove", reply(state(t, env).Gates[0].ID, "yes"))
			env.SignalWorkflow("elsewhere", "somebody else receives it")
			env.SignalWorkflow("answer", reply(state(t, env).Gates[0].ID, "yes"))
		}, time.Minute)
	})
	require.Equal(t, 1, end.Refused)
	require.Contains(t, end.Why, `there is no message "aprove"; there are: answer, halt`)
}

func TestAFloodOfRefusedSignalsDoesNotFillTheLedger(t *testing.T) {
	_, end := run(t, &premises{}, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			for range 150 {
				env.SignalWorkflow("answer", reply("another", "x"))
			}
			env.SignalWorkflow("answer", reply(state(t, env).Gates[0].ID, "yes"))
		}, time.Minute)
	})
	require.Equal(t, 100, end.Refused, "until they are recorded")
	require.Empty(t, end.Gates, "and what counts comes through")
}

// The ledger is pushed and stays: a message with a credential in it does not get there.
func TestE6_AMessageWithACredentialIsRefused(t *testing.T) {
	token := "ghp_" + strings.Repeat("q7Zp2X", 6)
	p := &premises{}
	var refused error
	choices, end := run(t, p, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow("answer", "1", &testsuite.TestUpdateCallback{
				OnReject: func(err error) { refused = err }, OnAccept: func() { t.Error("accepted") }, OnComplete: func(any, error) {},
			}, reply(state(t, env).Gates[0].ID, token))
			env.SignalWorkflow("answer", reply(state(t, env).Gates[0].ID, token))
		}, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("answer", reply("question-1", "yes")) }, 2*time.Minute)
	})
	require.ErrorContains(t, refused, "choice contains a GitHub token, and pawl would push it with the ledger, where it stays")
	require.Equal(t, []string{"yes"}, choices)
	require.Equal(t, 1, end.Refused)
	require.Contains(t, end.Why, "choice contains a GitHub token")
	require.NotContains(t, end.Why, token)
}

// A run continues as new at once: signals of the same workflow task are handled, not lost with the run.
func TestSignalsThatArriveWithTheEndOfARunAreHandled(t *testing.T) {
	handed, _ := run(t, &premises{ends: true}, nil, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflowSkippingWorkflowTask("answer", reply("question-8", "no"))
			env.SignalWorkflowSkippingWorkflowTask("answer", reply("question-9", "no"))
			env.SignalWorkflowSkippingWorkflowTask("nothing", nil)
			env.SignalWorkflowSkippingWorkflowTask("halt", json.RawMessage(`{"note":"enough"}`))
			env.SignalWorkflow("elsewhere", nil)
		}, time.Minute)
	})
	require.Equal(t, []string{"enough", "3"}, handed, "what the next run gets")
}

func TestBeingEndedClosesNoGateAndWaitsForNobody(t *testing.T) {
	choices, end := run(t, &premises{}, []loop.Gate{{Kind: question}, {Kind: tier}}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("halt", json.RawMessage(`{"note":"enough"}`)) }, time.Minute)
	})
	require.Equal(t, []string{"unanswered", "unanswered"}, choices)
	require.Len(t, end.Gates, 2)
	p := &premises{}
	choices, _ = run(t, p, []loop.Gate{{Kind: question}}, func(env *testsuite.TestWorkflowEnvironment) {
		p.writing = func() { // both wait for their turn
			env.SignalWorkflow("answer", reply("question-1", "yes"))
			env.SignalWorkflow("halt", json.RawMessage(`{"note":"enough"}`))
		}
	})
	require.Equal(t, []string{"unanswered"}, choices, "nothing begins with an answer that came with the end")
}

func TestWhileAnEntryIsWrittenMessagesWaitTheirTurn(t *testing.T) {
	p := &premises{}
	_, end := run(t, p, []loop.Gate{{Kind: question}, {Kind: tier}}, func(env *testsuite.TestWorkflowEnvironment) {
		first := true
		p.writing = func() {
			if first {
				first = false
				env.SignalWorkflow("answer", reply("nothing", "early"))
			}
		}
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("halt", json.RawMessage(`{"note":"enough"}`)) }, time.Minute)
	})
	var folded office
	for i, e := range p.ledger {
		require.Equal(t, int64(i+1), e.Seq, "every event is in the ledger once, in its order")
		folded = folded.Apply(e)
	}
	require.Equal(t, end.Gates, folded.Gates)
	require.Equal(t, 1, end.Refused, "the message came all the same")
}
