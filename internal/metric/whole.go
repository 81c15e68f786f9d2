package metric

import (
	"bytes"
	"unicode/utf8"

	"pawl/internal/lib/lazyregexp"
)

// A number is read whole or not at all. Groups of three digits with a separator between them are one number. Other
// digits that go on behind a separator, fractions and powers are none: nobody knows what part of them counts.

// separators stand between the digits of a number: _ as programming languages have it, apostrophes, and every blank but
// the ordinary one.
const separators = `_'’ʼ٬\x{ad}\x{a0}\x{1680}\x{2000}-\x{200b}\x{202f}\x{205f}\x{2060}\x{3000}\x{feff}`

var (
	// separated matches the digits of a number in groups. If its group matches, the number goes on.
	separated      = lazyregexp.New(`^[1-9]\d{0,2}(?:[` + separators + `]\d{3})+([` + separators + `]?\d)?`)
	separator      = lazyregexp.New(`[` + separators + `]`)
	metricInLine   = lazyregexp.New(`METRIC[ \t]+([^ \t=\r\n]+)[ \t]*=`)
	digitRuns      = lazyregexp.New(`0[xX][0-9A-Fa-f]+|\d+(?:[-/:.,T]\d+)*(?:[.,]\d+)?Z?`)
	times          = lazyregexp.New(`\d{4}[-/]\d\d[-/]\d\d[T ]?|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?Z?|\d+[.,]\d+|\d{9,}`)
	inWord         = lazyregexp.New(`^[A-Za-z]{1,3}\d+`) // 0b11, 1O0
	deviation      = lazyregexp.New(`^[ \t]*(?:±|\+/-|\+-)`)
	goesOnBehind   = lazyregexp.New(`^(?:[` + separators + `]\d| ?[/⁄∕] ?\d|[eE][-+](?:\W|$)|[eEdDpPqQ][-+]?\d| [eE][-+]?\d|[ ` + separators + `]?[×xX*·⋅✕][ ` + separators + `]?10\b|\*\*\d|[ ]?\^|[⁺⁻])`)
	goesOnBefore   = lazyregexp.New(`(?:\d[` + separators + `]|\d ?[/⁄∕] ?|\d ?[eE]|\d[٫˙]|\d[dDpPqQ]|\d ?\^ ?|\d ?[×*·⋅✕] ?|\d[xX]|\d\*\*|\d[eE][-+] ?|\.\d+)$`)
	blankThousands = lazyregexp.New(`(?:^|[^\d.,:/_'-])[1-9]\d{0,2}(?: \d{3})* $`)
)

// What is around the part of an output that a pattern found, if that is a part of a number: always, or only where the
// pattern does not match beyond it.
var (
	numberContinues = lazyregexp.New(`^(?:[` + separators + `]?\d|,\d{3}(?:\D|$))[\d.,` + separators + `]*`)
	thousandsGoOn   = lazyregexp.New(`^(?: \d{3})+\b`)
	numberEnds      = lazyregexp.New(`^(?:[.,]\d[\d.,]*|[eE][-+]?\d+)`)
	numberBegins    = lazyregexp.New(`\d[\d.,` + separators + `]*[` + separators + `]$|\d{1,3},$|\d$`)
	numberStarts    = lazyregexp.New(`\d[\d.,` + separators + `]*[.,]$|\d ?/ ?$|(?:^|[\s=:])[-+−]$`)
)

// cutOff returns an error if the last number of an output is only a part of what was printed.
func cutOff(out []byte, t token) error {
	if piece := behind(out, t.to); piece > 0 {
		return partial(out[t.from : t.to+piece])
	}
	prefix := out[max(0, t.from-40):t.from]
	if n := bytes.LastIndexAny(prefix, "\r\n"); n >= 0 {
		prefix = prefix[n+1:]
	}
	begin := t.from - len(prefix)
	if m := goesOnBefore().FindIndex(prefix); m != nil && !inName(out, begin+m[0]) {
		signed := out[t.from] == '+' || out[t.from] == '-'
		exponent := signed && digitsAlone(out[t.from+1:t.to], 3) // Fortran prints 0.15+104
		if prefix[m[0]] != '.' || exponent {
			return partial(out[begin+numberStart(prefix, m[0]) : t.to])
		}
	}
	if digits(out[t.from:]) != 3 {
		return nil
	}
	if m := blankThousands().FindIndex(prefix); m != nil && !inName(out, t.from-2) {
		return partial(bytes.TrimLeft(out[begin+m[0]:t.to], " \t"))
	}
	return nil
}

// digitsAlone reports whether text is a number of digits and nothing else.
func digitsAlone(text []byte, n int) bool { return len(text) == n && digits(text) == n }

// wholeGroup reports whether text is the first group of a number whose thousands are separated.
func wholeGroup(text []byte) bool {
	n := digits(text)
	return n == len(text) && n > 0 && n <= 3 && text[0] != '0'
}

// numberStart returns where the digits before i begin.
func numberStart(b []byte, i int) int {
	for i > 0 && (isDigit(b[i-1]) || b[i-1] == '.') {
		i--
	}
	return i
}

// inName reports whether the digit at i belongs to a name or a path.
func inName(out []byte, i int) bool {
	for isDigit(at(out, i-1)) || at(out, i-1) == '.' {
		i--
	}
	return at(out, i-1) == '/' || endsName(out, i)
}

// behind returns the length of what goes on behind a number that ends at i, 0 if nothing does.
func behind(out []byte, i int) int {
	rest := out[i:min(len(out), i+60)]
	if r, size := utf8.DecodeRune(rest); foreignDigit(r) {
		return size
	}
	if at(rest, 0) == ' ' {
		if r, size := utf8.DecodeRune(rest[1:]); foreignDigit(r) {
			return 1 + size
		}
	}
	m := goesOnBehind().FindIndex(rest)
	if m == nil {
		return 0
	}
	for m[1] < len(rest) && isDigit(rest[m[1]]) {
		m[1]++
	}
	return m[1]
}

// cutShort returns an error if the value of a METRIC line goes on with more digits behind its number.
func cutShort(value []byte, t token) error {
	if piece := behind(value, t.to); piece > 0 {
		return partial(value[:t.to+piece])
	}
	rest := value[t.to:]
	if m := inWord().Find(rest); m != nil && !t.seconds {
		return partial(value[:t.to+len(m)])
	}
	if deviation().Match(rest) {
		return nil
	}
	for i := 0; i < len(rest); {
		r, size := utf8.DecodeRune(rest[i:])
		switch {
		case r >= '0' && r <= '9' || foreignDigit(r):
			end := i + size
			for end < len(rest) && isDigit(rest[end]) {
				end++
			}
			return partial(value[:t.to+end])
		case isLetter(byte(r)) && r < 0x80, bytes.ContainsRune([]byte("([{<#|\"%µμ±\\"), r):
			return nil
		}
		i += size
	}
	return nil
}

// partial is the error for a piece of output of which a number would be only a part.
func partial(piece []byte) *NoNumber {
	return &NoNumber{"this may be one number or several; print one number in plain digits, or set verify.pattern", quote(string(piece))}
}
