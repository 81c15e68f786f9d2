package metric

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/must"
)

// Limits of what ParseDecimal accepts. Below 10^308 every value has a finite float64, which the search attribute
// PawlBest and the plot need. The limit on decimals keeps "1e-999999999" from becoming a gigabyte of zeros.
const (
	maxInteger  = 308
	maxFraction = 400
	maxText     = 4096
	// Sums and differences of accepted numbers may be a digit or two longer than what ParseDecimal accepts, and JSON
	// must still read them back.
	slack = 64
)

// Decimal is an exact decimal number that keeps its written form: "84.70" is shown as 84.70 everywhere, and 84.8-84.7
// is 0.1 and not 0.09999999999999432 (P6). The zero value is 0. It is immutable and comparable: two Decimals are ==
// if they are written in the same way, and of equal value if Cmp says so.
//
// Its JSON is a bare number with its decimals. A string that contains a number is accepted too.
//
// shopspring/decimal does the arithmetic. Our own code keeps the text, because that library writes 1e3 as 1000,
// accepts any exponent, and has values that == does not compare.
type Decimal struct {
	text string // valid JSON number; "" stands for "0", so that 0 is the zero value
}

// ParseDecimal reads a decimal number: an optional sign, digits with at most one point, an optional exponent. Forms
// that JSON does not allow are normalised ("+5" is 5, ".5" is 0.5, "5." is 5, "007" is 7); otherwise the form is
// kept. NaN, infinities, and numbers beyond 10^308 or with more than 400 decimals are errors.
func ParseDecimal(s string) (Decimal, error) { return parse(strings.TrimSpace(s), 0) }

// MustDecimal is ParseDecimal for literals; it panics on anything that is not a number.
func MustDecimal(s string) Decimal { return must.Have(ParseDecimal(s)) }

// numeral matches sign, whole part, fraction and exponent of a number.
var numeral = lazyregexp.New(`^([-+]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?$`)

func parse(s string, slack int) (Decimal, error) {
	m := numeral().FindStringSubmatch(s[:min(len(s), maxText+1)])
	if m == nil || len(s) > maxText || m[2]+m[3] == "" {
		return Decimal{}, fmt.Errorf("%s is not a number", quote(s))
	}
	whole, fraction, exponent := strings.TrimLeft(m[2], "0"), m[3], m[4]
	shift := 0
	if exponent != "" {
		digits := strings.TrimLeft(exponent, "+-0")
		if len(digits) > 4 {
			return Decimal{}, fmt.Errorf("%s is out of range", quote(s))
		}
		shift, _ = strconv.Atoi(digits) // at most four digits
		if exponent[0] == '-' {
			shift = -shift
		}
	}
	if len(whole)+shift > maxInteger+slack || len(fraction)-shift > maxFraction+slack {
		return Decimal{}, fmt.Errorf("%s is out of range", quote(s))
	}

	text := strings.TrimPrefix(m[1], "+") + cmp.Or(whole, "0")
	if fraction != "" {
		text += "." + fraction
	}
	if exponent != "" {
		text += "e" + exponent
	}
	return written(text), nil
}

// written returns the Decimal of a valid JSON number.
func written(text string) Decimal {
	if text == "0" {
		return Decimal{}
	}
	return Decimal{text}
}

// digits returns how many ASCII digits s starts with.
func digits[T ~string | ~[]byte](s T) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func (d Decimal) value() decimal.Decimal {
	return decimal.RequireFromString(d.String()) // the text was checked when it was made
}

// exact writes v with as many decimals as its computation gave, like bc.
func exact(v decimal.Decimal) Decimal {
	return written(v.StringFixed(max(0, -v.Exponent())))
}

// Cmp returns -1, 0 or 1 if d is less than, equal to or greater than y, by value: 84.7 equals 84.70.
func (d Decimal) Cmp(y Decimal) int { return d.value().Cmp(y.value()) }

// Sub returns d-y, exactly.
func (d Decimal) Sub(y Decimal) Decimal { return exact(d.value().Sub(y.value())) }

// Add returns d+y, exactly.
func (d Decimal) Add(y Decimal) Decimal { return exact(d.value().Add(y.value())) }

// Share returns d/n, rounded down to millionths, so n shares do not exceed d. If the result is zero, it returns d.
func (d Decimal) Share(n int) Decimal {
	if n <= 1 {
		return d
	}
	share, _ := d.value().QuoRem(decimal.NewFromInt(int64(n)), 6)
	if share.Sign() <= 0 {
		return d
	}
	return exact(share)
}

// Neg returns -d; zero has no sign.
func (d Decimal) Neg() Decimal { return exact(d.value().Neg()) }

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.value().Sign() }

// IsZero reports whether d is zero, however written. The JSON option omitzero needs it.
func (d Decimal) IsZero() bool { return d.Sign() == 0 }

// Float returns the float64 nearest to d. It is always finite.
func (d Decimal) Float() float64 {
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil || math.IsInf(f, 0) {
		return math.Copysign(math.MaxFloat64, float64(d.Sign()))
	}
	return f
}

// String returns d as it was written, normalised to a JSON number.
func (d Decimal) String() string { return cmp.Or(d.text, "0") }

// MarshalJSON writes a bare number with its decimals.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a number, or a string that contains one.
func (d *Decimal) UnmarshalJSON(data []byte) (err error) {
	s := string(data)
	if s == "null" {
		return nil
	}
	if strings.HasPrefix(s, `"`) {
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
	}
	*d, err = parse(strings.TrimSpace(s), slack)
	return err
}

// FormatDelta writes a delta as in the results file, with a sign and two decimals (P7).
//
// The source and bench/floor.sh print it with "%+.2f". The shell's printf computes that in the 64-bit mantissa of a
// long double. So a tie such as 0.115 rounds as it does there, and not as it would in a float64.
func FormatDelta(d Decimal) string {
	f, _, err := big.ParseFloat(d.String(), 10, 64, big.ToNearestEven)
	if err != nil {
		return fmt.Sprintf("%+.2f", d.Float())
	}
	return fmt.Sprintf("%+.2f", f)
}

// quote shows a piece of foreign text in an error: short, printable, in quotes.
func quote(s string) string {
	const most = 60
	runes := []rune(strings.ToValidUTF8(s[:min(len(s), 4*most)], "\uFFFD"))
	if len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(string(runes))
}
