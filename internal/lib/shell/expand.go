package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Root stands for the root of the repository in a path.
const Root = "\x01"

// word reads a word, and the commands of its substitutions.
func (r *reader) word(x *syntax.Word) Word {
	var b builder
	for i, part := range x.Parts {
		r.part(&b, part, i == 0)
	}
	w := b.done()
	w.at = x.Pos().Offset()
	return w
}

// part reads one part of a word; first says that it is the first part.
func (r *reader) part(b *builder, part syntax.WordPart, first bool) {
	switch x := part.(type) {
	case *syntax.Lit:
		b.bare(x.Value, first)
	case *syntax.SglQuoted:
		b.quoted(x.Value)
	case *syntax.DblQuoted:
		b.quoted("")
		for _, inside := range x.Parts {
			if lit, ok := inside.(*syntax.Lit); ok {
				b.quoted(inQuotes.Replace(lit.Value))
			} else {
				r.part(b, inside, false)
			}
		}
	case *syntax.CmdSubst:
		r.substituted(x.Stmts)
		inside := strings.TrimSuffix(strings.TrimPrefix(strings.Trim(r.written(x), "`"), "$("), ")")
		switch strings.Join(strings.Fields(inside), " ") {
		case "pwd":
			b.known(Word{Text: r.written(x), Path: "."})
		case "git rev-parse --show-toplevel":
			b.known(Word{Text: r.written(x), Path: Root})
		default:
			if folder, ok := r.folder(x.Stmts); ok {
				folder.Text = r.written(x)
				b.known(folder)
				break
			}
			b.unknown(r.written(x))
		}
	case *syntax.ProcSubst:
		r.substituted(x.Stmts)
		b.dynamic = true
	case *syntax.ParamExp:
		r.parameter(b, x)
	case *syntax.ExtGlob: // *(a|b): any name
		b.bare("*", false)
	default: // arithmetic
		r.wordsOf(x) // reads its substitutions
		b.unknown(r.written(x))
	}
}

// inQuotes removes the backslashes that escape something in double quotes.
var inQuotes = strings.NewReplacer("\\$", "$", "\\`", "`", `\"`, `"`, `\\`, `\`, "\\\n", "")

// substituted reads the commands of a substitution, which run in a shell of their own.
func (r *reader) substituted(stmts []*syntax.Stmt) {
	sub := reader{src: r.src, dir: r.dir, env: r.env}
	sub.list(stmts)
	r.inner = append(r.inner, sub.cmds...)
}

// folder returns what dirname prints for a known name, also in the form $(cd "$(dirname "$0")" && pwd).
func (r *reader) folder(stmts []*syntax.Stmt) (Word, bool) {
	args := func(s *syntax.Stmt) []*syntax.Word {
		if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Assigns) == 0 {
			return call.Args
		}
		return nil
	}
	if len(stmts) != 1 {
		return Word{}, false
	}
	words := args(stmts[0])
	name := "dirname"
	if both, ok := stmts[0].Cmd.(*syntax.BinaryCmd); ok && both.Op == syntax.AndStmt {
		if then := args(both.Y); len(then) > 0 && then[0].Lit() == "pwd" {
			words, name = args(both.X), "cd"
		}
	}
	for len(words) > 1 && words[1].Lit() == "--" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	if len(words) != 2 || words[0].Lit() != name {
		return Word{}, false
	}
	of := (&reader{src: r.src, dir: r.dir, env: r.env}).word(words[1])
	if of.Unknown || of.Glob {
		return Word{}, false
	}
	if name == "dirname" {
		of.Path = path.Dir(of.Path)
	}
	return of, true
}

// Script is the name of the shell's variable for the path of the script.
const Script = "0"

// parameter reads $x, ${x} and ${x:-otherwise}. Every other expansion is unknown.
func (r *reader) parameter(b *builder, x *syntax.ParamExp) {
	written, value, known := r.written(x), Word{}, false
	if x.Param != nil {
		value, known = r.env[x.Param.Value]
	}
	var operator syntax.ParExpOperator
	var otherwise Word
	if x.Exp != nil && x.Exp.Word != nil {
		operator, otherwise = x.Exp.Op, r.word(x.Exp.Word)
	}
	// Every other form changes the value.
	plain := !x.Excl && !x.Length && !x.Width && !x.IsSet && x.Index == nil && x.Slice == nil && x.Repl == nil && x.Names == 0
	if x.Param != nil && x.Param.Value == "BASH_SOURCE" { // the array's first entry is this script; the others are its callers
		value, known = r.env[Script]
		plain = plain || x.Index != nil && r.written(x) == "${BASH_SOURCE[0]}"
	}
	switch {
	case !plain || x.Param == nil:
		known = false
	case x.Exp != nil && x.Param.Value == Script && operator == syntax.RemSmallSuffix && otherwise.Text == "/*": // ${0%/*}
		value.Path = path.Dir(value.Path)
	case x.Exp == nil && x.Param.Value == "PWD":
		value, known = Word{Path: "."}, true
	case x.Exp == nil:
	case operator == syntax.DefaultUnset, operator == syntax.DefaultUnsetOrNull, operator == syntax.AssignUnset, operator == syntax.AssignUnsetOrNull:
		if !known { // ${CONFIG:-check.yml}
			value, known = otherwise, true
		}
	default:
		known = false
	}
	if !known || value.Unknown {
		b.unknown(written)
		return
	}
	value.Text = written
	b.known(value)
}

// builder puts a word together from its parts. It keeps the path twice: as it reads, and as a pattern in which quoted
// text is escaped.
type builder struct {
	text, path, pattern strings.Builder
	glob, dynamic       bool
}

func (b *builder) quoted(s string) {
	b.text.WriteString(s)
	b.path.WriteString(s)
	b.pattern.WriteString(EscapeGlob(s))
}

// bare adds an unquoted text; first says that it is the first part of the word.
func (b *builder) bare(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		b.unknown("~")
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] != '\n' {
				b.quoted(s[i : i+1])
			}
			continue
		}
		b.text.WriteByte(s[i])
		b.path.WriteByte(s[i])
		b.pattern.WriteByte(s[i])
		b.glob = b.glob || strings.IndexByte("*?[{", s[i]) >= 0
	}
}

func (b *builder) known(w Word) {
	b.text.WriteString(w.Text)
	b.path.WriteString(w.Path)
	b.glob = b.glob || w.Glob
	b.pattern.WriteString(escapedIf(!w.Glob, w.Path))
}

func (b *builder) unknown(written string) {
	b.text.WriteString(written)
	b.dynamic = true
}

func (b *builder) done() Word {
	w := Word{Text: b.text.String(), Path: b.path.String(), Unknown: b.dynamic}
	if b.glob {
		w.Glob, w.Path = true, b.pattern.String()
	}
	return w
}

// EscapeGlob returns a pattern that matches exactly s.
func EscapeGlob(s string) string { return globSigns.Replace(s) }

var globSigns = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, ",", `\,`, `\`, `\\`)

func escapedIf(plain bool, s string) string {
	if plain {
		return EscapeGlob(s)
	}
	return s
}

// Resolve returns the path of name, as seen from dir: relative to the root of the repository, or absolute. A path
// outside of the repository starts with "..".
func Resolve(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, Root); ok {
		return path.Clean(strings.TrimPrefix(rest, "/"))
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
