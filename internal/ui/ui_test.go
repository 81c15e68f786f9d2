package ui_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/charter"
	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/loop"
	"pawl/internal/outcome"
	"pawl/internal/phase"
	"pawl/internal/sandbox"
	"pawl/internal/spec"
	"pawl/internal/task"
	"pawl/internal/ui"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), got+"\n")
}

var (
	zone  = time.FixedZone("CET", 3600)
	now   = time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC)
	style = ui.Style{Width: 100, Zone: zone}
)

func dec(s string) evidence.Decimal  { return evidence.MustDecimal(s) }
func ref(s string) *evidence.Decimal { d := dec(s); return &d }

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// running is a loop in its fifth iteration.
func running() loop.State {
	approved := now.Add(-4 * time.Minute)
	s := loop.State{
		Loop: "demo-1", Kind: "improve", Goal: "Make it shorter", Status: loop.Running, Phase: phase.Verify, Iteration: 5, Attempt: 2,
		Budget: loop.NewBudget(map[loop.Resource]evidence.Decimal{
			loop.Iterations: dec("10"), loop.ActiveTime: dec("600000"), loop.ToolCalls: dec("60"), loop.CostUSD: dec("2.50"),
		}).Spend(loop.Iterations, dec("5")).Spend(loop.ActiveTime, dec("95000")).Spend(loop.ToolCalls, dec("59")).Spend(loop.CostUSD, dec("0.75")),
		Baseline: ref("34051.6"), Best: ref("24056.4"), DiscardsInARow: 1,
		Repo: "/home/me/src/routes", Branch: "refs/heads/pawl/demo-1", Base: "2c9deac54712", Head: "fc8b6b3b4f00", Ledger: "c5851f42ceaa",
		Desk: "/home/me/.local/state/pawl/loops/demo-1/desk", Host: "620ea65b4614",
		ChangedFiles: []string{"a.go", "b.go", "c.go", "d.go", "e.go", "f.go"}, ChangedFilesCount: 7,
		Contract:  &loop.Contract{Hash: hash, Base: "2c9deac54712", ApprovedBy: "me", ApprovedAt: &approved},
		KeptCount: 2, Discarded: 2, StartedAt: now.Add(-5 * time.Minute),
	}
	s.Iterations = iterations()
	return s
}

func iterations() []loop.Iteration {
	return []loop.Iteration{
		{N: 1, Description: "go on from each city to the nearest one", Metric: ref("28356.6"), Delta: dec("-5695.0"), Kept: true, Commit: "3eff7429e6aa", DurationMs: 1400},
		{N: 2, Description: "visit the cities from west to east", Metric: ref("90350.1"), Delta: dec("61993.5"), DurationMs: 2300},
		{N: 3, Description: "leave the last city for another trip", Metric: ref("28356.6"), Reason: "guard-fail", Attempts: 3, DurationMs: 68_700},
		{N: 4, Description: "uncross legs that cross (2-opt)", Metric: ref("24056.4"), Delta: dec("-4300.2"), Kept: true, Commit: "29db84bd0aaa", DurationMs: 2400},
	}
}

