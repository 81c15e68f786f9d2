package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli"
	"pawl/internal/cli/render"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

// waiting is a loop at its contract gate.
func waiting() *fakeTemporal {
	f := newFake()
	f.id = "loop-1"
	f.begin()
	return f
}

func (b *bench) noEngine() {
	b.deps.Embedded.Find = func(context.Context, string) (cli.Found, bool) { return cli.Found{}, false }
}

func TestUsageErrorsExitWith2AndSayWhere(t *testing.T) {
	for _, args := range []string{
		"shw", "show", "show a b", "list x", "run a b", "start a b", "run --nope", "approve", "approve loop-1", "approve loop-1 --hash 0123456789abcdef --apply patch", "apply loop-1 --how foo", "extend loop-1 --limit iterations=9",
		"extend loop-1 --hash 0123456789abcdef", "extend loop-1 --hash 0123456789abcdef --limit iterations", "amend loop-1", "mode loop-1", "watch", "report", "log", "up x", "halt loop-1 --hash x", "halt loop-1 --gate x", "mode loop-1 plan --gate x",
	} {
		b := newBench(t, waiting())
		require.Equal(t, 2, b.run(nil, strings.Fields(args)...), args)
		require.Contains(t, b.stderr.String(), "pawl: ", args)
		require.Contains(t, b.stderr.String(), "--help", args)
		require.Empty(t, b.stdout.String(), args)
		require.Empty(t, b.temporal.taken(), args)
	}
}

// The words of the flag library ("accepts 2 arg(s), received 1") do not say what is missing.
func TestAWrongNumberOfArgumentsIsAnsweredByTheCommandLine(t *testing.T) {
	for args, said := range map[string]string{
		"answer":                "something is missing: use `pawl answer [ID] CHOICE`",
		"mode loop-1":           "something is missing: use `pawl mode [ID] MODE`",
		"run a b":               "b is too much: use `pawl run [FILE]`",
		"list x":                "x is too much: use `pawl list`",
		"steward submit shop":   "something is missing: use `pawl steward submit NAME FILE`",
		"demo deliver x":        "x is too much: use `pawl demo deliver`",
		"log x --verify -f":     "--verify and --follow can't be used together",
		"demo delivr":           `unknown command "delivr" for "pawl demo"; did you mean deliver?`,
		"help vlidate":          `unknown command "vlidate" for "pawl"; did you mean validate?`,
		"shwo":                  `unknown command "shwo" for "pawl"; did you mean show?`,
		"version":               `unknown command "version" for "pawl"; did you mean --version?`,
		"mode x":                "See `pawl mode --help`.\n",
		"foo":                   "unknown command \"foo\" for \"pawl\"\n", // and not log
		"help steward answer x": `unknown command "x" for "pawl steward answer"`,
	} {
		b := newBench(t, waiting())
		require.Equal(t, 2, b.run(nil, strings.Fields(args)...), args)
		require.Contains(t, b.stderr.String(), said, args)
		require.Empty(t, b.stdout.String(), args)
	}
}

func TestHelpOfACommandIsWhatItsFlagShows(t *testing.T) {
	help, flag := newBench(t, waiting()), newBench(t, waiting())
	require.Equal(t, 0, help.run(nil, "help", "steward", "answer"))
	require.Equal(t, 0, flag.run(nil, "steward", "answer", "--help"))
	require.Equal(t, flag.stdout.String(), help.stdout.String())
	require.Contains(t, help.stdout.String(), "pawl steward answer NAME")
}

// Whoever reports a bug needs the version first, and may have no settings that a loop could run with.
func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	t.Setenv("PAWL_WORKER_AGENTS", "none")
	b := newBench(t, waiting())
	require.Equal(t, 0, b.run(nil, "--version"), b.stderr.String())
	require.Regexp(t, `^pawl \S+ \(go\S+, \w+/\w+\)\n$`, b.stdout.String())

	b = newBench(t, waiting())
	require.Equal(t, 0, b.run(nil, "--version", "--json"), b.stderr.String())
	var v cli.Version
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.Equal(t, []string{"pawl", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, []string{v.Program, v.Go, v.Platform})
	require.NotEmpty(t, v.Version)

	b = newBench(t, waiting())
	b.deps.Program = "worker"
	require.Equal(t, 0, cli.Serve(t.Context(), []string{"--version"}, nil, &b.stdout, &b.stderr, b.deps), b.stderr.String())
	require.Regexp(t, `^worker \S+ \(go`, b.stdout.String())
	require.Equal(t, 2, newBench(t, waiting()).run(nil, "show", "--version"), "it is no flag of a command")
}

