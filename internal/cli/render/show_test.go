package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

func TestEveryKindIsShown(t *testing.T) {
	for _, name := range kind.Loops() {
		k, err := kind.Of(name)
		require.NoError(t, err)
		require.NotEmpty(t, style.State(k, loop.New("x", name), now))
		require.NotEmpty(t, style.Progress(k, loop.New("x", name), now, now))
		require.NotRegexp(t, `(?m)\bafter\s*(,|$)|, or\s*(,|$)`, style.Contract(render.Contract{Kind: k}), "every limit that stops it has words")
	}
}

func TestAGateSaysExactlyHowToAnswer(t *testing.T) {
	for name, gate := range gates() {
		golden(t, "gate-"+name, style.Gate("my loop", gate, running().Budget, now))
	}
}

// What was asked of a loop while it waits or works happens later, and nobody else would say so until then.
func TestShowSaysWhatIsRequested(t *testing.T) {
	st := running()
	require.NotContains(t, style.State(kind.Improve, st, now), "requested")
	st.PauseRequested, st.PauseAt, st.PausedBy = true, loop.PauseIteration, "ann"
	require.Contains(t, style.State(kind.Improve, st, now), "requested     a pause before the next iteration, by ann\n")
	diff, pause := gates()["contract"], gates()["pause"]
	st.PauseAt, st.Gate = loop.PauseNow, &diff
	require.Contains(t, style.State(kind.Improve, st, now), "requested     a pause if the loop goes on, by ann\n")
	st.Gate = &pause
	require.NotContains(t, style.State(kind.Improve, st, now), "requested", "it is paused")
	st.Guidance = []loop.Note{{Text: "try the lexer"}, {Text: "and the parser"}}
	require.Contains(t, style.State(kind.Improve, st, now), "requested     2 notes for the next agent call\n")
}

func TestAGateOfAnotherDayHasItsDate(t *testing.T) {
	gate := gates()["pause"]
	require.Contains(t, style.Gate("x", gate, running().Budget, now), ", since 13:32:11\n")
	gate.OpenedAt = now.Add(-24 * time.Hour)
	require.Contains(t, style.Gate("x", gate, running().Budget, now), ", since 2026-03-26 15:02:11\n")
	zone := style
	zone.Zone = time.FixedZone("", 12*3600) // where it is tomorrow by now
	gate.OpenedAt = now.Add(-90 * time.Minute)
	require.Contains(t, zone.Gate("x", gate, running().Budget, now), ", since 00:32:11\n")
	gate.OpenedAt = now.Add(-4 * time.Hour)
	require.Contains(t, zone.Gate("x", gate, running().Budget, now), ", since 2026-03-27 22:02:11\n")
}

func TestTheStateIsReadable(t *testing.T) {
	golden(t, "show-running", style.State(kind.Improve, running(), now))
	waiting := running()
	g := gates()["question"]
	waiting.Gate, waiting.Status = &g, loop.Waiting
	golden(t, "show-waiting", style.State(kind.Improve, waiting, now))
	ended := running()
	ended.Status, ended.Reason, ended.ErrorCode = loop.Halted, "Ctrl-C", "ALO_CANCELLED"
	ended.Proposal = &loop.Proposal{Hash: hash, Files: 1, Insertions: 80, Deletions: 25, State: "open"}
	golden(t, "show-ended", style.State(kind.Improve, ended, now))
}

func TestA8_ProgressShowsBudgetsAndFitsItsLine(t *testing.T) {
	since := now.Add(-3200 * time.Millisecond)
	wide := render.Style{Width: 200, Zone: zone}
	g := gates()["contract"]
	waiting := running()
	waiting.Gate = &g
	starting := loop.State{}
	golden(t, "progress", strings.Join([]string{
		wide.Progress(kind.Improve, running(), since, now), wide.Progress(kind.Improve, waiting, since, now), wide.Progress(kind.Improve, starting, since, now),
	}, "\n"))
	for width := 20; width < 200; width += 7 {
		line := render.Style{Width: width}.Progress(kind.Improve, running(), since, now)
		require.Less(t, utf8.RuneCountInString(line), width)
	}
	colored := render.Style{Width: 200, Color: true}.Progress(kind.Improve, running(), since, now)
	require.Equal(t, wide.Progress(kind.Improve, running(), since, now), strings.NewReplacer("\x1b[36m", "", "\x1b[0m", "").Replace(colored))
}

