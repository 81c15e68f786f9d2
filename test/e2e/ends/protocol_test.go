package ends_test

import (
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// climb is one iteration of a scripted loop: the changes of the agent.
type climb struct {
	n     string // the metric; "" leaves it unchanged
	other string // "bad" breaks the guard
}

// oracle is the metric protocol in a few lines, written from its source and not from pawl's code.
func oracle(t *testing.T, course []climb, lower bool, minDelta string) (rows []row) {
	rational := func(s string) *big.Rat {
		r, ok := new(big.Rat).SetString(s)
		require.True(t, ok, s)
		return r
	}
	best := "10"
	rows = []row{{"0", best, "+0.00", "yes", "baseline"}}
	for i, c := range course {
		metric, delta, kept, description := best, "+0.00", "no", fmt.Sprintf("change %d", i+1)
		switch {
		case c.n == "none":
			description = "error:no-number: " + description
		case c.n == "crash":
			description = "error:verify-crash: " + description
		case c.other == "bad":
			description = "guard-fail: " + description
		default:
			metric = c.n
			gain := new(big.Rat).Sub(rational(c.n), rational(best))
			float, _ := gain.Float64()
			delta = fmt.Sprintf("%+.2f", float)
			if lower {
				gain.Neg(gain)
			}
			if gain.Sign() > 0 && gain.Cmp(rational(minDelta)) >= 0 {
				kept, best = "yes", c.n
			}
		}
		rows = append(rows, row{fmt.Sprint(i + 1), metric, delta, kept, description})
	}
	return rows
}

func TestP6_DecisionsAreThoseOfTheProtocol(t *testing.T) {
	for _, c := range world.Sample(1, []struct {
		name     string
		lower    bool
		minDelta string
		course   []climb
	}{
		{"higher is better", false, "0", []climb{{"11", ""}, {"11", "new"}, {"10.99", ""}, {"11.001", ""}, {"-3", ""}, {"1e2", ""}, {"100.0", "new"}}},
		{"lower is better", true, "0", []climb{{"9.5", ""}, {"9.5", "new"}, {"12", ""}, {"-0.25", ""}, {"-0.2500001", ""}}},
		{"min-delta is inclusive", false, "0.1", []climb{{"10.1", ""}, {"10.19", ""}, {"10.2", ""}, {"10.3", "bad"}, {"10.30", "new"}}},
		{"failures", false, "0", []climb{{"crash", ""}, {"none", ""}, {"12", "bad"}, {"none", ""}, {"12", "new"}}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			var script strings.Builder
			script.WriteString("case $PAWL_ITERATION in\n")
			for i, step := range c.course {
				fmt.Fprintf(&script, "%d) echo '%s' >work/n", i+1, step.n)
				if step.other != "" {
					fmt.Fprintf(&script, "; echo '%s %d' >work/other", step.other, i+1)
				}
				script.WriteString(";;\n")
			}
			script.WriteString("esac; echo \"change $PAWL_ITERATION\"")
			w := world.New(t, script.String())
			w.Write("repo/measure.sh", "grep -q crash work/n && exit 1\ncat work/n\n")
			w.Commit("measure")
			direction := map[bool]string{true: "lower", false: "higher"}[c.lower]
			w.Set(doc{
				"verify": doc{"direction": direction, "minDelta": c.minDelta, "suspicious": "mark"}, "guard": doc{"command": "sh guard.sh"},
				"limits": doc{"iterations": len(c.course), "reworks": 0},
			})
			w.Run(0)
			want := oracle(t, c.course, c.lower, c.minDelta)
			require.Equal(t, want, w.Results(w.Loop))
			var kept []string
			for _, r := range want[1:] {
				if r.Kept() == "yes" {
					kept = append([]string{"loop(iter-" + r[0] + "): " + r.Description()}, kept...)
				}
			}
			var commits []string
			for _, s := range w.Subjects() {
				if !strings.HasPrefix(s, "Revert ") {
					commits = append(commits, s)
				}
			}
			require.Len(t, commits, len(c.course), "every change was committed before it was judged")
			require.Subset(t, commits, kept)
			floor(w, direction, c.minDelta, len(c.course))
		})
	}
}

// floor compares the results with those of the plain script, if the script is there.
func floor(w *world.World, direction, minDelta string, iterations int) {
	w.T.Helper()
	script, err := filepath.Abs(filepath.Join("..", "shared", "bench", "floor.sh"))
	require.NoError(w.T, err)
	if _, err := os.Stat(script); err != nil {
		return
	}
	clone := filepath.Join(w.Dir, "floor")
	w.Git("clone", "--quiet", w.Repo, clone)
	cmd := exec.Command(script, clone, fmt.Sprint(iterations), direction, minDelta, "sh "+filepath.Join(w.Dir, "agent.sh"), "sh measure.sh", "sh guard.sh")
	cmd.Env = append(world.Environ(w.Home, w.Dir), "WORLD="+w.Dir, "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
	out, err := cmd.Output()
	require.NoError(w.T, err)
	var rows []row
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Split(line, "\t")
		require.Len(w.T, f, 6, line)
		rows = append(rows, row{f[0], f[2], f[3], f[4], f[5]})
	}
	require.Equal(w.T, rows, w.Results(w.Loop), "the floor decides the same")
}

func TestP2_DescriptionOfSeveralChanges(t *testing.T) {
	world.Slow(t, "internal/loop/rules has such descriptions")
	w := world.New(t, `echo "11" >work/n; echo "$PAWL_ATTEMPT" >>work/other; echo "raise the number and count the attempts"`)
	w.Run(0)
	require.Equal(t, "not-atomic: raise the number and count the attempts", w.LastRow().Description())
	require.Equal(t, 2, w.Show().Iterations[0].Attempts)
	require.Empty(t, w.Subjects(), "it was not even committed")
}

func TestP2_IdeasAreOneChangeAtATime(t *testing.T) {
	world.Slow(t, "workflows has the ideas")
	w := world.New(t, `echo "$PAWL_ITERATION $PAWL_PHASE $PAWL_ROLE" >>"$WORLD/calls"; cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION-$PAWL_PHASE"
		if [ "$PAWL_PHASE" = ideate ]; then echo 99 >work/n; echo '{"idea": "raise the number and polish the other file"}' >"$PAWL_RESULT"; exit; fi
		`+world.Raises).Set(doc{"agent": doc{"ideas": true}, "limits": doc{"iterations": 2}})
	w.Run(0)
	require.Equal(t, "1 ideate ideator\n1 modify writer\n2 modify writer\n", w.Read("calls"), "the rest of the idea is the next one")
	require.Contains(t, w.Read("prompt-1-modify"), "Make exactly this one change: raise the number\n")
	require.Contains(t, w.Read("prompt-2-modify"), "Make exactly this one change: polish the other file\n")
	require.Equal(t, "12", w.Kept("work/n"), "what was edited while ideating is gone")
}

func TestP2_TheSameChangeIsNotJudgedTwice(t *testing.T) {
	world.Slow(t, "workflows tests that the same tree is not judged twice")
	w := world.New(t, `echo 9 >work/n; echo "lower the number"`)
	w.Set(doc{"verify": doc{"command": "echo run >>" + filepath.Join(w.Dir, "runs") + "; cat work/n"}, "limits": doc{"iterations": 3}})
	w.Run(0)
	require.Equal(t, "run\nrun\nrun\nrun\n", w.Read("runs"), "the baseline, three times, and one change")
	rows := w.Results(w.Loop)
	require.Equal(t, row{"1", "9", "-1.00", "no", "lower the number"}, rows[1])
	require.Equal(t, []string{"no", "no"}, []string{rows[2].Kept(), rows[3].Kept()})
	require.Contains(t, rows[3].Description(), "repeat")
}

func TestP3_SyntaxIsCheckedAfterTheEdit(t *testing.T) {
	world.Slow(t, "workflows has the check")
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ATTEMPT"; echo 11 >work/n; echo "broken $PAWL_ATTEMPT" >work/other; echo "raise the number"`).
		Set(doc{"check": doc{"command": "if grep broken work/other; then echo 'syntax error near X'; exit 1; fi"}})
	w.Run(0)
	require.Equal(t, row{"1", "10", "+0.00", "no", "error:syntax: raise the number"}, w.LastRow())
	require.Equal(t, 3, w.Show().Iterations[0].Attempts, "two reworks")
	require.Contains(t, w.Read("prompt-2"), "syntax error near X", "the agent is told why")
	require.Empty(t, w.Subjects())
}

func TestP5_5_GuardThatFailsIsReworkedTwice(t *testing.T) {
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION-$PAWL_ATTEMPT"; cat work/n >>"$WORLD/found"
		echo "1$PAWL_ITERATION" >work/n; echo good >work/other
		[ "$PAWL_ITERATION" = 2 -a "$PAWL_ATTEMPT" = 3 ] || echo "bad $PAWL_ATTEMPT" >work/other; echo "attempt $PAWL_ATTEMPT"`)
	w.Write("repo/guard.sh", "! grep bad work/other\n")
	w.Commit("guard that says what it finds")
	w.Set(doc{"guard": doc{"command": "sh guard.sh"}, "limits": doc{"iterations": 2}})
	w.Run(0)
	rows := w.Results(w.Loop)
	require.Equal(t, row{"1", "10", "+0.00", "no", "guard-fail: attempt 3"}, rows[1])
	require.Equal(t, row{"2", "12", "+2.00", "yes", "attempt 3"}, rows[2])
	require.Equal(t, strings.Repeat("10\n", 6), w.Read("found"), "each attempt starts from the same")
	require.Contains(t, w.Read("prompt-1-2"), "bad 1", "the agent is shown what the guard said")
	require.Len(t, w.Subjects(), 11, "six attempts, five reverts")
}

func TestP8_StopsAndShifts(t *testing.T) {
	world.Slow(t, "workflows has the decisions")
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION"; echo "$PAWL_ITERATION" >>work/other; echo "do something"`).Set(doc{"limits": doc{"iterations": 50}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Out, "Loop complete: 10 iterations, 0 kept, best metric: 10 (baseline: 10, delta: +0)")
	require.Contains(t, w.Pawl("diff", w.Loop).Err, "has ended (completed) without a proposal; this is what is on its branch")
	require.Contains(t, s.Out, "10 discards in a row")
	require.Contains(t, s.Out, "Kept changes: none")
	require.Contains(t, s.Err, "strategy shifts: 5 discards in a row")
	require.NotContains(t, w.Read("prompt-5"), "The strategy has shifted")
	require.Contains(t, w.Read("prompt-6"), "The strategy has shifted")
	require.Equal(t, "completed", w.Show().ExitStatus)
}

func TestP8_TargetMet(t *testing.T) {
	t.Run("after some iterations", func(t *testing.T) {
		w := world.New(t, world.Raises).Set(doc{"verify": doc{"target": 12}, "limits": doc{"iterations": 9}})
		r := w.Run(0)
		require.Equal(t, []any{"completed", "completed", 2, "target met"}, []any{r.Status, r.Result.ExitStatus, r.Result.Iterations, r.Result.Recommendation})
	})
	t.Run("by the unchanged code", func(t *testing.T) {
		w := world.New(t, world.Raises).Set(doc{"verify": doc{"target": 10}})
		r := w.Run(0)
		require.Equal(t, []any{"completed", 0, "target met"}, []any{r.Result.ExitStatus, r.Result.Iterations, r.Result.Recommendation})
		require.Nil(t, r.Result.Proposal)
	})
}

func TestA2_BudgetsEndTheLoop(t *testing.T) {
	for _, c := range world.Sample(1, []struct {
		name, spends, exitStatus, budget string
		limits                           doc
		iterations                       int
	}{
		{"tool calls, by default ten", `{"toolCalls": 4}`, "max_steps", "toolCalls", doc{"toolCalls": 10, "iterations": 50}, 3},
		{"tool calls that are not reported", `{}`, "max_steps", "toolCalls", doc{"toolCalls": 2, "iterations": 50}, 2},
		{"tokens", `{"inputTokens": 600, "outputTokens": 401}`, "max_steps", "tokens", doc{"tokens": 2000, "iterations": 50}, 2},
		{"money", `{"costUSD": 0.1}`, "max_steps", "costUSD", doc{"costUSD": 0.3, "iterations": 50}, 3},
		{"active time", `{}`, "timeout", "activeTime", doc{"activeTime": "1ms", "iterations": 50}, 0},
		{"the clock", `{}`, "timeout", "wallClock", doc{"wallClock": "1ms", "iterations": 50}, 0},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, `echo '`+c.spends+`' >"$PAWL_RESULT"; `+world.Raises).Set(doc{"limits": c.limits})
			if c.budget == "toolCalls" && c.iterations == 3 {
				delete(w.Spec["limits"].(doc), "toolCalls")
			}
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 6, s.Code, s.Err)
			require.Contains(t, s.Out+s.Err, "BUDGET_EXHAUSTED")
			require.Contains(t, s.Out+s.Err, "the budget "+c.budget+" is used up")
			st := w.Show()
			require.Equal(t, []any{"halted", c.exitStatus, "BUDGET_EXHAUSTED", c.iterations}, []any{st.Status, st.ExitStatus, st.ErrorCode, st.Iteration})
			events, _ := w.Events()
			require.Contains(t, world.Types(events), "budget_exhausted")
			if c.iterations > 0 {
				require.Equal(t, "yes", w.LastRow().Kept(), "what was made with the last of it is judged")
			}
		})
	}
}

