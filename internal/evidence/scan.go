package evidence

import "bytes"

// kind of a token in output.
type kind int

const (
	nothing kind = iota
	number
	notFinite // NaN, Inf: where a number was meant and none came out
)

type token struct {
	kind     kind
	from, to int
	text     string
	grouped  bool
}

// scan finds the first number at or after i, and where to go on from.
//
// Numbers are what bench/floor.sh's grep finds: [-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?,
// wherever they stand, so "12%" and "12ms" are 12, "3-5" is 3 and -5. It differs only where
// that grep would find a figure that nobody meant:
//
//   - Not numbers at all: versions and addresses (v1.2, 1.2.3, 127.0.0.1), hexadecimal (0x1f),
//     dates (2026-03-27, 2026/03/27), times of day (14:02:11) and both together.
//   - ".5" is 0.5, as bc writes it, and not 5.
//   - "1,234.5" is 1234.5 and not 234.5: groups of exactly three digits after a first one of
//     one to three. It is marked as grouped, since it could have been a list.
//   - NaN, Inf and Infinity as words of their own are found too, as notFinite, so that
//     "epoch 3: loss NaN" is not read as 3.
func scan(b []byte, i int) (token, int) {
	for i < len(b) {
		c := b[i]
		switch {
		case isDigit(c) || (c == '.' || c == '-' || c == '+') && startsNumber(b, i):
			if end := skip(b, i); end > i {
				i = end
				continue
			}
			end, grouped := numberEnd(b, i)
			return token{kind: number, from: i, to: end, text: string(b[i:end]), grouped: grouped}, end
		case isLetter(c) && !isWord(at(b, i-1)):
			end := i
			for end < len(b) && isWord(b[end]) {
				end++
			}
			if notFiniteWord(b, i, end) {
				return token{kind: notFinite, from: i, to: end, text: string(b[i:end])}, end
			}
			if c == 'v' || c == 'V' {
				if n := version(b, i+1, 1); n > 0 {
					i += 1 + n
					continue
				}
			}
			i++
		default:
			i++
		}
	}
	return token{}, i
}

// startsNumber is for a sign or a point at i.
func startsNumber(b []byte, i int) bool {
	if b[i] != '.' {
		return isDigit(at(b, i+1)) || at(b, i+1) == '.' && isDigit(at(b, i+2))
	}
	before := at(b, i-1)
	return isDigit(at(b, i+1)) && before != '.' && before != ')' && before != ']' && !isWord(before) && before < 0x80
}

// numberEnd is where the number that starts at i ends. A sign, if any, is at i.
func numberEnd(b []byte, i int) (end int, grouped bool) {
	if b[i] == '-' || b[i] == '+' {
		i++
	}
	if n := groups(b, i); n > 0 {
		i += n
		grouped = true
	} else {
		i += digits(b[i:])
	}
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
	return i, grouped
}

// groups is the length of a whole number with thousands separators at i, or 0.
func groups(b []byte, i int) int {
	if before := at(b, i-1); before == ',' || before == '.' || b[i] == '0' {
		return 0
	}
	n := digits(b[i:])
	if n < 1 || n > 3 {
		return 0
	}
	j := i + n
	for at(b, j) == ',' && digits(b[j+1:]) == 3 {
		j += 4
	}
	if j == i+n || at(b, j) == ',' && isDigit(at(b, j+1)) {
		return 0
	}
	return j - i
}

// skip is where something that only looks like a number ends, or i.
func skip(b []byte, i int) int {
	p := i
	if b[p] == '-' || b[p] == '+' {
		p++
	}
	if before := at(b, p-1); isDigit(before) {
		return i
	}
	switch {
	case hex(b, p) > 0:
		return p + hex(b, p)
	case date(b, p) > 0:
		return p + date(b, p)
	case clock(b, p) > 0:
		return p + clock(b, p)
	}
	if n := version(b, p, 2); n > 0 {
		return p + n
	}
	return i
}

