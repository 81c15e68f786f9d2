package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"pawl/internal/lib/list"
)

// Step is a simple command of a text for the shell.
type Step struct {
	Words []Word
	Sets  []Word // what it assigns, as NAME=value
	Runs  bool   // it runs in any case
	Must  bool   // the text fails without it
}

// Steps returns the simple commands of a text in their order, and the names of the functions that it defines. A command
// beside ||, in a condition or in a loop may be missing. So may one after which the text goes on whatever its exit status,
// although it runs in any case. Steps returns nothing for a text that it can't read.
func Steps(src string) (steps []Step, functions []string) {
	stmts, _ := parse(src)
	w := stepper{reader: reader{src: src}}
	w.list(stmts, true, true)
	return w.steps, w.functions
}

// stepper walks through a syntax tree in the shell's order.
type stepper struct {
	reader    reader
	steps     []Step
	functions []string
	errexit   bool // set -e
}

// list reads statements. runs says that they run in any case, and must that the text fails if they do.
func (w *stepper) list(stmts []*syntax.Stmt, runs, must bool) {
	for i, s := range stmts {
		binary, _ := s.Cmd.(*syntax.BinaryCmd)
		chained := binary != nil && binary.Op == syntax.AndStmt // set -e takes no notice of it
		counts := i == len(stmts)-1 || w.errexit && !chained
		w.statement(s, runs, must && counts)
	}
}

func (w *stepper) statement(s *syntax.Stmt, runs, must bool) {
	must = must && !s.Background
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.add(Step{Words: list.Map(x.Args, w.reader.word), Sets: list.Map(x.Assigns, w.reader.assign), Runs: runs, Must: must})
	case *syntax.DeclClause:
		sets := list.Map(x.Args, w.reader.assign)
		w.add(Step{Words: append([]Word{w.reader.literal(x.Variant)}, sets...), Sets: sets, Runs: runs, Must: must})
	case *syntax.TimeClause:
		if x.Stmt != nil {
			w.statement(x.Stmt, runs, must)
		}
	case *syntax.BinaryCmd:
		w.binary(x, runs, must)
	case *syntax.Subshell:
		w.list(x.Stmts, runs, must)
	case *syntax.Block:
		w.list(x.Stmts, runs, must)
	case nil: // only redirections
	default:
		w.within(x)
	}
}

func (w *stepper) binary(x *syntax.BinaryCmd, runs, must bool) {
	switch x.Op {
	case syntax.OrStmt:
		w.statement(x.X, false, false)
		w.statement(x.Y, false, false)
	case syntax.AndStmt:
		w.statement(x.X, runs, must)
		w.statement(x.Y, must, must)
	default: // a pipe
		w.statement(x.X, runs, must)
		w.statement(x.Y, runs, must)
	}
}

// within reads what may run, or run later: conditions, loops, functions.
func (w *stepper) within(command syntax.Command) {
	syntax.Walk(command, func(node syntax.Node) bool {
		switch x := node.(type) {
		case *syntax.FuncDecl:
			w.functions = append(w.functions, x.Name.Value)
		case *syntax.Stmt:
			w.statement(x, false, false)
			return false
		}
		return true
	})
}

func (w *stepper) add(s Step) {
	w.steps = append(w.steps, s)
	if len(s.Words) > 1 && s.Words[0].Text == "set" {
		exits := func(word Word) bool {
			return word.Text == "errexit" || strings.HasPrefix(word.Text, "-") && strings.Contains(word.Text, "e")
		}
		w.errexit = w.errexit || slices.ContainsFunc(s.Words[1:], exits)
	}
}