// The gate asks to approve the contract, so whoever looks at the gate sees what that is.
func TestShowAtTheContractsGateShowsTheContract(t *testing.T) {
	b := newBench(t, waiting())
	require.Equal(t, 0, b.run(nil, "show", "loop-1"))
	require.Contains(t, b.stdout.String(), "The whole contract: pawl show loop-1\n")
	require.Contains(t, b.stdout.String(), "\n\nContract of loop-1\n")
	require.Equal(t, 1, strings.Count(b.stdout.String(), "protection"))
}

func TestAFolderThatCannotBeWrittenSaysWhatToDo(t *testing.T) {
	b := newBench(t, waiting())
	h, err := home.Open()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.Logs(), nil, 0o600)) // not even root makes a folder there
	require.Equal(t, 2, b.run(nil, "up"))
	require.Contains(t, b.stderr.String(), "Set PAWL_HOME to a folder that you can write.")
}

func TestHelpListsCommandsAndExitCodes(t *testing.T) {
	b := newBench(t, newFake())
	require.Equal(t, 0, b.run(nil, "--help"))
	for _, text := range []string{"demo", "run", "up", "list", "show", "log", "start", "approve", "reject", "pause", "continue", "halt", "steer", "answer", "extend", "amend", "mode", "watch", "report", "clean", "4  a gate opened"} {
		require.Contains(t, b.stdout.String(), text)
	}
}

func TestMessagesAreSentAsUpdatesBoundToTheOpenGate(t *testing.T) {
	for _, c := range []struct {
		args string
		want loop.Message
		name string
	}{
		{"approve loop-1 --hash 0123456789abcdef --by me --note fine", loop.Message{By: "me", Note: "fine", Hash: "0123456789abcdef"}, "approve"},
		{"reject loop-1 --by me --note no", loop.Message{By: "me", Note: "no", Gate: "contract-5"}, "reject"},
		{"halt loop-1 --by me", loop.Message{By: "me"}, "halt"},
		{"pause loop-1 --by me", loop.Message{By: "me"}, "pause"},
		{"pause loop-1 --by me --before iteration", loop.Message{By: "me", Choice: "iteration"}, "pause"},
		{"mode loop-1 plan --by me", loop.Message{By: "me", Mode: "plan"}, "setMode"},
		{"steer loop-1 look at plan.go --by me", loop.Message{By: "me", Note: "look at plan.go"}, "steer"},
	} {
		f := waiting()
		b := newBench(t, f)
		require.Equal(t, 0, b.run(nil, strings.Fields(c.args)...), b.stderr.String())
		require.Equal(t, []sentMessage{{"update", c.name, c.want}}, f.taken())
		require.Contains(t, b.stdout.String(), "loop-1: ")
	}
}

func TestARefusedMessageExitsWith2AndPrintsItsCode(t *testing.T) {
	for args, code := range map[string]string{
		"approve loop-1 --hash 0000000000000000":                   "HASH_MISMATCH",
		"approve loop-1 --hash 01234567":                           "HASH_MISMATCH",
		"approve loop-1 --hash 0123456789abcdef --gate contract-1": "GATE_MISMATCH",
		"continue loop-1":                                          "ALO_LOOP_NOT_PAUSED",
		"answer loop-1 x":                                          "GATE_MISMATCH",
		"halt loop-2":                                              "ALO_LOOP_NOT_FOUND",
	} {
		b := newBench(t, waiting())
		require.Equal(t, 2, b.run(nil, strings.Fields(args)...), args)
		require.Contains(t, b.stderr.String(), "("+code+")", args)
		require.Empty(t, b.stdout.String())
	}
}

func TestWithoutAWorkerAMessageGoesAsASignalAndSaysSo(t *testing.T) {
	f := waiting()
	f.noWorker = true
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "halt", "loop-1", "--by", "me", "--json"))
	require.Equal(t, []sentMessage{{"signal", "halt", loop.Message{By: "me"}}}, f.taken())
	require.Contains(t, b.stderr.String(), "no worker answered, so halt was sent as a signal")
	require.JSONEq(t, `{"loop":"loop-1","message":"halt","via":"signal"}`, b.stdout.String())
}