func TestP9_Report(t *testing.T) {
	w := world.New(t, "")
	old := w.Repo
	w.Repo = filepath.Join(w.Dir, `Ann's "hill" $HOME ü`)
	require.NoError(t, os.Rename(old, w.Repo))
	w.Set(doc{"repo": doc{"path": w.Repo}})
	w.Script(`if [ "$PAWL_ITERATION" = 2 ]; then echo 1 >work/n; echo "lower it"; else ` + world.Raises + `; fi`)
	w.Set(doc{"limits": doc{"iterations": 3}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	lines := strings.Split(s.Out, "\n")
	require.Equal(t, "Loop complete: 3 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2), +20 %", lines[0])
	require.Equal(t, "Kept changes:", lines[1])
	require.Regexp(t, `^  [0-9a-f]{7,} +raise the number$`, lines[2])
	require.Regexp(t, `^  [0-9a-f]{7,} +raise the number$`, lines[3])
	require.Equal(t, "Discarded: 1 iterations", lines[4])
	require.Regexp(t, `^Recommendation: (continue|diminishing returns|target met)`, lines[5])
	for _, text := range []string{"pawl/" + w.Loop, "refs/pawl-ledger/" + w.Loop + ":loop-results.tsv", "http://127.0.0.1:", "/namespaces/default/workflows/" + w.Loop, "pawl log " + w.Loop} {
		require.Contains(t, s.Out, text)
	}
	// The commands that the report tells people to type work.
	for _, line := range lines {
		if _, command, found := strings.Cut(line, "git -C "); found {
			w.Shell("git -C " + command)
		}
	}
	require.NotContains(t, s.Err+s.Out, "\x1b", "nothing moves and nothing is coloured where there is no terminal")
}

// What an agent writes into its result file counts, and is kept beside its log.
func TestWhatACommandReportsIsTakenDown(t *testing.T) {
	w := world.New(t, world.Raises+`; echo '{"description": "raise it", "toolCalls": 4, "inputTokens": 1e2, "outputTokens": 20, "costUSD": 0.125, "sessionId": "s-1"}' >"$PAWL_RESULT"`)
	w.Run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise it"}, w.LastRow())
	used := map[string]string{}
	for name, line := range w.Show().Budget {
		used[name] = line.Used.String()
	}
	require.Equal(t, []string{"4", "120", "0.125"}, []string{used["toolCalls"], used["tokens"], used["costUSD"]})
	var made struct{ Session string }
	world.Decode(t, w.ReadHome("loops/"+w.Loop+"/steps/0001.1-modify/result.json"), &made)
	require.Equal(t, "s-1", made.Session)
}
