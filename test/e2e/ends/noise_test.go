package ends_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// noise is a measurement of work/n that varies by 3 %. The variation looks random but is the same in each run: it
// depends on how many measurements there were before. It uses squares modulo a prime, because multiples would leave a
// pattern from one to the next. The starting point was not selected: it is the first of a thousand that lie a thousand
// measurements apart. Of these, 99 % keep at most four of 40 changes without effect, 99 % keep all three real
// improvements, and 96 % of the intervals contain the truth. This one is among the five of a hundred whose bound is
// above the truth.
const noise = `n=$(($(cat "$1" 2>/dev/null || echo 0) + 1)); echo $n >"$1"
awk -v n=$n -v worth=$(cat work/n) 'function r() { x = (x * x + 12345) % 94906249; return (x + .5) / 94906249 }
BEGIN { x = (n + 1000) * 48271 % 94906249; for (i = 0; i < 6; i++) r(); printf "%.4f\n", worth * (1 + .03 * sqrt(-2 * log(r())) * cos(6.2831853 * r())) }'
`

// noisy is a loop whose metric varies. The agent makes these changes, and in every other iteration one that does not
// affect the metric.
func noisy(t *testing.T, changes string) *world.World {
	w := world.New(t, `case $PAWL_ITERATION in
`+changes+`
*) echo "$PAWL_ITERATION" >work/other; echo "note $PAWL_ITERATION" ;;
esac`)
	w.Write("repo/measure.sh", noise)
	w.Commit("a measurement that varies")
	return w.Set(doc{"verify": doc{"command": "sh measure.sh " + filepath.Join(w.Dir, "count")}, "limits": doc{"iterations": 40, "discards": 100}})
}

func TestP6_ChangesThatDoNothingAreNotKeptForTheirLuck(t *testing.T) {
	world.Slow(t, "TestTheClaimIsTrueInEveryWorld has many such loops in the process")
	w := noisy(t, "")
	r := w.Run(0)
	c := r.Result.Claim
	require.Equal(t, 40, r.Result.Iterations)
	require.LessOrEqual(t, r.Result.KeptCount, 4)
	require.True(t, c.Low <= 0 && c.High >= 0, "nothing has become better: %+v", c)
	require.True(t, c.TooNoisy || r.Result.KeptCount == 0, "%+v", c)
	require.InDelta(t, 1.6, c.FalseKeeps, 1e-9)
	t.Logf("kept %d of 40 changes that do nothing, claim %+v, %s evaluations", r.Result.KeptCount, *c, strings.TrimSpace(w.Read("count")))
}

func TestP9_TheClaimIsWhatIsTrue(t *testing.T) {
	world.Slow(t, "TestTheClaimIsTrueInEveryWorld has many such loops in the process")
	const apart, iterations = 10, 40
	w := noisy(t, fmt.Sprintf(`5) echo 11 >work/n; echo "first improvement" ;;
%d) echo 12.1 >work/n; echo "second improvement" ;;
%d) echo 13.31 >work/n; echo "third improvement" ;;`, 5+apart, 5+2*apart))
	r := w.Set(doc{"limits": doc{"iterations": iterations, "discards": 100}}).Run(0)
	c := r.Result.Claim
	require.Equal(t, "13.31", w.Kept("work/n"), "all three are kept")
	require.LessOrEqual(t, r.Result.KeptCount, 3+4)
	require.InDelta(t, 33.1, c.Estimate, 8, "13.31 is 33.1 %% more than 10, give or take three standard errors: %+v", c)
	require.True(t, 15 < c.Bound && c.Low < c.Bound && c.Bound < c.Estimate && c.Estimate < c.High, "%+v", c)
	require.Equal(t, "percent", c.Unit)
	best, err := r.Result.Best.Float64()
	require.NoError(t, err)
	require.InDelta(t, 13.31, best, .4, "best is what fresh samples say")
	t.Logf("kept %d, true +33.1 %%, claim %+v, %s evaluations", r.Result.KeptCount, *c, strings.TrimSpace(w.Read("count")))

	report := w.Pawl("report", w.Loop)
	require.Contains(t, report.Out, "Claim: better by ")
	require.Contains(t, w.Pawl("show", w.Loop).Out, "claim")
	row := strings.Split(strings.Split(w.Git("show", "refs/pawl-ledger/"+w.Loop+":loop-results.tsv"), "\n")[5], "\t")
	require.Len(t, row, 10, "four columns follow those of the source: %v", row)
}

