package spec

import (
	"regexp"
	"strings"
)

// Words are the shell words of a command, without quotes, operators and comments, in the order
// in which they stand; an assignment before a command (CONFIG=x make) and the target of a
// redirection are words too. The words of a command substitution follow those of the command
// that it stands in. Expansions are left as they were written.
//
// It reads the shell's grammar well enough to find what a command refers to, not to run it: it
// never fails, and takes what it cannot make sense of as words.
func Words(command string) []string {
	var words []string
	for _, c := range parseShell(command, "", nil, 0) {
		for _, w := range c.all {
			words = append(words, w.text)
		}
	}
	return words
}

// word is a shell word. What it expands to is known only in part: variables that the command
// itself assigns, $PWD, $(pwd) and $(git rev-parse --show-toplevel).
type word struct {
	text    string // without quotes, expansions as written
	path    string // with the known expansions; a doublestar pattern when glob is set
	glob    bool   // * ? [ or { stands in it unquoted, or it is the variable of a for loop
	unknown bool   // something in it is only known when it runs
}

// toplevel stands in a path for the root of the repository.
const toplevel = "\x01"

// simple is one simple command.
type simple struct {
	dir   string // relative to the root, as far as cd with a fixed argument says
	words []word // the command and its arguments, reserved words taken off
	all   []word // also assignments, redirections and reserved words
	stdin []word // targets of <
	here  string // here-document, here-string
	piped bool   // reads what the simple command before it writes
}

// maxNesting bounds substitutions within substitutions.
const maxNesting = 8

// maxPath bounds what a variable or directory stands for: x=$x$x doubles.
const maxPath = 4096

type lexer struct {
	src   string
	i     int
	depth int
	dir   string
	dirs  []string // of the enclosing subshells
	env   map[string]word
	cmds  []simple
	inner []simple // of substitutions in the command that is being read
	cur   simple
	loop  string   // variable of the for loop whose words are being read
	ends  []string // delimiters of here-documents to come
	owner []int    // and whose they are
}

func parseShell(src, dir string, env map[string]word, depth int) []simple {
	l := &lexer{src: src, dir: dir, depth: depth, env: map[string]word{}}
	for k, v := range env {
		l.env[k] = v
	}
	l.list(false)
	return l.cmds
}

// list reads commands up to the end, or to the parenthesis that closes a substitution.
func (l *lexer) list(nested bool) {
	open := 0
	for l.i < len(l.src) {
		c := l.src[l.i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			l.i++
		case strings.HasPrefix(l.src[l.i:], "\\\n"):
			l.i += 2
		case c == '#':
			if n := strings.IndexByte(l.src[l.i:], '\n'); n >= 0 {
				l.i += n
			} else {
				l.i = len(l.src)
			}
		case c == '\n':
			l.end(false)
			l.i++
			l.hereDocuments()
		case strings.HasPrefix(l.src[l.i:], "&>"):
			l.i++
		case c == ';' || c == '&':
			l.end(false)
			l.i++
		case c == '|':
			or := strings.HasPrefix(l.src[l.i:], "||")
			l.end(!or)
			l.i++
			if or || strings.HasPrefix(l.src[l.i:], "&") {
				l.i++
			}
		case c == '(':
			l.end(false)
			l.dirs = append(l.dirs, l.dir)
			open++
			l.i++
		case c == ')':
			l.end(false)
			l.i++
			if open == 0 && nested {
				return
			}
			if open > 0 {
				open--
				l.dir = l.dirs[len(l.dirs)-1]
				l.dirs = l.dirs[:len(l.dirs)-1]
			}
		case c == '<' || c == '>':
			l.redirect()
		default:
			l.add(l.word())
		}
	}
	l.end(false)
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
	// reserved words after which a command follows
	reserved = map[string]bool{"if": true, "then": true, "elif": true, "else": true, "do": true, "while": true, "until": true, "!": true, "{": true, "}": true, "fi": true, "done": true, "esac": true}
)

// add takes one word into the command that is being read.
func (l *lexer) add(w word) {
	l.cur.all = append(l.cur.all, w)
	if l.loop != "" { // for x in …
		if w.text != "in" {
			l.loopOver(w)
		}
		return
	}
	if len(l.cur.words) == 0 {
		if reserved[w.text] {
			return
		}
		if assignment.MatchString(w.text) {
			l.assign(w)
			return
		}
	} else {
		switch first := l.cur.words[0].text; {
		case first == "for" && len(l.cur.words) == 1:
			l.loop = w.text
		case (first == "export" || first == "readonly" || first == "local" || first == "declare") && assignment.MatchString(w.text):
			l.assign(w)
		}
	}
	l.cur.words = append(l.cur.words, w)
}

func (l *lexer) assign(w word) {
	name, _, _ := strings.Cut(w.text, "=")
	_, w.path, _ = strings.Cut(w.path, "=")
	w.unknown = w.unknown || len(w.path) > maxPath
	l.env[strings.TrimSuffix(name, "+")] = w
}

