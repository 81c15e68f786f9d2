package metric

import (
	"bytes"
	"cmp"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// unit is a unit that a number may be printed in.
type unit struct {
	name string // as it is told to people: "µs" for us, usec and both signs of micro
	base string // units of the same base are converted; "" if the size of the unit is not certain
	size decimal.Decimal
}

// units are known by how programs write them. Whether K is 1000 or 1024 is not certain, nor is it for kB, so a number in K
// is never compared with one in M.
var units = func() map[string]unit {
	table := map[string]unit{"%": {name: "%"}}
	add := func(base, size string, names ...string) {
		for _, n := range names {
			table[n] = unit{name: names[0], base: base, size: decimal.RequireFromString(size)}
		}
	}
	add("s", "1e-9", "ns", "nsec")
	add("s", "1e-6", "µs", "μs", "us", "usec")
	add("s", "1e-3", "ms", "msec")
	add("s", "1", "s", "sec", "secs", "second", "seconds")
	add("s", "60", "min", "mins", "minute", "minutes")
	add("s", "3600", "h", "hour", "hours")
	add("B", "1", "B", "byte", "bytes")
	add("B", "1024", "KiB", "kiB")
	add("B", "1048576", "MiB")
	add("B", "1073741824", "GiB")
	add("B", "1099511627776", "TiB")
	table["‰"] = unit{name: "‰"}
	for _, names := range [][]string{
		{"hundred", "hundreds"}, {"dozen", "dozens", "doz", "dz"}, {"score"}, {"gross"},
		{"thousand", "thousands", "Thousand", "thsd", "tsd", "Tsd", "tausend", "Tausend"},
		{"million", "millions", "Million", "Millions", "Millionen", "mio", "Mio", "mil", "mill", "Mill", "mln", "Mln", "mn", "Mn", "MM", "mm", "kk"},
		{"billion", "billions", "Billion", "Billions", "bil", "bln", "bn", "Bn", "bio", "milliard", "milliards", "Milliarde", "Milliarden", "mrd", "Mrd"},
		{"trillion", "trillions", "Trillion", "Trillions", "tn", "trn"}, {"lakh", "lakhs", "lac"}, {"crore", "crores", "cr"},
		{"quadrillion"}, {"myriad"}, {"kilo", "Kilo"}, {"mega", "Mega"}, {"giga", "Giga"}, {"tera", "Tera"}, {"milli"}, {"micro"}, {"nano"},
		{"Ki", "ki"}, {"Mi"}, {"Gi"}, {"Ti"}, {"P"}, {"E"}, {"PB"}, {"PiB"}, {"n"}, {"µ", "μ", "u"}, {"p"},
	} {
		add("", "0", names...)
	}
	for _, names := range [][]string{{"kB", "KB", "kb"}, {"MB", "mb"}, {"GB", "gb"}, {"TB", "tb"}, {"K", "k"}, {"M"}, {"G"}, {"T"}, {"m"}} {
		add("", "0", names...)
	}
	return table
}()

// unitAt returns the name of the unit of a number that ends at i: "12ms", "12 ms", "12 ms/op", "12%". If it is none that pawl
// knows ("12 Mbit", "12 tests"), it is the word itself, or "" for a longer one.
func unitAt(b []byte, i int) string {
	start, end := unitSpan(b, i)
	word := string(b[start:end])
	if isWord(at(b, end)) && word != "%" {
		return ""
	}
	return cmp.Or(units[word].name, word)
}

// unitSpan returns where the unit of a number that ends at i is.
func unitSpan(b []byte, i int) (start, end int) {
	start = i
	if c := at(b, i); c == ' ' || c == '\t' {
		start++
	}
	if at(b, start) == '%' {
		return start, start + 1
	}
	if bytes.HasPrefix(b[start:], []byte("‰")) {
		return start, start + len("‰")
	}
	return start, letters(b, start)
}

// rescaled reports whether two words that are no known units differ by a prefix that says how large they are: Mbit and kbit,
// rps and krps.
func rescaled(first, second string) bool {
	stem := func(word string) string {
		if r, size := utf8.DecodeRuneInString(word); size < len(word) && strings.ContainsRune("kKMGTPmµμunp", r) {
			return word[size:]
		}
		return word
	}
	return stem(first) == stem(second) || stem(first) == second || first == stem(second)
}

// letters returns the end of the letters at i, or of the first few: more are no unit.
func letters(b []byte, i int) int {
	for end := i; ; {
		r, size := utf8.DecodeRune(b[min(end, len(b)):])
		if !unicode.IsLetter(r) || end-i > len("Milliarden") {
			return end
		}
		end += size
	}
}

// duration reads a duration of several parts at i: "1h30m", "1m2.5s", "1m 02s", "1 minute 2.5 seconds". The units of the parts
// get smaller, no part reaches the unit before it, and only the last one has decimals. There is a blank between all parts, or
// between none. It returns the seconds and where the duration ends, or i if there is none. It is a pair if it may be two numbers
// side by side: "2s 200ms", where no part is a minute or more.
func duration(b []byte, i int) (seconds string, end int, pair bool) {
	start, apart := i, false
	if c := at(b, i); c == '-' || c == '+' {
		start++
	}
	sign, total, parts, previous, whole := b[i:start], decimal.Zero, 0, decimal.Zero, true
	for end = i; whole; parts++ {
		to := start + digits(b[start:])
		if c := at(b, to); (c == '.' || c == ',') && isDigit(at(b, to+1)) {
			whole, to = false, to+1+digits(b[to+1:])
		}
		name := to
		if at(b, to) == ' ' {
			name++
		}
		last := letters(b, name)
		if to == start || to-start > longestPart || last == name {
			break
		}
		size := partOf(string(b[name:last]))
		if size.IsZero() {
			break
		}
		n := decimal.RequireFromString(strings.Replace(string(b[start:to]), ",", ".", 1)).Mul(size)
		if parts > 0 && n.GreaterThanOrEqual(previous) || parts > 1 && apart != (start > end) {
			break
		}
		if parts == 0 {
			pair = size.LessThan(units["min"].size)
		}
		apart = start > end && parts > 0
		total, previous, end, start = total.Add(n), size, last, last
		if at(b, start) == ' ' {
			start++
		}
	}
	if parts < 2 || isWord(at(b, end)) || isWord(at(b, i-1)) {
		return "", i, false
	}
	return string(sign) + exact(total).String(), end, pair && apart
}

// stopwatch returns the seconds of "1:02.50", which has minutes.
func stopwatch(text []byte) string {
	minutes, seconds, _ := strings.Cut(strings.Replace(strings.TrimLeft(string(text), "+-"), ",", ".", 1), ":")
	total := decimal.RequireFromString(minutes).Mul(units["min"].size).Add(decimal.RequireFromString(seconds))
	if text[0] == '-' {
		total = total.Neg()
	}
	return exact(total).String()
}

// longestPart is how many digits a part of a duration may have.
const longestPart = 30

// partOf returns the seconds of a unit in a duration of several parts, 0 if it is none: there m is a minute, and not a million.
func partOf(name string) decimal.Decimal {
	switch name {
	case "d", "day", "days":
		return decimal.NewFromInt(86400)
	case "m":
		name = "min"
	}
	if u := units[name]; u.base == "s" {
		return u.size
	}
	return decimal.Zero
}

// Form is how an output shows its numbers. Later measurements are read in the form of the first one.
type Form struct {
	// Units are the units of the further metrics by their names, and under "" that of the metric, as unitAt returns them.
	Units map[string]string `json:"units,omitempty"`
	// Sources are where they were found, by the same names. It is nil in a form of an older loop.
	Sources map[string]Source `json:"sources,omitempty"`
	// Guessed says that the output did not say which number is the metric, or how it is written.
	Guessed bool `json:"guessed,omitempty"`
}

// In returns a reading in the unit that the metric has in this form. It returns a *NoNumber if the number has another one
// that it cannot be converted from. A metric that is new to the form keeps its unit.
func (f *Form) In(metric string, r Reading) (Decimal, error) {
	if f == nil {
		return r.Value, nil
	}
	want, ok := f.Units[metric]
	if ok && want == "" && r.Joined != "" {
		return Decimal{}, &NoNumber{"letters follow the number, and none follow that of the unchanged code", quote(r.Joined)}
	}
	if !ok || r.Unit == want || r.Value.Sign() == 0 {
		return r.Value, nil
	}
	source, target := units[r.Unit], units[want]
	if source.name == "" && target.name == "" && !rescaled(r.Unit, want) {
		return r.Value, nil
	}
	if source.base == "" || source.base != target.base {
		return Decimal{}, &NoNumber{Why: "no number to compare: " + r.Value.String() + has(r.Unit) + ", and the number of the unchanged code" + has(want)}
	}
	v := r.Value.value()
	in := v.Mul(source.size).DivRound(target.size, max(0, -v.Exponent())+18)
	converted, err := ParseDecimal(in.String())
	if err != nil {
		return Decimal{}, &NoNumber{"the number is out of range", quote(r.Value.String() + r.Unit)}
	}
	return converted, nil
}

func has(unit string) string {
	if unit == "" {
		return " has no unit"
	}
	return " has the unit " + unit
}

// With returns the form with the unit and the place of a further reading.
func (f *Form) With(metric string, r Reading) *Form {
	out := Form{Units: map[string]string{}}
	if f != nil {
		out.Guessed = f.Guessed
		maps.Copy(out.Units, f.Units)
	}
	if f == nil || f.Sources != nil {
		out.Sources = map[string]Source{metric: r.Source()}
	}
	if f != nil {
		maps.Copy(out.Sources, f.Sources)
	}
	if f != nil && out.Sources != nil {
		out.Sources[metric] = out.Sources[metric].with(r.Repeats)
	}
	if _, ok := out.Units[metric]; !ok {
		out.Units[metric] = r.Unit
	}
	out.Guessed = out.Guessed || metric == "" && r.Guessed()
	return &out
}
