package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waitsFor is an agent that does its work when the test lets it, and says where it is: $WORLD/at
// has a line for each call, with the number that it found.
func waitsFor(file string) string {
	return `echo "$PAWL_ITERATION $(cat work/n)" >>"$WORLD/at"; echo 99 >work/other; until [ -e "$WORLD/` + file + `" ]; do sleep 0.05; done
		echo good >work/other; ` + raises
}

// at waits until the agent was called that often.
func (w *world) at(calls int) {
	w.t.Helper()
	w.until("the agent is at work for the "+strconv.Itoa(calls)+". time", func() bool {
		return strings.Count(w.read("at"), "\n") == calls
	})
}

// refused sends a message and expects it to be refused with a code.
func (w *world) refused(code string, args ...string) said {
	w.t.Helper()
	s := w.pawl(args...)
	require.Equal(w.t, 2, s.code, "%v: %s%s", args, s.out, s.err)
	require.Contains(w.t, s.err, "("+code+")", "%v", args)
	require.Empty(w.t, s.out)
	plain(w.t, s.err)
	return s
}

// leaveNoTrace expects that the loop has not changed by what is done.
func (w *world) leaveNoTrace(do func()) {
	w.t.Helper()
	before, _ := w.events()
	do()
	after, _ := w.events()
	require.Equal(w.t, before, after, "refused messages leave no trace")
}

// event is a line of `pawl log --json`.
type event struct {
	Seq                      int64
	Time, Loop, Type, Reason string
	Iteration                int
	Phase, Message           string
}

func (w *world) events() ([]event, said) {
	w.t.Helper()
	s := w.pawl("log", "--json", w.loop)
	var events []event
	for _, line := range strings.Split(strings.TrimSpace(s.out), "\n") {
		if line == "" {
			continue
		}
		var e event
		require.NoError(w.t, json.Unmarshal([]byte(line), &e), line)
		require.Equal(w.t, int64(len(events)+1), e.Seq, "no event is missing, none comes twice")
		require.Equal(w.t, w.loop, e.Loop)
		events = append(events, e)
	}
	return events, s
}

