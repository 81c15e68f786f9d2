// Package worlds simulates loops in worlds whose truth is known: which candidates really improve the metric, and how
// noisy it is. Rules decide from measurements alone; the simulation compares what they keep and claim with the truth.
// pawl's rule is not a copy: it calls internal/metric/stats, as a loop does (issue 14).
//
// Start at [Simulate]. All random numbers come from seeds, so a run can be repeated exactly.
package worlds

import (
	"math"
	"math/rand/v2"
	"strconv"

	"pawl/internal/metric"
)

// World is a program with a metric in milliseconds, which candidates change by a share.
type World struct {
	Name   string
	Noise  float64 // standard deviation of an evaluation, as a share
	Real   float64 // share of the candidates that improve the metric by Gain
	Gain   float64
	Harm   float64 // the other candidates make it worse, by 0 to this share
	Drift  float64 // share by which the machine becomes slower with each evaluation
	Wander float64 // standard deviation of a change of speed without direction, with each evaluation
	Spikes float64 // share of evaluations that are 10 to 50 % slower
	Slow   float64 // share of evaluations that are 10 % slower, for example because of the layout of memory
	Carry  float64 // share of an evaluation's error that the next evaluation has, too
}

// All returns the worlds of the table. The first is that of the issue. Each of the others differs from it in one thing.
func All() []World {
	mix := World{Name: "mix, noise 3 %", Noise: .03, Real: .1, Gain: .02, Harm: .01}
	vary := func(name string, change func(*World)) World {
		w := mix
		w.Name = name
		change(&w)
		return w
	}
	return []World{
		mix,
		vary("nothing real", func(w *World) { w.Real, w.Harm = 0, 0 }),
		vary("noise 1 %", func(w *World) { w.Noise = .01 }),
		vary("noise 6 %", func(w *World) { w.Noise = .06 }),
		vary("slower by .2 % an evaluation", func(w *World) { w.Drift = .002 }),
		vary("faster by .2 % an evaluation", func(w *World) { w.Drift = -.002 }),
		vary("wandering by .2 % an evaluation", func(w *World) { w.Wander = .002 }),
		vary("8 % spikes", func(w *World) { w.Spikes = .08 }),
		vary("two levels", func(w *World) { w.Noise, w.Slow = .005, .4 }),
		vary("half an error carries over", func(w *World) { w.Carry = .5 }),
	}
}

// What a loop may spend.
const (
	Budget     = 505 // evaluations, including those of references and of the claim
	Candidates = 100
)

// session is one loop in a world: it measures, and keeps account of the truth.
type session struct {
	World
	random *rand.Rand
	used   int     // evaluations
	now    float64 // how slow the machine is now
	error  float64 // the error of the last evaluation
	base   float64 // ln of the baseline's true metric
	head   float64
	out    Outcome
}

// Outcome is the outcome of one loop.
type Outcome struct {
	Offered, OfferedReal int     // candidates that were judged
	Found, False         int     // kept candidates: real improvements, and others
	Claimed, True        float64 // gain in percent: what the loop says, and the truth
	Low, High            float64 // the claim's interval, if the rule gives one
	Interval             bool
	Used                 int
}

func newSession(w World, seed uint64) *session {
	return &session{World: w, random: rand.New(rand.NewPCG(seed, 14)), base: math.Log(100), head: math.Log(100)}
}

// measure evaluates a program whose true metric is e^level.
func (s *session) measure(level float64) float64 {
	s.used++
	s.now += s.Drift
	if s.Wander > 0 {
		s.now += s.Wander * s.random.NormFloat64()
	}
	s.error = s.Carry*s.error + math.Sqrt(1-s.Carry*s.Carry)*s.Noise*s.random.NormFloat64()
	y := level + s.now + s.error
	if s.random.Float64() < s.Spikes {
		y += math.Log(1.1 + .4*s.random.Float64())
	}
	if s.Slow > 0 && s.random.Float64() < s.Slow {
		y += math.Log(1.1)
	}
	return y
}

// printed returns a measurement in the form in which a command prints it.
func printed(y float64) metric.Decimal {
	return metric.MustDecimal(strconv.FormatFloat(math.Exp(y), 'f', 6, 64))
}

// candidate draws the next candidate: the level of its metric, and whether it really improves the metric.
func (s *session) candidate() (level float64, improves bool) {
	if s.random.Float64() < s.Real {
		return s.head + math.Log(1-s.Gain), true
	}
	return s.head + math.Log(1+s.Harm*s.random.Float64()), false
}

// judged notes a candidate's verdict.
func (s *session) judged(level float64, improves, keep bool) {
	s.out.Offered++
	if improves {
		s.out.OfferedReal++
	}
	if !keep {
		return
	}
	s.head = level
	if improves {
		s.out.Found++
	} else {
		s.out.False++
	}
}

// end stores the claim, given as a difference of logarithms, and the truth.
func (s *session) end(claimed float64) Outcome {
	s.out.Claimed, s.out.True, s.out.Used = percent(claimed), percent(s.base-s.head), s.used
	return s.out
}

// percent returns by how many percent the metric has become smaller.
func percent(d float64) float64 { return -100 * math.Expm1(-d) }
