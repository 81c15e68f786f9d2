package rules

import (
	"fmt"

	"pawl/internal/metric"
	"pawl/internal/metric/reason"
)

// Unfit is why a loop can't start from what verify printed for the unchanged code, with advice; What is "" if it can.
type Unfit struct{ What, Do string }

// WithoutMetric returns why the values of the unchanged code are not enough for `metrics`: no change could keep a bound
// on a number that is not there, or one that the code does not keep before anything is changed.
func (r Improve) WithoutMetric(values map[string]metric.Decimal) Unfit {
	for _, b := range r.Bounds {
		value, printed := values[b.Name]
		if !printed {
			return Unfit{
				fmt.Sprintf("verify prints no METRIC %s=<number>, which metrics declares", b.Name),
				fmt.Sprintf("Let it print such a line each time, or take %s out of metrics.", b.Name),
			}
		}
		if b.AtWorst == nil {
			continue
		}
		if limit := b.Limit(value); !metric.TargetMet(b.Direction, value, limit) {
			return Unfit{
				fmt.Sprintf("%s is %s on the unchanged code, and metrics allows %s at worst, so no change could be kept", b.Name, value, limit),
				fmt.Sprintf("Loosen atWorst of %s, or look at its direction: it says which way is better.", b.Name),
			}
		}
	}
	return Unfit{}
}

// Disagreeing returns why the n-th measurement of the unchanged code does not agree with the first one: it has no
// number where that had one.
func Disagreeing(n int, cause, noNumber string) Unfit {
	if n < 2 || cause != reason.NoNumber {
		return Unfit{}
	}
	return Unfit{
		fmt.Sprintf("the measurements of the unchanged code disagree about where the number is: in run %d, %s", n, noNumber),
		"Let it print a line METRIC name=number, the same way each time: pawl reads the number there, whatever else it prints.",
	}
}
