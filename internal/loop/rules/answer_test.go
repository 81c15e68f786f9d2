package rules_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// valid is the spec of the loop at the gates.
var valid = func() spec.Spec {
	s := spec.Defaults()
	s.Goal, s.Repo.Path, s.Scope, s.Approvals.Tools = "make it better", "/repo", []string{"a"}, []string{"*"}
	s.Verify.Command, s.Agent.Command.Shell = "measure", "agent"
	return s
}()

func at(kind loop.GateKind) loop.State {
	s := loop.State{Status: loop.Running}
	if kind == "" {
		return s
	}
	g := &loop.Gate{ID: string(kind) + "-7", Kind: kind, Answers: rules.Answers(kind), OpenedAt: time.Unix(0, 0)}
	switch kind {
	case loop.GateContract, loop.GateDiff, loop.GateNewFiles:
		g.Hash = hash
	case loop.GateQuestion:
		g.Choices = []string{"retry", "halt"}
	case loop.GateBudget:
		g.Hash, g.Budget = hash, loop.ToolCalls
		s.Budget = loop.NewBudget(rules.Limits(valid)).Spend(loop.ToolCalls, loop.Count(10))
	}
	return s.Apply(loop.Event{Seq: 1, Type: loop.GateOpened, Gate: g})
}

func TestAnswerMeetsGates(t *testing.T) {
	for _, c := range []struct {
		name    string
		gate    loop.GateKind
		message string
		m       loop.Message
		code    fault.Code // "" is accepted
		closes  bool
	}{
		{"approve with the whole hash", loop.GateContract, "approve", loop.Message{Hash: hash}, "", true},
		{"approve with sixteen digits", loop.GateContract, "approve", loop.Message{Hash: hash[:16]}, "", true},
		{"approve in capitals", loop.GateContract, "approve", loop.Message{Hash: strings.ToUpper(hash[:20])}, "", true},
		{"approve without a hash", loop.GateContract, "approve", loop.Message{}, fault.HashMismatch, false},
		{"approve with too short a hash", loop.GateContract, "approve", loop.Message{Hash: hash[:15]}, fault.HashMismatch, false},
		{"approve with another hash", loop.GateContract, "approve", loop.Message{Hash: strings.Repeat("f", 64)}, fault.HashMismatch, false},
		{"approve with more than the hash", loop.GateContract, "approve", loop.Message{Hash: hash + "0"}, fault.HashMismatch, false},
		{"approve for another gate", loop.GateContract, "approve", loop.Message{Gate: "contract-6", Hash: hash}, fault.GateMismatch, false},
		{"approve for this gate", loop.GateContract, "approve", loop.Message{Gate: "contract-7", Hash: hash}, "", true},
		{"reject needs no hash", loop.GateContract, "reject", loop.Message{}, "", true},
		{"reject with a wrong hash", loop.GateContract, "reject", loop.Message{Hash: strings.Repeat("f", 64)}, fault.HashMismatch, false},
		{"continue at a contract", loop.GateContract, "continue", loop.Message{}, fault.LoopNotPaused, false},
		{"approve at a pause", loop.GatePause, "approve", loop.Message{Hash: hash}, fault.GateMismatch, false},
		{"continue at a pause", loop.GatePause, "continue", loop.Message{}, "", true},
		{"continue at a breakpoint", loop.GateBreakpoint, "continue", loop.Message{}, "", true},
		{"continue where nothing waits", "", "continue", loop.Message{}, fault.LoopNotPaused, false},
		{"approve where nothing waits", "", "approve", loop.Message{Hash: hash}, fault.GateClosed, false},
		{"continue at a block", loop.GateGuard, "continue", loop.Message{}, "", true},
		{"approve at a block", loop.GateGuard, "approve", loop.Message{}, fault.GateMismatch, false},
		{"a choice that is listed", loop.GateQuestion, "answer", loop.Message{Choice: "retry"}, "", true},
		{"a choice that is not", loop.GateQuestion, "answer", loop.Message{Choice: "sudo"}, fault.InvalidMessage, false},
		{"an extension", loop.GateBudget, "extend", loop.Message{Hash: hash[:16], Limits: []byte(`{"toolCalls": 20}`)}, "", true},
		{"an extension without a hash", loop.GateBudget, "extend", loop.Message{Limits: []byte(`{"toolCalls": 20}`)}, fault.HashMismatch, false},
		{"an extension of nothing", loop.GateBudget, "extend", loop.Message{Hash: hash}, fault.InvalidMessage, false},
		{"an extension that leaves nothing", loop.GateBudget, "extend", loop.Message{Hash: hash, Limits: []byte(`{"toolCalls": 10}`)}, fault.InvalidMessage, false},
		{"an extension of another budget", loop.GateBudget, "extend", loop.Message{Hash: hash, Limits: []byte(`{"iterations": 99}`)}, fault.InvalidMessage, false},
		{"an extension of what is no budget", loop.GateBudget, "extend", loop.Message{Hash: hash, Limits: []byte(`{"toolCalls": 20, "reworks": 9}`)}, fault.InvalidMessage, false},
		{"an extension where nothing is used up", loop.GateContract, "extend", loop.Message{Hash: hash, Limits: []byte(`{"toolCalls": 20}`)}, fault.GateMismatch, false},
		{"a budget that is not extended", loop.GateBudget, "reject", loop.Message{}, "", true},
		{"an amendment", loop.GateQuestion, "amend", loop.Message{Spec: []byte(`{"verify": {"command": "cat n"}}`)}, "", true},
		{"an amendment that widens the scope", loop.GateQuestion, "amend", loop.Message{Spec: []byte(`{"scope": ["**"]}`)}, fault.InvalidMessage, false},
		{"an amendment of nothing", loop.GateQuestion, "amend", loop.Message{Spec: []byte(`{"verify": {"command": "measure"}}`)}, fault.InvalidMessage, false},
		{"an amendment that is no spec", loop.GateQuestion, "amend", loop.Message{Spec: []byte(`[]`)}, fault.InvalidMessage, false},
		{"new files", loop.GateNewFiles, "approve", loop.Message{Hash: hash}, "", true},
		{"a diff", loop.GateDiff, "approve", loop.Message{Hash: hash}, "", true},
		{"a diff without its hash", loop.GateDiff, "approve", loop.Message{}, fault.HashMismatch, false},
		{"a diff, applied at once", loop.GateDiff, "approve", loop.Message{Hash: hash, Apply: "squash"}, "", true},
		{"a diff, applied in no way there is", loop.GateDiff, "approve", loop.Message{Hash: hash, Apply: "force"}, fault.InvalidMessage, false},
		{"a diff, applied and rejected", loop.GateDiff, "reject", loop.Message{Apply: "squash"}, fault.InvalidMessage, false},
		{"a contract, applied", loop.GateContract, "approve", loop.Message{Hash: hash, Apply: "ff"}, fault.InvalidMessage, false},
		{"the mode it has", "", "setMode", loop.Message{Mode: "mission"}, "", false},
		{"another mode", "", "setMode", loop.Message{Mode: "plan"}, "", false},
		{"no mode", "", "setMode", loop.Message{Mode: "yolo"}, fault.InvalidMessage, false},
		{"steer without a note", "", "steer", loop.Message{}, fault.InvalidMessage, false},
		{"steer", "", "steer", loop.Message{Note: "x"}, "", false},
		{"an unknown message", "", "sudo", loop.Message{}, fault.InvalidMessage, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := at(c.gate)
			reply, err := rules.Answer(s, valid, c.message, c.m)
			require.Equal(t, c.code, fault.CodeOf(err))
			after := loop.Fold(s, reply.Events)
			require.Equal(t, c.closes, s.Gate != nil && after.Gate == nil)
			if err != nil {
				require.Empty(t, reply.Events, "a refused message changes nothing")
				require.NotEmpty(t, err.(*fault.Error).Advice())
			}
		})
	}
}

