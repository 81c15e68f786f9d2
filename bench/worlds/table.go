package worlds

import (
	"fmt"
	"math"
	"strings"
	"sync"
)

// Rule is one way to decide, with its name.
type Rule struct {
	Name string
	run  func(*session) Outcome
}

// Rules are pawl's rule and those of other tools.
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
	Offered, Real       float64 // candidates, and how many of them really improve
	Found, False        float64 // kept: real improvements, and others
	Claimed, True, Bias float64 // percent, percent, points
	Covered             float64 // share of the claims whose interval contains the truth, NaN if there are no intervals
	Used                float64
	Most                int // evaluations in the most expensive run
}

// Simulate runs a rule in a world that many times.
func Simulate(w World, r Rule, runs int) Summary {
	sum, covered, intervals := Summary{}, 0., 0.
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
		if out.Interval {
			intervals++
			if out.Low <= out.True && out.True <= out.High {
				covered++
			}
		}
	}
	sum.Bias = sum.Claimed - sum.True
	sum.Covered = covered / intervals
	return sum
}

// Own returns the results of pawl's rule in these worlds, as a table in Markdown.
func Own(worlds []World, summaries []Summary) string {
	var out strings.Builder
	out.WriteString("| world | candidates judged | real ones kept | others kept | claimed | true | the claim is off by | 95 % interval has the truth in it | evaluations |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, w := range worlds {
		s := summaries[i]
		fmt.Fprintf(&out, "| %s | %.0f | %.1f of %.1f | %.2f | %s | %s | %s | %.0f %% | %.0f |\n",
			w.Name, s.Offered, s.Found, s.Real, s.False, signed(s.Claimed), signed(s.True), signed(s.Bias), 100*s.Covered, s.Used)
	}
	return out.String()
}

// In runs a rule in each of these worlds that many times.
func In(worlds []World, r Rule, runs int) []Summary {
	summaries := make([]Summary, len(worlds))
	var all sync.WaitGroup
	for i, w := range worlds {
		all.Go(func() { summaries[i] = Simulate(w, r, runs) })
	}
	all.Wait()
	return summaries
}

// Beside returns two tables in Markdown: what every rule claims and what is true, and what it keeps, in every world.
func Beside(runs int) string {
	var names, rule strings.Builder
	claims, keeps := make([]string, len(All())), make([]string, len(All()))
	for i, w := range All() {
		claims[i], keeps[i] = "| "+w.Name, "| "+w.Name
	}
	for _, r := range Rules() {
		names.WriteString(" | " + r.Name)
		rule.WriteString("|---")
		for i, s := range In(All(), r, runs) {
			claims[i] += fmt.Sprintf(" | %s / %s", signed(s.Claimed), signed(s.True))
			keeps[i] += fmt.Sprintf(" | %.1f + %.1f", s.Found, s.False)
		}
	}
	table := func(what string, rows []string) string {
		return "| " + what + names.String() + " |\n|---" + rule.String() + "|\n" + strings.Join(rows, " |\n") + " |\n"
	}
	return table("claimed / true", claims) + "\n" + table("real ones + others kept", keeps)
}

// signed writes percents or points with their sign, and zero without a minus.
func signed(v float64) string {
	if math.Abs(v) < .05 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", v)
}
