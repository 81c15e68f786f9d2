// Package stats decides under noise: how often a candidate is measured, whether it is kept, and what a loop may
// claim at its end (issue 14). One measurement of a noisy metric says little. A loop that keeps the better of two
// single measurements keeps luck, and reports it as improvement.
//
// It is pure: values in, values out. It never measures, waits, draws a random number or reads a clock. Workflow code
// asks it what to measure next and tells it the result. Everything that it remembers is a [Sampler], a bounded value.
//
// Start reading at [Start] and [Sampler.Next], then [ClaimOf]. bench/worlds simulates the results with these
// functions, and docs/reference/numbers.md shows them.
//
// # The test
//
// Metrics are compared as y = ±ln(metric) if all are positive, else as they are, so that more is better ([Scale]).
// The noise of one evaluation has the standard deviation σ. With a evaluations of the candidate and b of the head,
// the difference of the means d estimates the true difference θ with the variance v = σ²(1/a + 1/b). The score d/v
// gains independent increments with every evaluation of either, and has the mean θ/v and the variance 1/v. It is a
// Brownian motion with drift θ, observed at the time 1/v after every measurement (Jennison and Turnbull, Group
// Sequential Methods, ch. 3). So the logarithm of the likelihood ratio of θ = δ against θ = 0 is
//
//	LLR = δ(d − δ/2)/v
//
// and Wald's sequential probability ratio test applies (Annals of Mathematical Statistics 16, 1945): keep at
// ln((1−β)/α), discard at ln(β/(1−α)). A candidate that changes nothing is kept with a probability of about α, and
// one that improves by δ is discarded with about β. No test with these errors needs fewer evaluations on average. The
// defaults, α = .04 and β = .65, suit a loop: the next candidate costs little, and an agent may propose a missed
// improvement again. A discard takes one or two evaluations; only a promising candidate is measured for long. A keep
// takes three evaluations of the candidate and three of the head within its trial: three values outvote one spike,
// and reveal a reference that is older than a slow change of the machine.
//
// # The noise
//
// σ is the same estimate for the calibration, every decision and the claim: the residuals of all evaluations about
// the means of their own arms, squared, summed and divided by the degrees of freedom. That is unbiased even for small
// arms ([Noise]). Robust scales are not: averaged median deviations of arms of three are too small, and tripled the
// false keeps. Robustness comes from leaving out spikes instead: evaluations farther than 3.5 σ from the median of
// their arm (Iglewicz and Hoaglin, 1993) count neither for σ nor for a mean. The calibration does not know σ yet, so
// it grows σ from the median deviation outwards, as a forward search does (Atkinson and Riani). At most a fifth of the
// evaluations may be spikes. If more are far away, the metric has several levels, and all of them count: a loop that
// left out the slower level would take its share in each arm for a difference of the programs. Normal noise loses
// one evaluation in two thousand that way, so the plain variance theory above still holds. While σ has few degrees of
// freedom, d/√v is Student's t and not normal. The test uses the normal deviate that is equally rare (Wallace, Annals
// of Mathematical Statistics 30, 1959). Without that, luck keeps the first ten candidates after the calibration twice
// as often as later ones.
//
// # The reference
//
// A test against the sample that won before is a test against luck (the winner's curse): the expected maximum of
// several noisy values is above all true ones. So the values that selected a change are dropped when it is kept
// ([Sampler.HeadChanged]), and eight fresh evaluations become the reference. It grows by one evaluation with every
// candidate. If its older and its newer half differ by more than three standard errors, the machine drifts. Then head
// and candidate are measured in turn, and only these evaluations of the head count, or the last four. The drift is
// remembered beyond a keep, until 32 evaluations of one head show no difference.
//
// # The claim
//
// Baseline and head are measured again, in turn, at the end ([Pairs]). These values selected nothing, so their
// difference is unbiased, however the head was found. Its interval is Student's, with the loop's own σ or that of the
// pairs, whichever is larger.
package stats
