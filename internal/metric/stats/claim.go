package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"pawl/internal/metric"
)

const (
	leastPairs = 5
	mostPairs  = 64
	confidence = .95
)

// The two programs that a claim compares.
const (
	Baseline = "baseline"
	Head     = "head"
)

// Pairs are evaluations of the baseline and the head that are made for the claim alone, in turn.
type Pairs struct {
	Baseline []metric.Decimal `json:"baseline,omitempty"`
	Head     []metric.Decimal `json:"head,omitempty"`
}

// Next returns which of the two to evaluate now, "" if there are as many pairs as wanted, which is limited to 5 to
// 64. The order alternates from pair to pair, so that both are equally old on average if the machine drifts.
func (p Pairs) Next(wanted int) string {
	wanted = min(max(wanted, leastPairs), mostPairs)
	if n := len(p.Baseline); n >= wanted && n == len(p.Head) {
		return ""
	}
	return p.first()
}

// first returns which of the two to evaluate next, in turn.
func (p Pairs) first() string {
	switch b, h := len(p.Baseline), len(p.Head); {
	case b > h, b == h && b%2 == 1:
		return Head
	}
	return Baseline
}

// Add adds an evaluation of Baseline or Head.
func (p *Pairs) Add(side string, v metric.Decimal) {
	if side == Baseline {
		p.Baseline = append(append([]metric.Decimal(nil), p.Baseline...), v)
	} else {
		p.Head = append(append([]metric.Decimal(nil), p.Head...), v)
	}
}

// Claim is what a loop has achieved: the head compared with the baseline, both measured again. Positive is better,
// whatever the metric's direction.
type Claim struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"` // the estimate's 95 % interval
	High     float64 `json:"high"`
	Bound    float64 `json:"bound"`           // the improvement is at least this, with 95 % confidence
	Pairs    int     `json:"pairs"`           // of evaluations, 0 if one evaluation is enough
	Unit     string  `json:"unit"`            // Percent or Absolute
	TooNoisy bool    `json:"tooNoisy"`        // the interval contains 0
	Needs    int     `json:"needs,omitempty"` // the pairs that it would take, if it is too noisy
}

// ClaimOf returns the claim that pairs support. noise is what the loop knows about single evaluations, the zero value
// if it knows nothing. If the pairs' own spread is larger, that counts. If no improvement is found, Needs is for an
// improvement of minDelta.
func ClaimOf(scale Scale, noise Noise, r Rules, p Pairs) Claim {
	baseline, head := scale.all(p.Baseline), scale.all(p.Head)
	claim := Claim{Pairs: min(len(baseline), len(head)), Unit: scale.unit()}
	if claim.Pairs == 0 {
		claim.TooNoisy = true
		return claim
	}
	ours := Noise{Exact: noise.Exact}.and(within(baseline, noise.Sigma())).and(within(head, noise.Sigma()))
	if ours.Sigma() > noise.Sigma() {
		noise = ours
	}
	sigma := noise.Sigma()
	baseMean, b := noise.centre(baseline)
	headMean, a := noise.centre(head)
	d, se := headMean-baseMean, sigma*math.Sqrt(1/float64(b)+1/float64(a))
	two, single := 0., 0.
	if noise.Degrees > 0 {
		t := distuv.StudentsT{Sigma: 1, Nu: noise.Degrees}
		two, single = t.Quantile((1+confidence)/2), t.Quantile(confidence)
	}
	claim.Estimate, claim.Low, claim.High = said(scale, d), said(scale, d-two*se), said(scale, d+two*se)
	claim.Bound = said(scale, d-single*se)
	if claim.TooNoisy = se > 0 && math.Abs(d) <= two*se; claim.TooNoisy {
		s := Sampler{Scale: scale, Noise: noise}
		wanted := max(math.Abs(d), s.delta(r, baseMean))
		claim.Needs = max(int(min(math.Ceil(2*math.Pow(two*sigma/wanted, 2)), 1e9)), claim.Pairs+1)
	}
	return claim
}

// Exact returns the claim of a metric for which one evaluation is enough.
func Exact(direction string, baseline, head metric.Decimal) Claim {
	scale := ScaleOf(direction, baseline, head)
	d := said(scale, scale.of(head)-scale.of(baseline))
	return Claim{Estimate: d, Low: d, High: d, Bound: d, Unit: scale.unit()}
}

// said returns an improvement for people: rounded and finite.
func said(scale Scale, d float64) float64 {
	return min(max(rounded(scale.improvement(d), 1e6), -math.MaxFloat64), math.MaxFloat64)
}

// String returns the claim as the headline of a report: the lower bound and the estimate.
func (c Claim) String() string {
	unit := ""
	if c.Unit == Percent {
		unit = " %"
	}
	format := func(v float64) string { return decimal(v, 3).String() + unit }
	switch {
	case c.Pairs == 0 && c.Estimate < 0:
		return "worse by " + format(-c.Estimate)
	case c.Pairs == 0:
		return "better by " + format(c.Estimate)
	case c.TooNoisy:
		return fmt.Sprintf("too noisy to say; it would take %d pairs (best guess %s; 95 %% interval %s to %s, %d pairs)", c.Needs, format(c.Estimate), format(c.Low), format(c.High), c.Pairs)
	case c.High < 0:
		return fmt.Sprintf("worse by %s or more (best guess %s; 95 %% interval %s to %s, %d pairs)", format(-c.High), format(-c.Estimate), format(-c.High), format(-c.Low), c.Pairs)
	}
	return fmt.Sprintf("better by %s or more (best guess %s; 95 %% interval %s to %s, %d pairs)", format(c.Bound), format(c.Estimate), format(c.Low), format(c.High), c.Pairs)
}