// TestP6_SeveralAtOnceUnderNoise has three agents at work at once. In each round, one change is a real improvement.
func TestP6_SeveralAtOnceUnderNoise(t *testing.T) {
	world.Slow(t, "TestP9_TheClaimIsWhatIsTrue has one at a time")
	const better = `awk '{ printf "%.4f\n", $1 * 1.15 }' work/n >n.new; mv n.new work/n; echo "a real improvement, $PAWL_ITERATION" ;;`
	w := noisy(t, "2|5|9) "+better)
	w.Set(doc{"limits": doc{"iterations": 9, "parallel": 3}})
	r := w.Run(0)
	require.Equal(t, 9, r.Result.Iterations)
	require.InDelta(t, 15.20875, float(t, w.Kept("work/n")), .001, "all three are kept")
	require.LessOrEqual(t, r.Result.KeptCount, 3+1)
	c := r.Result.Claim
	require.True(t, c.Low <= 52.1 && c.High >= 52.1, "15.2 is 52.1 %% more than 10: %+v", c)
	events, _ := w.Events()
	judged := 0
	for _, e := range events {
		if e.Type == "candidate_judged" {
			judged++
		}
	}
	require.Equal(t, 9, judged)
	for _, row := range strings.Split(strings.TrimSpace(w.Git("show", "refs/pawl-ledger/"+w.Loop+":loop-results.tsv")), "\n")[1:] {
		require.GreaterOrEqual(t, len(strings.Split(row, "\t")), 10, "evaluations, spread and LLR of every judgement: %s", row)
	}
	w.Done("log", w.Loop, "--verify")
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(t, err)
	return v
}

func TestP5_EvaluationsThatAreComparedBeginAlike(t *testing.T) {
	world.Slow(t, "activities/workspace measures")
	for evidence, want := range map[string]string{"sequential": "", "single": "it was there\n"} {
		t.Run(evidence, func(t *testing.T) {
			w := world.New(t, world.Raises)
			w.Write("repo/.gitignore", "cache/\n")
			w.Commit("a cache")
			found := filepath.Join(w.Dir, "found")
			w.Set(doc{"judge": doc{"keep": []string{"cache/**"}}, "verify": doc{
				"evidence": evidence, "command": "test -e cache/x && echo it was there >>" + found + "; mkdir -p cache && echo 1 >cache/x; cat work/n",
			}})
			require.Equal(t, 1, w.Run(0).Result.KeptCount)
			require.Equal(t, want, w.Read("found"), evidence)
		})
	}
}

func TestP9_TheAgentIsNotToldOfTheHoldout(t *testing.T) {
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION"; env >"$WORLD/env-$PAWL_ITERATION"; ls -R . >"$WORLD/desk-$PAWL_ITERATION"; `+world.Raises)
	w.Write("repo/unseen-by-agents.sh", "echo run >>\"$1\"; cat work/n\n")
	w.Commit("a second measurement")
	w.Set(doc{"verify": doc{"holdout": doc{"command": "sh unseen-by-agents.sh " + filepath.Join(w.Dir, "held")}}, "limits": doc{"iterations": 2}})
	r := w.Run(0)
	require.Contains(t, w.Pawl("log", w.Loop).Out, "the agent can read these files, which hold or name the holdout: unseen-by-agents.sh")
	require.Equal(t, 10, strings.Count(w.Read("held"), "run"), "five pairs")
	require.InDelta(t, 20, r.Result.Claim.Estimate, 1e-6)
	require.InDelta(t, 20, r.Result.Claim.Holdout.Estimate, 1e-6)
	for _, told := range []string{"prompt-1", "prompt-2", "env-1", "env-2"} {
		require.NotEmpty(t, w.Read(told))
		require.NotContains(t, w.Read(told), "unseen-by-agents", told)
		require.NotContains(t, w.Read(told), "holdout", told)
	}
}

func TestMeasurementsOfAHostTakeTurns(t *testing.T) {
	world.Slow(t, "internal/lib/fsutil/dirfd has the lock")
	dir := t.TempDir()
	occupied, clashes := filepath.Join(dir, "occupied"), filepath.Join(dir, "clashes")
	command := "mkdir " + occupied + " || echo clash >>" + clashes + "; sleep 0.2; rmdir " + occupied + "; cat work/n"
	for range 3 {
		t.Run("a loop", func(t *testing.T) {
			w := world.New(t, world.Raises)
			w.Set(doc{"verify": doc{"command": command, "evidence": "single"}, "limits": doc{"iterations": 2}, "sandbox": doc{"allow": []string{w.Dir, dir}}})
			require.Equal(t, 2, w.Run(0).Result.KeptCount)
			require.NoFileExists(t, clashes)
		})
	}
}

// TestTheListSaysThatCandidatesAreMade while the first ones are: no iteration has begun then.
func TestTheListSaysThatCandidatesAreMade(t *testing.T) {
	world.Slow(t, "the list of the other tests has iterations")
	w := world.New(t, world.WaitsFor("go")).Set(doc{"limits": doc{"iterations": 2, "parallel": 2}})
	require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile()).Code)
	w.Until("the list says so", func() bool { return strings.Contains(w.Done("list").Out, " candidates ") })
	w.Write("go", "")
	w.Waits("completed")
}