// types are the events' types in their order.
func types(events []event) (all []string) {
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

var hashLine = regexp.MustCompile(`pawl approve (\S+) --hash ([0-9a-f]{16})\n`)

// A1: autonomy starts with an approved contract only, and the approval is for exactly that hash.
func TestA1_ContractIsApprovedByItsHash(t *testing.T) {
	w := newWorld(t, raises)
	s := w.pawl("run", w.specFile())
	require.Equal(t, 4, s.code, s.err)
	require.Empty(t, s.out)
	for _, text := range []string{"Contract of " + w.loop, "verify      sh measure.sh", "baseline    10", "sealed      measure.sh", "pawl up", "pawl reject " + w.loop} {
		require.Contains(t, s.err, text)
	}
	m := hashLine.FindStringSubmatch(s.err)
	require.NotNil(t, m, "it says how to answer: %s", s.err)
	require.Equal(t, w.loop, m[1])

	st := w.show()
	require.Equal(t, "waiting", st.Status)
	require.Equal(t, "contract", st.Gate.Kind)
	require.True(t, strings.HasPrefix(st.Gate.Hash, m[2]))
	require.Equal(t, st.Contract.Hash, st.Gate.Hash)
	require.Empty(t, st.Contract.ApprovedBy)
	human := w.pawl("show", w.loop)
	require.Contains(t, human.out, m[0], "show says how to answer, too")

	w.leaveNoTrace(func() {
		w.refused("HASH_MISMATCH", "approve", w.loop, "--hash", strings.Repeat("ab", 32))
		w.refused("HASH_MISMATCH", "approve", w.loop, "--hash", m[2][:15])
		w.refused("HASH_MISMATCH", "reject", w.loop, "--hash", strings.Repeat("ab", 32))
		w.refused("GATE_MISMATCH", "approve", w.loop, "--gate", "contract-1", "--hash", m[2])
		w.refused("GATE_MISMATCH", "answer", w.loop, "yes")
		w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
	})
	s = w.pawl("approve", w.loop)
	require.Equal(t, 2, s.code)
	require.Contains(t, s.err, "approve needs --hash")
	require.Equal(t, st, w.show())

	s = w.pawl("approve", w.loop, "--hash", m[2], "--by", "Bob", "--json")
	require.Equal(t, 0, s.code, s.err)
	var sent struct{ Loop, Message, Via, Reply string }
	decode(t, s.out, &sent)
	require.Equal(t, w.loop+" approve update", sent.Loop+" "+sent.Message+" "+sent.Via)
	require.Equal(t, "Bob", w.waits("completed").Contract.ApprovedBy)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestA1_RejectedContractEndsTheLoop(t *testing.T) {
	w := newWorld(t, raises)
	s := w.pawl("run", "--json", w.specFile())
	require.Equal(t, 4, s.code, s.err)
	var r report
	decode(t, s.out, &r)
	require.Equal(t, []string{w.loop, "waiting", "contract"}, []string{r.Loop, r.Status, r.Gate.Kind})
	require.Nil(t, r.Result)
	require.Equal(t, 0, w.pawl("reject", w.loop, "--note", "not today").code)
	st := w.waits("halted")
	require.Equal(t, "ALO_CANCELLED", st.ErrorCode)
	require.Contains(t, st.Reason, "not today")
	require.NotContains(t, types(first(w.events())), "autonomy_started")
	require.Empty(t, w.subjects())
}

func first[A, B any](a A, _ B) A { return a }

// What people say while the loop is paused is for the step that is repeated.
func TestSteerWhilePaused(t *testing.T) {
	w := newWorld(t, `cat "$PAWL_PROMPT" >>"$WORLD/prompts"; `+waitsFor("go"))
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	require.Equal(t, 0, w.pawl("steer", w.loop, "first hint").code)
	require.Equal(t, 0, w.pawl("pause", w.loop).code)
	require.Equal(t, 4, c.wait().code)
	w.waits("paused")
	require.Equal(t, 0, w.pawl("steer", w.loop, "second hint").code)
	require.NotContains(t, w.read("prompts"), "hint")
	w.write("go", "")
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.waits("completed")
	require.Contains(t, w.read("prompts"), "- first hint\n- second hint\n")
}

// A loop can be faster than whoever follows it asks for news: its query answers with its last events
// only.
func TestWhoFollowsALoopMissesNoIteration(t *testing.T) {
	const iterations = 40
	w := newWorld(t, raises).set(doc{"limits": doc{"iterations": iterations}})
	s := w.pawl("run", "--json", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	for i := 1; i <= iterations; i++ {
		require.Regexp(t, `(?m)^ +`+strconv.Itoa(i)+` +kept`, s.err)
	}
}

// A6: pause stops the agent at once and restores what it began; continue repeats the step.
func TestA6_PauseMidAgent(t *testing.T) {
	w := newWorld(t, waitsFor("go"))
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	require.Equal(t, 0, w.pawl("pause", w.loop).code)
	require.Equal(t, 4, c.wait().code, "nobody is there to say when it goes on")
	st := w.waits("paused")
	require.Equal(t, "pause", st.Gate.Kind)
	require.Contains(t, st.PauseReason, "paused at modify")
	require.Equal(t, "good\n", readFile(filepath.Join(st.Desk, "work", "other")), "the desk is as the step began")
	w.nothingRuns()
	require.Equal(t, 0, w.pawl("pause", w.loop).code, "to pause what is paused is no mistake")
	w.refused("GATE_MISMATCH", "approve", w.loop, "--hash", strings.Repeat("ab", 32))

	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.at(2)
	w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
	w.write("go", "")
	st = w.waits("completed")
	require.Equal(t, "1 10\n1 10\n", w.read("at"), "the step begins again from its start")
	require.Equal(t, "good", w.kept("work/other"))
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.lastRow())
	require.Equal(t, "2", st.Budget["toolCalls"].Used.String(), "what the interrupted call cost stays counted")
	all := types(first(w.events()))
	require.Subset(t, all, []string{"autonomy_paused", "autonomy_resumed"})
}

func TestA6_HaltMidAgent(t *testing.T) {
	w := newWorld(t, waitsFor("never")).set(doc{"limits": doc{"iterations": 5}})
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	s := w.pawl("halt", w.loop, "--note", "lunch", "--by", "Bob")
	require.Equal(t, 0, s.code, s.err)
	end := c.wait()
	require.Equal(t, 5, end.code, end.err)
	var r report
	decode(t, end.out, &r)
	require.Equal(t, []string{"halted", "interrupted", "ALO_CANCELLED"}, []string{r.Status, r.Result.ExitStatus, r.Result.ErrorCode})
	require.Contains(t, r.Result.Reason, "lunch")
	w.nothingRuns()
	require.Equal(t, "interrupted: a change that was not finished", w.lastRow().description)
	require.Empty(t, w.subjects())
	require.Contains(t, types(first(w.events())), "autonomy_halted")
	w.leaveNoTrace(func() {
		w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
		for _, args := range [][]string{{"pause"}, {"halt"}, {"steer", "on"}, {"reject"}, {"answer", "x"}} {
			w.refused("GATE_CLOSED", append([]string{args[0], w.loop}, args[1:]...)...)
		}
	})
}

func TestSteerReachesTheNextPromptOnce(t *testing.T) {
	w := newWorld(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION"; `+waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 3}})
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	require.Equal(t, 0, w.pawl("steer", w.loop, "try", "the `lexer` first").code)
	require.Equal(t, 0, w.pawl("steer", w.loop, "--note", "and mind the gap").code)
	w.refused("INVALID_MESSAGE", "steer", w.loop)
	for i := 1; i <= 3; i++ {
		w.at(i)
		w.write("go-"+strconv.Itoa(i), "")
	}
	require.Equal(t, 0, c.wait().code)
	require.NotContains(t, w.read("prompt-1"), "lexer")
	require.Contains(t, w.read("prompt-2"), "lexer` first")
	require.Contains(t, w.read("prompt-2"), "and mind the gap")
	require.NotContains(t, w.read("prompt-3"), "lexer")
}

func TestL4_BreakpointWaitsForContinue(t *testing.T) {
	w := newWorld(t, raises).set(doc{"breakpoints": []string{"commit"}})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 4, s.code)
	require.Contains(t, s.err, "breakpoint at commit")
	require.Contains(t, s.err, "pawl continue "+w.loop)
	st := w.show()
	require.Equal(t, []string{"paused", "commit", "breakpoint"}, []string{st.Status, st.Phase, st.Gate.Kind})
	require.Contains(t, st.PauseReason, "breakpoint")
	w.refused("GATE_MISMATCH", "reject", w.loop)
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.waits("completed")
	require.Equal(t, "11", w.kept("work/n"))
}

func TestTwoApprovalsAtOnceAreOne(t *testing.T) {
	w := newWorld(t, waitsFor("go"))
	w.done("start", w.specFile())
	hash := w.waits("waiting").Gate.Hash
	ann, bob := w.start("approve", w.loop, "--hash", hash, "--by", "Ann"), w.start("approve", w.loop, "--hash", hash, "--by", "Bob")
	won, lost, by := ann.wait(), bob.wait(), "Ann"
	if won.code != 0 {
		won, lost, by = lost, won, "Bob"
	}
	require.Equal(t, 0, won.code, won.err)
	require.Equal(t, 2, lost.code, lost.out)
	require.Contains(t, lost.err, "(GATE_CLOSED)")
	w.at(1)
	require.Equal(t, by, w.show().Contract.ApprovedBy)
	require.Equal(t, 1, strings.Count(strings.Join(types(first(w.events())), " "), "gate_closed"), "it was closed once")
	w.write("go", "")
	w.waits("completed")
	require.Equal(t, "11", w.kept("work/n"))
}

func TestAnswersThatNothingWaitsFor(t *testing.T) {
	w := newWorld(t, waitsFor("go"))
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	w.leaveNoTrace(func() {
		w.refused("GATE_CLOSED", "approve", w.loop, "--hash", strings.Repeat("ab", 32))
		w.refused("GATE_CLOSED", "reject", w.loop)
		w.refused("GATE_CLOSED", "answer", w.loop, "retry")
		w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
	})
	w.write("go", "")
	require.Equal(t, 0, c.wait().code)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestUnknownLoop(t *testing.T) {
	w := newWorld(t, raises)
	for _, args := range [][]string{
		{"show"}, {"log"}, {"log", "--json"}, {"pause"}, {"continue"}, {"halt"}, {"reject"}, {"approve", "--hash", strings.Repeat("ab", 32)}, {"steer", "x"}, {"answer", "x"},
	} {
		s := w.pawl(append([]string{args[0], "no-such-loop"}, args[1:]...)...)
		require.Equal(t, 2, s.code, "%v: %s", args, s.err)
		require.Contains(t, s.err, "there is no loop no-such-loop (ALO_LOOP_NOT_FOUND)")
		require.Contains(t, s.err, "pawl list")
		require.Empty(t, s.out)
	}
}

// Ctrl-C ends the loop with its report.
func TestP8_CtrlC(t *testing.T) {
	w := newWorld(t, `[ "$PAWL_ITERATION" = 1 ] && { `+raises+`; exit; }; `+waitsFor("never")).set(doc{"limits": doc{"iterations": 5}})
	c := w.start("run", "--yes", w.specFile())
	w.at(1)
	c.interrupt()
	s := c.wait()
	require.Equal(t, 5, s.code, s.err)
	require.Contains(t, s.err, "ending the loop; its report follows")
	require.Contains(t, s.out, "Loop complete: 2 iterations, 1 kept, best metric: 11 (baseline: 10, delta: +1)")
	require.Contains(t, s.out, "Ctrl-C (ALO_CANCELLED)")
	require.Equal(t, "11", w.kept("work/n"))
	w.nothingRuns()
}

// A second Ctrl-C leaves at once. What is left is for the next `pawl up`, which needs nothing else.
func TestP8_SecondCtrlCLeavesAtOnce(t *testing.T) {
	w := newWorldOfItsOwn(t, `trap "" INT; `+waitsFor("never"))
	t.Parallel()
	c := w.start("run", "--yes", w.specFile())
	w.at(1)
	c.interrupt()
	w.until("it says that the loop ends", func() bool { return strings.Contains(readFile(c.err), "Ctrl-C again leaves at once") })
	c.interrupt()
	s := c.wait()
	require.Equal(t, 5, s.code, s.err)
	require.Contains(t, s.err, "the loop "+w.loop+" stays where it is")
	require.Contains(t, s.err, "`pawl up` goes on with it")
	require.Empty(t, s.out, "there is no report")

	w.up()
	w.until("it goes on or has ended", func() bool {
		return strings.Count(w.read("at"), "\n") == 2 || w.show().Status == "halted"
	})
	if w.show().Status != "halted" { // the message had not arrived
		require.Equal(t, 0, w.pawl("halt", w.loop).code)
	}
	require.Equal(t, "ALO_CANCELLED", w.waits("halted").ErrorCode)
}

// up starts a `pawl up` in a world of its own, until the test's end.
func (w *world) up() *up {
	w.t.Helper()
	u, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, u.stop()) })
	return u
}

