package worlds

import (
	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
)

// pairs is how many pairs a claim needs.
const pairs = 5

// Pawl is pawl's own rule.
func Pawl(s *session) Outcome {
	rules := sampling.Rules{Direction: evidence.Lower, Levels: true, Exact: true}
	var baseline []evidence.Decimal
	for range rules.Evaluations() {
		baseline = append(baseline, printed(s.measure(s.base)))
	}
	sampler := sampling.Start(rules, baseline)
	left := func() bool { return s.used < Budget-2*pairs }
	for s.out.Offered < Candidates && left() {
		level, improves := s.candidate()
		judgement := sampler.Next(rules)
		for !judgement.Final() && left() {
			if judgement.Do == sampling.MeasureReference {
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
		s.judged(level, improves, judgement.Do == sampling.Keep)
		if judgement.Do == sampling.Keep {
			sampler.HeadChanged()
		}
	}
	if s.out.Found+s.out.False == 0 {
		return s.end(0)
	}
	var p sampling.Pairs
	for which := p.Next(pairs); which != ""; which = p.Next(pairs) {
		level := s.head
		if which == sampling.Baseline {
			level = s.base
		}
		p.Add(which, printed(s.measure(level)))
	}
	out := s.end(0)
	claim := sampling.ClaimOf(sampler.Scale, sampler.Noise, rules, p)
	out.Claimed, out.Low, out.High, out.Interval = claim.Estimate, claim.Low, claim.High, true
	return out
}
