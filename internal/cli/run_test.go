package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"pawl/internal/cli"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	hostworker "pawl/internal/worker"
)

// improving is a loop that keeps two changes and ends, once its contract is approved.
func improving() *fakeTemporal {
	f := newFake()
	f.onStart = (*fakeTemporal).begin
	f.onTaken = func(f *fakeTemporal, name string) {
		switch name {
		case "approve":
			f.keep("84.8", "0.1")
			f.keep("85.0", "0.2")
			f.end(rules.IterationLimit)
		case "reject":
			f.end(rules.Interrupted.Because("the contract was rejected"))
		}
	}
	return f
}

func TestRunApprovedBeforehandEndsWithTheReport(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--set", "limits.iterations=2"), b.stderr.String())
	require.Equal(t, `Loop complete: 2 iterations, 2 kept, best metric: 85.0 (baseline: 84.7, delta: +0.3), +0.35 %
Kept changes:
  3eff7429e6  make it better
  3eff7429e6  make it better
Discarded: 0 iterations
Recommendation: continue (more iterations may gain more)

  ended        completed: the iteration limit is reached
  branch       pawl/loop-1 in /src/routes
  next         git -C /src/routes log --oneline 2c9deac547..pawl/loop-1
               git -C /src/routes diff 2c9deac547..pawl/loop-1
  history      pawl log loop-1
`, b.stdout.String())
	require.Contains(t, b.stderr.String(), "Contract of loop-1", "what --yes approves is shown")
	require.Contains(t, b.stderr.String(), "no sandbox")
	require.Contains(t, b.stderr.String(), "best metric by iteration")
	require.NotContains(t, b.stderr.String(), "\x1b", "nothing moves without a terminal")
	require.Contains(t, b.stderr.String(), "Temporal UI http://127.0.0.1:8233", "while it runs; the engine's UI ends with this process")

	require.Len(t, f.taken(), 1)
	approval := f.taken()[0]
	require.Equal(t, "approve", approval.name)
	require.Equal(t, testHash, approval.m.Hash)
	require.Equal(t, "contract-5", approval.m.Gate)
	require.Equal(t, "--yes", approval.m.Note)
	require.NotEmpty(t, approval.m.By)
}

func TestRunStartsTheWorkflowOfTheContract(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--id", "loop-1-again", "--set", "limits.iterations=7"))
	require.Equal(t, "loop-1-again", f.options.ID)
	require.Equal(t, "pawl", f.options.TaskQueue)
	require.Equal(t, 2*time.Second, f.options.WorkflowTaskTimeout)
	require.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, f.options.WorkflowIDConflictPolicy)
	require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, f.options.WorkflowIDReusePolicy)
	require.Equal(t, "Make it better", f.options.StaticSummary)
	require.Equal(t, "pawl/loop-1-again", f.options.Memo["branch"])
	require.Equal(t, "Make it better", f.options.Memo["goal"])
	require.NotEmpty(t, f.options.Memo["startedBy"])
	require.Equal(t, 7, f.spec.Limits.Iterations)
	require.Equal(t, b.dir, f.spec.Repo.Path, "relative to the spec file")
}

func TestRunJSONPrintsTheOutcomeAlone(t *testing.T) {
	b := newBench(t, improving())
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--json"))
	var out cli.Outcome
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &out))
	require.Equal(t, loop.Completed, out.Status)
	require.Equal(t, "85.0", out.Result.Best.String())
	require.Nil(t, out.Gate)
}

func TestRunWithoutATerminalLeavesAtAGateWithExitCode4(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	require.Equal(t, 4, b.run(nil, "run", b.spec(), "--json"))
	require.Contains(t, b.stderr.String(), "pawl approve loop-1 --hash 0123456789abcdef")
	require.Contains(t, b.stderr.String(), "it stays")
	require.Empty(t, f.taken(), "nothing is answered for anybody")
	var out cli.Outcome
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &out))
	require.Equal(t, loop.Waiting, out.Status)
	require.Equal(t, "contract-5", out.Gate.ID)
}

