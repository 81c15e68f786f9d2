package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// gated is a loop that opens these gates, one after the other. Any answer that is accepted closes a gate. After the
// last one the loop ends.
func gated(gates ...loop.Gate) *fakeTemporal {
	f := newFake()
	next := func(f *fakeTemporal) {
		if len(gates) == 0 {
			f.end(rules.IterationLimit)
			return
		}
		g := gates[0]
		gates = gates[1:]
		g.ID, g.Answers = string(g.Kind)+"-9", rules.Answers(g.Kind)
		f.emit(loop.Event{Type: loop.GateOpened, Gate: &g})
	}
	f.onStart = (*fakeTemporal).begin
	f.onTaken = func(f *fakeTemporal, _ string) { next(f) }
	return f
}

// at returns the same loop, started and at its first gate.
func (f *fakeTemporal) at() *fakeTemporal {
	f.id = "loop-1"
	f.begin()
	f.emit(loop.Event{Type: loop.GateClosed, Gate: f.state.Gate, Answer: &loop.Answer{Message: "approve"}})
	f.onTaken(f, "")
	return f
}

var (
	diffGate   = loop.Gate{Kind: loop.GateDiff, Summary: "approve the change as a whole", Hash: testHash}
	budgetGate = loop.Gate{Kind: loop.GateBudget, Summary: "the iterations are used up", Hash: testHash, Budget: loop.Iterations}
)

func TestAnswersThatCarrySomething(t *testing.T) {
	const hash = "0123456789abcdef"
	for _, c := range []struct {
		gate loop.Gate
		args []string
		want loop.Message
		name string
	}{
		{budgetGate, []string{"extend", "loop-1", "--limit", "iterations=20", "--limit", "activeTime=1h", "--hash", hash},
			loop.Message{Hash: hash, Limits: json.RawMessage(`{"activeTime":"1h","iterations":20}`)}, "extend"},
		{loop.Gate{Kind: loop.GateQuestion}, []string{"amend", "loop-1", "--set", "check.command=./weigh.sh --fast # once"},
			loop.Message{Spec: json.RawMessage(`{"check":{"command":"./weigh.sh --fast # once"}}`)}, "amend"},
		{diffGate, []string{"approve", "loop-1", "--hash", hash, "--apply", "squash"}, loop.Message{Hash: hash, Apply: "squash"}, "approve"},
	} {
		f := gated(c.gate).at()
		if c.want.Apply != "" {
			f.onTaken = func(f *fakeTemporal, _ string) { f.emit(rules.Interrupted.Event(loop.Usage{})) }
		}
		b := newBench(t, f)
		if c.want.By = "me"; c.name != "approve" { // it names what it is for by its hash
			c.want.Gate = string(c.gate.Kind) + "-9"
		}
		b.run(nil, append(c.args, "--by", "me")...)
		require.Equal(t, []sentMessage{{"update", c.name, c.want}}, f.taken(), b.stderr.String())
	}
}

func TestABudgetIsExtendedByTheHashThatWasShown(t *testing.T) {
	f := gated(budgetGate).at()
	b := newBench(t, f)
	b.atTerminal()
	b.run(strings.NewReader("y\n"), "extend", "loop-1", "--limit", "iterations=20")
	require.Contains(t, b.stderr.String(), "Waiting: the iterations are used up\nRaise the limit? [y/N] ")
	require.Equal(t, testHash, f.taken()[0].m.Hash)
}

func TestRunAsksForAChangeAndForABudgetAtATerminal(t *testing.T) {
	f := gated(budgetGate, diffGate)
	// The fake's spec lacks keys of the real one, against which an extension is checked.
	f.ownSpec = true
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		for _, step := range []struct{ question, answer string }{
			{"and start? [y/n] ", "y"},
			{"New total for iterations, such as 6? n: reject; Enter: later ", "none"},
			{"INVALID_MESSAGE", "20"},
			{"Approve this change?", "later"},
			{"\"later\" is no answer to this\nApprove this change?", "squash"},
		} {
			b.awaitStderr(step.question)
			io.WriteString(typist, step.answer+"\n")
		}
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
	sent := f.taken()
	require.Equal(t, []string{"approve", "extend", "extend", "approve"}, []string{sent[0].name, sent[1].name, sent[2].name, sent[3].name})
	require.JSONEq(t, `{"iterations":20}`, string(sent[2].m.Limits))
	require.Equal(t, testHash, sent[2].m.Hash)
	require.Equal(t, "squash", sent[3].m.Apply)
	require.Equal(t, testHash, sent[3].m.Hash)
}