func TestAnExtensionThatLeavesNothingSaysWhatIsUsed(t *testing.T) {
	s := at(loop.GateBudget)
	s.Gate.Budget = loop.ActiveTime
	s.Budget = s.Budget.Spend(loop.ActiveTime, loop.Count(4004))
	_, err := rules.Answer(s, valid, "extend", loop.Message{Hash: hash, Limits: []byte(`{"activeTime": "4s"}`)})
	require.ErrorContains(t, err, "limits.activeTime has to be more than 4.004s, which is used up already")
}

// TestE3_AnApprovalCountsOnceAlsoForTheSameHash: a contract that is amended back to an earlier one has its hash.
func TestE3_AnApprovalCountsOnceAlsoForTheSameHash(t *testing.T) {
	approval := loop.Message{Hash: hash, By: "ann"}
	reply, err := rules.Answer(at(loop.GateContract), valid, "approve", approval)
	require.NoError(t, err)
	s := loop.Fold(at(loop.GateContract), reply.Events)
	s = s.Apply(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "contract-31", Kind: loop.GateContract, Hash: hash, Answers: rules.Answers(loop.GateContract)}})
	_, err = rules.Answer(s, valid, "approve", approval)
	require.Equal(t, fault.GateClosed, fault.CodeOf(err))
	require.ErrorContains(t, err, "was answered like this already: approve by ann")
	require.Contains(t, err.(*fault.Error).Advice(), "--gate contract-31")
	for name, m := range map[string]loop.Message{
		"it names the gate":             {Hash: hash, Gate: "contract-31"},
		"it names the gate, in capital": {Hash: strings.ToUpper(hash), Gate: "contract-31"},
	} {
		_, err = rules.Answer(s, valid, "approve", m)
		require.NoError(t, err, name)
	}
	_, err = rules.Answer(s, valid, "reject", loop.Message{Hash: hash})
	require.NoError(t, err, "nothing passes by a rejection")
	s = s.Apply(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "diff-32", Kind: loop.GateDiff, Hash: hash, Answers: rules.Answers(loop.GateDiff)}})
	_, err = rules.Answer(s, valid, "approve", approval)
	require.NoError(t, err, "only a contract can come back")
}