func TestRunAsksAtATerminal(t *testing.T) {
	for _, c := range []struct {
		name, typed, message string
		exit                 int
	}{
		{"y approves", "y\n", "approve", 0},
		{"yes approves", "YES\n", "approve", 0},
		{"n rejects, and the loop ends", "n\ntoo dear\n", "reject", 5},
		{"Enter asks again", "\ny\n", "approve", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			b.atTerminal()
			stdin, typist := io.Pipe()
			go io.WriteString(typist, c.typed)
			require.Equal(t, c.exit, b.run(stdin, "run", b.spec()), b.stderr.String())
			require.Contains(t, b.stderr.String(), "Approve this contract and start? [y/n] ")
			require.Equal(t, c.message, f.taken()[0].name)
		})
	}
}

func TestRunWhoseTerminalGoesAwayAtTheQuestionLeaves(t *testing.T) {
	b := newBench(t, improving())
	b.atTerminal()
	require.Equal(t, 4, b.run(strings.NewReader(""), "run", b.spec()))
}

// asking is a loop that asks a question after its contract.
func asking() *fakeTemporal {
	f := newFake()
	f.onStart = (*fakeTemporal).begin
	f.onTaken = func(f *fakeTemporal, name string) {
		switch name {
		case "approve":
			f.emit(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{
				ID: "question-9", Kind: loop.GateQuestion, Summary: "verify printed no number", Answers: []string{"answer"}, Choices: []string{"retry", "halt"},
			}})
		case "answer":
			f.emit(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "pause-11", Kind: loop.GatePause, Summary: "paused", Answers: []string{"continue"}}})
		case "continue":
			f.end(rules.TargetMet)
		}
	}
	return f
}

func TestRunAsksWhateverTheLoopAsks(t *testing.T) {
	f := asking()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		for _, step := range []struct{ question, answer string }{
			{"and start? [y/n] ", "y"}, {"Choose retry or halt: ", "perhaps"}, {"\"perhaps\" is no answer to this\nChoose retry or halt: ", "retry"},
			{"Answer continue (Enter: later): ", "Continue"},
		} {
			b.awaitStderr(step.question)
			io.WriteString(typist, step.answer+"\n")
		}
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
	sent := f.taken()
	require.Len(t, sent, 3)
	require.Equal(t, "retry", sent[1].m.Choice)
	require.Equal(t, "question-9", sent[1].m.Gate)
	require.Equal(t, "continue", sent[2].name)
}

// TestAQuestionAskedHereNamesItsCommandsOnlyWhenNobodyAnswersIt: at a terminal the person answers in place.
func TestAQuestionAskedHereNamesItsCommandsOnlyWhenNobodyAnswersIt(t *testing.T) {
	b := newBench(t, asking())
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("and start? [y/n] ")
		io.WriteString(typist, "y\n")
		b.awaitStderr("  retry: try it again\n  halt: end the loop\nChoose retry or halt: ")
		if strings.Contains(b.stderr.String(), "pawl answer") || strings.Contains(b.stderr.String(), "answered: ") {
			t.Error(b.stderr.String())
		}
		typist.Close()
	}()
	require.Equal(t, 4, b.run(stdin, "run", b.spec()), b.stderr.String())
	require.Contains(t, b.stderr.String(), "  pawl answer loop-1 retry\n  pawl answer loop-1 halt\n")
}