func TestA7_AnApprovalThatAppliesSaysWhatCameOfItAndFailsWhereNothingDid(t *testing.T) {
	p := loop.Proposal{Hash: testHash, Head: "3eff7429e6aa", Files: 1, State: rules.Applied, Branch: "main", Commit: "29db84bd0aaa"}
	for _, c := range []struct {
		name string
		came loop.Event
		exit int
		says string
	}{
		{"applied", loop.Event{Type: loop.ProposalApplied, How: "ff", Proposal: &p}, 0, "applied to main (29db84bd0a)"},
		{"refused", loop.Event{Type: loop.Warned, ErrorCode: "PRECONDITION_FAILED", Reason: "the proposal is approved but not applied: main has changes", Recovery: "Commit or stash them."}, 2, "Commit or stash them."},
		{"moved", loop.Event{Type: loop.ProposalMade, Proposal: &p, Head: p.Head, Reason: "main has moved since the proposal 0123 was made"}, 2, "main has moved since the proposal was made, so nothing was applied"},
		{"rewritten", loop.Event{Type: loop.ProposalMade, Proposal: &p, Head: p.Head, Reason: "main was rewritten since the proposal 0123 was made", Rewritten: &loop.Rewritten{Base: testHash, Refs: []string{"refs/heads/pawl/loop-1"}, Loops: []string{"loop-1"}}}, 2, "still in pawl/loop-1: once the proposal is applied or rejected, stop the worker and run `pawl clean --refs loop-1`"},
		{"ended", rules.Interrupted.Event(loop.Usage{}), 2, "has ended (halted) and nothing was applied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := gated(diffGate).at()
			f.onTaken = func(f *fakeTemporal, _ string) { f.emit(c.came) }
			b := newBench(t, f)
			require.Equal(t, c.exit, b.run(nil, "approve", "loop-1", "--hash", testHash, "--apply", "ff"), b.stderr.String())
			require.Contains(t, b.stdout.String()+b.stderr.String(), c.says)
		})
	}
	f := gated(diffGate).at()
	f.noWorker = true
	b := newBench(t, f)
	require.Equal(t, 1, b.run(nil, "approve", "loop-1", "--hash", testHash, "--apply", "ff"))
	require.Contains(t, b.stderr.String(), "nothing is applied yet: the loop does it once a worker runs (`pawl up`)")
	require.NotContains(t, b.stderr.String(), "ENGINE_UNREACHABLE", "Temporal has taken the approval")
}

func TestAnApprovalSaysWhatFollows(t *testing.T) {
	p := loop.Proposal{Hash: testHash, Head: "3eff7429e6aa", Files: 1, State: rules.Approved}
	f := gated(diffGate).at()
	f.onTaken = func(f *fakeTemporal, _ string) {
		f.emit(loop.Event{Type: loop.ProposalMade, Proposal: &p, Head: p.Head})
	}
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "approve", "loop-1", "--hash", testHash), b.stderr.String())
	require.Contains(t, b.stderr.String(), "your repository has not changed: `pawl apply loop-1` brings the change to it")

	f = gated()
	f.id = "loop-1"
	f.begin()
	b = newBench(t, f)
	require.Equal(t, 0, b.run(nil, "approve", "loop-1", "--hash", f.state.Gate.Hash), b.stderr.String())
	require.Contains(t, b.stderr.String(), "the loop starts: `pawl log -f loop-1` follows it")
}