// A process that is told to go leaves its loop, and `pawl up` goes on with it.
func TestLoopThatIsLeftGoesOnUnderUp(t *testing.T) {
	w := newWorldOfItsOwn(t, waitsFor("go")).set(doc{"limits": doc{"iterations": 2}})
	t.Parallel()
	c := w.start("run", "--yes", w.specFile())
	w.at(1)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	s := c.wait()
	require.Equal(t, 5, s.code, s.err)
	require.Contains(t, s.err, "the embedded engine at 127.0.0.1:")

	// Nobody serves: reading falls back to the ledger, and a message waits for who will.
	s = w.pawl("show", w.loop)
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "no engine is running")
	require.Contains(t, s.err, "`pawl up` goes on from there")
	s = w.pawl("steer", w.loop, "mind the gap")
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "steer was sent as a signal; it takes effect when a worker runs (`pawl up`)")
	w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
	w.nothingRuns()

	u := w.up()
	w.at(2)
	require.NoError(t, u.stop())
	w.nothingRuns()

	w.up()
	w.write("go", "")
	w.waits("completed")
	require.Equal(t, "1 10\n1 10\n1 10\n", strings.Join(strings.SplitAfter(w.read("at"), "\n")[:3], ""), "the step begins again from its start")
	require.Equal(t, []row{
		{"0", "10", "+0.00", "yes", "baseline"}, {"1", "11", "+1.00", "yes", "raise the number"}, {"2", "12", "+1.00", "yes", "raise the number"},
	}, w.results(w.loop))
}