// awaitStderr waits until a text was written. A helper goroutine of the running command uses it, and it may not end
// the test itself.
func (b *bench) awaitStderr(text string) {
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(b.stderr.String(), text); {
		if time.Now().After(deadline) {
			b.t.Errorf("waited in vain for %q", text)
			b.signals <- syscall.SIGTERM
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// What happens while a gate's question is open is shown below it, and the question comes again.
func TestAQuestionComesAgainBelowWhatHappens(t *testing.T) {
	const question = "v shows all of it. Approve this contract and start? [y/n] "
	f := improving()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr(question)
		f.mu.Lock()
		f.emit(loop.Event{Type: loop.MessageReceived, Message: loop.MessagePause, By: "ann"})
		f.mu.Unlock()
		b.awaitStderr("message pause by ann\n" + question)
		io.WriteString(typist, "y\n")
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
}

func TestAnAnswerFromElsewhereEndsTheQuestion(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	b.atTerminal()
	stdin, _ := io.Pipe()
	go func() {
		b.awaitStderr("[y/n] ")
		f.mu.Lock()
		defer f.mu.Unlock()
		_, err := f.take("approve", loop.Message{By: "somebody", Hash: testHash})
		if err != nil {
			t.Error(err)
		}
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()))
	require.Contains(t, b.stderr.String(), "started by somebody")
}

// running is a loop that runs until it is halted.
func running() *fakeTemporal {
	f := newFake()
	f.onStart = (*fakeTemporal).begin
	f.onTaken = func(f *fakeTemporal, name string) {
		switch name {
		case "approve":
			f.keep("84.8", "0.1")
		case "halt":
			f.end(rules.Interrupted.Because(f.state.HaltRequested))
		}
	}
	return f
}

func TestP8_CtrlCEndsTheLoopWithItsReport(t *testing.T) {
	f := running()
	b := newBench(t, f)
	go func() {
		b.awaitStderr("   1  kept")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 5, b.run(nil, "run", b.spec(), "--yes"))
	require.Contains(t, b.stdout.String(), "Loop halted: 1 iterations, 1 kept, best metric: 84.8 (baseline: 84.7, delta: +0.1)")
	require.Contains(t, b.stdout.String(), "halted: Ctrl-C (ALO_CANCELLED)")
	sent := f.taken()
	require.Equal(t, "halt", sent[len(sent)-1].name)
}

func TestP8_CtrlCAtATerminalEndsTheLoopOnlyByTheWholeWord(t *testing.T) {
	f := running()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	const question = "Enter: go on; d: detach; p: pause; end: end it. Ctrl-C again leaves at once: "
	go func() {
		b.awaitStderr("   1  kept")
		said := ""
		for _, step := range []struct{ typed, says string }{
			{"", "pawl: the loop goes on\n"}, {"e", "pawl: \"e\" is none of these; the loop goes on\n"},
			{"y", "pawl: \"y\" is none of these; the loop goes on\n"}, {"end", "ending the loop"},
		} {
			b.signals <- os.Interrupt
			b.awaitStderr(said + question)
			io.WriteString(typist, step.typed+"\n")
			b.awaitStderr(step.says)
			said = step.says + "\n"
		}
	}()
	require.Equal(t, 5, b.run(stdin, "run", b.spec(), "--yes"), b.stderr.String())
	sent := f.taken()
	require.Len(t, sent, 2, "the approval and the end")
	require.Equal(t, "halt", sent[1].name)
}

func TestAfterCtrlCFifteenSecondsOfSilenceMeanGoOn(t *testing.T) {
	f := running()
	b := newBench(t, f)
	b.atTerminal()
	silence := make(chan time.Time)
	waits := make(chan time.Duration, 2)
	b.deps.After = func(d time.Duration) <-chan time.Time {
		waits <- d
		return silence
	}
	stdin, _ := io.Pipe()
	go func() {
		b.awaitStderr("   1  kept")
		b.signals <- os.Interrupt
		b.awaitStderr("Ctrl-C again leaves at once: ")
		silence <- time.Time{}
		b.awaitStderr("leaves at once: \npawl: no answer; the loop goes on\n")
		b.signals <- os.Interrupt
		b.awaitStderr("the loop goes on\n\nEnter: go on;") // it asks again
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 5, b.run(stdin, "run", b.spec(), "--yes"), b.stderr.String())
	require.Equal(t, 15*time.Second, <-waits)
	require.Contains(t, b.stderr.String(), "left; the loop loop-1 waits for `pawl up`")
	require.Len(t, f.taken(), 1, "nothing but the approval was sent")
	require.False(t, f.ended())
}

// What happens while it is open is shown after it: no row lands on the question's line.
func TestNothingIsPrintedIntoTheQuestionOfCtrlC(t *testing.T) {
	f := running()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("   1  kept")
		b.signals <- os.Interrupt
		b.awaitStderr("Ctrl-C again leaves at once: ")
		f.mu.Lock()
		f.keep("84.9", "0.1")
		f.mu.Unlock()
		require.Eventually(t, f.allTold, 20*time.Second, time.Millisecond)
		io.WriteString(typist, "\n")
		b.awaitStderr("leaves at once: pawl: the loop goes on\n   2  kept")
		b.signals <- os.Interrupt
		b.awaitStderr("make it better\n\nEnter: go on;")
		f.mu.Lock()
		f.end(rules.IterationLimit)
		f.mu.Unlock()
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec(), "--yes"), b.stderr.String())
	require.NotContains(t, b.stderr.String()+"|", "leaves at once: |", "a line break follows the question")
}

