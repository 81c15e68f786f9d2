package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/internal/lib/lazyregexp"
)

// Size is a number of bytes. It is written with a unit, such as "512MiB", because a bare number would not be clear.
type Size int64

// SizeForm is the written form of a size. The schema uses it too.
const SizeForm = `^([1-9][0-9]{0,5})(B|KiB|MiB|GiB|TiB)$`

var (
	sized = lazyregexp.New(SizeForm)
	units = []string{"B", "KiB", "MiB", "GiB", "TiB"}
)

// ParseSize reads a size.
func ParseSize(text string) (Size, error) {
	if m := sized().FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return Size(n << (10 * slices.Index(units, m[2]))), nil // at most six digits, and at most 40 bits more: it fits
	}
	return 0, fmt.Errorf("%q is not a size such as \"512MiB\"", text)
}

// String returns the size in the largest unit that gives a whole number.
func (s Size) String() string {
	n, index := int64(s), 0
	for ; index < len(units)-1 && n != 0 && n%1024 == 0; index++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[index]
}

// MarshalJSON writes the string form.
func (s Size) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads only the string form.
func (s *Size) UnmarshalJSON(data []byte) (err error) {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return fmt.Errorf("%s is not a size such as \"512MiB\"", data)
	}
	*s, err = ParseSize(text)
	return err
}

// Duration is a length of time. Its only written form is a Go duration string, such as "30s" or "1h30m", because a
// bare number could be seconds or nanoseconds.
type Duration time.Duration

// D returns the duration as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns the shortest form: "10m", not "10m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes the string form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads only the string form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s is not a duration such as \"30s\"", data)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"30s\"", s)
	}
	*d = Duration(v)
	return nil
}
