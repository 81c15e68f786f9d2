package worlds

import (
	"math"
	"slices"
)

// single is the protocol of the source: one evaluation of each candidate, and the better value wins.
func single(s *session) Outcome {
	baseline := s.measure(s.base)
	best := baseline
	for s.out.Offered < Candidates {
		level, improves := s.candidate()
		y := s.measure(level)
		s.judged(level, improves, y < best)
		best = min(best, y)
	}
	return s.end(baseline - best)
}

// piAutoresearch keeps a candidate that is better than all before, if the best improvement so far is at least twice the
// median absolute deviation of all measurements.
func piAutoresearch(s *session) Outcome {
	baseline := s.measure(s.base)
	all, best := []float64{baseline}, baseline
	for s.out.Offered < Candidates {
		level, improves := s.candidate()
		y := s.measure(level)
		all = append(all, y)
		keep := y < best && len(all) >= 3 && baseline-y >= 2*deviation(all)
		s.judged(level, improves, keep)
		if keep {
			best = y
		}
	}
	return s.end(baseline - best)
}

// sampled is a rule that measures head and candidate n times each and compares them. inTurn means that it measures the
// head again for each candidate, alternating with it; otherwise it uses the measurements with which the head was
// selected.
func sampled(n int, inTurn bool, keep func(s *session, head, candidate []float64) bool, level func([]float64) float64) func(*session) Outcome {
	return func(s *session) Outcome {
		several := func(l float64) (out []float64) {
			for range n {
				out = append(out, s.measure(l))
			}
			return out
		}
		cost := n
		if inTurn {
			cost = 2 * n
		}
		head := several(s.base)
		baseline := level(head)
		reported := baseline
		for s.out.Offered < Candidates && s.used+cost <= Budget {
			l, improves := s.candidate()
			candidate := make([]float64, 0, n)
			if inTurn {
				head = nil
			}
			for range n {
				if inTurn {
					head = append(head, s.measure(s.head))
				}
				candidate = append(candidate, s.measure(l))
			}
			better := keep(s, head, candidate)
			s.judged(l, improves, better)
			if better {
				head, reported = candidate, reported-level(head)+level(candidate)
			}
		}
		return s.end(baseline - reported)
	}
}

// benchstat is Mann-Whitney's U test at .05, with ten runs each, in turn. It reports medians.
func benchstat(_ *session, head, candidate []float64) bool {
	better, n := 0., float64(len(head))
	for _, h := range head {
		for _, c := range candidate {
			if c < h {
				better++
			} else if c == h {
				better += .5
			}
		}
	}
	// n = 10: U ≥ 77 of 100 has a two-sided probability of .0433 (exact)
	return better >= 77*n*n/100
}

// criterion is a bootstrapped t-test at .05, with an interval of the change that lies completely beyond 1 %.
func criterion(s *session, head, candidate []float64) bool {
	const resamples = 300
	draw := func(from []float64) []float64 {
		out := make([]float64, len(from))
		for i := range out {
			out[i] = from[s.random.IntN(len(from))]
		}
		return out
	}
	t := func(a, b []float64) float64 {
		return (mean(a) - mean(b)) / math.Sqrt(variance(a)/float64(len(a))+variance(b)/float64(len(b)))
	}
	found, pooled := t(head, candidate), append(slices.Clone(head), candidate...)
	beyond, changes := 0, make([]float64, resamples)
	for i := range changes {
		if math.Abs(t(draw(pooled)[:len(head)], draw(pooled)[:len(candidate)])) >= math.Abs(found) {
			beyond++
		}
		changes[i] = mean(draw(candidate)) - mean(draw(head))
	}
	slices.Sort(changes)
	return float64(beyond) < .05*resamples && changes[975*resamples/1000] < -.01
}

// capEvolve keeps a candidate if the mean of paired differences is more than one standard error.
func capEvolve(_ *session, head, candidate []float64) bool {
	differences := make([]float64, len(head))
	for i := range head {
		differences[i] = head[i] - candidate[i]
	}
	return mean(differences) > math.Sqrt(variance(differences)/float64(len(differences)))
}

func mean(x []float64) float64 {
	sum := 0.
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func variance(x []float64) float64 {
	m, sum := mean(x), 0.
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}

func median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// deviation returns the median distance from the median.
func deviation(x []float64) float64 {
	middle, distances := median(x), make([]float64, len(x))
	for i, v := range x {
		distances[i] = math.Abs(v - middle)
	}
	return median(distances)
}