func TestAMessageThatIsNotRepliedToIsNotSentTwice(t *testing.T) {
	f := waiting()
	f.unsure = true
	b := newBench(t, f)
	require.Equal(t, 1, b.run(nil, "halt", "loop-1"))
	require.Len(t, f.taken(), 1)
	require.Contains(t, b.stderr.String(), "pawl show loop-1")
}

func TestAnEndedLoopTakesNoMessages(t *testing.T) {
	f := waiting()
	f.end(rules.TargetMet)
	b := newBench(t, f)
	require.Equal(t, 2, b.run(nil, "halt", "loop-1"))
	require.Contains(t, b.stderr.String(), "the loop loop-1 has ended (completed)")
	f.state.Status = loop.Halted
	halted := newBench(t, f)
	require.Equal(t, 2, halted.run(nil, "steer", "loop-1", "x"))
	require.Contains(t, halted.stderr.String(), "the loop loop-1 has ended (halted)", "Temporal calls its workflow completed")
	require.Contains(t, b.stderr.String(), "GATE_CLOSED")
	require.Empty(t, f.taken())
}

func TestWithoutAnEngineAnsweringSaysHowToStartIt(t *testing.T) {
	for _, command := range []string{"halt", "show", "log", "diff"} {
		b := newBench(t, waiting())
		b.noEngine()
		require.Equal(t, 2, b.run(nil, command, "loop-1"), "this host knows no such loop, but the engine does")
		require.Contains(t, b.stderr.String(), "this host has no ledger of a loop loop-1, and no engine is running (ALO_LOOP_NOT_FOUND)", command)
		require.Contains(t, b.stderr.String(), "pawl up", command)
	}
}

// An engine whose process is stopped runs, so nobody is told that none runs or to start one.
func TestAStoppedEngineIsNotCalledAbsent(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", "loop-1"}, {"log", "loop-1"}, {"diff", "loop-1"}, {"inbox"}, {"watch", "loop-1"}} {
		b := newBench(t, waiting())
		b.noEngine()
		b.deps.Embedded.Unanswered = func(string) error {
			return fault.New(fault.EngineUnreachable, "process 7 is stopped").Advise("Let it continue.")
		}
		b.run(nil, args...)
		require.Contains(t, b.stderr.String(), "process 7 is stopped", args)
		require.Contains(t, b.stderr.String(), "Let it continue.", args)
		require.NotContains(t, b.stderr.String(), "no engine is running", args)
		require.NotContains(t, b.stderr.String(), "pawl up", args)
	}
}

// An ID is typed by hand and seldom known by heart.
func TestAnUnknownIDIsAnsweredByTheOneThatWasMeant(t *testing.T) {
	for _, command := range []string{"show lop-1", "log loop1", "halt loop-2", "watch loop", "diff loop-11", "approve loop-2 --hash 0123456789abcdef", "report loop-1x", "steward show loop-2"} {
		b := newBench(t, waiting())
		require.Equal(t, 2, b.run(nil, strings.Fields(command)...), command)
		require.Contains(t, b.stderr.String(), "; did you mean loop-1? (ALO_LOOP_NOT_FOUND)\n", command)
	}
	b := newBench(t, waiting())
	require.Equal(t, 2, b.run(nil, "show", "something-else"))
	require.Contains(t, b.stderr.String(), "there is no loop something-else (ALO_LOOP_NOT_FOUND)")
	require.Contains(t, b.stderr.String(), "pawl list")
	require.NotContains(t, b.stderr.String(), "did you mean")
}

func TestApproveAtATerminalShowsWhatWaitsAndAsks(t *testing.T) {
	for typed, exit := range map[string]int{"y\n": 0, "n\n": 5, "": 5} {
		f := waiting()
		b := newBench(t, f)
		b.atTerminal()
		require.Equal(t, exit, b.run(strings.NewReader(typed), "approve", "loop-1"))
		require.Contains(t, b.stderr.String(), "Contract of loop-1")
		require.Contains(t, b.stderr.String(), "Approve? [y/N] ")
		if exit == 0 {
			require.Equal(t, testHash, f.taken()[0].m.Hash, "exactly what was shown")
		} else {
			require.Empty(t, f.taken())
		}
	}
}

func TestCtrlCAtAQuestionAnswersNothing(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	b.atTerminal()
	stdin, _ := io.Pipe()
	go func() {
		b.awaitStderr("[y/N] ")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 5, b.run(stdin, "approve", "loop-1"))
	require.Empty(t, f.taken())
}