func TestAChangeMayBeJudgedLater(t *testing.T) {
	for typed, want := range map[string]string{"y": "approve", "ff": "approve"} {
		f := gated(diffGate)
		b := newBench(t, f)
		b.atTerminal()
		stdin, typist := io.Pipe()
		go func() {
			b.awaitStderr("[y/n] ")
			io.WriteString(typist, "y\n")
			b.awaitStderr("Approve this change?")
			io.WriteString(typist, typed+"\n")
		}()
		require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
		require.Equal(t, want, f.taken()[1].name)
	}
	t.Run("at the question that comes again", func(t *testing.T) {
		f := gated(diffGate)
		b := newBench(t, f)
		b.atTerminal()
		stdin, typist := io.Pipe()
		go func() {
			for _, step := range []struct{ after, typed string }{
				{"[y/n] ", "y"}, {"Enter: later ", ""}, {"from elsewhere: ", "ff"}, {"Enter: later ", "ff"},
			} {
				b.awaitStderr(step.after)
				io.WriteString(typist, step.typed+"\n")
			}
		}()
		require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
		require.Equal(t, "approve", f.taken()[1].name)
		require.Equal(t, 2, strings.Count(b.stderr.String(), "Approve this change?"))
	})
	t.Run("by somebody else", func(t *testing.T) {
		f := gated(diffGate)
		b := newBench(t, f)
		b.atTerminal()
		stdin, typist := io.Pipe()
		go func() {
			b.awaitStderr("[y/n] ")
			io.WriteString(typist, "y\n")
			b.awaitStderr("Approve this change?")
			io.WriteString(typist, "\n")
			b.awaitStderr("from elsewhere: pawl approve loop-1 --hash 0123456789abcdef, pawl approve loop-1 --hash 0123456789abcdef --apply ff, pawl reject loop-1 --note \"why\"")
			f.mu.Lock()
			defer f.mu.Unlock()
			if _, err := f.take("reject", loop.Message{}); err != nil {
				t.Error(err)
			}
		}()
		require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
		require.Len(t, f.taken(), 1)
	})
}

// TestTheReportBeginsBelowAQuestionThatNobodyAnswered: the loop was ended from elsewhere.
func TestTheReportBeginsBelowAQuestionThatNobodyAnswered(t *testing.T) {
	f := gated(diffGate)
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	defer typist.Close()
	go func() {
		b.awaitStderr("[y/n] ")
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(rules.TargetMet)
	}()
	b.run(stdin, "run", b.spec())
	require.Contains(t, b.stdout.String(), "Loop complete", b.stderr.String())
	require.True(t, strings.HasSuffix(b.stderr.String(), "[y/n] \n"), b.stderr.String())
}

func TestARejectionAtTheTerminalCarriesItsReason(t *testing.T) {
	f := gated(diffGate)
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		for _, step := range []struct{ question, answer string }{
			{"[y/n] ", "y"},
			{"n: reject (ends the loop); Enter: later ", "n"},
			{"Why? (for the record; Enter: no reason) ", " The API changes: Don't. "},
		} {
			b.awaitStderr(step.question)
			io.WriteString(typist, step.answer+"\n")
		}
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
	require.Equal(t, "reject", f.taken()[1].name)
	require.Equal(t, "The API changes: Don't.", f.taken()[1].m.Note)
}

func TestWatchFollowsAndDoesNothing(t *testing.T) {
	f := gated(diffGate).at()
	b := newBench(t, f)
	b.atTerminal() // still nobody is asked
	go func() {
		b.awaitStderr("pawl approve loop-1 --hash")
		f.mu.Lock()
		defer f.mu.Unlock()
		f.keep("84.8", "0.1")
		if _, err := f.take("approve", loop.Message{Hash: testHash}); err != nil {
			t.Error(err)
		}
	}()
	require.Equal(t, 0, b.run(nil, "watch", "loop-1"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "   1  kept")
	require.Contains(t, b.stdout.String(), "Loop complete: 1 iterations")
	require.Empty(t, f.taken())
}

func TestLeavingAWatchLeavesTheLoopAlone(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		f := gated(diffGate).at()
		b := newBench(t, f)
		go func() {
			b.awaitStderr("pawl approve loop-1 --hash")
			b.signals <- sig
		}()
		require.Equal(t, 5, b.run(nil, "watch", "loop-1"))
		require.Contains(t, b.stderr.String(), "the loop loop-1 waits for your answer")
		require.Empty(t, f.taken())
		require.False(t, f.ended())
	}
}

