package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"pawl/internal/lib/list"
)

// Word is a shell word. Only some expansions are known: variables that the command itself assigns, $PWD, $(pwd) and
// $(git rev-parse --show-toplevel).
type Word struct {
	Text    string // without quotes, with expansions as written
	Path    string // with the known expansions; a doublestar pattern if Glob is set
	Glob    bool   // it has an unquoted * ? [ or {, or it is the variable of a for loop
	Unknown bool   // a part of it is known only at run time
	Out     bool   // the command writes to it
	at      uint   // its offset in the source
}

// Command is one simple command.
type Command struct {
	Dir   string // relative to the root; it follows cd with a fixed argument
	Env   map[string]Word
	Words []Word    // the command and its arguments
	All   []Word    // includes assignments and redirections, in their order
	Stdin []Word    // the targets of <
	Here  string    // the text of a here-document or here-string
	Feeds []Command // the commands whose output it reads
	Loose bool      // from a text that can't be parsed: only the words are known
}

// MaxCommand is how many bytes of a command are parsed at most, because the parser recurses into nested code.
const MaxCommand = 32 << 10

const (
	// maxPath limits the value of a variable or folder: x=$x$x doubles it.
	maxPath = 4096
	// maxVariables limits how many variables are followed.
	maxVariables = 100
)

// Read reads a command line to find what it refers to; it runs nothing. It returns the simple commands in their order.
// The commands of a substitution come after the command that contains it. dir is the folder in which the line runs,
// relative to the root, and env has the known variables. A text that can't be parsed becomes one loose command with
// everything that could be a word.
func Read(src, dir string, env map[string]Word) []Command {
	if stmts, ok := parse(src); ok {
		r := reader{src: src, dir: dir, env: env}
		r.list(stmts)
		return r.cmds
	}
	words := strings.FieldsFunc(src, func(c rune) bool { return strings.ContainsRune(" \t\r\n;&|()<>{}\"'`$=,:@", c) })
	return []Command{{Dir: dir, All: list.Map(words, func(text string) Word { return Word{Text: text, Path: text} }), Loose: true}}
}

// parse returns the statements of a text; ok is false if it can't be parsed.
func parse(src string) (stmts []*syntax.Stmt, ok bool) {
	if len(src) > MaxCommand || strings.ContainsRune(src, 0) {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		return nil, false
	}
	return file.Stmts, true
}

// reader walks through a syntax tree in the shell's order.
type reader struct {
	src   string
	dir   string
	env   map[string]Word // never changed in place, because commands and subshells share it
	cmds  []Command
	inner []Command // commands of the substitutions in the current command
}

func (r *reader) list(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		r.statement(s)
	}
}

// apart reads statements that run in a shell of their own. Their changes of folder and variables end with them.
func (r *reader) apart(stmts ...*syntax.Stmt) {
	dir, env := r.dir, r.env
	r.list(stmts)
	r.dir, r.env = dir, env
}

func (r *reader) statement(s *syntax.Stmt) {
	from := len(r.cmds)
	c := r.redirected(s.Redirs)
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, x)
		return
	case *syntax.DeclClause:
		c.Words = append(c.Words, r.literal(x.Variant))
		c.Words = append(c.Words, list.Map(x.Args, r.assign)...)
		c.All = append(c.All, c.Words...)
		r.add(c)
		return
	case *syntax.TimeClause:
		if x.Stmt == nil {
			break
		}
		if call, ok := x.Stmt.Cmd.(*syntax.CallExpr); ok { // the program called time has options
			c.Words = append(c.Words, Word{Text: "time", Path: "time"})
			inside := r.redirected(x.Stmt.Redirs)
			c.All, c.Stdin, c.Here = append(c.All, inside.All...), append(c.Stdin, inside.Stdin...), c.Here+inside.Here
			r.call(c, call)
			return
		}
		r.statement(x.Stmt)
	case *syntax.BinaryCmd:
		r.binary(x)
	case *syntax.Subshell:
		r.apart(x.Stmts...)
	case *syntax.Block:
		r.list(x.Stmts)
	case *syntax.IfClause:
		for branch := x; branch != nil; branch = branch.Else {
			r.list(branch.Cond)
			r.list(branch.Then)
		}
	case *syntax.WhileClause:
		r.list(x.Cond)
		r.list(x.Do)
	case *syntax.ForClause:
		if each, ok := x.Loop.(*syntax.WordIter); ok {
			c.All = append(c.All, r.each(each)...)
		} else {
			c.All = append(c.All, r.wordsOf(x.Loop)...)
		}
		r.list(x.Do)
	case *syntax.CaseClause:
		c.All = append(c.All, r.word(x.Word))
		for _, item := range x.Items {
			c.All = append(c.All, list.Map(item.Patterns, r.word)...)
			r.list(item.Stmts)
		}
	case *syntax.FuncDecl:
		r.statement(x.Body)
	case *syntax.CoprocClause:
		r.apart(x.Stmt)
	case nil: // only redirections
	default: // a test, arithmetic
		c.All = append(c.All, r.wordsOf(x)...)
	}
	for i := range r.cmds[from:] { // a redirection holds for everything inside
		inside := &r.cmds[from+i]
		inside.Stdin, inside.Here = slices.Concat(inside.Stdin, c.Stdin), inside.Here+c.Here
	}
	c.Stdin, c.Here = nil, ""
	r.add(c)
}