func gates() map[string]loop.Gate {
	opened := now.Add(-90 * time.Minute)
	return map[string]loop.Gate{
		"contract": {ID: "contract-8", Kind: loop.GateContract, Summary: "approve the contract: Make it shorter", Hash: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"pause":    {ID: "pause-21", Kind: loop.GatePause, Summary: "paused at verify", OpenedAt: opened, Answers: []string{"continue"}},
		"guard":    {ID: "guard-30", Kind: loop.GateGuard, Summary: "the change is blocked by sealed: route/city.go", OpenedAt: opened, Answers: []string{"continue", "reject"}},
		"question": {ID: "question-44", Kind: loop.GateQuestion, Summary: "verify printed no number twice in a row", OpenedAt: opened, Answers: []string{"answer", "amend"}, Choices: []string{"retry", "halt"}},
		"newFiles": {ID: "newFiles-51", Kind: loop.GateNewFiles, Summary: "approve 1 new file: plan.go (split it)", Hash: hash, Tree: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"diff":     {ID: "diff-60", Kind: loop.GateDiff, Summary: "approve the change as a whole: 3 files, +80 -25, on pawl/demo-1", Hash: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"budget":   {ID: "budget-63", Kind: loop.GateBudget, Budget: loop.ActiveTime, Summary: "the time is used up", Hash: hash, OpenedAt: opened, Answers: []string{"extend", "reject"}},
	}
}

func result() loop.Result {
	return loop.Result{
		ExitStatus: "max_steps", Reason: "the iteration limit is reached", Iterations: 10, KeptCount: 2, Discarded: 8,
		Kept:     []loop.Kept{{Iteration: 1, Commit: "3eff7429e6aa", Description: "go on from each city to the nearest one"}, {Iteration: 4, Commit: "29db84bd0aaa", Description: "uncross legs that cross (2-opt)"}},
		Baseline: ref("34051.6"), Best: ref("24056.4"), Delta: ref("-9995.2"), Branch: "pawl/demo-1", Recommendation: "continue",
	}
}

func TestP9_TheReportHasTheFormOfTheSource(t *testing.T) {
	golden(t, "report", style.Report(kind.Improve, loop.Completed, result(), ui.Delivery{}))
	golden(t, "report-nothing-kept", style.Report(kind.Improve, loop.Completed, loop.Result{Iterations: 2, Discarded: 2, Baseline: ref("84.7"), Best: ref("84.7"), Delta: ref("0.0"), Recommendation: "diminishing returns"}, ui.Delivery{}))
	many := result()
	many.KeptCount = 102
	golden(t, "report-capped", style.Report(kind.Improve, loop.Completed, many, ui.Delivery{}))
}

func TestTheEndSaysWhereEverythingIs(t *testing.T) {
	places := ui.Places{
		Loop: "it's", Repo: "/home/me/my routes", Branch: "pawl/demo-1", Base: "2c9deac54712", Ledger: "refs/pawl-ledger/demo-1",
		Logs: "/home/me/.local/state/pawl/loops/demo-1/steps", UI: "http://127.0.0.1:8233/namespaces/default/workflows/demo-1",
	}
	golden(t, "ended", style.Ended(loop.Completed, result(), places))
	failed := loop.Result{ExitStatus: "timeout", ErrorCode: "ALO_PHASE_TIMEOUT", Reason: "verify took longer than 30s", Recovery: "Increase the timeout."}
	golden(t, "ended-failed", style.Ended(loop.Failed, failed, ui.Places{Loop: "demo-1"}))
}

func TestTheContractShowsAllThatIsApproved(t *testing.T) {
	target := dec("20000")
	wall := spec.Duration(2 * time.Hour)
	c := ui.Contract{
		Kind: kind.Improve,
		Loop: "demo-1", Repo: "/home/me/src/routes", Branch: "pawl/demo-1", Baseline: ref("34051.6"), InScope: 5,
		Contract: loop.Contract{Hash: hash, Base: "2c9deac54712", Tools: []string{"*"}, Sealed: []loop.Seal{{Path: "go.mod"}, {Path: "route/city.go"}}},
		Spec: spec.Spec{
			Notify: []string{"https://example.com/hook", "./tell.sh | mail me"},
			Goal:   "Make it shorter\nbut visit every city", Repo: spec.Repo{Base: "main"}, Scope: []string{"route/*.go"}, NewFiles: "deny",
			Setup:  spec.Setup{Command: "make deps"},
			Verify: spec.Verify{Command: "go run ./cmd/measure", Timeout: spec.Duration(30 * time.Second), Direction: "lower", MinDelta: evidence.Threshold{Value: dec("1")}, Target: &target},
			Guard:  spec.Guard{Command: "go vet ./...\ngo test ./...", Timeout: spec.Duration(5 * time.Minute)},
			Agent:  spec.Agent{Command: spec.Argv{List: []string{"sh", "/tmp/my agent.sh"}}},
			Limits: spec.Limits{Iterations: 1, ActiveTime: spec.Duration(10 * time.Minute), ToolCalls: 60, Discards: 10, WallClock: &wall, CostUSD: ref("2.50")},
		},
		Protections: []string{"the agent works on a clone of its own", "no sandbox: agent and commands run with your rights"},
	}
	golden(t, "contract", style.Contract(c))
	for i := range 30 {
		c.Contract.Sealed = append(c.Contract.Sealed, loop.Seal{Path: "more" + string(rune('a'+i%26))})
	}
	require.Contains(t, style.Contract(c), "and 12 files more")
}

func TestWhatDoesNotHoldIsInRed(t *testing.T) {
	inColour := ui.Style{Width: 100, Zone: zone, Color: true}
	alarm := "THE ENGINE CAN BE REACHED: agent and commands could answer a gate"
	text := inColour.Protections([]string{"HTTP is closed", alarm})
	require.Contains(t, text, "\x1b[31m"+alarm)
	require.NotContains(t, text, "\x1b[31mHTTP")
	for _, claim := range sandbox.Claims(sandbox.Facts{Repo: "/r", Policy: sandbox.Policy{Network: sandbox.Open}}) {
		if claim.Fails == "" { // it holds in any case
			continue
		}
		require.Contains(t, inColour.Protections([]string{claim.Fails}), "\x1b[31m"+claim.Fails)
	}
}

func TestAChartersViewShowsWhatItGrants(t *testing.T) {
	c := charter.Charter{
		Defaults: json.RawMessage(`{"sandbox": {"allow": ["/var/cache/x"]}, "agent": {"env": {"BASE": "http://x"}}}`),
		Agent:    spec.Agent{Roles: map[string]spec.Override{spec.RolePlanner: {Env: map[string]string{"PLANS": "$PLANS", "BASE": "http://x"}}}},
	}
	text := style.Charter(ui.Charter{Charter: c, Environment: []string{"of the worker's what builds need"}})
	for _, want := range []string{"of the worker's what builds need", "may write /var/cache/x", "BASE=http://x", "planner: PLANS=$PLANS"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "planner: BASE")
}

func TestA1_TheContractShowsWhatItGrants(t *testing.T) {
	sp := spec.Spec{
		Sandbox: spec.Sandbox{Use: spec.Required, Allow: []string{"~/.cache/tool", "~/../x\u202e"}, Hosts: []string{"registry.npmjs.org", "*.example.org:443"}},
		Judge:   spec.Judge{Keep: []string{"target/**", "node_modules"}},
		Verify:  spec.Verify{Command: "make bench", Pattern: "^rate: (\\d+)\u200b$"},
		Agent:   spec.Agent{Env: map[string]string{"API_KEY": "$API_KEY", "BASE": "http://x"}, Roles: map[string]spec.Override{"reviewer": {Env: map[string]string{"ONLY": "$ONLY"}}}},
	}
	text := style.Contract(ui.Contract{Spec: sp, Environment: []string{"verify.command mentions DATABASE_URL, which stays out"}})
	for _, want := range []string{
		"may write ~/.cache/tool\n", `may write ~/../x\u{202e}`, "may connect to registry.npmjs.org  *.example.org:443\n", "leaves in target/** is", "leaves in node_modules is",
		`^rate: (\d+)\u{200b}$ finds last`, "API_KEY=$API_KEY\n", "BASE=http://x\n", "reviewer: ONLY=$ONLY\n", "mentions DATABASE_URL, which stays out\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "reviewer: BASE")
	require.NotContains(t, style.Contract(ui.Contract{}), "granted")
}

func TestAContractNamesEveryAgentAndItsPermissions(t *testing.T) {
	text := style.Contract(ui.Contract{Spec: spec.Spec{
		Agent: spec.Agent{Use: "claude", Model: "big", Roles: map[string]spec.Override{
			"ideator": {Use: "command", Command: spec.Argv{Shell: "./ideas"}, Args: []string{"--far"}},
			"writer":  {Command: spec.Argv{List: []string{"/opt/claude"}}, Args: []string{"--effort", "low"}},
		}},
		Permissions: map[string][]string{"reviewer": {}, "writer": {"canExecuteTasks", "canEditSource"}},
	}})
	for _, want := range []string{
		"claude with the model big", "ideator: ./ideas", "with --far", "writer: claude with the model big:", "/opt/claude --effort low",
		"reviewer: nothing", "writer: canExecuteTasks, canEditSource",
	} {
		require.Contains(t, text, want)
	}
}

// What a session says of a steward is shown as what it is: anybody could have written it.
func TestAContractSaysWhatItHasFromTheSessionOfASteward(t *testing.T) {
	said := map[string]string{"steward": "crew", "task": "t1", "plan": hash, "approvedBy": "ann", "base": strings.Repeat("a", 40), "onto": "main"}
	text := style.Contract(ui.Contract{Spec: spec.Spec{Session: said}})
	for _, want := range []string{"steward crew, plan " + hash + ", approved by ann", "begins at aaaaaaa", "applied to main", "as its session says; nobody has checked it"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, style.Contract(ui.Contract{Spec: spec.Spec{Session: map[string]string{"user": "ann"}}}), "session")

	approved := now
	s := loop.State{Kind: "improve", Steward: "crew", Contract: &loop.Contract{Hash: hash, ApprovedBy: govern.Approver(spec.Spec{Session: said}), ApprovedAt: &approved}}
	require.Contains(t, style.State(kind.Improve, s, now), "as the loop's session says")
	s.Contract.ApprovedBy = "ann"
	require.NotContains(t, style.State(kind.Improve, s, now), "session")
}

func TestA1_AContractSaysWhatItsToolsDoNotHold(t *testing.T) {
	text := style.Contract(ui.Contract{
		Spec:     spec.Spec{Agent: spec.Agent{Use: "pi", Roles: map[string]spec.Override{"writer": {Use: "command", Command: spec.Argv{Shell: "./a.sh"}}}}},
		Contract: loop.Contract{Tools: []string{"read", "shell"}},
	})
	require.Contains(t, text, "tools: read shell")
	require.Equal(t, 1, strings.Count(text, "the shell of pi does what the sandbox lets it, whatever the other tools"))
	require.Contains(t, text, "nothing holds the command to these tools but the sandbox")
}

func TestNothingHidesInAContract(t *testing.T) {
	c := ui.Contract{Spec: spec.Spec{
		Verify: spec.Verify{Command: "echo 1 \x1b[2K\r# rm -rf ~\u202e"},
		Agent:  spec.Agent{Command: spec.Argv{List: []string{"sh", "a\nb\x07"}}},
	}}
	text := style.Contract(c)
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\r")
	require.NotContains(t, text, "\u202e")
	require.Contains(t, text, `echo 1 \u{1b}[2K\r# rm -rf ~\u{202e}`)
	require.Contains(t, text, `b\u{7}`)
}

func TestAGateSaysExactlyHowToAnswer(t *testing.T) {
	for name, gate := range gates() {
		golden(t, "gate-"+name, style.Gate("my loop", gate, running().Budget, now))
	}
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
	wide := ui.Style{Width: 200, Zone: zone}
	g := gates()["contract"]
	waiting := running()
	waiting.Gate = &g
	starting := loop.State{}
	golden(t, "progress", strings.Join([]string{
		wide.Progress(kind.Improve, running(), since, now), wide.Progress(kind.Improve, waiting, since, now), wide.Progress(kind.Improve, starting, since, now),
	}, "\n"))
	for width := 20; width < 200; width += 7 {
		line := ui.Style{Width: width}.Progress(kind.Improve, running(), since, now)
		require.Less(t, utf8.RuneCountInString(line), width)
	}
	colored := ui.Style{Width: 200, Color: true}.Progress(kind.Improve, running(), since, now)
	require.Equal(t, wide.Progress(kind.Improve, running(), since, now), strings.NewReplacer("\x1b[36m", "", "\x1b[0m", "").Replace(colored))
}

func TestP9_ALoopThatKeptNothingClaimsNothing(t *testing.T) {
	c := loop.Claim{Claim: sampling.Exact(evidence.Higher, dec("10"), dec("10")), FalseKeeps: 1.6}
	require.Contains(t, style.State(kind.Improve, loop.State{Claim: &c}, now), "nothing was kept")
	require.NotContains(t, style.Report(kind.Improve, loop.Completed, loop.Result{Claim: &c}, ui.Delivery{}), "Claim:")
}

func TestFurtherMetricsAreDrawnBelow(t *testing.T) {
	of := func(v string) map[string]evidence.Decimal { return map[string]evidence.Decimal{"size": dec(v)} }
	baseline := loop.Event{Type: loop.BaselineMeasured, Metric: ref("10"), Metrics: of("100")}
	c, f := ui.Course{}.Follow(baseline, false), ui.Further{}.Follow(baseline, false)
	for i, it := range []loop.Iteration{{Kept: true, Metrics: of("90")}, {Metrics: of("200")}, {Kept: true, Metrics: of("80")}} {
		it.N, it.Metric = i+1, ref("11")
		c, f = c.Follow(loop.Event{Record: &it}, false), f.Follow(loop.Event{Record: &it}, false)
	}
	require.Equal(t, ui.Further{"size": {100, 90, 90, 80}}, f, "what was not kept is no point of it")
	plots := style.Plots(c, f)
	require.Len(t, plots, 2)
	require.Contains(t, plots[1], "size of what is kept, by iteration")
	require.Len(t, style.Plots(c, nil), 1)
}

func TestP9_TheReportBeginsWithWhatIsClaimed(t *testing.T) {
	for i, want := range []string{"Claim: at least +6.1% (estimate +7.9%", "Loop complete: "} {
		c := claims()[i]
		text := style.Report(kind.Improve, loop.Completed, loop.Result{Claim: &c}, ui.Delivery{})
		require.True(t, strings.HasPrefix(text, want), text)
		shown := style.State(kind.Improve, loop.State{Claim: &c, Noise: "the metric is noisy"}, now)
		require.Contains(t, shown, c.String())
		require.Contains(t, shown, "the metric is noisy")
	}
}

func TestTheReportNamesCandidatesThatNoIterationHasTaken(t *testing.T) {
	left := []loop.Candidate{
		{N: 4, Made: true, Commit: "3eff7429e6aa", Description: "remove Y", Trial: &loop.Trial{Passed: true, Metric: ref("13")}}, {N: 5, Idea: "cache Z"},
	}
	want := "Candidates that no iteration has taken, and that are given up:\n  4: would be kept, 13: remove Y\n  5: was not made: cache Z"
	require.Contains(t, style.Report(kind.Improve, loop.Halted, loop.Result{Candidates: left}, ui.Delivery{}), want)
	require.NotContains(t, style.Report(kind.Improve, loop.Halted, loop.Result{}, ui.Delivery{}), "Candidates")
	require.Contains(t, style.State(kind.Improve, loop.State{Candidates: left}, now), "5: its agent is at work")
}

func TestTheCourseIsThatOfTheHeadAndNotOfBranches(t *testing.T) {
	kept := func(metric string) loop.Event {
		return loop.Event{Type: loop.IterationSucceeded, Metric: ref(metric), Record: &loop.Iteration{Kept: true, Metric: ref(metric)}}
	}
	compared := loop.Event{Type: loop.BranchCompared, Judgement: &loop.Judgement{Samples: &sampling.Judgement{Reference: *ref("99")}}}
	var c ui.Course
	beside := false
	for _, e := range []loop.Event{
		{Type: loop.BaselineMeasured, Metric: ref("10")}, kept("15"), kept("16"),
		{Type: loop.BranchBegun}, kept("12"), {Type: loop.BranchGivenUp},
		{Type: loop.BranchBegun}, kept("20"), compared, {Type: loop.BranchKept, Metric: ref("20")}, kept("21"),
	} {
		beside = ui.Beside(beside, e)
		c = c.Follow(e, beside)
	}
	require.Equal(t, ui.Course{10, 15, 16, 16, 20, 21}, c)
}

func TestTheCourseIsDrawnAsSteps(t *testing.T) {
	var c ui.Course
	c = c.Follow(loop.Event{Type: loop.BaselineMeasured, Metric: ref("34051.6")}, false)
	for _, it := range iterations() {
		c = c.Follow(loop.Event{Type: loop.IterationFailed, Record: &it}, false)
	}
	require.Equal(t, ui.Course{34051.6, 28356.6, 28356.6, 28356.6, 24056.4}, c)
	golden(t, "plot", style.Plot(c))
	require.Empty(t, style.Plot(c[:1]), "one point is no course")
	require.Empty(t, style.Plot(ui.Course{-1.7e308, 1.7e308}), "too large to draw")
	require.NotEmpty(t, style.Plot(ui.Course{5, 5, 5}))
	for _, c := range []ui.Course{{1e19, 1e19}, {9.3e18, 9.4e18}, {-1e19, 1e19}, {1e300, 1e300}, {5e-324, 1e-323}} { // beyond 2^63, and as small
		require.Contains(t, style.Plot(c), "best metric by iteration", c)
	}
	require.NotEmpty(t, style.Plot(make(ui.Course, 1000)))
}

func TestEveryEventHasALine(t *testing.T) {
	var lines []string
	for i, e := range events() {
		e.Seq, e.Time, e.Loop = int64(i+1), now.Add(time.Duration(i)*time.Second), "demo-1"
		line, ofNote := style.Event(kind.Improve, e)
		mark := "  "
		if ofNote {
			mark = "* "
		}
		lines = append(lines, mark+line)
	}
	golden(t, "events", strings.Join(lines, "\n"))
	seen := map[loop.Type]bool{}
	for _, e := range events() {
		seen[e.Type] = true
	}
	for _, known := range loop.Types {
		require.True(t, seen[known.Type], "%s is shown in no example", known.Type)
		require.NotPanics(t, func() {
			style.Event(kind.Improve, loop.Event{Type: known.Type})
			style.Note(loop.Event{Type: known.Type})
		}, known.Type)
	}
}

// claims are of a metric that varies, with a holdout, and of one that does not.
func claims() []loop.Claim {
	c := sampling.Claim{Estimate: 7.9, Low: 5.8, High: 10, Bound: 6.1, Pairs: 5, Unit: sampling.Percent}
	noisy := c
	noisy.TooNoisy, noisy.Needs, noisy.Low = true, 277, -2
	return []loop.Claim{{Claim: c, FalseKeeps: .8, Holdout: &noisy}, {Claim: sampling.Exact(evidence.Higher, dec("10"), dec("12"))}}
}

func events() []loop.Event {
	its := iterations()
	g, five, claim := gates()["contract"], 5, claims()[0]
	return []loop.Event{
		{Type: loop.StewardOpened},
		{Type: loop.TriggerReceived, Trigger: &task.Trigger{Name: "ci", Result: "accepted", Task: "ci-1"}},
		{Type: loop.TaskSubmitted, Task: "ci-1", By: "ann", Submitted: &task.Task{Title: "Mend the build\x1b[2J"}},
		{Type: loop.TaskPrioritized, Task: "ci-1", Priority: &five, By: "ann"},
		{Type: loop.PlanMade, Task: "ci-1", TaskPlan: &task.Plan{Hash: hash, Steps: make([]task.Step, 2)}},
		{Type: loop.TierSet, Task: "ci-1", Tier: task.T1, By: "rules", Reason: "paths db/**"},
		{Type: loop.TaskStateChanged, Task: "ci-1", From: task.Planning, To: task.Waiting, Evidence: &task.Evidence{Reason: "tier T1"}},
		{Type: loop.StepBegun, Task: "ci-1", Step: "fix", LoopID: "shop-ci-1-fix"},
		{Type: loop.ChildTold, Task: "ci-1", LoopID: "shop-ci-1-fix", Message: "pause"},
		{Type: loop.ChildReported, Task: "ci-1", Child: &task.ChildEvent{Loop: "shop-ci-1-fix", Event: task.IterationEnded}},
		{Type: loop.ActionTaken, Task: "ci-1", Action: &task.Action{Name: "iteration fix", Outcome: "discarded", Reason: "guard-fail"}},
		{Type: loop.LoopWarned, Task: "ci-1", Finding: &task.Finding{Rule: "sameResult", Text: "the same result 2 times"}},
		{Type: loop.LoopDetected, Task: "ci-1", Finding: &task.Finding{Rule: "sameResult", Stop: true, Text: "the same result 4 times"}},
		{Type: loop.RateLimited, Task: "ci-1", RateLimit: &task.RateLimit{Until: now, Said: "usage limit reached"}},
		{Type: loop.RateLimitOver, Task: "ci-1"},
		{Type: loop.MilestoneReached, Task: "ci-1", Step: "fix"},
		{Type: loop.TaskInterrupted, Task: "ci-1", Reason: "hotfix"},
		{Type: loop.DriftFound, Drift: &task.Drift{Name: "artifact", What: "STATUS_LEDGER.md", Text: "changed by hand"}},
		{Type: loop.StewardValidated, Reason: "nothing differs"},
		{Type: loop.TaskEnded, Task: "ci-1", Outcome: "done"},
		{Type: loop.TaskEnded, Task: "ci-1", Outcome: "cancelled", Reason: "no longer wanted"},
		{Type: loop.StewardEnded, Reason: "stopped by ann"},
		{Type: loop.LoopOpened, Opened: &loop.Opened{Branch: "pawl/demo-1", Base: "2c9deac54712"}},
		{Type: loop.PlanMade, Plan: &loop.Plan{Hash: hash, Text: "1. mend Merge\n2. nothing else"}},
		{Type: loop.TestsKnown, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestDocker"}})},
		{Type: loop.TestsSkipped, Iteration: 1, Reason: "test.required is false"},
		{Type: loop.ChangeAccepted, Iteration: 1, Commit: "3eff7429e6aa"},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 5, Failed: 2, Failing: []string{"TestA", "TestB"}, New: []string{"TestB"}, Fixed: []string{"TestC"}})},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(true, loop.Tests{Passed: 7, Skipped: 1, Flaky: []string{"TestD"}})},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(false, loop.Tests{Failed: 1, Broken: true, Failing: []string{"a", "b", "c", "d", "e\x1b[2J"}})},
		review("APPROVED", true),
		{Type: loop.LoopResumed, Head: "2c9deac54712"},
		{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: hash, Sealed: []loop.Seal{{Path: "go.mod"}}}},
		{Type: loop.ContractAmended, By: "me", Amendment: []byte(`{"verify":{"command":"weigh"}}`), Contract: &loop.Contract{Hash: hash}},
		{Type: loop.BaselineMeasured, Metric: ref("34051.6")},
		{Type: loop.GateOpened, Gate: &g},
		{Type: loop.GateEscalated, Gate: &g},
		{Type: loop.GateClosed, Answer: &loop.Answer{Gate: "contract-8", Message: "approve", By: "me"}, Note: "go"},
		{Type: loop.AutonomyStarted, By: "me"},
		{Type: loop.CheckpointCreated, Iteration: 1, Head: "2c9deac54712"},
		{Type: loop.IterationStarted, Iteration: 1, BudgetsRemaining: map[loop.Resource]evidence.Decimal{loop.Iterations: dec("9"), loop.ToolCalls: dec("1")}},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Modify, Attempt: 2},
		{Type: loop.StepEnded, Iteration: 1, Step: "verify", Usage: &loop.Usage{ActiveMs: 1234}},
		{Type: loop.IdeaQueued, Iteration: 1, Idea: "remove Y"},
		{Type: loop.IdeaTaken, Iteration: 1, Idea: "remove Y"},
		{Type: loop.ChangeCommitted, Iteration: 1, Commit: "3eff7429e6aa", Files: []string{"a.go"}},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "verify", Metric: ref("28356.6"), Judgement: &loop.Judgement{Passed: true}},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "policy", Judgement: &loop.Judgement{Blocked: true, Reason: "policy:sealed", Violations: []string{"sealed: go.mod"}}},
		{Type: loop.IterationSucceeded, Iteration: 1, Record: &its[0]},
		{Type: loop.ChangeReverted, Iteration: 2, Commit: "3eff7429e6aa", Reason: "no improvement"},
		{Type: loop.IterationFailed, Iteration: 2, Record: &its[1]},
		{Type: loop.RepairAttempted, Iteration: 3, FailureReason: "guard-fail", Attempt: 2, Note: "leave out\x1b[31m the \x00far ones"},
		{Type: loop.IterationFailed, Iteration: 3, Record: &its[2]},
		{Type: loop.StrategyShifted, Iteration: 5, Reason: "5 discards in a row"},
		{Type: loop.MessageReceived, Iteration: 5, Message: "steer", By: "me", Note: "look at plan.go"},
		{Type: loop.MessageRefused, Iteration: 5, Message: "approve", Reason: "no gate is open"},
		{Type: loop.AutonomyPaused, Iteration: 5, Reason: "pause"},
		{Type: loop.AutonomyResumed, Iteration: 5, By: "me"},
		{Type: loop.PermissionGranted, Iteration: 5, Step: "modify", Role: "writer", Reason: "canEditSource"},
		{Type: loop.PermissionDenied, Iteration: 5, Step: "modify", Role: "writer", Reason: "the role writer is not permitted canEditSource\nGrant it."},
		{Type: loop.PushRefused, Iteration: 5, Reason: "the branch is checked out"},
		{Type: loop.AgentReplaced, Iteration: 5, Role: "writer", Agent: "claude", Outcome: "rate-limited", Reason: "rate limit five_hour", Note: "codex"},
		{Type: loop.SleepBegun, Iteration: 5, Sleep: &loop.Sleep{Class: outcome.RateLimited, Reason: "rate limit five_hour", Until: now.Add(time.Hour), Times: 1}},
		{Type: loop.SleepEnded, Iteration: 5},
		{Type: loop.Warned, Iteration: 5, Reason: "verify printed several numbers"},
		{Type: loop.SampleTaken, Iteration: 5, Of: sampling.MeasureReference, Metric: ref("10.2")},
		{Type: loop.ChangeJudged, Iteration: 5, Step: "verify", Metric: ref("9.8"), Judgement: &loop.Judgement{
			Passed: true, Samples: &sampling.Judgement{Do: sampling.Keep, Samples: 5, Reference: dec("10.15"), LLR: 2.31571},
		}},
		{Type: loop.ClaimMade, Iteration: 5, Claim: &claim},
		{Type: loop.BudgetExhausted, Iteration: 10, ExhaustedBudget: loop.Iterations},
		{Type: loop.ProposalMade, Iteration: 10, Proposal: &loop.Proposal{Hash: hash, Files: 3, Insertions: 80, Deletions: 25}},
		{Type: loop.AutonomyCompleted, Iteration: 10, Reason: "the iteration limit is reached"},
		{Type: loop.AutonomyHalted, Iteration: 10, Reason: "Ctrl-C"},
		{Type: loop.LoopFailed, Iteration: 10, ErrorCode: "ALO_PHASE_TIMEOUT", Reason: "verify took too long"},
		{Type: loop.ProposalApproved, Iteration: 10, By: "me", Note: "fine", Proposal: &loop.Proposal{Hash: hash, State: "approved"}},
		{Type: loop.ProposalRejected, Iteration: 10, By: "me", Proposal: &loop.Proposal{Hash: hash, State: "rejected"}},
		{Type: loop.ProposalApplied, Iteration: 10, By: "me", How: "squash", Proposal: &loop.Proposal{Hash: hash, State: "applied"}},
		{Type: loop.LoopMoved, Head: "2c9deac54712", Opened: &loop.Opened{Host: "b7e23ec29af2"}, Reason: "the host 3fdba35f04dc asked for no work for 1m15s"},
		{Type: loop.CandidateBegun, Candidate: &loop.Candidate{N: 4, Of: 3, Idea: "remove\x1b[31m Y"}},
		{Type: loop.CandidateMade, Candidate: &loop.Candidate{N: 4, Of: 3, Made: true, Commit: "3eff7429e6aa", Description: "remove Y"}},
		{Type: loop.CandidateJudged, Candidate: &loop.Candidate{N: 4, Made: true, Description: "remove Y", Trial: &loop.Trial{Passed: true, Metric: ref("28356.6")}}},
		{Type: loop.CandidateTaken, Iteration: 1, Candidate: &loop.Candidate{N: 4, Description: "remove Y"}},
		{Type: loop.CandidateDropped, Reason: "the budget toolCalls is used up", Candidate: &loop.Candidate{N: 6}},
		{Type: loop.CandidateConflicted, Iteration: 1, Reason: "a.go", Candidate: &loop.Candidate{N: 5}},
		{Type: loop.BranchBegun, Iteration: 9, Reason: "5 discards in a row", Branch: &loop.Branch{N: 1, From: 1, Head: "3eff7429e6aa"}},
		{Type: loop.BranchCompared, Iteration: 10, Reason: "keep", Branch: &loop.Branch{N: 1}, Judgement: &loop.Judgement{
			Passed: true, Samples: &sampling.Judgement{Samples: 7, References: 7, Mean: *ref("28100"), Reference: *ref("28356.6"), LLR: 3.2},
		}},
		{Type: loop.BranchKept, Iteration: 10, Reason: "28100, and 28356.6 was the best", Branch: &loop.Branch{N: 1}},
		{Type: loop.BranchGivenUp, Iteration: 16, Reason: "5 discards in a row on the branch", Branch: &loop.Branch{N: 2, Head: "3eff7429e6aa"}},
	}
}