// A loop whose record is damaged is no loop of another host.
func TestADiffOfADamagedRecordSaysSo(t *testing.T) {
	b := newBench(t, gated(diffGate).at())
	require.Equal(t, 2, b.run(nil, "diff", "loop-1"))
	require.Contains(t, b.stderr.String(), "is on another host")

	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "home/loops/loop-1"), 0o700))
	b.file("home/loops/loop-1/workspace.json", "{")
	require.NotEqual(t, 0, b.run(nil, "diff", "loop-1"))
	require.Contains(t, b.stderr.String(), "the workspace record of loop-1 is damaged")
}

func TestWatchNeedsALoop(t *testing.T) {
	b := newBench(t, waiting())
	require.Equal(t, 2, b.run(nil, "watch", "loop-2"))
	require.Contains(t, b.stderr.String(), "ALO_LOOP_NOT_FOUND")
}

func TestP9_TheReportCanBeHadAgain(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	require.Equal(t, 2, b.run(nil, "report", "loop-1"), "a loop that has not ended has no final report")
	require.Contains(t, b.stderr.String(), "pawl watch loop-1")
	f.keep("84.8", "0.1")
	f.end(rules.IterationLimit)
	b = newBench(t, f)
	require.Equal(t, 0, b.run(nil, "report", "loop-1"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "Loop complete: 1 iterations, 1 kept, best metric: 84.8 (baseline: 84.7, delta: +0.1)")
	b = newBench(t, f)
	require.Equal(t, 0, b.run(nil, "report", "loop-1", "--json"))
	var out cli.Outcome
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &out))
	require.Equal(t, loop.Completed, out.Status)
	require.Equal(t, "84.8", out.Result.Best.String())
}

func TestTheReportOfADeliveryIsOne(t *testing.T) {
	f := waiting()
	f.state.Kind = kind.Deliver.Name
	f.emit(loop.Event{Type: loop.ChangeAccepted, Phase: phase.Fix},
		loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: &loop.Judgement{Passed: true, Tests: &loop.Tests{Passed: 7}}})
	f.end(rules.MaxIterations)
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "report", "loop-1"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "Not delivered: 0 iterations, 1 fix")
	require.Contains(t, b.stdout.String(), "7 passed")
	require.NotContains(t, b.stdout.String(), "metric")
}

// The notes stand above the question, once, and v shows what the summary leaves out.
func TestAContractIsOneScreenAndVShowsAllOfIt(t *testing.T) {
	f := improving()
	f.notes = []string{"verify takes 1m3s"}
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("and start? [y/n] ")
		io.WriteString(typist, "v\n")
		b.awaitStderr("protection  ")
		io.WriteString(typist, "y\n")
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
	text := b.stderr.String()
	require.Contains(t, text, "note: verify takes 1m3s\nv shows all of it. Approve this contract and start? [y/n] ")
	require.Equal(t, 1, strings.Count(text, "verify takes 1m3s"), text)
	require.Equal(t, 2, strings.Count(text, "Contract of loop-1"), "first the summary, then all of it")
	require.NotContains(t, text, "opened: branch", "the contract names it")
	require.NotContains(t, text, "started by", "who answers knows it")
	require.Len(t, f.taken(), 1)
}

func TestAWarningThatTheContractDoesNotRepeatIsShown(t *testing.T) {
	f := improving()
	f.onStart = func(f *fakeTemporal) {
		f.begin()
		f.emit(loop.Event{Type: loop.Warned, Reason: "of an older worker"})
	}
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "of an older worker")
}