// TestL_ADeliveryIsShownByPhasesTestsAndReview checks what a reader of a Deliver loop sees, from the contract to the
// report.
func TestL_ADeliveryIsShownByPhasesTestsAndReview(t *testing.T) {
	sp := spec.Defaults()
	sp.Kind, sp.Goal, sp.Scope = "deliver", "# Mend it\n\n- [ ] it joins\n- [ ] it sorts", []string{"**"}
	sp.Test.Command, sp.Guard.Command = "go test -json ./...", "go vet ./..."
	sp.Agent.Command = spec.Argv{Shell: "./agent"}
	sp.Agent.Roles = map[string]spec.Override{"reviewer": {}}
	c := render.Contract{Loop: "mend", Kind: kind.Deliver, Repo: "/r", Branch: "pawl/mend", InScope: 2, Spec: sp, Plan: &loop.Plan{Hash: hash, Text: "1. mend Merge\n2. hide\x1b nothing"}, Contract: loop.Contract{Hash: hash, Base: "2c9deac54712", Tools: []string{"*"}}}
	golden(t, "deliver-contract", style.Contract(c))
	required := false
	sp.Test = spec.Test{Required: &required}
	target := dec("3")
	sp.Verify.Command, sp.Verify.Target = "sh done.sh", &target
	c.Spec = sp
	golden(t, "deliver-contract-without-tests", style.Contract(c))

	var d render.Delivery
	var lines []string
	for _, e := range []loop.Event{
		{Type: loop.TestsKnown, Step: "test", Judgement: testRun(true, loop.Tests{Passed: 7})},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Test},
		{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestA"}})},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Fix},
		{Type: loop.ChangeAccepted, Iteration: 1, Phase: phase.Fix},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Fix}, // another approach, without a fix
		{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(true, loop.Tests{Passed: 7, Fixed: []string{"TestA"}, Flaky: []string{"TestD"}})},
		review("REJECTED", false), review("APPROVED", true),
	} {
		d = d.Follow(e)
		if e.Type == loop.PhaseEntered {
			lines = append(lines, style.Phase(e))
		}
		if line, ofNote := style.Note(e); ofNote {
			lines = append(lines, line)
		}
	}
	it := loop.Iteration{N: 1, Description: "join what touches", Kept: true, PhaseMs: map[string]int64{"write": 4}, DurationMs: 5000}
	golden(t, "deliver-live", strings.Join(append(lines, style.Iteration(kind.Deliver, it)), "\n"))
	r := loop.Result{Iterations: 1, Proposal: &loop.Proposal{Hash: hash, State: "approved"}}
	failed := loop.Result{Iterations: 2, Recovery: "Raise the limit."}
	golden(t, "deliver-report", strings.Join([]string{
		style.Report(kind.Deliver, loop.Completed, r, d), style.Report(kind.Deliver, loop.Failed, failed, render.Delivery{}),
		style.Report(kind.Deliver, loop.Failed, failed, render.Delivery{}.Follow(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(false, loop.Tests{Failed: 1, Failing: []string{"TestA"}})})),
	}, "\n\n"))

	st := running()
	st.Kind, st.Phase, st.Baseline, st.Best, st.Iterations = "deliver", phase.Fix, nil, nil, []loop.Iteration{it}
	st.Course, st.FixAttempts, st.Goal = &loop.Course{}, 2, "# Mend it\n\nall of it"
	st.LastTest, st.LastGuard, st.Plan = testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestA"}}), &loop.Judgement{Reason: "guard-fail"}, &loop.Plan{Hash: hash}
	golden(t, "deliver-show", style.State(kind.Deliver, st, now)+"\n"+render.Style{Width: 200, Zone: zone}.Progress(kind.Deliver, st, now, now))
}

func TestAReportSaysHowTheTestsEndedThatNameNone(t *testing.T) {
	var d render.Delivery
	for _, passed := range []bool{false, true} {
		d = d.Follow(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(passed, loop.Tests{})})
	}
	text := style.Report(kind.Deliver, loop.Completed, loop.Result{}, d)
	require.Contains(t, text, "after the first write: failed; the output names none")
	require.Contains(t, text, "at the end:            passed; the output names none")
}

// Whoever looks at a loop that has failed is told what to do, as its report does.
func TestShowSaysWhatToDoAboutALoopThatFailed(t *testing.T) {
	st := running()
	st.Recovery = "Resume from what is left: `pawl start --id x --ledger 12`."
	require.NotContains(t, style.State(kind.Improve, st, now), st.Recovery)
	st.Status, st.ErrorCode, st.Reason = loop.Failed, "LEDGER_DAMAGED", "its last entries are lost"
	require.Regexp(t, `(?m)^  status +failed: its last entries are lost \(LEDGER_DAMAGED\)\n +Resume from what is left: .pawl start --id x --ledger 12.\.$`, style.State(kind.Improve, st, now))
}

// A loop whose start was refused never started.
func TestShowHasNoTimeForWhatDidNotHappen(t *testing.T) {
	require.NotContains(t, style.State(kind.Deliver, loop.State{Loop: "x", Status: loop.Failed}, now), "started")
	require.Contains(t, style.State(kind.Improve, running(), now), "\n  started ")
}

