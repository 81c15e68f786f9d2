package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"pawl/internal/list"
)

// Sure returns the words of the commands in a text for the shell that run in any case, in their order, and the names of
// the functions that the text defines. It leaves out commands beside || or in a condition. It returns nothing for a
// text that it can't read.
func Sure(src string) (commands [][]Word, functions []string) {
	stmts, _ := parse(src)
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			switch x := node.(type) {
			case *syntax.CallExpr:
				r := reader{src: src}
				words := list.Map(x.Args, r.word)
				commands = append(commands, words)
			case *syntax.FuncDecl:
				functions = append(functions, x.Name.Value)
			case *syntax.BinaryCmd:
				return x.Op != syntax.OrStmt
			case *syntax.Stmt, *syntax.TimeClause, *syntax.Subshell, *syntax.Block:
				return true
			}
			return false
		})
	}
	return commands, functions
}
