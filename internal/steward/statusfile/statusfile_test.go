package statusfile_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/statusfile"
	"pawl/internal/steward/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func state() steward.State {
	return steward.State{
		Steward: "web", Status: loop.Running, State: task.Executing, Ledger: "1111", Base: "2222", TasksCount: 5, Queue: []string{"later"}, GatesCount: 1,
		Tasks: []steward.Task{
			{ID: "faster", Title: "Make it faster", Tier: task.T3, TierBy: "rules", State: task.Executing, Step: "build", Base: "2222", Head: "3333", Plan: &task.Plan{Hash: "4444"}, Steps: []steward.Step{{ID: "measure", Status: steward.Over, Loop: "web-faster-measure", Head: "3333"}, {ID: "build", Status: steward.Running, Loop: "web-faster-build"}}},
			{ID: "stuck", Title: "Fix | the `login`\n# now\u202e", Tier: task.T1, TierBy: "a person", State: task.Waiting, Tripped: "sameResult", Since: noon, WaitingFor: &steward.WaitingFor{Gate: "g3"}},
			{ID: "child", Title: "Docs", State: task.Waiting, WaitingFor: &steward.WaitingFor{Loop: "web-child-a", Gate: "g1", Kind: "diff", What: "approve the change"}},
			{ID: "later", Title: "Later", State: task.Idle, Priority: 5},
			{ID: "gone", Title: "Gone", Tier: task.T0, TierBy: "rules", State: task.Idle, Outcome: steward.Cancelled, Reason: "not wanted"},
		},
		Gates:      []loop.Gate{{ID: "g3", Kind: steward.GateStuck, Task: "stuck", Summary: "4 times the same <b>result</b>", OpenedAt: noon, Choices: []string{"continue", "replan", "cancel", "intervene"}}},
		Indicators: steward.Indicators{Actions: 12, Errors: 1, Repeats: 4, Transitions: 9, Milestones: 1, ExecutingMs: 61_000, Cancelled: 1},
		Remote:     "2 issues and 1 pull request are open, CI of main: failure (build)",
		Usage:      task.Usage{CostUSD: metric.MustDecimal("1.25"), Tokens: 900},
		Drift:      []task.Drift{{Name: task.DriftArtifact, What: "STATUS_LEDGER.md", Text: "changed by hand", Theirs: "aa", Ours: "bb"}},
	}
}

func TestS7_TheArtifactsOfAState(t *testing.T) {
	c := charter.Defaults()
	for name, have := range map[string][]byte{"status.md": statusfile.Status(state(), c), "last.md": statusfile.LastKnown(state(), c), "idle.md": statusfile.Status(steward.State{Steward: "web", State: task.Idle}, c)} {
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(path, have, 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "go test ./internal/steward/statusfile -update")
	}
}

func TestS7_EveryOpenGateAndEveryActiveTaskAppears(t *testing.T) {
	s := state()
	for i := range 30 {
		id := fmt.Sprintf("t%d", i)
		s.Tasks = append(s.Tasks, steward.Task{ID: id, Title: "Task " + id, State: task.States[1+i%3]})
		s.Gates = append(s.Gates, loop.Gate{ID: "gate-" + id, Kind: steward.GateTier, Task: id, Hash: strings.Repeat("ab", 32), OpenedAt: noon, Choices: []string{"cancel"}})
	}
	for _, page := range []string{string(statusfile.Status(s, charter.Defaults())), string(statusfile.LastKnown(s, charter.Defaults()))} {
		for _, task := range s.Tasks {
			if task.Outcome == "" {
				require.Contains(t, page, "\n- `"+task.ID+"`: ")
			}
		}
		for _, g := range s.Gates {
			require.Contains(t, page, "`"+g.ID+"`")
			for _, way := range steward.Ways("web", g) {
				require.Contains(t, page, way.Command)
			}
		}
		require.Contains(t, page, "pawl show web-child-a")
	}
}

func TestS7_CommandsStayWhole(t *testing.T) {
	command := "./tools/check_all.sh --only=*_test.go " + strings.Repeat("--skip slow/*.md ", 12) + "| tail -1"
	long := strings.Repeat("word ", 39)
	for _, c := range []struct{ name, text, want string }{
		{"beyond 200 characters", "it is blocked: " + long + "use `" + command + "` first", "use `" + command + "` first"},
		{"nothing in it is escaped", "`a_b *.go` and a_b", "`a_b *.go` and a\\_b"},
		{"two of them", "`a`, then `b`", "`a`, then `b`"},
		{"side by side", "`a``b`", "`a` `b`"},
		{"a backtick alone", "it's a ` here", "it's a \\` here"},
		{"three backticks", "`a` and ` b", "`a` and \\` b"},
		{"nothing between two", "a `` b `c`", "a \\`\\` b `c`"},
		{"after a link", "see http://x/`y`", "see `http://x/` `y`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := state()
			s.Gates = []loop.Gate{
				{ID: "q1", Kind: loop.GateQuestion, Task: "a", Summary: c.text},
				{ID: "q2", Kind: loop.GateQuestion, Task: "a", Summary: "points: " + c.text + "; more", Points: []string{c.text, "more"}},
			}
			s.Drift[0].Text = c.text
			s.Tasks[2].WaitingFor.What = c.text
			for _, page := range []string{string(statusfile.Status(s, charter.Defaults())), string(statusfile.LastKnown(s, charter.Defaults()))} {
				require.Equal(t, 4, strings.Count(page, c.want), page)
			}
		})
	}
	s := state()
	s.Tasks[0].Reason = strings.Repeat("x", 150) + " `" + command + "` " + long
	require.Contains(t, string(statusfile.Status(s, charter.Defaults())), " `"+command+"` word", "a task's line is short, but its commands are whole")
	require.NotContains(t, string(statusfile.Status(s, charter.Defaults())), long)
}