func TestShowPrintsTheStateExactly(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "show", "loop-1", "--json"))
	want, err := json.Marshal(f.state)
	require.NoError(t, err)
	require.JSONEq(t, string(want), b.stdout.String())
	require.Empty(t, b.stderr.String())
}

// A loop that waits makes no event, but a person must not be offered a limit that is used up already.
func TestTheWallClockGoesOnWhileALoopWaits(t *testing.T) {
	f := waiting()
	f.state.Gate = &loop.Gate{ID: "budget-5", Kind: loop.GateBudget, Hash: testHash, Budget: loop.WallClock}
	f.state.Budget = loop.NewBudget(map[loop.Resource]metric.Decimal{loop.WallClock: loop.Count(2000)})
	for _, args := range [][]string{{"show", "loop-1"}, {"inbox"}} {
		b := newBench(t, f)
		require.Equal(t, 0, b.run(nil, args...))
		require.Contains(t, b.stdout.String(), "wallClock=20s", "twice what is used by now")
	}
}

// A loop continues after damage was mended as if nothing had happened. People who look later see it.
func TestShowAndListNameWhatWasMended(t *testing.T) {
	b := newBench(t, waiting())
	h, err := home.Open()
	require.NoError(t, err)
	require.NoError(t, hostrecord.Write(h, hostrecord.Record{Loop: "loop-1", Ref: "loop-1", FirstRun: "run-1"}))
	repairlog.Note(h.Loop("loop-1"), "the store is gone; it is mended")
	said := func() int { return strings.Count(b.stdout.String(), "UTC: the store is gone; it is mended") }
	for i, args := range [][]string{{"show", "loop-1"}, {"show", "--json", "loop-1"}, {"list"}, {"list", "--json"}} {
		require.Equal(t, 0, b.run(nil, args...))
		require.Equal(t, i+1, said(), args)
	}
	b.noEngine()
	require.Equal(t, 0, b.run(nil, "list"))
	require.Equal(t, 5, said())
	b = newBench(t, waiting())
	h, err = home.Open()
	require.NoError(t, err)
	require.NoError(t, hostrecord.Write(h, hostrecord.Record{Loop: "loop-1", Ref: "loop-1", FirstRun: "run-1"}))
	for _, what := range []string{"the desk", "the store"} {
		repairlog.Note(h.Loop("loop-1"), what)
	}
	repairlog.Tell(h.Loop("loop-1"), "the desk")
	require.Equal(t, 0, b.run(nil, "log", "loop-1"))
	require.True(t, strings.HasSuffix(b.stdout.String(), "\nmended  the store\n"), "what no event tells yet: %s", b.stdout.String())
	require.NotContains(t, b.stdout.String(), "the desk")
}

func TestShowSaysHowToAnswer(t *testing.T) {
	b := newBench(t, waiting())
	require.Equal(t, 0, b.run(nil, "show", "loop-1"))
	require.Contains(t, b.stdout.String(), "pawl approve loop-1 --hash 0123456789abcdef")
}

// A terminated workflow runs no code, so its last answer is not the loop's state.
func TestShowOfATerminatedLoopSaysThatItIsOver(t *testing.T) {
	f := waiting()
	f.stopped = true
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "show", "--json", "loop-1"))
	var s loop.State
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &s))
	require.Equal(t, []string{"halted", "interrupted", "ALO_CANCELLED"}, []string{string(s.Status), s.ExitStatus, s.ErrorCode})
	require.Nil(t, s.Gate)
	require.Contains(t, s.Reason, "terminated")
}

func TestShowWithoutAWorkerAndWithoutALedgerSaysWhatToDo(t *testing.T) {
	f := waiting()
	f.noWorker = true
	b := newBench(t, f)
	require.Equal(t, 1, b.run(nil, "show", "loop-1"))
	require.Contains(t, b.stderr.String(), "pawl up")
}

func TestLogPrintsOneJSONEventPerLine(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "log", "loop-1", "--json"))
	lines := strings.Split(strings.TrimSpace(b.stdout.String()), "\n")
	require.Len(t, lines, len(f.events))
	for i, line := range lines {
		var e loop.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, int64(i+1), e.Seq)
	}
}

