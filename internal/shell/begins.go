package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Begins reports whether a text for the shell runs only commands that begin with one of the given words, such as "go
// test". It returns false for a text with a substitution, a redirection, an assignment or anything else that could run
// or write more, and for a text that it can't read.
func Begins(command string, words []string) bool {
	stmts, ok := parse(command)
	return ok && len(stmts) > 0 && !slices.ContainsFunc(stmts, func(s *syntax.Stmt) bool { return !begins(s, words) })
}

func begins(s *syntax.Stmt, words []string) bool {
	if len(s.Redirs) > 0 || s.Background || s.Coprocess {
		return false
	}
	switch x := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return begins(x.X, words) && begins(x.Y, words)
	case *syntax.CallExpr:
		if len(x.Assigns) > 0 {
			return false
		}
		var said []string
		for _, arg := range x.Args {
			text, ok := unquoted(arg.Parts)
			if !ok {
				return false
			}
			said = append(said, text)
		}
		return slices.ContainsFunc(words, func(w string) bool {
			want := strings.Fields(w)
			return len(want) > 0 && len(said) >= len(want) && slices.Equal(said[:len(want)], want)
		})
	}
	return false
}

// unquoted returns a word without its quotes; ok is false if the word is known only at run time.
func unquoted(parts []syntax.WordPart) (text string, ok bool) {
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			text += x.Value
		case *syntax.SglQuoted:
			text += x.Value
		case *syntax.DblQuoted:
			inside, ok := unquoted(x.Parts)
			if !ok {
				return "", false
			}
			text += inside
		default:
			return "", false
		}
	}
	return text, true
}
