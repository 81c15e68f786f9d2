package secretscan

import (
	"slices"
	"strings"
)

// words finds all of many words in one pass over a text, in upper or lower case. Most lines contain no word, so no
// regular expression has to run on them. It has the words by their first two bytes, in a table of 256×256.
type words [256][256][]word

type word struct {
	text  string // in lower case, at least two bytes
	value int
}

func (all *words) add(text string, value int) {
	text = strings.ToLower(text)
	with := &all[text[0]][text[1]]
	*with = append(*with, word{text, value})
}

// in returns the values of the words that a text contains, each once, sorted.
func (all *words) in(text string) (found []int) {
	text = strings.ToLower(text)
	for i := 1; i < len(text); i++ {
		for _, w := range all[text[i-1]][text[i]] {
			if strings.HasPrefix(text[i-1:], w.text) {
				found = append(found, w.value)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