// An answer is judged by the ledger where nothing runs, and waits in the engine for a worker.
func TestAnAnswerWaitsForAWorker(t *testing.T) {
	w := newWorldOfItsOwn(t, raises).set(doc{"approvals": doc{"plan": "required"}})
	t.Parallel()
	s := w.pawl("run", "--json", w.specFile())
	require.Equal(t, 4, s.code, s.err)
	var r report
	decode(t, s.out, &r)
	w.refused("HASH_MISMATCH", "approve", w.loop, "--hash", strings.Repeat("0", 64))
	w.refused("ALO_LOOP_NOT_PAUSED", "continue", w.loop)
	w.refused("GATE_MISMATCH", "approve", w.loop, "--hash", r.Gate.Hash, "--gate", "contract-99")
	s = w.pawl("approve", "--json", w.loop, "--hash", r.Gate.Hash)
	require.Equal(t, 0, s.code, s.err)
	var sent struct{ Via string }
	decode(t, s.out, &sent)
	require.Equal(t, "signal", sent.Via)
	w.nothingRuns()
	w.up()
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, func() row { w.waits("completed"); return w.lastRow() }())
}

// A second process uses the engine that runs, and takes engine and worker over when their owner
// goes.
func TestSecondProcessUsesTheEngineAndTakesItOver(t *testing.T) {
	w := newWorldOfItsOwn(t, waitsFor("go"))
	t.Parallel()
	owner := w.start("run", "--yes", w.specFile())
	w.at(1)
	second := w.start("up", "--json")
	w.until("it serves", func() bool { return strings.HasSuffix(readFile(second.out), "}\n") })
	var serving struct{ Address, UI, Namespace, Worker, Engine, Log string }
	decode(t, readFile(second.out), &serving)
	require.Equal(t, "another's", serving.Engine)
	require.Contains(t, readFile(owner.err), serving.Address)
	require.NoError(t, owner.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 5, owner.wait().code)
	w.until("it has taken over", func() bool { return strings.Contains(readFile(second.err), "took over the engine") })
	w.write("go", "")
	w.waits("completed")
	second.interrupt()
	s := second.wait()
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "the worker is ready")
	require.NotContains(t, readFile(filepath.Join(w.home, "logs", "pawl.log")), "had lost", "%s", s.err)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestReadingWithAndWithoutAnEngine(t *testing.T) {
	w := newWorldOfItsOwn(t, raises).set(doc{"limits": doc{"iterations": 2}})
	t.Parallel()
	s := w.pawl("list")
	require.Equal(t, 0, s.code, s.err)
	require.Empty(t, s.out)
	require.Contains(t, s.err, "there are no loops yet")
	require.Equal(t, "[]\n", w.pawl("list", "--json").out)
	w.run(0)

	type listed struct {
		Loop, Status, Branch, Goal, Repo string
		Iteration                        int
		Best                             json.Number
	}
	want := []listed{{w.loop, "completed", "pawl/" + w.loop, "climb", w.repo, 2, "12"}}
	read := func() (list []listed, st state, events []event) {
		s := w.pawl("list", "--json")
		require.Equal(t, 0, s.code, s.err)
		decode(t, s.out, &list)
		require.Contains(t, w.pawl("list").out, w.loop)
		st = w.show()
		require.Contains(t, w.pawl("show", w.loop).out, "pawl/"+w.loop)
		events, s = w.events()
		require.Equal(t, 0, s.code, s.err)
		require.Contains(t, w.pawl("log", w.loop).out, "kept 12 (+1): raise the number")
		return list, st, events
	}
	list, st, events := read()
	require.Equal(t, want, list)
	require.Equal(t, "completed", st.Status)
	s = w.pawl("show", w.loop)
	require.Contains(t, s.err, "no engine is running; this is from the ledger")

	w.up()
	w.until("Temporal's list knows", func() bool {
		var list []listed
		decode(t, w.pawl("list", "--json").out, &list)
		return len(list) == 1 && list[0] == want[0]
	})
	_, stUp, eventsUp := read()
	require.Equal(t, st, stUp)
	require.Equal(t, events, eventsUp)
	require.Subset(t, types(events), []string{
		"autonomy_started", "checkpoint_created", "iteration_started", "iteration_succeeded", "budget_exhausted", "autonomy_completed",
	})
}

