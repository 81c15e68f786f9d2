package spec

import (
	"path"
	"regexp"
	"strings"
)

var parameter = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])`)

// expand reads what starts with $ or a backtick.
func (l *lexer) expand(w *builder) {
	from := l.i
	rest := l.src[l.i:]
	switch {
	case rest[0] == '`':
		end := 1
		for end < len(rest) && rest[end] != '`' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(rest))
		inside := strings.ReplaceAll(rest[1:end], "\\`", "`")
		l.i = min(len(l.src), l.i+end+1)
		l.within(inside)
		l.substituted(w, inside, l.src[from:l.i])
	case strings.HasPrefix(rest, "$(("):
		end := strings.Index(rest, "))")
		if end < 0 {
			end = len(rest) - 2
		}
		l.i += end + 2
		w.unknown(l.src[from:l.i])
	case strings.HasPrefix(rest, "$("):
		l.i += 2
		inside := l.substitution()
		l.substituted(w, inside, l.src[from:l.i])
	case strings.HasPrefix(rest, "${"):
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			end = len(rest) - 1
		}
		l.i += end + 1
		inside := strings.TrimSuffix(rest[2:end+1], "}")
		name := parameter.FindString(inside)
		l.parameter(w, name, inside[len(name):], l.src[from:l.i])
	case strings.HasPrefix(rest, "$'"), strings.HasPrefix(rest, `$"`):
		l.i++ // the quotes that follow are read as others are
	default:
		name := parameter.FindString(rest[1:])
		l.i += 1 + len(name)
		if name == "" {
			w.quoted("$")
			return
		}
		l.parameter(w, name, "", l.src[from:l.i])
	}
}

// substitution reads commands up to the parenthesis that closes them and returns their text.
func (l *lexer) substitution() string {
	from := l.i
	if l.depth >= maxNesting {
		l.i = len(l.src)
		return l.src[from:]
	}
	sub := &lexer{src: l.src, i: l.i, dir: l.dir, depth: l.depth + 1, env: l.env}
	sub.list(true)
	l.i = sub.i
	l.inner = append(l.inner, sub.cmds...)
	return strings.TrimSuffix(l.src[from:l.i], ")")
}

func (l *lexer) within(src string) {
	if l.depth < maxNesting {
		l.inner = append(l.inner, parseShell(src, l.dir, l.env, l.depth+1)...)
	}
}

func (l *lexer) substituted(w *builder, inside, written string) {
	switch strings.Join(strings.Fields(inside), " ") {
	case "pwd":
		w.known(word{text: written, path: "."})
	case "git rev-parse --show-toplevel":
		w.known(word{text: written, path: toplevel})
	default:
		w.unknown(written)
	}
}

func (l *lexer) parameter(w *builder, name, op, written string) {
	value, ok := l.env[name]
	switch {
	case name == "PWD" && op == "":
		value, ok = word{path: "."}, true
	case !ok && strings.HasPrefix(strings.TrimPrefix(op, ":"), "-"), !ok && strings.HasPrefix(strings.TrimPrefix(op, ":"), "="):
		fallback := strings.TrimPrefix(op, ":")[1:] // ${CONFIG:-check.yml}
		value, ok = word{path: fallback}, !strings.ContainsAny(fallback, "$`\"'")
	case op != "" && !strings.HasPrefix(strings.TrimPrefix(op, ":"), "-"):
		ok = false
	}
	if !ok || value.unknown {
		w.unknown(written)
		return
	}
	value.text = written
	w.known(value)
}

// builder puts a word together from its pieces. It keeps the path twice: as it reads, and as a
// pattern in which what was quoted is escaped.
type builder struct {
	text, path, pattern strings.Builder
	glob, dynamic       bool
}

func (b *builder) quoted(s string) {
	b.text.WriteString(s)
	b.path.WriteString(s)
	b.pattern.WriteString(escapeGlob(s))
}

func (b *builder) bare(c byte) {
	b.text.WriteByte(c)
	b.path.WriteByte(c)
	b.pattern.WriteByte(c)
	b.glob = b.glob || strings.IndexByte("*?[{", c) >= 0
}

func (b *builder) known(w word) {
	b.text.WriteString(w.text)
	b.path.WriteString(w.path)
	if w.glob {
		b.glob = true
		b.pattern.WriteString(w.path)
	} else {
		b.pattern.WriteString(escapeGlob(w.path))
	}
}

func (b *builder) unknown(written string) {
	b.text.WriteString(written)
	b.dynamic = true
}

func (b *builder) done() word {
	w := word{text: b.text.String(), path: b.path.String(), unknown: b.dynamic}
	if b.glob {
		w.glob, w.path = true, b.pattern.String()
	}
	return w
}

// escapeGlob makes a pattern that matches just s.
func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[]{},\`) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]{},\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// resolve is name as seen from dir: relative to the root of the repository, or absolute. What
// lies outside starts with "..", and names no file of the repository.
func resolve(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, toplevel); ok {
		return path.Clean(strings.TrimPrefix(rest, "/"))
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