// loopOver makes the loop's variable stand for one more word.
func (l *lexer) loopOver(w word) {
	if w.unknown {
		return
	}
	if !w.glob {
		w.path = escapeGlob(w.path)
	}
	if known, ok := l.env[l.loop]; ok && known.glob && strings.HasPrefix(known.path, "{") {
		w.path = strings.TrimSuffix(known.path, "}") + "," + w.path + "}"
	} else {
		w.path = "{" + w.path + "}"
	}
	w.glob = true
	w.unknown = len(w.path) > maxPath
	l.env[l.loop] = w
}

// end closes the command that is being read.
func (l *lexer) end(piping bool) {
	l.cur.dir = l.dir
	if len(l.cur.all) > 0 || l.cur.here != "" {
		if words := l.cur.words; len(words) == 2 && (words[0].text == "cd" || words[0].text == "pushd") && !words[1].unknown && !words[1].glob {
			if l.dir = resolve(l.dir, words[1].path); len(l.dir) > maxPath {
				l.dir = ".." // nowhere
			}
		}
		l.cmds = append(l.cmds, l.cur)
		l.cmds = append(l.cmds, l.inner...)
	}
	l.cur, l.inner, l.loop = simple{piped: piping}, nil, ""
}

var operator = regexp.MustCompile(`^(?:<<<|<<-|<<|>>|<>|>\||[<>]&-|[<>]&|[<>])`)

// redirect reads <, >, >>, <<, <<<, >&, <( and so on with their target.
func (l *lexer) redirect() {
	// the digits of 2> were read as a word
	if n := len(l.cur.all); n > 0 && l.i > 0 && isDigits(l.cur.all[n-1].text) && l.src[l.i-1] >= '0' && l.src[l.i-1] <= '9' {
		l.cur.all = l.cur.all[:n-1]
		if m := len(l.cur.words); m > 0 {
			l.cur.words = l.cur.words[:m-1]
		}
	}
	op := operator.FindString(l.src[l.i:])
	l.i += len(op)
	if strings.HasSuffix(op, "&-") {
		return // closes a file
	}
	if (op == "<" || op == ">") && l.i < len(l.src) && l.src[l.i] == '(' {
		l.i++
		l.substitution()
		return
	}
	for l.i < len(l.src) && (l.src[l.i] == ' ' || l.src[l.i] == '\t') {
		l.i++
	}
	if l.i == len(l.src) || strings.IndexByte("\n;|()<>", l.src[l.i]) >= 0 {
		return
	}
	w := l.word()
	switch op {
	case "<<", "<<-":
		l.ends = append(l.ends, w.text)
		l.owner = append(l.owner, len(l.cmds))
	case "<<<":
		l.cur.here += w.text + "\n"
		l.cur.all = append(l.cur.all, w)
	case "<", "<>":
		l.cur.stdin = append(l.cur.stdin, w)
		l.cur.all = append(l.cur.all, w)
	default:
		if !isDigits(w.text) { // 2>&1
			l.cur.all = append(l.cur.all, w)
		}
	}
}

// hereDocuments reads the bodies that were announced on the line before.
func (l *lexer) hereDocuments() {
	for n, end := range l.ends {
		var body strings.Builder
		for l.i < len(l.src) {
			line, _, more := strings.Cut(l.src[l.i:], "\n")
			l.i += len(line)
			if more {
				l.i++
			}
			if strings.TrimLeft(line, "\t") == end {
				break
			}
			body.WriteString(line)
			body.WriteByte('\n')
		}
		if at := l.owner[n]; at < len(l.cmds) {
			l.cmds[at].here += body.String()
		}
	}
	l.ends, l.owner = nil, nil
}

// word reads one word; something that is not a word's end must stand at l.i.
func (l *lexer) word() word {
	var w builder
	start := l.i
	for l.i < len(l.src) {
		c := l.src[l.i]
		switch {
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			if l.i == start { // cannot happen; never stand still
				l.i++
			}
			return w.done()
		case c == '\'':
			end := strings.IndexByte(l.src[l.i+1:], '\'')
			if end < 0 {
				end = len(l.src) - l.i - 1
			}
			w.quoted(l.src[l.i+1 : l.i+1+end])
			l.i = min(len(l.src), l.i+end+2)
		case c == '"':
			l.i++
			l.inQuotes(&w)
		case c == '\\':
			switch next := l.src[l.i+1 : min(len(l.src), l.i+2)]; next {
			case "\n":
			case "":
				w.quoted(`\`)
			default:
				w.quoted(next)
			}
			l.i = min(len(l.src), l.i+2)
		case c == '$' || c == '`':
			l.expand(&w)
		case c == '~' && l.i == start:
			w.unknown("~")
			l.i++
		default:
			w.bare(c)
			l.i++
		}
	}
	return w.done()
}

func (l *lexer) inQuotes(w *builder) {
	w.quoted("")
	for l.i < len(l.src) {
		switch c := l.src[l.i]; c {
		case '"':
			l.i++
			return
		case '\\':
			if l.i+1 < len(l.src) {
				next := l.src[l.i+1]
				if strings.IndexByte("$`\"\\", next) < 0 && next != '\n' {
					w.quoted("\\")
				}
				if next != '\n' {
					w.quoted(string([]byte{next}))
				}
			}
			l.i = min(len(l.src), l.i+2)
		case '$', '`':
			l.expand(w)
		default:
			w.quoted(l.src[l.i : l.i+1])
			l.i++
		}
	}
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