// A7: the user's branch is theirs: what is kept is proposed, on a branch of its own.
func TestA7_UserWorksOnWhileTheLoopRuns(t *testing.T) {
	w := newWorld(t, waitsFor("go"))
	c := w.start("run", "--json", "--yes", w.specFile())
	w.at(1)
	w.write("repo/work/n", "50\n")
	w.commit("meanwhile")
	w.write("repo/work/n", "51\n")
	w.write("repo/untracked", "")
	w.before = w.snapshot()
	w.write("go", "")
	s := c.wait()
	require.Equal(t, 0, s.code, s.err)
	require.Equal(t, "11", w.kept("work/n"), "the loop works on what was there when it began")
	require.Equal(t, "50", w.git("show", "main:work/n"))
}

// A branch of the loop that is checked out can't be pushed to. That is told, and no loss.
func TestPushThatIsRefused(t *testing.T) {
	w := newWorld(t, waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 2}})
	c := w.start("run", "--yes", w.specFile())
	w.at(1)
	w.write("go-1", "")
	w.at(2)
	w.until("the first keep is pushed, which nobody waits for", func() bool { return w.kept("work/n") == "11" })
	w.git("checkout", "--quiet", "pawl/"+w.loop)
	w.before = w.snapshot()
	w.write("go-2", "")
	s := c.wait()
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "a push was refused")
	require.Contains(t, s.err, "checked out")
	require.Equal(t, "11", w.kept("work/n"))
	require.Equal(t, "12", w.show().Best.String())
	w.git("checkout", "--quiet", "main")
	w.before = w.snapshot()
	w.fetches(s)
	require.Equal(t, "12", w.kept("work/n"))
}

