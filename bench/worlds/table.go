package worlds

import (
	"fmt"
	"io"
	"math"
)

// Rule is one way to decide, and what to call it.
type Rule struct {
	Name string
	run  func(*session) Outcome
}

// Rules are pawl's rule and those of others, each as its tool has it.
func Rules() []Rule {
	return []Rule{
		{"pawl", Pawl},
		{"one sample", single},
		{"pi-autoresearch", piAutoresearch},
		{"cap-evolve, 5 each", sampled(5, false, capEvolve, mean)},
		{"benchstat, 10 pairs", sampled(10, true, benchstat, median)},
		{"criterion, 10 each", sampled(10, false, criterion, mean)},
	}
}

// Summary is what a rule did in a world, on average over its runs.
type Summary struct {
	Runs                int
	Offered, Real       float64 // candidates, and how many of them really improve
	Found, False        float64 // kept
	Claimed, True, Bias float64 // percent, percent, points
	Error               float64 // standard error of Bias
	Covered             float64 // share of the claims whose interval has the truth in it, NaN where there are none
	Used                float64
	Most                int // evaluations in the most expensive run
}

// Simulate runs a rule in a world so many times.
func Simulate(w World, r Rule, runs int) Summary {
	sum, covered, intervals, squares := Summary{Runs: runs}, 0., 0., 0.
	n := float64(runs)
	for seed := range runs {
		out := r.run(newSession(w, uint64(seed)))
		sum.Offered += float64(out.Offered) / n
		sum.Real += float64(out.OfferedReal) / n
		sum.Found += float64(out.Found) / n
		sum.False += float64(out.False) / n
		sum.Claimed += out.Claimed / n
		sum.True += out.True / n
		sum.Used += float64(out.Used) / n
		sum.Most = max(sum.Most, out.Used)
		squares += (out.Claimed - out.True) * (out.Claimed - out.True) / n
		if out.Interval {
			intervals++
			if out.Low <= out.True && out.True <= out.High {
				covered++
			}
		}
	}
	sum.Bias = sum.Claimed - sum.True
	sum.Error = math.Sqrt(max(0, squares-sum.Bias*sum.Bias) / n)
	sum.Covered = covered / intervals
	return sum
}

// Table writes what every rule does in every world.
func Table(out io.Writer, runs int) error {
	if _, err := fmt.Fprintln(out, "| world | rule | candidates | real ones found | others kept | claimed | true | claimed too much | 95 % interval covers | evaluations |\n|---|---|---|---|---|---|---|---|---|---|"); err != nil {
		return err
	}
	for _, w := range All() {
		for _, r := range Rules() {
			s := Simulate(w, r, runs)
			covered := "–"
			if !math.IsNaN(s.Covered) {
				covered = fmt.Sprintf("%.0f %%", 100*s.Covered)
			}
			if _, err := fmt.Fprintf(out, "| %s | %s | %.0f | %.1f of %.1f | %.2f | %+.2f %% | %+.2f %% | %+.2f | %s | %.0f |\n",
				w.Name, r.Name, s.Offered, s.Found, s.Real, s.False, s.Claimed, s.True, s.Bias, covered, s.Used); err != nil {
				return err
			}
		}
	}
	return nil
}
