package seal

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is a shell word. What it expands to is known only in part: variables that the command
// itself assigns, $PWD, $(pwd) and $(git rev-parse --show-toplevel).
type word struct {
	text    string // without quotes, expansions as written
	path    string // with the known expansions; a doublestar pattern when glob is set
	glob    bool   // * ? [ or { stands in it unquoted, or it is the variable of a for loop
	unknown bool   // something in it is only known when it runs
	out     bool   // the command writes to it
	at      uint   // where it stands in the source
}

// simple is one simple command.
type simple struct {
	dir   string // relative to the root, as far as cd with a fixed argument says
	env   map[string]word
	words []word   // the command and its arguments
	all   []word   // also assignments and redirections, in the order in which they stand
	stdin []word   // targets of <
	here  string   // here-document, here-string
	feeds []simple // whose output it reads
	loose bool     // of a text that is not understood: the words are all there is
}

const (
	// maxNesting bounds commands within the arguments of commands.
	maxNesting = 8
	// maxPath bounds what a variable or directory stands for: x=$x$x doubles.
	maxPath = 4096
	// maxVariables bounds how many variables are followed.
	maxVariables = 100
	// maxCommand bounds what is parsed, since the parser recurses into whatever is nested.
	maxCommand = 32 << 10
)

// parseShell reads a command line for what it refers to, not to run it: its simple commands in the
// order in which they stand, those of a substitution after the command that it stands in. What is not
// understood is one loose command with everything in it that could be a word.
func parseShell(src, dir string, env map[string]word) []simple {
	if len(src) <= maxCommand && !strings.ContainsRune(src, 0) {
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
		if err == nil {
			r := shellReader{src: src, dir: dir, env: env}
			r.list(file.Stmts)
			return r.cmds
		}
	}
	var all []word
	for _, text := range strings.FieldsFunc(src, func(c rune) bool { return strings.ContainsRune(" \t\r\n;&|()<>{}\"'`$=,:@", c) }) {
		all = append(all, word{text: text, path: text})
	}
	return []simple{{dir: dir, all: all, loose: true}}
}

// shellReader walks a syntax tree in the order in which the shell would.
type shellReader struct {
	src   string
	dir   string
	env   map[string]word // never changed in place: commands and subshells share it
	cmds  []simple
	inner []simple // of substitutions in the command that is being read
}

func (r *shellReader) list(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		r.statement(s)
	}
}

// apart reads what runs in a shell of its own: where it goes and what it assigns ends with it.
func (r *shellReader) apart(stmts ...*syntax.Stmt) {
	dir, env := r.dir, r.env
	r.list(stmts)
	r.dir, r.env = dir, env
}

func (r *shellReader) statement(s *syntax.Stmt) {
	from := len(r.cmds)
	c := r.redirected(s.Redirs)
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, x)
		return
	case *syntax.DeclClause:
		c.words = append(c.words, r.literal(x.Variant))
		for _, a := range x.Args {
			c.words = append(c.words, r.assign(a))
		}
		c.all = append(c.all, c.words...)
		r.add(c)
		return
	case *syntax.TimeClause:
		if x.Stmt == nil {
			break
		}
		if call, ok := x.Stmt.Cmd.(*syntax.CallExpr); ok { // the program of that name has options
			c.words = append(c.words, word{text: "time", path: "time"})
			inside := r.redirected(x.Stmt.Redirs)
			c.all, c.stdin, c.here = append(c.all, inside.all...), append(c.stdin, inside.stdin...), c.here+inside.here
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
			c.all = append(c.all, r.each(each)...)
		} else {
			c.all = append(c.all, r.wordsOf(x.Loop)...)
		}
		r.list(x.Do)
	case *syntax.CaseClause:
		c.all = append(c.all, r.word(x.Word))
		for _, item := range x.Items {
			for _, pattern := range item.Patterns {
				c.all = append(c.all, r.word(pattern))
			}
			r.list(item.Stmts)
		}
	case *syntax.FuncDecl:
		r.statement(x.Body)
	case *syntax.CoprocClause:
		r.apart(x.Stmt)
	case nil: // redirections alone
	default: // a test, arithmetic
		c.all = append(c.all, r.wordsOf(x)...)
	}
	for i := range r.cmds[from:] { // what is redirected is so for all that is in it
		inside := &r.cmds[from+i]
		inside.stdin, inside.here = slices.Concat(inside.stdin, c.stdin), inside.here+c.here
	}
	c.stdin, c.here = nil, ""
	r.add(c)
}

