package metric

import (
	"bytes"

	"pawl/internal/lib/lazyregexp"
)

// kind is the kind of a token in output.
type kind int

const (
	nothing kind = iota
	number
	notFinite // NaN, Inf: a number was expected, but none was computed
)

type token struct {
	kind    kind
	from    int
	to      int // where the unit may begin
	text    string
	grouped bool
	pair    bool // "0,75", "2s 200ms", "14:02": nobody knows whether it is one number or two
	seconds bool // a duration of several parts, which text has in seconds
}

// minus is the sign of Unicode (U+2212), which programs print in some locales.
var minus = []byte("\u2212")

// scan finds the first number at or after i. It also returns where to continue.
//
// Numbers are what the grep of bench/floor.sh finds: [-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?, wherever they are. So
// "12%" and "12ms" are 12, and "3-5" is 3 and -5. scan differs only if that grep would find a figure that nobody
// meant:
//
//   - Not numbers at all: versions and addresses (v1.2, 1.2.3, 127.0.0.1), hexadecimal (0x1f), dates (2026-03-27,
//     2026/03/27), times of day (14:02:11) and both together.
//   - "−5", with the minus sign of Unicode, is -5 and not 5.
//   - ".5" is 0.5, as bc writes it, and not 5.
//   - "1,234.5" is 1234.5 and not 234.5: a first group of one to three digits, then groups of exactly three. It is
//     marked as grouped, because it could have been a list.
//   - "1_234", "1'234" and "1 234" with a blank that does not break lines are 1234: see whole.go.
//   - "0,75" is one token, a pair: 0.75 in some locales, a list of two in others. More numbers with commas are a list, and
//     so is "utf8,75".
//   - "1h30m" and "1m2.5s" are one number, in seconds: 5400 and 62.5. See [duration]. "2s 200ms" is a pair.
//   - "± 2" is a pair: it belongs to the number before it.
//   - "1:02.50" is 62.5, in seconds. "1:02" is a pair: it may be a time of day, too.
//   - NaN, Inf and Infinity as separate words are found too, as notFinite, so that "epoch 3: loss NaN" is not read
//     as 3.
func scan(b []byte, i int) (token, int) {
	for i < len(b) {
		c := b[i]
		switch {
		case c == minus[0] && bytes.HasPrefix(b[i:], minus) && startsNumber(b, i+len(minus)-1):
			t, next := scan(b, i+len(minus))
			if t.kind == number && t.from == i+len(minus) {
				t.from, t.text = i, "-"+t.text
			}
			return t, next
		case isDigit(c) || (c == '.' || c == '-' || c == '+') && startsNumber(b, i):
			if end := skip(b, i); end > i {
				i = end
				continue
			}
			end, grouped, apart := numberEnd(b, i)
			if sign := deviationSign(b, i); sign < i {
				return token{kind: number, from: sign, to: end, text: string(b[sign:end]), pair: true}, end
			}
			switch previous := at(b, i-1); at(b, end) { // this is done for each number of megabytes
			case ' ', 'd', 'h', 'm', 's', 'u', 'n', "µ"[0], "μ"[0]:
				if text, end, pair := duration(b, i); end > i {
					return token{kind: number, from: i, to: end, text: text, seconds: true, pair: pair}, end
				}
			case ':':
				if n := length(minutes, b, i); n > 0 && !isWord(previous) && previous != ':' && previous != '.' {
					t := token{kind: number, from: i, to: i + n, text: string(b[i : i+n]), pair: true}
					if bytes.ContainsAny(b[i:t.to], ".,") {
						t.text, t.seconds, t.pair = stopwatch(b[i:t.to]), true, false
					}
					return t, t.to
				}
			case ',':
				if grouped || previous == ',' || previous == '.' || endsName(b, i) {
					break
				}
				if n := length(pair, b, i); n > 0 {
					return token{kind: number, from: i, to: i + n, text: string(b[i : i+n]), pair: true}, i + n
				}
			}
			text := string(b[i:end])
			if apart {
				text = separator().ReplaceAllString(text, "")
			}
			return token{kind: number, from: i, to: end, text: text, grouped: grouped}, end
		case isLetter(c) && !isWord(at(b, i-1)):
			end := i
			for end < len(b) && isWord(b[end]) {
				end++
			}
			if notFiniteWord(b, i, end) {
				return token{kind: notFinite, from: i, text: string(b[i:end])}, end
			}
			i++
			if c|0x20 == 'v' {
				i += length(vVersion, b, i)
			}
		default:
			i++
		}
	}
	return token{}, i
}

// deviationSign returns where "±" or "+/-" begins before the number at i, and i if there is none.
func deviationSign(b []byte, i int) int {
	prefix := b[:i]
	for len(prefix) > 0 && prefix[len(prefix)-1] == ' ' {
		prefix = prefix[:len(prefix)-1]
	}
	for _, sign := range deviationSigns {
		if bytes.HasSuffix(prefix, sign) {
			return len(prefix) - len(sign)
		}
	}
	if b[i] == '-' && bytes.HasSuffix(b[:i], []byte("+/")) {
		return i - len("+/")
	}
	return i
}

var deviationSigns = [][]byte{[]byte("±"), []byte("+/-")}

// endsName reports whether the digits at i, or the hyphen before them, belong to a name: "utf8", "BenchmarkSort-8".
func endsName(b []byte, i int) bool {
	start := i
	for isWord(at(b, start-1)) {
		start--
	}
	return start < i && !isDigit(b[start])
}