func hex(b []byte, i int) int {
	if isWord(at(b, i-1)) || at(b, i) != '0' || at(b, i+1)|0x20 != 'x' {
		return 0
	}
	n := 2
	for isWord(at(b, i+n)) {
		n++
	}
	return n
}

// version is the length of 1.2, 1.2.3-rc.1 and the like at i, with at least so many points, or 0.
func version(b []byte, i, least int) int {
	n := digits(rest(b, i))
	if n == 0 {
		return 0
	}
	points := 0
	for at(b, i+n) == '.' && isDigit(at(b, i+n+1)) {
		n += 1 + digits(b[i+n+1:])
		points++
	}
	if points < least {
		return 0
	}
	if c := at(b, i+n); (c == '-' || c == '+') && isWord(at(b, i+n+1)) {
		for n++; isWord(at(b, i+n)) || bytes.IndexByte([]byte(".-+"), at(b, i+n)) >= 0 && isWord(at(b, i+n+1)); {
			n++
		}
	}
	return n
}

// date is the length of an ISO 8601 date at i, with the time that may follow, or 0.
func date(b []byte, i int) int {
	sep := at(b, i+4)
	if digits(rest(b, i)) != 4 || sep != '-' && sep != '/' || digits(rest(b, i+5)) != 2 || at(b, i+7) != sep || digits(rest(b, i+8)) != 2 {
		return 0
	}
	if month := at(b, i+5); month > '1' || at(b, i+8) > '3' {
		return 0
	}
	n := 10
	if c := at(b, i+n); c == 'T' || c == 't' || c == ' ' || c == '_' {
		if m := timeOfDay(b, i+n+1); m > 0 {
			n += 1 + m
		}
	}
	return n
}

// clock is the length of a time of day with seconds that stands by itself at i, or 0.
func clock(b []byte, i int) int {
	if before := at(b, i-1); isWord(before) || before == ':' || before == '.' {
		return 0
	}
	return timeOfDay(b, i)
}

func timeOfDay(b []byte, i int) int {
	n := digits(rest(b, i))
	if n < 1 || n > 2 {
		return 0
	}
	for range 2 {
		if at(b, i+n) != ':' || digits(rest(b, i+n+1)) != 2 || b[i+n+1] > '5' {
			return 0
		}
		n += 3
	}
	if c := at(b, i+n); (c == '.' || c == ',') && isDigit(at(b, i+n+1)) {
		n += 1 + digits(b[i+n+1:])
	} else if c == ':' && isDigit(at(b, i+n+1)) {
		return 0
	}
	if c := at(b, i+n); c == '+' || c == '-' {
		zone := rest(b, i+n+1)
		switch {
		case digits(zone) == 4:
			n += 5
		case digits(zone) == 2 && at(zone, 2) == ':' && digits(zone[3:]) == 2:
			n += 6
		}
	}
	return n
}

// notFiniteWord says whether b[from:to] stands where a number was meant to.
func notFiniteWord(b []byte, from, to int) bool {
	switch string(b[from:to]) {
	case "NaN", "nan", "NAN", "Inf", "inf", "Infinity", "infinity":
	default:
		return false
	}
	before := at(b, from-1)
	if before == '-' || before == '+' {
		before = at(b, from-2)
	}
	return stands(before) && stands(at(b, to))
}

// stands says whether c may stand beside a value in a sentence, a list or an assignment. A
// hyphen or slash may not: "non-inf" and "lib/inf" are names.
func stands(c byte) bool {
	switch c {
	case 0, ' ', '\t', '\n', '\r', '=', ':', ',', ';', '(', ')', '[', ']', '{', '}', '"', '\'', '%', '|', '.', '!':
		return true
	}
	return false
}

// at is b[i], or 0 outside.
func at(b []byte, i int) byte {
	if i < 0 || i >= len(b) {
		return 0
	}
	return b[i]
}

// rest is b[i:], or nothing outside.
func rest(b []byte, i int) []byte {
	if i >= len(b) {
		return nil
	}
	return b[i:]
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool   { return isDigit(c) || isLetter(c) || c == '_' }