func TestIterationsLineUp(t *testing.T) {
	lines := []string{style.Baseline("34051.6")}
	for _, it := range iterations() {
		lines = append(lines, style.Iteration(kind.Improve, it))
	}
	golden(t, "iterations", strings.Join(lines, "\n"))
}

func TestA8_CostTokensAndTimeAreInListShowAndReport(t *testing.T) {
	u := loop.Usage{ActiveMs: 95000, AgentCalls: 3, ToolCalls: 1, InputTokens: 90000, OutputTokens: 1200, CostUSD: dec("1.25")}
	const words = "$1.25, 91200 tokens, 3 agent calls, 1 tool call, 1m 35s active"
	require.Contains(t, style.State(kind.Improve, loop.State{Usage: u}, now), words)
	require.Contains(t, style.Ended(loop.Completed, loop.Result{Usage: u}, render.Places{}), words)
	row := launch.Row{Loop: "a", Status: "running", StartedAt: &now, Usage: &u}
	list := style.List([]launch.Row{row}, now.Add(90*time.Minute))
	require.Contains(t, list, "$1.25  91200   1h 30m")
}

func TestTheListIsATable(t *testing.T) {
	started, ended := now.Add(-time.Hour), now
	rows := []launch.Row{
		{Loop: "demo-1", Status: "waiting", Phase: "baseline", Gate: "contract", StartedAt: &started, Goal: "Make it shorter"},
		{Loop: "a-much-longer-name", Status: "running", Phase: "verify", Iteration: 12, Best: ref("84.70"), StartedAt: &started, Goal: strings.Repeat("very ", 20) + "long"},
		{Loop: "old", Status: "completed", Proposal: "open", Phase: "complete", Iteration: 3, Best: ref("1"), StartedAt: &started, EndedAt: &ended, Usage: &loop.Usage{InputTokens: 90000, OutputTokens: 1200, CostUSD: dec("1.25")}},
	}
	golden(t, "list", style.List(rows, now))
	rows[2].Mended = []string{"a UTC: the desk", "b UTC: the store\x1b"}
	require.Contains(t, style.List(rows, now), "\nmended  old: b UTC: the store")
	require.Contains(t, style.List(rows, now), "(and 1 before: pawl show old)")
	require.Equal(t, 2, strings.Count(style.Mended(rows[2].Mended), "mended  "))
	require.NotContains(t, style.List(rows, now)+style.Mended(rows[2].Mended), "\x1b")
	data, err := json.Marshal(rows[1])
	require.NoError(t, err)
	require.Contains(t, string(data), `"best":84.70`, "numbers keep their decimals")
}

func TestAStewardWithMoreThanIsShownSaysOfWhat(t *testing.T) {
	text := style.Steward(steward.State{
		Tasks: []steward.Task{{ID: "a", State: task.Executing}}, TasksCount: 6, QueueCount: 1, Gates: []loop.Gate{{ID: "tier-1"}}, GatesCount: 3,
		Indicators: steward.Indicators{Done: 1, Cancelled: 1},
	}, now)
	for _, want := range []string{"and 2 more begun", "and 1 more in the queue", "and 2 more ended; the ledger has them", "and 2 more: see `pawl inbox`"} {
		require.Contains(t, text, want)
	}
}

func TestAQuestionSaysWhatMayBeAmended(t *testing.T) {
	said := func(g loop.Gate) string {
		g.Kind = loop.GateQuestion
		return style.Gate("a", g, loop.Budget{}, time.Now())
	}
	require.Contains(t, said(loop.Gate{Choices: []string{"retry", "halt"}}), "You may amend: verify.command")
	require.Contains(t, said(loop.Gate{Choices: []string{rules.GoOn}}), "You may amend: approvals.tools, approvals.onDenied.")
	require.NotContains(t, said(loop.Gate{Choices: []string{"retry"}, Answers: []string{loop.MessageAnswer}}), "amend")
}

func TestP5_WhyACommandThatExits0DoesNotPassIsShown(t *testing.T) {
	it := loop.Iteration{N: 3, Description: "skip the parser", Note: `no line "METRIC ms="; instead: "core dumped"`}
	for _, it.Reason = range []string{"error:no-number", "error:verify-crash", "guard-fail"} {
		require.Contains(t, style.Iteration(kind.Improve, it), it.Note)
		text, _ := style.Event(kind.Improve, loop.Event{Type: loop.IterationFailed, Record: &it})
		require.Contains(t, text, it.Note)
	}
	it.Reason, it.Note = "no-change", "a large change"
	require.NotContains(t, style.Iteration(kind.Improve, it), it.Note, "it is about something else")
}
