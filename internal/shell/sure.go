package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// Sure returns the words of the commands in a text for the shell that run in any case, in their order, and the names of
// the functions that the text defines. It leaves out commands beside || or in a condition. It returns nothing for a
// text that it can't read.
func Sure(src string) (commands [][]Word, functions []string) {
	stmts, _ := parse(src)
	s := sure{src: src}
	s.list(stmts)
	return s.commands, s.functions
}

type sure struct {
	src       string
	commands  [][]Word
	functions []string
}

func (s *sure) list(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		s.statement(stmt)
	}
}

func (s *sure) statement(stmt *syntax.Stmt) {
	switch x := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		r := reader{src: s.src}
		var words []Word
		for _, arg := range x.Args {
			words = append(words, r.word(arg))
		}
		s.commands = append(s.commands, words)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			s.statement(x.Stmt)
		}
	case *syntax.BinaryCmd:
		if x.Op == syntax.OrStmt {
			return
		}
		s.statement(x.X)
		s.statement(x.Y)
	case *syntax.Subshell:
		s.list(x.Stmts)
	case *syntax.Block:
		s.list(x.Stmts)
	case *syntax.FuncDecl:
		s.functions = append(s.functions, x.Name.Value)
	}
}
