package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"pawl/internal/lib/list"
)

// Begins reports whether a text for the shell runs only simple commands that start with one of the given entries, such as "go
// test".
func Begins(command string, entries []string) bool {
	commands, why := Simple(command)
	return why == "" && !slices.ContainsFunc(commands, func(words []string) bool {
		return !slices.ContainsFunc(entries, func(entry string) bool { return Starts(words, entry) })
	})
}

// Starts reports whether the words of a command begin with those of an entry.
func Starts(words []string, entry string) bool {
	first, _ := Simple(entry)
	return len(first) == 1 && len(words) >= len(first[0]) && slices.Equal(words[:len(first[0])], first[0])
}

// maxCommand limits what is parsed, because the parser recurses into nested commands.
const maxCommand = 32 << 10

// Simple returns the words of the simple commands in a line of shell code, or why it can't be judged by its words alone: if
// sh and bash parse it differently, or if it has substitutions and variables, assignments before a command, functions and
// loops, or redirections other than to /dev/null or to another descriptor.
func Simple(line string) (commands [][]string, why string) {
	if len(line) > maxCommand {
		return nil, fmt.Sprintf("it is longer than %d bytes", maxCommand)
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return nil, "it contains a control character"
	}
	for i, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(line), "")
		if err != nil {
			return nil, "it can't be parsed as shell code"
		}
		r := wordReader{}
		syntax.Walk(file, r.read)
		switch {
		case r.why != "":
			return nil, r.why
		case i > 0 && !slices.EqualFunc(commands, r.commands, slices.Equal[[]string]):
			return nil, "it means different things to different shells"
		}
		commands = r.commands
	}
	if len(commands) == 0 {
		return nil, "it is not a command"
	}
	return commands, ""
}

// wordReader collects the words of simple commands, up to the first thing that can't be judged by words.
type wordReader struct {
	commands [][]string
	why      string
}

func (r *wordReader) refuse(why string) {
	r.why = cmp.Or(r.why, why)
}

// read reads a node of the tree, and reports whether the nodes in it have to be read too.
func (r *wordReader) read(node syntax.Node) bool {
	switch x := node.(type) {
	case *syntax.Stmt:
		for _, redirect := range x.Redirs {
			r.redirect(redirect)
		}
		if x.Cmd == nil {
			r.refuse("it has more than simple commands")
		}
	case *syntax.CallExpr:
		if len(x.Assigns) > 0 {
			r.refuse("a variable is set for a command")
		}
		r.commands = append(r.commands, list.Map(x.Args, r.word))
		return false
	case *syntax.Redirect: // its statement has read it
		return false
	case nil, *syntax.File, *syntax.Comment, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block, *syntax.IfClause:
	default:
		r.refuse("it has more than simple commands")
	}
	return true
}

func (r *wordReader) redirect(x *syntax.Redirect) {
	switch target := r.word(x.Word); {
	case x.Op == syntax.DplOut || x.Op == syntax.DplIn:
		if strings.Trim(target, "0123456789") != "" && target != "-" {
			r.refuse("it is redirected")
		}
	case target != "/dev/null" || x.Op != syntax.RdrOut && x.Op != syntax.AppOut && x.Op != syntax.RdrIn:
		r.refuse("it is redirected")
	}
}

// word returns a word that means the same in every run.
func (r *wordReader) word(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch x := part.(type) {
		case *syntax.Lit:
			r.literal(&b, unquoted.Replace(x.Value))
		case *syntax.SglQuoted: // in $'' the $ is a literal to a POSIX shell, and refused before bash is asked
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			for _, inside := range x.Parts {
				if lit, ok := inside.(*syntax.Lit); ok {
					r.literal(&b, lit.Value)
				} else {
					r.refuse("it has a variable or a substitution")
				}
			}
		default:
			r.refuse("it has a variable or a substitution")
		}
	}
	return b.String()
}

// unquoted marks the characters that are only special without quotes, so that '~/x' is not the same as ~/x.
var unquoted = strings.NewReplacer("~", "\x01~", "*", "\x01*", "?", "\x01?", "[", "\x01[", "{", "\x01{")

func (r *wordReader) literal(b *strings.Builder, text string) {
	if strings.Contains(text, "$") {
		r.refuse("it has a $ that shells read in different ways")
	}
	b.WriteString(text)
}