func TestEnterAfterCtrlCLeavesAPausedLoopPaused(t *testing.T) {
	f := running()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("   1  kept")
		f.mu.Lock()
		f.emit(loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "pause-11", Kind: loop.GatePause, Summary: "paused", Answers: []string{"continue"}}})
		f.mu.Unlock()
		b.awaitStderr("Answer continue")
		b.signals <- os.Interrupt
		b.awaitStderr("Ctrl-C again leaves at once: ")
		io.WriteString(typist, "\n")
		b.awaitStderr("the loop stays paused\nAnswer continue")
		b.signals <- syscall.SIGTERM
	}()
	require.Equal(t, 5, b.run(stdin, "run", b.spec(), "--yes"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "is paused. ")
}

func TestAtAQuestionCtrlCAndEnterAskAgain(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("and start? [y/n] ")
		b.signals <- os.Interrupt
		b.awaitStderr("Ctrl-C again leaves at once: ")
		io.WriteString(typist, "\n")
		b.awaitStderr("the loop waits for your answer\nv shows all of it. Approve this contract and start? [y/n] ")
		io.WriteString(typist, "\n")
		b.awaitStderr("[y/n] v shows all of it. Approve this contract and start? [y/n] ")
		io.WriteString(typist, "x\n")
		b.awaitStderr("\"x\" is no answer to this\nv shows all of it. Approve this contract and start? [y/n] ")
		io.WriteString(typist, "y\n")
	}()
	require.Equal(t, 0, b.run(stdin, "run", b.spec()), b.stderr.String())
	require.Len(t, f.taken(), 1)
}

func TestASecondCtrlCLeavesAtOnceAndTheLoopStays(t *testing.T) {
	f := running()
	f.onTaken = func(f *fakeTemporal, name string) {
		if name == "approve" {
			f.keep("84.8", "0.1") // it never ends, whatever message it gets
		}
	}
	b := newBench(t, f)
	go func() {
		b.awaitStderr("   1  kept")
		b.signals <- os.Interrupt
		b.awaitStderr("Ctrl-C again")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 5, b.run(nil, "run", b.spec(), "--yes"))
	require.Empty(t, b.stdout.String())
	require.Contains(t, b.stderr.String(), "the loop loop-1 waits for `pawl up`, which resumes it")
	require.False(t, f.ended())
}

func TestSIGTERMLeavesTheLoopAlone(t *testing.T) {
	f := running()
	b := newBench(t, f)
	go func() {
		b.awaitStderr("   1  kept")
		b.signals <- syscall.SIGTERM
	}()
	require.Equal(t, 5, b.run(nil, "run", b.spec(), "--yes"))
	require.Contains(t, b.stderr.String(), "waits for `pawl up`")
	require.Len(t, f.taken(), 1, "nothing but the approval was sent")
}

func TestASignalWhileStartingLeavesBeforeThereIsALoop(t *testing.T) {
	f := newFake()
	b := newBench(t, f)
	b.deps.Embedded.Share = func(ctx context.Context, _ string, _ auth.Wish, _ *slog.Logger) (cli.Engine, error) {
		b.signals <- os.Interrupt
		<-ctx.Done()
		return nil, ctx.Err()
	}
	require.Equal(t, 5, b.run(nil, "run", b.spec(), "--yes"))
	require.Empty(t, f.id)
}

