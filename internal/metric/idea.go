package metric

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"pawl/internal/lib/lazyregexp"
)

// label matches a prefix that says of which kind a change is: "perf(lexer): ".
var label = lazyregexp.New(`^(?i:idea|change|step|experiment|feat|fix|perf|refactor|chore|style|docs|test|build|ci)(?:\([^)]*\))?!?:\s+`)

// place matches a clause at the beginning that says where: "In the lexer, …".
var place = lazyregexp.New(`^((?i:in|inside|within|for) [^,]{1,60}), +(.+)$`)

// fillers are words that say nothing about the change.
var fillers = strings.Fields("a an the this that these those its our my your please now just simply also again let lets us we i you should could would can will ll s try trying")

// synonyms are words with the same meaning for a change of a program, all in the form that cut gives them: delet is
// delete.
var synonyms = map[string]string{
	"drop": "remov", "delet": "remov", "eliminat": "remov", "decreas": "reduc", "lower": "reduc", "rais": "increas", "enlarg": "increas",
	"introduc": "add", "insid": "in", "within": "in",
}

// Idea returns what different wordings of one idea have in common: their words in order, without fillers, in a form
// that does not depend on plural, tense and spelling. The order stays, and so does every word that could change the
// meaning, because two different ideas must never be taken for one (P2).
func Idea(description string) string {
	description = label().ReplaceAllString(strings.TrimSpace(description), "")
	if m := place().FindStringSubmatch(description); m != nil {
		description = m[2] + " " + m[1]
	}
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(description), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		if w == "to" && len(out) == 0 { // "try to …"
			continue
		}
		if !slices.Contains(fillers, w) {
			w = cut(w)
			out = append(out, cmp.Or(synonyms[w], w))
		}
	}
	return strings.Join(out, " ")
}

// cut removes the endings of an English word: caches, cached, caching and cache become cach. A word with a digit or
// an underscore is a name and stays.
func cut(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool { return r > 'z' || r < 'a' }) {
		return word
	}
	for _, ending := range []struct {
		has, is string
		least   int // the minimum length of the rest
	}{
		{"isations", "iz", 3}, {"izations", "iz", 3}, {"isation", "iz", 3}, {"ization", "iz", 3}, {"ising", "iz", 4}, {"ised", "iz", 4}, {"ises", "iz", 4}, {"ise", "iz", 4},
		{"ies", "y", 2}, {"ied", "y", 2}, {"ing", "", 4}, {"ed", "", 3}, {"es", "", 3}, {"s", "", 3},
	} {
		if left, ok := strings.CutSuffix(word, ending.has); ok && len(left) >= ending.least && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") {
			word = left + ending.is
			break
		}
	}
	if len(word) > 3 {
		word = strings.TrimSuffix(word, "e")
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] && !strings.ContainsRune("aeiou", rune(word[n-1])) {
		word = word[:n-1]
	}
	return word
}