// call reads a simple command whose redirections and reserved words are known already.
func (r *reader) call(c Command, x *syntax.CallExpr) {
	env := r.env
	c.All = append(c.All, list.Map(x.Assigns, r.assign)...)
	c.Env = r.env
	for _, arg := range x.Args {
		if w := r.word(arg); w.Text != "" || len(arg.Parts) > 0 && !substitutesOnly(arg) {
			c.Words = append(c.Words, w)
		}
	}
	c.All = append(c.All, c.Words...)
	r.add(c)
	if len(x.Args) > 0 {
		r.env = env // assignments before a command hold only for that command
	}
	if w := c.Words; len(w) == 2 && (w[0].Text == "cd" || w[0].Text == "pushd") && !w[1].Unknown && !w[1].Glob {
		if r.dir = Resolve(r.dir, w[1].Path); len(r.dir) > maxPath {
			r.dir = ".." // unknown, so outside of the repository
		}
	}
}

// add appends a command, and after it those of its substitutions.
func (r *reader) add(c Command) {
	if len(c.All) > 0 || c.Here != "" {
		c.Dir = r.dir
		if c.Env == nil {
			c.Env = r.env
		}
		slices.SortStableFunc(c.All, func(a, b Word) int { return int(a.at) - int(b.at) })
		r.cmds = append(r.cmds, c)
	}
	r.cmds, r.inner = append(r.cmds, r.inner...), nil
}

func (r *reader) binary(x *syntax.BinaryCmd) {
	if x.Op != syntax.Pipe && x.Op != syntax.PipeAll {
		r.statement(x.X)
		r.statement(x.Y)
		return
	}
	from := len(r.cmds)
	r.apart(x.X)
	to := len(r.cmds)
	r.apart(x.Y)
	for i := to; i < len(r.cmds); i++ {
		if r.cmds[i].Feeds == nil {
			r.cmds[i].Feeds = r.cmds[from:to:to]
		}
	}
}

// redirected returns a command that has only its redirections.
func (r *reader) redirected(redirs []*syntax.Redirect) (c Command) {
	for _, redir := range redirs {
		w := r.word(redir.Word)
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redir.Hdoc != nil {
				r.word(redir.Hdoc) // reads its substitutions
				c.Here += r.written(redir.Hdoc)
			}
			continue
		case syntax.WordHdoc:
			c.Here += w.Text + "\n"
		case syntax.RdrIn, syntax.RdrInOut:
			c.Stdin = append(c.Stdin, w)
		case syntax.DplIn, syntax.DplOut:
			if w.Text == "-" || isDigits(w.Text) {
				continue // 2>&1
			}
		}
		w.Out = redir.Op != syntax.RdrIn && redir.Op != syntax.WordHdoc
		if !substitutesOnly(redir.Word) {
			c.All = append(c.All, w)
		}
	}
	return c
}

// assign notes an assignment and returns it as a word.
func (r *reader) assign(a *syntax.Assign) Word {
	if a.Name == nil {
		return r.word(a.Value)
	}
	w := r.literal(a.Name)
	if a.Naked {
		return w
	}
	var value Word
	switch {
	case a.Array != nil || a.Index != nil:
		value = Word{Text: r.written(a)[len(a.Name.Value):], Unknown: true}
		value.Text = strings.TrimPrefix(value.Text, "=")
		for _, element := range r.wordsOf(a) {
			r.inner = append(r.inner, Command{Dir: r.dir, Env: r.env, All: []Word{element}})
		}
	case a.Value != nil:
		value = r.word(a.Value)
	}
	if old, known := r.env[a.Name.Value]; a.Append && known {
		value.Path, value.Unknown = old.Path+value.Path, value.Unknown || old.Unknown || old.Glob || value.Glob
	}
	r.know(a.Name.Value, value)
	w.Text, w.Path, w.Glob, w.Unknown = w.Text+"="+value.Text, escapedIf(value.Glob, w.Path+"=")+value.Path, value.Glob, value.Unknown
	return w
}

func (r *reader) know(name string, value Word) {
	if _, known := r.env[name]; !known && len(r.env) >= maxVariables {
		return
	}
	value.Unknown = value.Unknown || len(value.Path) > maxPath
	r.env = maps.Clone(r.env)
	if r.env == nil {
		r.env = map[string]Word{}
	}
	r.env[name] = value
}

// each reads the items of a for loop. The loop's variable stands for any of them.
func (r *reader) each(loop *syntax.WordIter) (all []Word) {
	var known []string
	for _, item := range loop.Items {
		w := r.word(item)
		all = append(all, w)
		if !w.Unknown {
			known = append(known, escapedIf(!w.Glob, w.Path))
		}
	}
	if len(known) > 0 {
		r.know(loop.Name.Value, Word{Path: "{" + strings.Join(known, ",") + "}", Glob: true})
	}
	return all
}

// wordsOf returns all words in a part of the tree that is no command.
func (r *reader) wordsOf(node syntax.Node) (all []Word) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			all = append(all, r.word(w))
			return false
		}
		return true
	})
	return all
}

func (r *reader) literal(l *syntax.Lit) Word {
	return Word{Text: l.Value, Path: l.Value, at: l.Pos().Offset()}
}

// written returns the source of a part of the tree.
func (r *reader) written(n syntax.Node) string {
	return r.src[n.Pos().Offset():min(n.End().Offset(), uint(len(r.src)))]
}

// substitutesOnly reports whether a word consists only of <(…) or >(…).
func substitutesOnly(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool { _, is := p.(*syntax.ProcSubst); return !is })
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
