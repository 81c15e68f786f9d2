package worlds

import (
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// pairs is how many pairs a claim needs.
const pairs = 5

// Pawl is pawl's own rule.
func Pawl(s *session) Outcome {
	rules := stats.Rules{Direction: metric.Lower, Levels: true, Exact: true}
	var baseline []metric.Decimal
	for range rules.Evaluations() {
		baseline = append(baseline, printed(s.measure(s.base)))
	}
	sampler := stats.Start(rules, baseline)
	left := func() bool { return s.used < Budget-2*pairs }
	for s.out.Offered < Candidates && left() {
		level, improves := s.candidate()
		judgement := sampler.Next(rules)
		for !judgement.Final() && left() {
			if judgement.Do == stats.MeasureReference {
				sampler.AddReference(printed(s.measure(s.head)))
			} else {
				sampler.AddCandidate(printed(s.measure(level)))
			}
			judgement = sampler.Next(rules)
		}
		sampler.Settle()
		if !judgement.Final() {
			break
		}
		s.judged(level, improves, judgement.Do == stats.Keep)
		if judgement.Do == stats.Keep {
			sampler.HeadChanged()
		}
	}
	if s.out.Found+s.out.False == 0 {
		return s.end(0)
	}
	var p stats.Pairs
	for which := p.Next(pairs); which != ""; which = p.Next(pairs) {
		level := s.head
		if which == stats.Baseline {
			level = s.base
		}
		p.Add(which, printed(s.measure(level)))
	}
	out := s.end(0)
	claim := stats.ClaimOf(sampler.Scale, sampler.Noise, rules, p)
	out.Claimed, out.Low, out.High, out.Interval = claim.Estimate, claim.Low, claim.High, true
	return out
}