// call reads a simple command, of which redirections and reserved words are known already.
func (r *shellReader) call(c simple, x *syntax.CallExpr) {
	env := r.env
	for _, a := range x.Assigns {
		c.all = append(c.all, r.assign(a))
	}
	c.env = r.env
	for _, arg := range x.Args {
		if w := r.word(arg); w.text != "" || len(arg.Parts) > 0 && !substitutesOnly(arg) {
			c.words = append(c.words, w)
		}
	}
	c.all = append(c.all, c.words...)
	r.add(c)
	if len(x.Args) > 0 {
		r.env = env // assignments before a command are for that command
	}
	if w := c.words; len(w) == 2 && (w[0].text == "cd" || w[0].text == "pushd") && !w[1].unknown && !w[1].glob {
		if r.dir = resolve(r.dir, w[1].path); len(r.dir) > maxPath {
			r.dir = ".." // nowhere
		}
	}
}

// add puts a command at the end, and behind it those of its substitutions.
func (r *shellReader) add(c simple) {
	if len(c.all) > 0 || c.here != "" {
		c.dir = r.dir
		if c.env == nil {
			c.env = r.env
		}
		slices.SortStableFunc(c.all, func(a, b word) int { return int(a.at) - int(b.at) })
		r.cmds = append(r.cmds, c)
	}
	r.cmds, r.inner = append(r.cmds, r.inner...), nil
}

func (r *shellReader) binary(x *syntax.BinaryCmd) {
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
		if r.cmds[i].feeds == nil {
			r.cmds[i].feeds = r.cmds[from:to:to]
		}
	}
}

// redirected is a command of which only the redirections are known.
func (r *shellReader) redirected(redirs []*syntax.Redirect) (c simple) {
	for _, redir := range redirs {
		w := r.word(redir.Word)
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redir.Hdoc != nil {
				r.word(redir.Hdoc) // for its substitutions
				c.here += r.written(redir.Hdoc)
			}
			continue
		case syntax.WordHdoc:
			c.here += w.text + "\n"
		case syntax.RdrIn, syntax.RdrInOut:
			c.stdin = append(c.stdin, w)
		case syntax.DplIn, syntax.DplOut:
			if w.text == "-" || isDigits(w.text) {
				continue // 2>&1
			}
		}
		w.out = redir.Op != syntax.RdrIn && redir.Op != syntax.WordHdoc
		if !substitutesOnly(redir.Word) {
			c.all = append(c.all, w)
		}
	}
	return c
}

// assign takes an assignment in and returns it as a word.
func (r *shellReader) assign(a *syntax.Assign) word {
	if a.Name == nil {
		return r.word(a.Value)
	}
	w := r.literal(a.Name)
	if a.Naked {
		return w
	}
	var value word
	switch {
	case a.Array != nil || a.Index != nil:
		value = word{text: r.written(a)[len(a.Name.Value):], unknown: true}
		value.text = strings.TrimPrefix(value.text, "=")
		for _, element := range r.wordsOf(a) {
			r.inner = append(r.inner, simple{dir: r.dir, env: r.env, all: []word{element}})
		}
	case a.Value != nil:
		value = r.word(a.Value)
	}
	if old, known := r.env[a.Name.Value]; a.Append && known {
		value.path, value.unknown = old.path+value.path, value.unknown || old.unknown || old.glob || value.glob
	}
	r.know(a.Name.Value, value)
	w.text, w.path, w.glob, w.unknown = w.text+"="+value.text, escapedIf(value.glob, w.path+"=")+value.path, value.glob, value.unknown
	return w
}

func (r *shellReader) know(name string, value word) {
	if _, known := r.env[name]; !known && len(r.env) >= maxVariables {
		return
	}
	value.unknown = value.unknown || len(value.path) > maxPath
	r.env = maps.Clone(r.env)
	if r.env == nil {
		r.env = map[string]word{}
	}
	r.env[name] = value
}

// each reads what a for loop goes over: its variable stands for any of it.
func (r *shellReader) each(loop *syntax.WordIter) (all []word) {
	var known []string
	for _, item := range loop.Items {
		w := r.word(item)
		all = append(all, w)
		if !w.unknown {
			known = append(known, escapedIf(!w.glob, w.path))
		}
	}
	if len(known) > 0 {
		r.know(loop.Name.Value, word{path: "{" + strings.Join(known, ",") + "}", glob: true})
	}
	return all
}

// wordsOf are the words anywhere in a part of the tree that is no command.
func (r *shellReader) wordsOf(node syntax.Node) (all []word) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			all = append(all, r.word(w))
			return false
		}
		return true
	})
	return all
}

func (r *shellReader) literal(l *syntax.Lit) word {
	return word{text: l.Value, path: l.Value, at: l.Pos().Offset()}
}

// written is how a part of the tree stands in the source.
func (r *shellReader) written(n syntax.Node) string {
	return r.src[n.Pos().Offset():min(n.End().Offset(), uint(len(r.src)))]
}

// substitutesOnly reports whether a word is nothing but <(…) or >(…).
func substitutesOnly(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool { _, is := p.(*syntax.ProcSubst); return !is })
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