// fetches brings a loop's branch and ledger to the repository in the way that the report says.
func (w *world) fetches(s said) {
	w.t.Helper()
	require.Contains(w.t, s.out, "not pushed")
	command := regexp.MustCompile(`git -C .* fetch .*`).FindString(s.out)
	require.NotEmpty(w.t, command, s.out)
	w.shell(command)
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.repo, ".git", "FETCH_HEAD")))
	require.NotEmpty(w.t, w.results(w.loop))
}

// shell runs what pawl told a person to type.
func (w *world) shell(command string) {
	w.t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = environ(w.home, w.dir)
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "%s: %s", command, out)
}

// The repository goes away under the loop: it ends all the same, with its ledger at hand.
func TestRepositoryThatGoesAway(t *testing.T) {
	w := newWorld(t, waitsFor("go"))
	c := w.start("run", "--yes", w.specFile())
	w.at(1)
	require.NoError(t, os.Rename(w.repo, w.repo+".away"))
	w.write("go", "")
	s := c.wait()
	require.NoError(t, os.Rename(w.repo+".away", w.repo))
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "a push was refused")
	require.Equal(t, "11", w.show().Best.String())
	w.fetches(s)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestTwoLoopsInOneRepositoryAtOnce(t *testing.T) {
	w := newWorld(t, `touch "$WORLD/at-$PAWL_LOOP"; until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+raises)
	delete(w.spec, "name")
	file := w.specFile()
	one := w.start("run", "--json", "--yes", "--id", w.loop+"-one", file)
	two := w.start("run", "--json", "--yes", "--id", w.loop+"-two T02:00:00Z", file)
	same := w.start("run", "--json", "--yes", "--id", w.loop+"-two-T02:00:00Z", file)
	w.until("all are at work", func() bool {
		return w.exists("at-"+w.loop+"-one") && w.exists("at-"+w.loop+"-two T02:00:00Z") && w.exists("at-"+w.loop+"-two-T02:00:00Z")
	})
	w.write("go", "")
	for _, c := range []*command{one, two, same} {
		s := c.wait()
		require.Equal(t, 0, s.code, s.err)
	}
	for _, name := range []string{"-one", "-two-T02-00-00Z", "-two-T02-00-00Z.2"} {
		require.Equal(t, "11", w.git("show", "refs/heads/pawl/"+w.loop+name+":work/n"))
		require.Len(t, w.results(w.loop+name), 2)
	}
}