func TestEachEndHasItsExitCode(t *testing.T) {
	for _, c := range []struct {
		name string
		end  rules.End
		exit int
	}{
		{"target met", rules.TargetMet, 0},
		{"discards in a row", rules.DiscardsInARow, 0},
		{"verify timeout", rules.VerifyTimeout, 3},
		{"agent failed", rules.AgentFailed, 3},
		{"time budget", rules.TimeBudget, 6},
		{"halted", rules.Interrupted, 5},
		{"given up while blocked", rules.BlockedGivenUp, 5},
		{"machine failed", rules.MachineFailed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			f.onStart = func(f *fakeTemporal) { f.begin() }
			f.onTaken = func(f *fakeTemporal, _ string) { f.end(c.end) }
			b := newBench(t, f)
			require.Equal(t, c.exit, b.run(nil, "run", b.spec(), "--yes"))
			word := map[loop.Status]string{loop.Completed: "complete", loop.Failed: "failed", loop.Halted: "halted"}[c.end.Status]
			if c.end.Status == loop.Failed {
				require.NotContains(t, b.stdout.String(), "Recommendation")
			}
			require.Contains(t, b.stdout.String(), "Loop "+word+": 0 iterations")
			require.Contains(t, b.stdout.String(), string(c.end.Code))
			if hint := fault.Recovery(c.end.Code); hint != "" {
				require.Equal(t, 1, strings.Count(b.stdout.String()+b.stderr.String(), hint), "a hint is said once")
			}
		})
	}
}

func TestP0_APreconditionIsAnErrorAndNoReport(t *testing.T) {
	f := newFake()
	f.onStart = func(f *fakeTemporal) {
		f.end(rules.NotReady.Of(fault.New(fault.PreconditionFailed, "the tree is not clean: a.go").Advise("commit or stash it")))
	}
	b := newBench(t, f)
	require.Equal(t, 2, b.run(nil, "run", b.spec(), "--yes"))
	require.Empty(t, b.stdout.String())
	require.Contains(t, b.stderr.String(), "pawl: the tree is not clean: a.go (PRECONDITION_FAILED)\n      commit or stash it\n")
	require.Equal(t, 1, strings.Count(b.stderr.String(), "commit or stash it"), "a hint is said once")
}

func TestASecondLoopOfANameIsRefused(t *testing.T) {
	f := running()
	f.id = "loop-1"
	b := newBench(t, f)
	require.Equal(t, 2, b.run(nil, "run", b.spec()))
	require.Contains(t, b.stderr.String(), string(fault.LoopAlreadyRunning))
	require.Contains(t, b.stderr.String(), "pawl show loop-1")
}

func TestAWorkerThatFailsEndsTheCommandAndNotTheLoop(t *testing.T) {
	f := running()
	b := newBench(t, f)
	b.deps.Worker = func(context.Context, hostworker.Options) error { return errors.New("the lock is broken") }
	require.Equal(t, 1, b.run(nil, "run", b.spec(), "--yes")) // otherwise it might leave at the gate before
	require.Contains(t, b.stderr.String(), "the loop loop-1 stays: the lock is broken")
	require.False(t, f.ended())
}

func TestAWorkerThatFindsNoEngineTriesAgain(t *testing.T) {
	b := newBench(t, improving())
	failures := 0
	b.deps.Worker = func(ctx context.Context, o hostworker.Options) error {
		if failures < 2 {
			failures++
			return fmt.Errorf("recovering: %w", serviceerror.NewUnavailable("connection refused"))
		}
		o.Ready(true)
		b.temporal.mu.Lock()
		b.temporal.begin()
		b.temporal.mu.Unlock()
		<-ctx.Done()
		return nil
	}
	b.temporal.onStart = nil // nothing happens without a worker
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes"), b.stderr.String())
	require.Equal(t, 2, failures)
}

func TestAnInvalidSpecStartsNothing(t *testing.T) {
	f := newFake()
	b := newBench(t, f)
	b.deps.Embedded.Share = func(context.Context, string, auth.Wish, *slog.Logger) (cli.Engine, error) {
		t.Error("the engine was started")
		return nil, errors.New("no")
	}
	require.Equal(t, 2, b.run(nil, "run", b.spec(), "--set", "verify.direction=sideways", "--set", "limits.iterations=0"))
	require.Contains(t, b.stderr.String(), "INVALID_SPEC")
	require.Contains(t, b.stderr.String(), "verify.direction")
	require.Contains(t, b.stderr.String(), "limits.iterations")
}

func TestTheIDMustBeginWithTheName(t *testing.T) {
	b := newBench(t, newFake())
	require.Equal(t, 2, b.run(nil, "run", b.spec(), "--id", "other"))
	require.Contains(t, b.stderr.String(), "does not begin with the spec's name")
}

func TestWithoutANameTheIDComesFromTheFolder(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--set", "name=", "--set", "repo.path=/src/--my routes"))
	require.Regexp(t, `^my routes-[0-9a-f]{4}$`, f.id)
}
