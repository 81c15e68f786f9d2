package secret

import "slices"

// automaton finds all of many words in one pass over a text, in upper or lower case (Aho and Corasick). Most lines
// contain no word, so no regular expression has to run on them.
type automaton struct {
	class [256]byte // the class of each byte; 0 is the class of all bytes that are in no word
	next  []int32   // the next state, by state and class
	width int
	ends  [][]int // by state: the values of the words that end there
}

// newAutomaton returns an automaton of words in lower case. of has the value of each word.
func newAutomaton(words []string, of []int) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if a.class[w[i]] == 0 {
				a.class[w[i]] = byte(a.width)
				a.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	state := func() int32 {
		a.next = append(a.next, make([]int32, a.width)...)
		a.ends = append(a.ends, nil)
		return int32(len(a.ends) - 1)
	}
	state()
	for n, w := range words {
		at := int32(0)
		for i := range len(w) {
			to := int(at)*a.width + int(a.class[w[i]])
			if a.next[to] == 0 {
				s := state()
				a.next[to] = s
			}
			at = a.next[to]
		}
		a.ends[at] = append(a.ends[at], of[n])
	}
	// If no word continues with a byte, the automaton goes to the state of the longest end of the text so far that
	// begins a word.
	fail, queue := make([]int32, len(a.ends)), []int32{}
	for c := range a.width {
		if s := a.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.ends[s] = append(a.ends[s], a.ends[fail[s]]...)
		for c := range a.width {
			to, other := int(s)*a.width+c, a.next[int(fail[s])*a.width+c]
			if child := a.next[to]; child != 0 {
				fail[child] = other
				queue = append(queue, child)
			} else {
				a.next[to] = other
			}
		}
	}
	return a
}

// in returns the values of the words that a text contains, each once, sorted.
func (a *automaton) in(text string) (found []int) {
	at := int32(0)
	for i := range len(text) {
		at = a.next[int(at)*a.width+int(a.class[text[i]])]
		if len(a.ends[at]) > 0 {
			found = append(found, a.ends[at]...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
