package stats

import (
	"cmp"
	"math"
	"slices"

	"pawl/internal/lib/list"
)

// cut is how many standard deviations an evaluation may be from the median of its arm. One that is farther away is a
// spike and does not count. One normal deviate in two thousand is that far away (Iglewicz and Hoaglin's 3.5).
const cut = 3.5

// memory is how many degrees of freedom the noise remembers. Older ones weigh less and less, so if a machine becomes
// quieter, the noise follows within some hundred evaluations.
const memory = 256.

// rare is the largest share of evaluations that are spikes. If more of them are far from the others, the metric has
// several levels (a processor's clock, the layout of memory), and all of them are its noise.
const rare = .2

// Noise is what is known about the spread of single evaluations: the squared residuals of all of them, each from the
// mean of its own arm, and how many are independent. The zero value knows nothing.
type Noise struct {
	Squares float64 `json:"squares,omitempty"`
	Degrees float64 `json:"degrees,omitempty"` // of freedom
	Spikes  float64 `json:"spikes,omitempty"`  // evaluations that were left out; older ones weigh less here too
	Levels  bool    `json:"levels,omitempty"`  // spikes that are not rare are levels, and count
	Exact   bool    `json:"exact,omitempty"`   // the mean of equal values is that value, to the last bit
}

// Sigma returns the standard deviation of one evaluation on the scale, 0 if nothing is known or nothing varied.
func (n Noise) Sigma() float64 {
	if n.Degrees == 0 {
		return 0
	}
	return math.Sqrt(n.Squares / n.Degrees)
}

// with returns the noise with one more residual.
func (n Noise) with(residual float64) Noise {
	if sigma := n.Sigma(); sigma > 0 && math.Abs(residual) > cut*sigma && (!n.Levels || n.Spikes+1 <= rare*(n.Degrees+n.Spikes+2)) {
		n.Spikes++
		return n
	}
	n.Squares += float64(residual * residual) // the conversion keeps the product from being fused into the sum
	n.Degrees++
	if n.Degrees > memory {
		n.Squares *= memory / n.Degrees
		n.Spikes *= memory / n.Degrees
		n.Degrees = memory
	}
	return n
}

// next returns the noise after y was measured in an arm with these samples before it. The residual from the mean of n
// samples has the variance σ²(1 + 1/n). Divided by that, it counts like any other residual and is independent of them
// (recursive residuals; Brown, Durbin and Evans). The first sample of an arm says nothing about noise.
func (n Noise) next(arm []float64, y float64) Noise {
	if len(arm) == 0 {
		return n
	}
	mean, count := n.centre(arm)
	return n.with((y - mean) * math.Sqrt(float64(count)/float64(count+1)))
}

// and returns the noise with all of an arm.
func (n Noise) and(arm []float64) Noise {
	mean := n.average(arm)
	for _, y := range arm {
		n.Squares += float64((y - mean) * (y - mean))
	}
	n.Degrees += float64(max(0, len(arm)-1))
	return n
}

// calibrate returns the noise of an arm about which nothing is known. It starts with the median and the deviations
// from it. From the inside out it adds every value within the cut of the spread so far, until it finds no more. So
// normal noise is complete, and spikes are left out.
func calibrate(arm []float64, r Rules) Noise {
	middle := median(arm)
	byDistance := slices.Clone(arm)
	slices.SortStableFunc(byDistance, func(a, b float64) int { return cmp.Compare(math.Abs(a-middle), math.Abs(b-middle)) })
	inside := (len(arm) + 2) / 2 // a majority
	sigma := deviation(arm, middle)
	if sigma == 0 { // more than half of the values are equal: a coarse metric, whose other values are no spikes
		inside = len(arm)
	}
	for inside < len(arm) && math.Abs(byDistance[inside]-middle) <= cut*sigma {
		inside++
		sigma = max(sigma, spread(byDistance[:inside]))
	}
	if spikes := float64(len(arm) - inside); r.Levels && spikes > rare*float64(len(arm)) {
		inside = len(arm)
	}
	return Noise{Spikes: float64(len(arm) - inside), Levels: r.Levels, Exact: r.Exact}.and(byDistance[:inside])
}

// centre returns the mean of an arm without its spikes, and the number of values in it.
func (n Noise) centre(arm []float64) (mean float64, count int) {
	arm = within(arm, n.Sigma())
	return n.average(arm), len(arm)
}

// within returns an arm without its spikes. If that left half of it or less, nobody could tell which, and all count.
func within(arm []float64, sigma float64) []float64 {
	if sigma == 0 || len(arm) < 2 {
		return arm
	}
	middle := median(arm)
	near := slices.DeleteFunc(slices.Clone(arm), func(y float64) bool { return math.Abs(y-middle) > cut*sigma })
	if 2*len(near) <= len(arm) {
		return arm
	}
	return near
}

// average returns the mean of an arm. What is summed are the distances from its first value: rounding must not find
// noise in equal evaluations, as every other one would then be a spike.
func (n Noise) average(arm []float64) float64 {
	if len(arm) == 0 {
		return 0
	}
	sum, first := 0., 0.
	if n.Exact {
		first = arm[0]
	}
	for _, y := range arm {
		sum += y - first
	}
	return first + sum/float64(len(arm))
}

// spread returns the standard deviation of an arm, 0 for fewer than two values.
func spread(arm []float64) float64 {
	return Noise{Exact: true}.and(arm).Sigma()
}

func median(arm []float64) float64 {
	if len(arm) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(arm))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return sorted[half-1]/2 + sorted[half]/2
}

// deviation returns the median distance from the middle, scaled to the standard deviation of normal noise, and
// corrected for few values (n/(n-.8), Croux and Rousseeuw).
func deviation(arm []float64, middle float64) float64 {
	distances := list.Map(arm, func(y float64) float64 { return math.Abs(y - middle) })
	n := float64(len(arm))
	return 1.4826 * median(distances) * n / (n - .8)
}