func testRun(passed bool, t loop.Tests) *loop.Judgement {
	return &loop.Judgement{Passed: passed, Tests: &t}
}

func review(word string, met bool) loop.Event {
	return loop.Event{Type: loop.ProposalReviewed, Iteration: 1, Reason: word, Note: "tried on the desk", Criteria: []loop.Criterion{
		{Criterion: "it joins", Met: true, Evidence: "TestA passes"}, {Criterion: "it sorts", Met: met, Evidence: "TestB"},
	}}
}

// TestL_ADeliveryIsShownByPhasesTestsAndReview: what a reader of a Deliver loop sees, from the contract
// to the report.
func TestL_ADeliveryIsShownByPhasesTestsAndReview(t *testing.T) {
	sp := spec.Defaults()
	sp.Kind, sp.Goal, sp.Scope = "deliver", "# Mend it\n\n- [ ] it joins\n- [ ] it sorts", []string{"**"}
	sp.Test.Command, sp.Guard.Command = "go test -json ./...", "go vet ./..."
	sp.Agent.Command = spec.Argv{Shell: "./agent"}
	sp.Agent.Roles = map[string]spec.Override{"reviewer": {}}
	c := ui.Contract{Loop: "mend", Kind: kind.Deliver, Repo: "/r", Branch: "pawl/mend", InScope: 2, Spec: sp, Plan: &loop.Plan{Hash: hash, Text: "1. mend Merge\n2. hide\x1b nothing"}, Contract: loop.Contract{Hash: hash, Base: "2c9deac54712", Tools: []string{"*"}}}
	golden(t, "deliver-contract", style.Contract(c))
	required := false
	sp.Test = spec.Test{Required: &required}
	target := dec("3")
	sp.Verify.Command, sp.Verify.Target = "sh done.sh", &target
	c.Spec = sp
	golden(t, "deliver-contract-without-tests", style.Contract(c))

	var d ui.Delivery
	var lines []string
	for _, e := range []loop.Event{
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Test},
		{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestA"}})},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Fix},
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
		style.Report(kind.Deliver, loop.Completed, r, d), style.Report(kind.Deliver, loop.Failed, failed, ui.Delivery{}),
		style.Report(kind.Deliver, loop.Failed, failed, ui.Delivery{}.Follow(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: testRun(false, loop.Tests{Failed: 1, Failing: []string{"TestA"}})})),
	}, "\n\n"))

	st := running()
	st.Kind, st.Phase, st.Baseline, st.Best, st.Iterations = "deliver", phase.Fix, nil, nil, []loop.Iteration{it}
	st.Course, st.FixAttempts, st.Goal = &loop.Course{}, 2, "# Mend it\n\nall of it"
	st.LastTest, st.LastGuard, st.Plan = testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestA"}}), &loop.Judgement{Reason: "guard-fail"}, &loop.Plan{Hash: hash}
	golden(t, "deliver-show", style.State(kind.Deliver, st, now)+"\n"+ui.Style{Width: 200, Zone: zone}.Progress(kind.Deliver, st, now, now))
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
	require.Contains(t, style.Ended(loop.Completed, loop.Result{Usage: u}, ui.Places{}), words)
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
	data, err := json.Marshal(rows[1])
	require.NoError(t, err)
	require.Contains(t, string(data), `"best":84.70`, "numbers keep their decimals")
}