func TestS3_SeveralProblemsOfAPlanAreAList(t *testing.T) {
	s := state()
	s.Gates = []loop.Gate{{ID: "question-1", Kind: loop.GateQuestion, Task: "a", Summary: "it is blocked: one; 2 | 3", Points: []string{"one", "2 | 3"}}}
	for _, page := range []string{string(statusfile.Status(s, charter.Defaults())), string(statusfile.LastKnown(s, charter.Defaults()))} {
		require.Contains(t, page, ": it is blocked:\n  - one\n  - 2 \\| 3\n")
	}
}

func TestS7_ATaskThatDoesNotGoOnSaysWhy(t *testing.T) {
	s := steward.New("web")
	s.Tasks = []steward.Task{
		{ID: "a", Title: "A", State: task.Executing, Paused: true}, {ID: "b", Title: "B", State: task.Executing, Until: noon},
		{ID: "c", Title: "C", State: task.Idle, Held: true}, {ID: "d", Title: "D", State: task.Idle, Outcome: steward.Done, Held: true},
	}
	page := string(statusfile.Status(s, charter.Defaults()))
	for _, line := range []string{"A, EXECUTING, paused, tier", "B, EXECUTING, sleeps until " + noon.UTC().Format(time.RFC3339) + ", tier", "C, IDLE, held, tier", "D, IDLE, tier"} {
		require.Contains(t, page, line)
	}
}

func TestS7_AStewardThatHasEndedAsksNobodyAnything(t *testing.T) {
	s := state()
	s.Status, s.Reason = loop.Halted, "halted by ann"
	for _, page := range []string{string(statusfile.Status(s, charter.Defaults())), string(statusfile.LastKnown(s, charter.Defaults()))} {
		require.Contains(t, page, ": halted (halted by ann)\n")
		require.NotContains(t, page, "pawl steward answer")
		require.NotContains(t, page, "pawl show web-child-a")
		require.Contains(t, page, "`stuck`", "its tasks are there still")
	}
	status := string(statusfile.Status(s, charter.Defaults()))
	require.Contains(t, status, "- Active task: none\n")
	require.Contains(t, status, "- None: the steward has ended\n")
}

func TestS7_ForeignWordsAreNoMarkdown(t *testing.T) {
	s := state()
	hostile := "x\n# Tasks (0)\n- [a](http://b) <script> `c` | d \u202e\u2066 *e* \x1b[31m"
	s.Tasks[0].Title, s.Tasks[0].Reason, s.Gates[0].Summary, s.Drift[0].Text, s.Drift[0].What = hostile, hostile[2:], hostile[8:], hostile, "a`\n## b``c\u202e"
	before := state()
	for _, f := range []func(steward.State, charter.Charter) []byte{statusfile.Status, statusfile.LastKnown} {
		page := string(f(s, charter.Charter{}))
		require.Equal(t, strings.Count(string(f(before, charter.Charter{})), "\n"), strings.Count(page, "\n"), "it has as many lines as without")
		for _, r := range page {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%U", r)
		}
		require.NotContains(t, page, "<script>")
		require.NotContains(t, page, "\n# Tasks")
		require.Contains(t, page, "``` a`")
	}
}

func TestS7_ADiffIsWhatHasHappened(t *testing.T) {
	s := state()
	before := strings.Split(string(statusfile.Status(s, charter.Charter{})), "\n")
	s.Seq, s.ValidatedAt, s.Ledger = 99, noon.Add(time.Hour), "5555"
	require.Equal(t, strings.Join(before, "\n"), string(statusfile.Status(s, charter.Charter{})), "what says nothing new changes nothing")
	s.Tasks[3].Priority = 6
	changed := 0
	for i, line := range strings.Split(string(statusfile.Status(s, charter.Charter{})), "\n") {
		if line != before[i] {
			changed++
		}
	}
	require.Equal(t, 1, changed, "a task is one line")
}

// TestS7_ALongQueueIsCounted checks that a long queue does not make the page long, because every entry of the ledger
// has it.
func TestS7_ALongQueueIsCounted(t *testing.T) {
	s := steward.State{Steward: "web", State: task.Executing}
	for i := range 150 {
		s.Tasks = append(s.Tasks, steward.Task{ID: fmt.Sprintf("t%d", i), Title: "Task", State: task.Idle})
	}
	s.Tasks = append(s.Tasks, steward.Task{ID: "last", Title: "At work", State: task.Executing})
	for _, page := range []string{string(statusfile.Status(s, charter.Defaults())), string(statusfile.LastKnown(s, charter.Defaults()))} {
		require.Contains(t, page, "\n- `t99`: ")
		require.NotContains(t, page, "\n- `t100`: ")
		require.Contains(t, page, "\n- `last`: ")
		require.Contains(t, page, "\n- and 50 more not begun\n")
	}
}