func TestWhatAMessageDoesWithoutAGate(t *testing.T) {
	running, halting := loop.State{Status: loop.Running}, loop.State{Status: loop.Running, HaltRequested: "enough"}
	for name, c := range map[string]struct {
		s       loop.State
		message string
		m       loop.Message
		text    string
		reason  string // of the event, "-" if there is none
	}{
		"halt":                    {running, "halt", loop.Message{By: "ann"}, "halting", "halted by ann"},
		"halt with a note":        {running, "halt", loop.Message{By: "ann", Note: "it is late"}, "halting", "it is late"},
		"halt again":              {halting, "halt", loop.Message{}, "already halting", "-"},
		"another mode":            {running, "setMode", loop.Message{Mode: "plan", By: "ann"}, "halting", "the mode was changed to plan by ann"},
		"the mode that it has":    {running, "setMode", loop.Message{Mode: "mission"}, "the mode is mission already", "-"},
		"another mode, once more": {halting, "setMode", loop.Message{Mode: "answer"}, "already halting", "-"},
		"continue in a sleep":     {loop.State{Status: loop.Running, Sleep: &loop.Sleep{}}, "continue", loop.Message{}, "the agent is called again", ""},
	} {
		reply, err := rules.Answer(c.s, valid, c.message, c.m)
		require.NoError(t, err, name)
		require.Equal(t, c.text, reply.Text, name)
		reason := "-"
		for _, e := range reply.Events {
			reason = e.Reason
		}
		require.Equal(t, c.reason, reason, name)
	}
}

func TestTheHashOfAQuestionBindsItToItsContractAndBudget(t *testing.T) {
	g, b := loop.Gate{Kind: loop.GateBudget, Summary: "more?"}, loop.Budget{}
	other := g
	other.Summary = "less?"
	one, two := &loop.Contract{Hash: "1"}, &loop.Contract{Hash: "2"}
	seen := map[string]bool{
		rules.AskHash(nil, g, b): true, rules.AskHash(one, g, b): true, rules.AskHash(two, g, b): true, rules.AskHash(one, other, b): true,
		rules.AskHash(one, g, loop.NewBudget(rules.Limits(valid))): true,
	}
	require.Len(t, seen, 5)
}

// TestE3_AnAnswerThatIsSentAgainIsSaidToBeOne: it closes no other gate, and its sender learns who closed the first.
func TestE3_AnAnswerThatIsSentAgainIsSaidToBeOne(t *testing.T) {
	approval := loop.Message{Hash: hash, By: "ann"}
	reply, err := rules.Answer(at(loop.GateNewFiles), valid, "approve", approval)
	require.NoError(t, err)
	s := loop.Fold(at(loop.GateNewFiles), reply.Events)
	paused := s.Apply(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "pause-9", Kind: loop.GatePause, Answers: rules.Answers(loop.GatePause)}})
	asked := s.Apply(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "diff-9", Kind: loop.GateDiff, Hash: strings.Repeat("f", 64), Answers: rules.Answers(loop.GateDiff)}})
	reply, err = rules.Answer(at(loop.GateNewFiles), valid, "reject", loop.Message{})
	require.NoError(t, err)
	closed := loop.Fold(at(loop.GateNewFiles), reply.Events)
	reply, err = rules.Answer(at(loop.GateQuestion), valid, "answer", loop.Message{Choice: "retry"})
	require.NoError(t, err)
	chosen := loop.Fold(at(loop.GateQuestion), reply.Events)
	require.Empty(t, closed.Given, "an answer without a hash leaves the state that earlier versions have recorded")
	for _, c := range []struct {
		name    string
		s       loop.State
		message string
		m       loop.Message
		code    fault.Code
		says    string
	}{
		{"no gate is open", s, "approve", approval, fault.GateClosed, "the gate newFiles-7 was answered like this already: approve by ann"},
		{"another gate is open", asked, "approve", approval, fault.HashMismatch, "the gate newFiles-7 was answered like this already: approve by ann"},
		{"it names the gate that is open now", asked, "approve", loop.Message{Hash: hash[:16], Gate: "diff-9"}, fault.HashMismatch, "the gate newFiles-7 was answered like this already: approve by ann"},
		{"a gate of another kind is open", paused, "approve", approval, fault.GateMismatch, "the gate newFiles-7 was answered like this already: approve by ann"},
		{"another answer to the closed gate", asked, "reject", loop.Message{Gate: "newFiles-7"}, fault.GateMismatch, "the gate newFiles-7 is closed: approve by ann"},
		{"the last answer, without a hash", closed, "reject", loop.Message{Gate: "newFiles-7"}, fault.GateClosed, "the gate newFiles-7 was answered like this already: reject by a person"},
		{"no hash", asked, "approve", loop.Message{}, fault.HashMismatch, "approve needs the gate's hash"},
		{"a rejection with the hash of an approval", asked, "reject", approval, fault.HashMismatch, "what waits has the hash ffffffffffffffff, not 0123"},
		{"another choice", chosen, "answer", loop.Message{Gate: "question-7", Choice: "halt"}, fault.GateClosed, "the gate question-7 is closed: answer retry by a person"},
		{"another hash", asked, "approve", loop.Message{Hash: strings.Repeat("e", 64)}, fault.HashMismatch, "what waits has the hash ffffffffffffffff, not eeee"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := rules.Answer(c.s, valid, c.message, c.m)
			require.Equal(t, c.code, fault.CodeOf(err))
			require.ErrorContains(t, err, c.says)
			require.Empty(t, reply.Events)
		})
	}
}

