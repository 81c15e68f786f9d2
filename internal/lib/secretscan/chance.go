package secretscan

import (
	"math"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// placeholders are parts of texts that documentation and tests use in place of a secret.
var placeholders = []string{"example", "placeholder", "changeme", "change-me", "change_me", "dummy", "redacted", "****", "...."}

// counted matches what people type when they need any value, and words that are so short that a real value may contain
// them by chance, as one of 15,000 GitHub tokens does. A real value may also stand beside one: xoxb-123456789012-…
var counted = lazyregexp.New(`(?i)0?123456789|abcdef|your|x{4,}`)

// written matches the same words in places where they are hardly there by chance.
var written = lazyregexp.New(`(?i)(?:^|[_-])your(?:[_-]|$)|xxxx$`)

func placeholder(text string) bool {
	small := strings.ToLower(text)
	if slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(small, p) }) || written().MatchString(text) {
		return true
	}
	rest := counted().ReplaceAllString(text, "")
	return rest != text && (len(rest) < leastSecret || !random(rest))
}

var (
	uuid  = lazyregexp.New(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	wordy = lazyregexp.New(`^(?:[A-Za-z]{0,15}[0-9]{0,4}|[a-z]*(?:[A-Z][a-z]+)+[0-9]{0,4})$`)
	hex   = lazyregexp.New(`^[0-9a-fA-F]+$`)
)

// random reports whether a text looks random: it has letters and digits, does not consist of words or names, and has
// nearly as much information as possible.
func random(text string) bool {
	if !strings.ContainsAny(text, "0123456789") || !strings.ContainsFunc(text, letter) || uuid().MatchString(text) {
		return false
	}
	if strings.ContainsAny(text, "$%") { // $NAME or %NAME%: a variable
		return false
	}
	words := true
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-_./=+~:!?,;@#^&*", r) }) {
		words = words && wordy().MatchString(part)
	}
	least := 3.5
	if hex().MatchString(text) {
		least = 3.1 // hex digits carry less information
	}
	if len(text) < 20 {
		least = 2.9
	}
	return !words && entropy(text) >= least
}

// password reports whether a text looks like a password that a program made. It may be shorter than a text that
// random accepts, but has to mix several sorts of characters, with a change of sort at nearly every character.
// P@ssw0rd2024! does not.
func password(text string) bool {
	if len(text) < leastPassword || text[0] == '$' || strings.Count(text, "$") > 1 { // $NAME is a variable; $2b$10$… is a hash
		return false
	}
	var sorts [4]bool
	runs, last := 0, -1
	for _, r := range text {
		sort := 3
		switch {
		case r >= 'a' && r <= 'z':
			sort = 0
		case r >= 'A' && r <= 'Z':
			sort = 1
		case r >= '0' && r <= '9':
			sort = 2
		}
		if sort != last {
			runs++
		}
		sorts[sort], last = true, sort
	}
	return sorts[0] && sorts[1] && sorts[2] && (sorts[3] || len(text) >= 16) && 10*runs >= 7*len(text) && entropy(text) >= 3.1
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// entropy returns the information in each byte of a text, in bits, by the frequencies of the bytes in the text
// itself.
func entropy(text string) float64 {
	var n [256]int
	for i := range len(text) {
		n[text[i]]++
	}
	bits := 0.0
	for _, k := range n {
		if k > 0 {
			p := float64(k) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
