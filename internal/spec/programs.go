package spec

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtins are commands that the shell itself carries out.
const builtins = ". : [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill local printf " +
	"pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait source declare builtin let shopt"

// Programs returns the programs that a shell command needs on the PATH, in the order in which it calls them: those
// that run whatever the others do. What stands beside || or in a condition may be missing; what is named by its
// path or by a variable is looked up nowhere. A wrapper (env, timeout) is one, and what it runs another. It
// returns none for a command that can't be read.
func Programs(command string) (names []string) {
	if len(command) > maxCommand || strings.ContainsRune(command, 0) {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil
	}
	p := programs{}
	p.list(file.Stmts)
	return p.names
}

type programs struct {
	names []string
	own   []string // functions of the command itself
}

func (p *programs) list(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		p.statement(s)
	}
}

func (p *programs) statement(s *syntax.Stmt) {
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		r := shellReader{}
		var words []word
		for _, arg := range x.Args {
			words = append(words, r.word(arg))
		}
		p.call(words)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			p.statement(x.Stmt)
		}
	case *syntax.BinaryCmd:
		if x.Op == syntax.OrStmt {
			return
		}
		p.statement(x.X)
		p.statement(x.Y)
	case *syntax.Subshell:
		p.list(x.Stmts)
	case *syntax.Block:
		p.list(x.Stmts)
	case *syntax.FuncDecl:
		p.own = append(p.own, x.Name.Value)
	}
}

// call notes the program of a simple command, and the one that it is a wrapper of.
func (p *programs) call(words []word) {
	if len(words) == 0 || words[0].unknown || words[0].glob || words[0].text == "" {
		return
	}
	name := words[0].text
	if options, wraps := wrappers[name]; wraps && !contains("npx pnpx bunx busybox", name) && !(name == "command" && len(words) > 1 && contains("-v -V", words[1].text)) {
		p.call(unwrap(words[1:], options))
	}
	if !strings.Contains(name, "/") && !contains(builtins, name) && !slices.Contains(p.own, name) && !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}
