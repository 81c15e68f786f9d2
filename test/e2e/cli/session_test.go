package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// leaveNoTrace checks that an action does not change the loop.
func leaveNoTrace(w *world.World, do func()) {
	w.T.Helper()
	before, _ := w.Events()
	do()
	after, _ := w.Events()
	require.Equal(w.T, before, after, "refused messages leave no trace")
}

var hashLine = regexp.MustCompile(`pawl approve (\S+) --hash ([0-9a-f]{16})\n`)

// A1: autonomy needs an approved contract, and the approval holds for exactly that hash.
func TestA1_ContractIsApprovedByItsHash(t *testing.T) {
	w := world.New(t, world.Raises)
	s := w.Pawl("run", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	require.Empty(t, s.Out)
	for _, text := range []string{"Contract of " + w.Loop, "verify      sh measure.sh", "baseline    10", "sealed      measure.sh", "pawl up", "pawl reject " + w.Loop} {
		require.Contains(t, s.Err, text)
	}
	m := hashLine.FindStringSubmatch(s.Err)
	require.NotNil(t, m, "it says how to answer: %s", s.Err)
	require.Equal(t, w.Loop, m[1])

	var st world.State
	w.Until("the gate is recorded", func() bool { st = w.Show(); return st.Ledger != "" })
	require.Equal(t, "waiting", st.Status)
	require.Equal(t, "contract", st.Gate.Kind)
	require.True(t, strings.HasPrefix(st.Gate.Hash, m[2]))
	require.Equal(t, st.Contract.Hash, st.Gate.Hash)
	require.Empty(t, st.Contract.ApprovedBy)
	human := w.Pawl("show", w.Loop)
	require.Contains(t, human.Out, m[0], "show says how to answer, too")

	leaveNoTrace(w, func() {
		w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", strings.Repeat("ab", 32))
		w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", m[2][:15])
		w.Refused("HASH_MISMATCH", "reject", w.Loop, "--hash", strings.Repeat("ab", 32))
		w.Refused("GATE_MISMATCH", "approve", w.Loop, "--gate", "contract-1", "--hash", m[2])
		w.Refused("GATE_MISMATCH", "answer", w.Loop, "yes")
		w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
	})
	s = w.Pawl("approve", w.Loop)
	require.Equal(t, 2, s.Code)
	require.Contains(t, s.Err, "approve needs --hash")
	require.Equal(t, st, w.Show())

	s = w.Pawl("approve", w.Loop, "--hash", m[2], "--by", "Bob", "--json")
	require.Equal(t, 0, s.Code, s.Err)
	var sent struct{ Loop, Message, Via, Reply string }
	world.Decode(t, s.Out, &sent)
	require.Equal(t, w.Loop+" approve update", sent.Loop+" "+sent.Message+" "+sent.Via)
	require.Equal(t, "Bob", w.Waits("completed").Contract.ApprovedBy)
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestA1_RejectedContractEndsTheLoop(t *testing.T) {
	world.Slow(t, "workflows has the decision")
	w := world.New(t, world.Raises)
	s := w.Pawl("run", "--json", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	var r world.Report
	world.Decode(t, s.Out, &r)
	require.Equal(t, []string{w.Loop, "waiting", "contract"}, []string{r.Loop, r.Status, r.Gate.Kind})
	require.Nil(t, r.Result)
	require.Equal(t, 0, w.Pawl("reject", w.Loop, "--note", "not today").Code)
	st := w.Waits("halted")
	require.Equal(t, "ALO_CANCELLED", st.ErrorCode)
	require.Contains(t, st.Reason, "not today")
	require.NotContains(t, world.Types(first(w.Events())), "autonomy_started")
	require.Empty(t, w.Subjects())
}

func first[A, B any](a A, _ B) A { return a }

// What people say while the loop is paused is for the repeated step.
func TestSteerWhilePaused(t *testing.T) {
	world.Slow(t, "TestSteerReachesTheNextPromptOnce steers")
	w := world.New(t, `cat "$PAWL_PROMPT" >>"$WORLD/prompts"; `+world.WaitsFor("go"))
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	require.Equal(t, 0, w.Pawl("steer", w.Loop, "first hint").Code)
	require.Equal(t, 0, w.Pawl("pause", w.Loop).Code)
	require.Equal(t, 4, c.Wait().Code)
	w.Waits("paused")
	require.Equal(t, 0, w.Pawl("steer", w.Loop, "second hint").Code)
	require.NotContains(t, w.Read("prompts"), "hint")
	w.Write("go", "")
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	require.Contains(t, w.Read("prompts"), "- first hint\n- second hint\n")
}

// A loop can be faster than the command that follows it asks for news, and its query returns only the last events.
func TestWhoFollowsALoopMissesNoIteration(t *testing.T) {
	world.Slow(t, "forty iterations")
	const iterations = 40
	w := world.New(t, world.Raises).Set(doc{"limits": doc{"iterations": iterations}})
	s := w.Pawl("run", "--json", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	for i := 1; i <= iterations; i++ {
		require.Regexp(t, `(?m)^ +`+strconv.Itoa(i)+` +kept`, s.Err)
	}
}

// Who begins to watch a loop sees it from its beginning: its query returns only the last events.
func TestWhoWatchesALoopSeesItFromItsBeginning(t *testing.T) {
	world.Slow(t, "fifteen iterations")
	w := world.New(t, `if [ $PAWL_ITERATION = 15 ]; then touch "$WORLD/there"; until [ -e "$WORLD/go" ]; do sleep 0.05; done; fi; `+world.Raises).
		Set(doc{"limits": doc{"iterations": 15}})
	run := w.Start("run", "--yes", w.SpecFile())
	w.Until("it is at the last iteration", func() bool { _, err := os.Stat(filepath.Join(w.Dir, "there")); return err == nil })
	watch := w.Start("watch", w.Loop)
	w.Until("all is shown", func() bool { return strings.Contains(world.ReadFile(watch.Err), "  14  kept") })
	w.Write("go", "")
	require.Equal(t, 0, run.Wait().Code)
	s := watch.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	for i := 1; i <= 15; i++ {
		require.Len(t, regexp.MustCompile(`(?m)^ +`+strconv.Itoa(i)+` +kept`).FindAllString(s.Err, -1), 1, s.Err)
	}
}

// A6: pause stops the agent at once and restores what it began; continue repeats the step.
func TestA6_PauseMidAgent(t *testing.T) {
	w := world.New(t, world.WaitsFor("go"))
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	require.Equal(t, 0, w.Pawl("pause", w.Loop).Code)
	require.Equal(t, 4, c.Wait().Code, "nobody is there to say when it goes on")
	st := w.Waits("paused")
	require.Equal(t, "pause", st.Gate.Kind)
	require.Contains(t, st.PauseReason, "paused at modify")
	require.Equal(t, "good\n", world.ReadFile(filepath.Join(st.Desk, "work", "other")), "the desk is as the step began")
	w.NothingRuns()
	require.Equal(t, 0, w.Pawl("pause", w.Loop).Code, "to pause what is paused is no mistake")
	w.Refused("GATE_MISMATCH", "approve", w.Loop, "--hash", strings.Repeat("ab", 32))

	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.At(2)
	w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
	w.Write("go", "")
	st = w.Waits("completed")
	require.Equal(t, "1 10\n1 10\n", w.Read("at"), "the step begins again from its start")
	require.Equal(t, "good", w.Kept("work/other"))
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.LastRow())
	require.Equal(t, "2", st.Budget["toolCalls"].Used.String(), "what the interrupted call cost stays counted")
	all := world.Types(first(w.Events()))
	require.Subset(t, all, []string{"autonomy_paused", "autonomy_resumed"})
}

func TestA6_HaltMidAgent(t *testing.T) {
	world.Slow(t, "TestA6_PauseMidAgent interrupts the agent likewise")
	w := world.New(t, world.WaitsFor("never")).Set(doc{"limits": doc{"iterations": 5}})
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	s := w.Pawl("halt", w.Loop, "--note", "lunch", "--by", "Bob")
	require.Equal(t, 0, s.Code, s.Err)
	end := c.Wait()
	require.Equal(t, 5, end.Code, end.Err)
	var r world.Report
	world.Decode(t, end.Out, &r)
	require.Equal(t, []string{"halted", "interrupted", "ALO_CANCELLED"}, []string{r.Status, r.Result.ExitStatus, r.Result.ErrorCode})
	require.Contains(t, r.Result.Reason, "lunch")
	w.NothingRuns()
	require.Equal(t, "interrupted: a change that was not finished", w.LastRow().Description())
	require.Empty(t, w.Subjects())
	require.Contains(t, world.Types(first(w.Events())), "autonomy_halted")
	leaveNoTrace(w, func() {
		w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
		for _, args := range [][]string{{"pause"}, {"halt"}, {"steer", "on"}, {"reject"}, {"answer", "x"}} {
			w.Refused("GATE_CLOSED", append([]string{args[0], w.Loop}, args[1:]...)...)
		}
	})
}

func TestSteerReachesTheNextPromptOnce(t *testing.T) {
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION"; `+world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 3}})
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	require.Equal(t, 0, w.Pawl("steer", w.Loop, "try", "the `lexer` first").Code)
	require.Equal(t, 0, w.Pawl("steer", w.Loop, "--note", "and mind the gap").Code)
	w.Refused("INVALID_MESSAGE", "steer", w.Loop)
	for i := 1; i <= 3; i++ {
		w.At(i)
		w.Write("go-"+strconv.Itoa(i), "")
	}
	require.Equal(t, 0, c.Wait().Code)
	require.NotContains(t, w.Read("prompt-1"), "lexer")
	require.Contains(t, w.Read("prompt-2"), "lexer` first")
	require.Contains(t, w.Read("prompt-2"), "and mind the gap")
	require.NotContains(t, w.Read("prompt-3"), "lexer")
}

func TestL4_BreakpointWaitsForContinue(t *testing.T) {
	world.Slow(t, "workflows has breakpoints")
	w := world.New(t, world.Raises).Set(doc{"breakpoints": []string{"commit"}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 4, s.Code)
	require.Contains(t, s.Err, "breakpoint at commit")
	require.Contains(t, s.Err, "pawl continue "+w.Loop)
	st := w.Show()
	require.Equal(t, []string{"paused", "commit", "breakpoint"}, []string{st.Status, st.Phase, st.Gate.Kind})
	require.Contains(t, st.PauseReason, "breakpoint")
	w.Refused("GATE_MISMATCH", "reject", w.Loop)
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestTwoApprovalsAtOnceAreOne(t *testing.T) {
	w := world.New(t, world.WaitsFor("go"))
	w.Done("start", w.SpecFile())
	hash := w.Waits("waiting").Gate.Hash
	ann, bob := w.Start("approve", w.Loop, "--hash", hash, "--by", "Ann"), w.Start("approve", w.Loop, "--hash", hash, "--by", "Bob")
	won, lost, by := ann.Wait(), bob.Wait(), "Ann"
	if won.Code != 0 {
		won, lost, by = lost, won, "Bob"
	}
	require.Equal(t, 0, won.Code, won.Err)
	require.Equal(t, 2, lost.Code, lost.Out)
	require.Contains(t, lost.Err, "(GATE_CLOSED)")
	w.At(1)
	require.Equal(t, by, w.Show().Contract.ApprovedBy)
	require.Equal(t, 1, strings.Count(strings.Join(world.Types(first(w.Events())), " "), "gate_closed"), "it was closed once")
	w.Write("go", "")
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestAnswersThatNothingWaitsFor(t *testing.T) {
	world.Slow(t, "the gatekeeper's tests refuse such answers")
	w := world.New(t, world.WaitsFor("go"))
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	leaveNoTrace(w, func() {
		w.Refused("GATE_CLOSED", "approve", w.Loop, "--hash", strings.Repeat("ab", 32))
		w.Refused("GATE_CLOSED", "reject", w.Loop)
		w.Refused("GATE_CLOSED", "answer", w.Loop, "retry")
		w.Refused("ALO_LOOP_NOT_PAUSED", "continue", w.Loop)
	})
	w.Write("go", "")
	require.Equal(t, 0, c.Wait().Code)
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestUnknownLoop(t *testing.T) {
	w := world.New(t, world.Raises)
	for _, args := range [][]string{
		{"show"}, {"log"}, {"log", "--json"}, {"pause"}, {"continue"}, {"halt"}, {"reject"}, {"approve", "--hash", strings.Repeat("ab", 32)}, {"steer", "x"}, {"answer", "x"},
	} {
		s := w.Pawl(append([]string{args[0], "no-such-loop"}, args[1:]...)...)
		require.Equal(t, 2, s.Code, "%v: %s", args, s.Err)
		require.Contains(t, s.Err, "there is no loop no-such-loop (ALO_LOOP_NOT_FOUND)")
		require.Contains(t, s.Err, "pawl list")
		if slices.Contains(args, "--json") {
			require.Contains(t, s.Out, `"code": "ALO_LOOP_NOT_FOUND"`)
			continue
		}
		require.Empty(t, s.Out)
	}
}

// Ctrl-C ends the loop, with its report.
func TestP8_CtrlC(t *testing.T) {
	w := world.New(t, `[ "$PAWL_ITERATION" = 1 ] && { `+world.Raises+`; exit; }; `+world.WaitsFor("never")).Set(doc{"limits": doc{"iterations": 5}})
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	c.Interrupt()
	s := c.Wait()
	require.Equal(t, 5, s.Code, s.Err)
	require.Contains(t, s.Err, "ending the loop; its report follows")
	require.Contains(t, s.Out, "Loop halted: 2 iterations, 1 kept, best metric: 11 (baseline: 10, delta: +1)")
	require.Contains(t, s.Out, "Ctrl-C (ALO_CANCELLED)")
	require.Equal(t, "11", w.Kept("work/n"))
	w.NothingRuns()
}

// A second Ctrl-C ends the command at once. The next `pawl up` does the rest and needs nothing else.
func TestP8_SecondCtrlCLeavesAtOnce(t *testing.T) {
	world.Slow(t, "TestP8_CtrlC has the first")
	w := world.Alone(t, `trap "" INT; `+world.WaitsFor("never"))
	t.Parallel()
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	c.Interrupt()
	w.Until("it says that the loop ends", func() bool { return strings.Contains(world.ReadFile(c.Err), "Ctrl-C again leaves at once") })
	c.Interrupt()
	s := c.Wait()
	require.Equal(t, 5, s.Code, s.Err)
	require.Contains(t, s.Err, "the loop "+w.Loop+" waits for `pawl up`")
	require.Contains(t, s.Err, "`pawl up`, which resumes it")
	require.Empty(t, s.Out, "there is no report")

	w.Up()
	w.Until("it goes on or has ended", func() bool {
		return strings.Count(w.Read("at"), "\n") == 2 || w.Show().Status == "halted"
	})
	if w.Show().Status != "halted" { // the message had not arrived yet
		require.Equal(t, 0, w.Pawl("halt", w.Loop).Code)
	}
	require.Equal(t, "ALO_CANCELLED", w.Waits("halted").ErrorCode)
}
