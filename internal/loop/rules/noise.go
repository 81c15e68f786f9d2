package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
)

// Noisy describes what the noise of a metric means for a loop. It is for the person who approves the contract.
type Noisy struct {
	Says     string   // how the metric is judged, and what that costs
	Warnings []string // what cannot be shown with it
}

// Noise returns what a calibrated metric means for a loop with that spec. duration is that of one evaluation.
func Noise(s stats.Sampler, sp spec.Spec, duration time.Duration) Noisy {
	rules := ImproveOf(sp, 1).Samples
	sigma, unit := s.Sigma()
	r := s.Resolve(rules)
	if sigma == 0 {
		return Noisy{Says: fmt.Sprintf("the metric has not varied; one evaluation takes %s. A change is kept after %d evaluations of it, and evaluated at most %d times", lasting(duration), stats.LeastSamples, rules.MaxSamples)}
	}
	n := Noisy{Says: fmt.Sprintf(
		"the metric is noisy: it varies by %s from run to run (one standard deviation), and a run takes %s. About %d runs show whether a change improves it by %s; a change is run at most %d times",
		amountOf(sigma, unit), lasting(duration), r.Samples, amountOf(r.Delta, r.Unit), rules.MaxSamples,
	)}
	if r.TooNoisy {
		n.Warnings = append(n.Warnings, fmt.Sprintf(
			"the metric is so noisy that an improvement of %s can't be shown within verify.maxSamples (%d): that takes about %d evaluations of each change. The smallest improvement that %d can show is %s. Make verify steadier, raise verify.maxSamples, or ask for a larger improvement (verify.minDelta)",
			amountOf(r.Delta, r.Unit), rules.MaxSamples, r.Samples, rules.MaxSamples, amountOf(r.Smallest, r.Unit),
		))
	}
	if cost, have := duration*time.Duration(r.Samples), sp.Limits.ActiveTime.D(); cost > have {
		n.Warnings = append(n.Warnings, fmt.Sprintf(
			"showing one improvement of %s takes about %s of evaluations, but limits.activeTime is %s: raise it, or ask for a larger improvement (verify.minDelta)",
			amountOf(r.Delta, r.Unit), lasting(cost), sp.Limits.ActiveTime,
		))
	}
	return n
}

// Spread returns in a few words by how much single evaluations differ, and which improvement they can show. It follows
// the metric of the unchanged code.
func Spread(s stats.Sampler, sp spec.Spec) string {
	rules := ImproveOf(sp, 1).Samples
	sigma, unit := s.Sigma()
	r := s.Resolve(rules)
	if sigma == 0 {
		return fmt.Sprintf("± 0; a change is run %d to %d times", stats.LeastSamples, rules.MaxSamples)
	}

	spread := "± " + amountOf(sigma, unit) + " from run to run; "
	if r.TooNoisy {
		return spread + fmt.Sprintf("even %d runs of a change can't show an improvement below %s", rules.MaxSamples, amountOf(r.Smallest, r.Unit))
	}
	return spread + fmt.Sprintf("about %d runs show whether a change improves it by %s", r.Samples, amountOf(r.Delta, r.Unit))
}

// Told returns what an agent is told about a metric that varies, and about how large an improvement has to be.
func Told(s stats.Sampler, sp spec.Spec) string {
	rules := ImproveOf(sp, 1).Samples
	sigma, unit := s.Sigma()
	r := s.Resolve(rules)
	if sigma == 0 {
		return fmt.Sprintf("The metric may vary, so changes are judged by several evaluations, at most %d of each.", rules.MaxSamples)
	}
	return fmt.Sprintf(
		"The metric varies: one evaluation by %s (one standard deviation), so that a single measurement says little. Changes are judged by several evaluations, at most %d of each. The goal is an improvement of %s; a smaller one mostly can't be shown.",
		amountOf(sigma, unit), rules.MaxSamples, amountOf(r.Delta, r.Unit),
	)
}

// amountOf returns a share or an amount of the metric as text: 2.9 %, 0.03.
func amountOf(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if unit == stats.Percent {
		return text + " %"
	}
	return text
}

// lasting returns a length of time as text.
func lasting(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// LongVerify is how long verify may take before a person is told that it is slow.
const LongVerify = 30 * time.Second

// Slow returns the note about a verify command that takes long.
func Slow(command string, took time.Duration) string {
	advice := "Measure less of it"
	if strings.Contains(command, "-bench") {
		advice = "To shorten it, name fewer benchmarks (-bench) or lower -benchtime and -count"
	}
	return fmt.Sprintf("verify takes %s. A loop runs it three times before it begins and at least once for each change, more often if the number varies. %s", lasting(took), advice)
}

// NotSampled returns the note about a verify command that takes too long to find out whether its metric varies.
func NotSampled(times int, duration time.Duration) string {
	often := "once"
	if times > 1 {
		often = metric.Counted(times, "time") + " only"
	}
	return fmt.Sprintf("verify takes %s, so it was measured %s. The loop finds out at its baseline whether the metric varies, and by how much", lasting(duration), often)
}
