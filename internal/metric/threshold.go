package metric

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Threshold is a number, or a percentage of another number: how large an improvement has to be, how much worse a
// further metric may get. Its JSON is a number, or a string such as "2%". The zero value is 0. Two Thresholds are ==
// if they are written in the same way.
type Threshold struct {
	Value   Decimal
	Percent bool
}

// ParseThreshold reads "0.5" or "2%".
func ParseThreshold(s string) (Threshold, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	value, err := ParseDecimal(number)
	if err != nil {
		return Threshold{}, fmt.Errorf("%s is neither a number nor a percentage", quote(s))
	}
	return Threshold{value, percent}, nil
}

// Of returns the threshold as a number: itself, or its percentage of the absolute value of reference.
func (t Threshold) Of(reference Decimal) Decimal {
	if !t.Percent {
		return t.Value
	}
	return exact(reference.value().Abs().Mul(t.Value.value()).Shift(-2))
}

// Sign returns -1, 0 or 1.
func (t Threshold) Sign() int { return t.Value.Sign() }

// IsZero reports whether t is zero, however written. The JSON option omitzero needs it.
func (t Threshold) IsZero() bool { return t.Sign() == 0 }

// String returns t as it was written.
func (t Threshold) String() string {
	if t.Percent {
		return t.Value.String() + "%"
	}
	return t.Value.String()
}

// MarshalJSON writes a bare number, or a percentage as a string.
func (t Threshold) MarshalJSON() ([]byte, error) {
	if t.Percent {
		return json.Marshal(t.String())
	}
	return t.Value.MarshalJSON()
}

// UnmarshalJSON reads a number, or a string that contains a number or a percentage.
func (t *Threshold) UnmarshalJSON(data []byte) (err error) {
	var text string
	if json.Unmarshal(data, &text) != nil || !strings.HasSuffix(strings.TrimSpace(text), "%") {
		t.Percent = false
		return t.Value.UnmarshalJSON(data)
	}
	*t, err = ParseThreshold(text)
	return err
}