func TestEndedLoopsTakeNoMessages(t *testing.T) {
	for _, m := range loop.Messages {
		_, err := rules.Answer(loop.State{Status: loop.Halted}, valid, m.Name, loop.Message{Hash: hash, Note: "x"})
		require.Equal(t, map[bool]fault.Code{true: fault.LoopNotPaused, false: fault.GateClosed}[m.Name == "continue"], fault.CodeOf(err), m.Name)
	}
}

// TestNoMixOfMessagesApprovesAnotherHash sends random messages to every gate. Only an approval with its own hash
// approves a contract, and only its own answers close a gate.
func TestNoMixOfMessagesApprovesAnotherHash(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	hashes := []string{"", hash, hash[:16], hash[:15], strings.Repeat("f", 64), "x"}
	kinds := []loop.GateKind{"", loop.GateContract, loop.GatePause, loop.GateBreakpoint, loop.GateGuard, loop.GateQuestion, loop.GateBudget, loop.GateDiff, loop.GateNewFiles}
	for i := range 20000 {
		kind := kinds[random.Intn(len(kinds))]
		s := at(kind)
		name := loop.Messages[random.Intn(len(loop.Messages))].Name
		m := loop.Message{Hash: hashes[random.Intn(len(hashes))], Choice: []string{"", "retry", "x"}[random.Intn(3)], Note: fmt.Sprint(i)}
		reply, err := rules.Answer(s, valid, name, m)
		after := loop.Fold(s, reply.Events)
		if s.Gate == nil || after.Gate != nil {
			continue
		}
		require.NoError(t, err)
		require.Contains(t, rules.Answers(kind), name)
		if name == "approve" || name == "extend" {
			require.GreaterOrEqual(t, len(m.Hash), 16)
			require.True(t, strings.HasPrefix(hash, m.Hash))
		}
	}
}

func TestA6_GuidanceIsRefusedWhereNoAgentCallIsLeft(t *testing.T) {
	change, contract := &loop.Gate{Kind: loop.GateDiff}, &loop.Gate{Kind: loop.GateContract}
	used := loop.Budget{loop.Iterations: {Limit: new(metric.MustDecimal("1")), Remaining: new(metric.MustDecimal("0"))}}
	for name, c := range map[string]struct {
		state   loop.State
		version int
		text    string // "" if it is refused
	}{
		"at work":                       {loop.State{Kind: "improve"}, 6, "told"},
		"at the contract":               {loop.State{Kind: "improve", Gate: contract}, 6, "told"},
		"at the change of an improve":   {loop.State{Kind: "improve", Gate: change}, 6, ""},
		"older rules":                   {loop.State{Kind: "improve", Gate: change}, 5, "told"},
		"at the change of a delivery":   {loop.State{Kind: "deliver", Gate: change}, 6, "the next agent call is told; one follows only if the change is rejected"},
		"a delivery without iterations": {loop.State{Kind: "deliver", Gate: change, Budget: used}, 6, ""},
		"halting":                       {loop.State{Kind: "improve", HaltRequested: "enough"}, 6, ""},
	} {
		reply, err := rules.Heard(c.state, c.version, rules.Reply{Text: "told"})
		require.Equal(t, c.text, reply.Text, name)
		require.Equal(t, c.text == "", err != nil, name)
	}
}
