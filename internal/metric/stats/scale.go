package stats

import (
	"math"
	"strconv"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
)

// Units of differences of a metric.
const (
	Percent  = "percent"  // of the metric
	Absolute = "absolute" // the metric's own unit
)

// Scale says how metrics are compared: by ratio if all of them are positive, because a slower machine is slower by a
// share, else by difference. On the scale a larger value is better, whatever the direction.
type Scale struct {
	Lower bool    `json:"lower,omitempty"` // the lower the metric the better
	Log   bool    `json:"log,omitempty"`
	Unit  float64 `json:"unit,omitempty"` // of a linear scale, so that squares neither overflow nor vanish
}

// On a logarithmic scale a metric of zero or less counts as the smallest number: 0 ms after 3 ms is an improvement.
// On a linear scale nothing is farther than a million million times the first values.
var (
	farthestLog    = -logarithm(math.SmallestNonzeroFloat64)
	farthestLinear = 1e12
)

// ScaleOf returns the scale for a metric with these known values, those of the baseline.
func ScaleOf(direction string, values ...metric.Decimal) Scale {
	s := Scale{Lower: direction == metric.Lower, Log: len(values) > 0}
	for _, v := range values {
		s.Log = s.Log && v.Sign() > 0
		s.Unit = max(s.Unit, math.Abs(v.Float()))
	}
	switch {
	case s.Log:
		s.Unit = 0
	case s.Unit == 0:
		s.Unit = 1
	}
	return s
}

// of returns a metric on the scale, finite, and rounded so that machines agree whose logarithms differ in the last bit.
func (s Scale) of(v metric.Decimal) float64 {
	y, farthest := v.Float(), farthestLinear
	if s.Log {
		y, farthest = logarithm(max(y, math.SmallestNonzeroFloat64)), farthestLog
	} else {
		y /= s.Unit
	}
	if s.Lower {
		y = -y
	}
	return min(max(rounded(y, 1e12), -farthest), farthest)
}

// all returns the values of a metric on the scale.
func (s Scale) all(values []metric.Decimal) []float64 {
	return list.Map(values, s.of)
}

// logarithm returns ln(x), also of subnormal numbers, which math.Log on amd64 treats as 2^-1023.
func logarithm(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Log(fraction) + float64(float64(exponent)*math.Ln2)
}

// metric returns a value on the scale in the metric's own unit.
func (s Scale) metric(y float64) float64 {
	if s.Lower {
		y = -y
	}
	if !s.Log {
		return y * s.Unit
	}
	if y < 1e-9-farthestLog {
		return 0
	}
	return math.Exp(y)
}

// improvement returns a distance on the scale for people: in percent of the metric that it starts from, or in the
// metric's own unit. Positive is better. A metric of which lower is better can't improve by more than 100 %.
func (s Scale) improvement(d float64) float64 {
	switch {
	case !s.Log:
		return d * s.Unit
	case s.Lower:
		return -100 * math.Expm1(-d)
	}
	return 100 * math.Expm1(d)
}

// Gain returns how much better one metric is than another, as a distance on the scale.
func (s Scale) Gain(start, end metric.Decimal) float64 { return s.of(end) - s.of(start) }

// unit returns the unit of improvements.
func (s Scale) unit() string {
	if s.Log {
		return Percent
	}
	return Absolute
}

// distance returns how far an improvement by t is on the scale, from a metric at y.
func (s Scale) distance(t metric.Threshold, y float64) float64 {
	amount := t.Value.Float()
	switch {
	case !s.Log && t.Percent:
		return math.Abs(y) * amount / 100
	case !s.Log:
		return amount / s.Unit
	case t.Percent:
		amount /= 100
	default:
		amount /= max(s.metric(y), math.SmallestNonzeroFloat64)
	}
	if !s.Lower {
		return min(math.Log1p(amount), farthestLog)
	}
	if amount >= 1 { // no positive metric can fall by its whole value
		return farthestLog
	}
	return -math.Log1p(-amount)
}

// decimal writes a number with that many significant digits.
func decimal(v float64, digits int) metric.Decimal {
	v = min(max(v, -math.MaxFloat64/2), math.MaxFloat64/2)
	text := strconv.FormatFloat(v, 'g', digits, 64)
	if short, err := strconv.ParseFloat(text, 64); err == nil && (short == 0 || math.Abs(short) > 1e-9 && math.Abs(short) < 1e15) {
		text = strconv.FormatFloat(short, 'f', -1, 64)
	}
	d, err := metric.ParseDecimal(text)
	if err != nil { // not a number
		return metric.Decimal{}
	}
	return d
}

// rounded returns y rounded to a multiple of 1/parts. It returns a number that is too large for that unchanged.
func rounded(y, parts float64) float64 {
	if math.Abs(y) > 1e15/parts {
		return y
	}
	return math.Round(y*parts) / parts
}
