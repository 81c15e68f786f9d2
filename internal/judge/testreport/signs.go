package testreport

import (
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"pawl/internal/lib/lazyregexp"
)

// sign is an expression that recognises a format by one line.
type sign struct {
	*regexp.Regexp
	format string
}

// signsByStart returns the signs that may match a line, by its first byte: output can have millions of short lines,
// and most signs begin with a letter of their own.
var signsByStart = sync.OnceValue(func() (signs [256][]sign) {
	add := func(name string, e lazyregexp.Regexp) {
		for b, begins := range starts(e()) {
			if begins {
				signs[b] = append(signs[b], sign{e(), name})
			}
		}
	}
	for _, f := range formats {
		add(f.name, f.sign)
		if e, ok := noTests[f.name]; ok {
			add(f.name, e)
		}
	}
	return signs
})

// starts returns the bytes with which a line that the expression matches can begin: all, unless it is bound to the
// start of the line.
func starts(e *regexp.Regexp) (set [256]bool) {
	parsed, err := syntax.Parse(e.String(), syntax.Perl)
	if err != nil {
		panic(err) // it has been compiled
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		panic(err)
	}
	for b := range set {
		set[b] = canStart(program, rune(b))
	}
	return set
}

// canStart reports whether the program can match a text that begins with the byte b.
func canStart(program *syntax.Prog, b rune) bool {
	bound := program.StartCond()&syntax.EmptyBeginText != 0
	if !bound || b >= utf8.RuneSelf {
		return true
	}
	visited := make([]bool, len(program.Inst))
	var from func(at uint32) bool
	from = func(at uint32) bool {
		if visited[at] {
			return false
		}
		visited[at] = true
		switch i := &program.Inst[at]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			return from(i.Out) || from(i.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			return from(i.Out)
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
			return false
		default:
			return i.MatchRune(b)
		}
	}
	return from(uint32(program.Start))
}