// startsNumber reports whether the sign or point at i begins a number.
func startsNumber(b []byte, i int) bool {
	if b[i] != '.' {
		return isDigit(at(b, i+1)) || at(b, i+1) == '.' && isDigit(at(b, i+2))
	}
	previous := at(b, i-1)
	return isDigit(at(b, i+1)) && previous != '.' && previous != ')' && previous != ']' && !isWord(previous) && (previous < 0x80 || bytes.HasSuffix(b[:i], minus))
}

// numberEnd returns the end of the number that starts at i, where its sign may be. It is grouped if commas stand between
// groups of its digits, and apart if something else does that can't be a list.
func numberEnd(b []byte, i int) (end int, grouped, apart bool) {
	start := i
	if b[i] == '-' || b[i] == '+' {
		i++
	}
	n := digits(b[i:])
	if previous := at(b, i-1); at(b, i+n) == ',' && previous != ',' && previous != '.' {
		if groups := length(thousands, b, i); groups > 0 {
			n, grouped = groups, true
		}
	}
	if c := at(b, i+n); (c == '_' || c == '\'' || c >= 0x80) && !endsName(b, start) {
		if groups := length(separated, b, i); groups > 0 {
			n, apart = groups, true
		}
	}
	i += n
	if at(b, i) == '.' && isDigit(at(b, i+1)) {
		i += 1 + digits(b[i+1:])
	}
	if c := at(b, i); c == 'e' || c == 'E' {
		j := i + 1
		if s := at(b, j); s == '-' || s == '+' {
			j++
		}
		if isDigit(at(b, j)) {
			i = j + digits(b[j:])
		}
	}
	return i, grouped, apart
}

// Text with digits that is no number, or is one in groups. If the pattern's group matches, the match does not count.
var (
	thousands   = lazyregexp.New(`^[1-9]\d{0,2}(?:,\d{3})+(,?\d)?`)
	pair        = lazyregexp.New(`^[-+]?(?:[1-9]\d{0,2}\.\d{3}|\d+),\d+(?:[eE][-+]?\d+)?([,.]\d)?`)
	hexadecimal = lazyregexp.New(`^0[xX]\w*`)
	day         = lazyregexp.New(`^\d{4}(?:-[01]\d-|/[01]\d/)[0-3]\d(\d)?`) // ISO 8601
	timeOfDay   = lazyregexp.New(`^\d{1,2}(?::[0-5]\d){2}(?:[.,]\d+|(:?\d))?`)
	minutes     = lazyregexp.New(`^[-+]?\d{1,9}:[0-5]\d(?:[.,]\d{1,18})?([:\d])?`) // and seconds
	timeZone    = lazyregexp.New(`^[-+]\d\d:?\d\d(\d)?`)
	version     = lazyregexp.New(`^\d+(?:\.\d+){2,}` + preRelease)
	vVersion    = lazyregexp.New(`^\d+(?:\.\d+)+` + preRelease) // behind a v
)

const preRelease = `(?:[-+]\w+(?:[-.+]\w+)*)?`

// length returns how much of b[i:] a pattern matches.
func length(pattern lazyregexp.Regexp, b []byte, i int) int {
	m := pattern().FindSubmatchIndex(b[i:])
	if m == nil || len(m) > 2 && m[2] >= 0 {
		return 0
	}
	return m[1]
}

// skip returns the end of text at i that only looks like a number, or i.
func skip(b []byte, i int) int {
	p, n := i, 0
	if b[p] == '-' || b[p] == '+' {
		p++
	}
	previous := at(b, p-1)
	switch at(b, p+digits(b[p:])) {
	case 'x', 'X':
		if !isWord(previous) {
			n = length(hexadecimal, b, p)
		}
	case '-', '/':
		if n = length(day, b, p); n > 0 && bytes.IndexByte([]byte("Tt _"), at(b, p+n)) >= 0 {
			if m := clock(b, p+n+1); m > 0 {
				n += 1 + m
			}
		}
	case ':':
		if !isWord(previous) && previous != ':' && previous != '.' { // it stands alone
			n = clock(b, p)
		}
	case '.':
		n = length(version, b, p)
	}
	if n == 0 {
		return i
	}
	return p + n
}

// clock returns the length of a time of day with seconds at i, including its time zone, or 0.
func clock(b []byte, i int) int {
	n := length(timeOfDay, b, i)
	if n > 0 {
		n += length(timeZone, b, i+n)
	}
	return n
}

// notFiniteWord reports whether b[start:end] is a word such as NaN or Inf in the place of a number.
func notFiniteWord(b []byte, start, end int) bool {
	switch string(b[start:end]) {
	case "NaN", "nan", "NAN", "Inf", "inf", "Infinity", "infinity":
	default:
		return false
	}
	previous := at(b, start-1)
	if previous == '-' || previous == '+' {
		previous = at(b, start-2)
	}
	return stands(previous) && stands(at(b, end))
}

// stands reports whether c may be next to a value in a sentence, a list or an assignment. A hyphen or slash may not:
// "non-inf" and "lib/inf" are names.
func stands(c byte) bool {
	switch c {
	case 0, ' ', '\t', '\n', '\r', '=', ':', ',', ';', '(', ')', '[', ']', '{', '}', '"', '\'', '%', '|', '.', '!':
		return true
	}
	return false
}

// at returns b[i], or 0 outside.
func at(b []byte, i int) byte {
	if i < 0 || i >= len(b) {
		return 0
	}
	return b[i]
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool   { return isDigit(c) || isLetter(c) || c == '_' }