func TestServing(t *testing.T) {
	golden(t, "serving", style.Serving(ui.Serving{Address: "127.0.0.1:7233", UI: "http://127.0.0.1:8233", Namespace: "default", Worker: "pawl@620ea65b4614", Engine: "ours", Log: "/tmp/pawl.log"}))
}

func TestDurationsHaveAtMostTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 349 * time.Millisecond: "0.3s", 9990 * time.Millisecond: "9.9s", 10 * time.Second: "10s",
		59900 * time.Millisecond: "59s", time.Minute: "1m", 185 * time.Second: "3m 5s", time.Hour: "1h", 130 * time.Minute: "2h 10m", 76 * time.Hour: "3d 4h",
	} {
		require.Equal(t, want, ui.Duration(d))
	}
}

func TestWhatOthersWroteCannotMoveTheCursor(t *testing.T) {
	require.Equal(t, `a [2K b  c\u{202e}`, ui.Clean("a\x1b[2K\rb\n\tc\u202e"))
	require.Equal(t, "\uFFFD", ui.Clean("\xff"))
	bad := iterations()[0]
	bad.Description = "x\x1b[2J\r\ny"
	require.NotContains(t, style.Iteration(kind.Improve, bad), "\x1b")
}

func TestNothingMovesWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	s := ui.NewScreen(&out)
	require.False(t, s.Moves())
	s.Live("moving")
	s.Print("a line")
	s.Print("two\nlines\n")
	s.Still()
	require.Equal(t, "a line\ntwo\nlines\n", out.String())
	require.False(t, s.Style().Color)
	require.NotContains(t, s.Style().State(kind.Improve, running(), now), "\x1b")
}

func TestWideAndCombiningCharactersStayInTheirColumns(t *testing.T) {
	rows := []launch.Row{{Loop: "日本語", Status: "running", Goal: "one"}, {Loop: "e\u0301te\u0301", Status: "running", Goal: "two"}, {Loop: "plain", Status: "running", Goal: "three"}}
	var at []int
	for line := range strings.Lines(style.List(rows, now)) {
		if before, _, row := strings.Cut(line, "running"); row {
			at = append(at, runewidth.StringWidth(before))
		}
	}
	require.Equal(t, []int{8, 8, 8}, at)
}