func TestLogFollowsUntilTheLoopEnds(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	done := make(chan int)
	go func() { done <- b.run(nil, "log", "-f", "loop-1") }()
	require.Eventually(t, func() bool { return strings.Contains(b.stdout.String(), "waiting") }, 20*time.Second, time.Millisecond)
	f.mu.Lock()
	f.end(rules.TargetMet)
	f.mu.Unlock()
	require.Equal(t, 0, <-done)
	require.Contains(t, b.stdout.String(), "completed: the target is met")
}

func TestListShowsTheLoopsOfTheService(t *testing.T) {
	b := newBench(t, waiting())
	require.Equal(t, 0, b.run(nil, "list"))
	require.Contains(t, b.stdout.String(), "loop-1")
	require.Contains(t, b.stdout.String(), "waits: contract")
	require.Contains(t, b.stdout.String(), "84.7")
}

func TestAnErrorIsJSONWhereJSONIsAskedFor(t *testing.T) {
	for args, want := range map[string][2]string{
		"show nobody": {"LOOP_NOT_FOUND", "no loop"}, "steer": {"INVALID_MESSAGE", "steer"},
	} {
		b := newBench(t, newFake())
		require.Equal(t, 2, b.run(nil, append(strings.Fields(args), "--json")...))
		var got struct {
			Error struct{ Code, Message, Fix string }
		}
		require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &got), b.stdout.String())
		require.Contains(t, got.Error.Code, want[0], args)
		require.Contains(t, got.Error.Message, want[1], args)
		require.NotEmpty(t, got.Error.Fix)
		require.NotEmpty(t, b.stderr.String(), "people read it as before")
	}
}

func TestARefusedStartIsListedOnlyWithAll(t *testing.T) {
	f := waiting()
	f.begin()
	f.end(rules.NotReady.Because("the working tree is not clean: a.txt"))
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "list"))
	require.NotContains(t, b.stdout.String(), "loop-1")
	require.Contains(t, b.stderr.String(), "there are no loops yet (`--all` lists refused starts too)")
	require.Equal(t, 0, b.run(nil, "list", "--all"))
	require.Contains(t, b.stdout.String(), "loop-1")
	require.Contains(t, b.stdout.String(), "the working tree is not clean")

	none := newBench(t, waiting())
	none.noEngine()
	require.Equal(t, 0, none.run(nil, "list", "--all"))
	require.Contains(t, none.stderr.String(), "there are no loops yet;")
}

func TestListAsksForLoopsOfAllKinds(t *testing.T) {
	f := waiting()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "list", "--json"))
	require.Contains(t, f.listed, "WorkflowType IN ('Improve', 'Deliver', 'Steward')")
	require.Contains(t, b.stdout.String(), `"kind": "deliver"`)
}

func TestListWithoutAnEngineSaysSo(t *testing.T) {
	b := newBench(t, waiting())
	b.noEngine()
	require.Equal(t, 0, b.run(nil, "list", "--json"))
	require.JSONEq(t, "[]", b.stdout.String())
	require.Contains(t, b.stderr.String(), "no engine is running")
}

func TestUpServesUntilInterrupted(t *testing.T) {
	b := newBench(t, newFake())
	go func() {
		b.awaitStderr("the worker is ready")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 0, b.run(nil, "up", "--json"), b.stderr.String())
	var v render.Serving
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.Equal(t, "127.0.0.1:7233", v.Address)
	require.Equal(t, "ours", v.Engine)
}

// The process that starts the engine says where it is. A second one would only repeat it.
func TestOnlyTheEnginesOwnerSaysThatThePortIsTaken(t *testing.T) {
	for _, joined := range []bool{false, true} {
		b := newBench(t, newFake())
		b.deps.Embedded.Share = func(context.Context, string, auth.Wish, *slog.Logger) (cli.Engine, error) {
			return fakeEngine{moved: true, joined: joined}, nil
		}
		go func() {
			b.awaitStderr("the worker is ready")
			b.signals <- os.Interrupt
		}()
		require.Equal(t, 0, b.run(nil, "up"), b.stderr.String())
		require.Equal(t, !joined, strings.Contains(b.stderr.String(), "so the engine listens at 127.0.0.1:7233"), b.stderr.String())
	}
}

func TestAProgramWithoutAnEngineNeedsAnAddress(t *testing.T) {
	b := newBench(t, newFake())
	b.deps.Embedded = nil
	require.Equal(t, 1, b.run(nil, "up"))
	require.Contains(t, b.stderr.String(), "TEMPORAL_ADDRESS")
}
