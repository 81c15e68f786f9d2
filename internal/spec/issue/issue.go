// Package issue reads the Markdown of an issue as a goal: its title, its text and its acceptance criteria, which the
// reviewer role checks one by one. A goal that was made from an issue still has its criteria, so Parse finds them in
// the goal, too.
//
// It is pure: it reads no file (config does). Start at Parse.
package issue

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tasks "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"pawl/internal/lib/lazyregexp"
)

// The limits of an issue.
const (
	MaxSource    = 256 << 10 // bytes of Markdown that are read
	MaxCriteria  = 50
	maxCriterion = 500 // bytes
	maxTitle     = 300
)

// Issue is what an issue asks for.
type Issue struct {
	Title    string
	Body     string   // Markdown, without the title
	Criteria []string // in order, each once
}

// section matches the headings of acceptance criteria.
var section = lazyregexp.New(`(?i)^\W*(acceptance( criteria| tests?)?|definition of done|done when|criteria)\b`)

// markdown reads what matters here: blocks, task lists, and what is a comment or code. It leaves out links and emphasis,
// and lists and quotes nested deeper than maxNesting: goldmark takes minutes and gigabytes for 64 KiB of some of those.
var markdown = parser.NewParser(
	parser.WithBlockParsers(shallowBlocks()...),
	parser.WithInlineParsers(
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0), util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewRawHTMLParser(), 200),
	),
)

// maxNesting is how deep blocks may be nested; a list counts twice, with its item.
const maxNesting = 30

// shallow is a parser of blocks with others inside. It opens none that is nested too deep, whose text then belongs to a
// paragraph.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	for depth, n := 0, parent; n != nil; depth, n = depth+1, n.Parent() {
		if depth >= maxNesting {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, r, pc)
}

func shallowBlocks() []util.PrioritizedValue {
	parsers := parser.DefaultBlockParsers()
	for i, p := range parsers {
		if p.Value == parser.NewListParser() || p.Value == parser.NewBlockquoteParser() {
			parsers[i].Value = shallow{p.Value.(parser.BlockParser)}
		}
	}
	return parsers
}

// Parse reads an issue. The title is the front matter's, else the first heading if the text begins with one, else the
// first line. Acceptance criteria are the items of lists under a heading like "Acceptance criteria", or only the items
// of task lists (`- [ ] it works`) if the section has any. Without such a section, all items of task lists are
// criteria. Parse leaves out Markdown comments, which readers don't see: a person who approves the goal has not seen
// them.
func Parse(source []byte) Issue {
	src := normal(source)
	matter, rest := FrontMatter(string(src))
	title := ""
	for l := range strings.SplitSeq(matter, "\n") {
		if value, ok := strings.CutPrefix(l, "title:"); ok {
			title = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	src = uncommented([]byte(rest))
	doc := markdown.Parse(text.NewReader(src))
	issue := Issue{Criteria: criteria(doc, src)}
	first := doc.FirstChild()
	heading, headed := first.(*ast.Heading)
	switch {
	case title != "":
		issue.Title, issue.Body = title, string(src)
		if headed && line(heading, src) == title {
			issue.Body = after(heading, src)
		}
	case headed:
		issue.Title, issue.Body = line(heading, src), after(heading, src)
	default:
		issue.Title, _, _ = strings.Cut(strings.TrimSpace(string(src)), "\n")
		issue.Body = string(src)
		if strings.TrimSpace(issue.Body) == strings.TrimSpace(issue.Title) {
			issue.Body = ""
		}
	}
	issue.Title = clip(strings.Join(strings.Fields(issue.Title), " "), maxTitle)
	issue.Body = trim(issue.Body)
	return issue
}

// Goal returns what the agent is told, at most limit bytes of Markdown: the title, then the text. If the text is too
// long, it is cut at the end of a paragraph, and the criteria are added at its end, where Parse finds them.
func (issue Issue) Goal(limit int) string {
	start := issue.Title + "\n"
	if strings.HasPrefix(issue.Body, issue.Title) { // there was no heading: the text begins with the title
		start = ""
	} else if issue.Title != "" {
		start = "# " + start
	}
	whole := trim(start + "\n" + issue.Body)
	if len(whole) <= limit && slices.Equal(Parse([]byte(whole)).Criteria, issue.Criteria) {
		return whole
	}
	var end strings.Builder
	if len(issue.Criteria) > 0 {
		end.WriteString("\n\n## Acceptance criteria\n")
		for _, c := range issue.Criteria {
			end.WriteString("\n- [ ] " + c)
		}
	}
	for room := limit - len(start) - end.Len() - len("\n\n\n[…]"); room > 0; room /= 2 { // a cut in code would hide the criteria
		body := issue.Body[:min(room, len(issue.Body))]
		cut := trim(start+"\n"+body[:max(strings.LastIndex(body, "\n\n"), 0)]) + "\n\n[…]" + end.String()
		if len(cut) <= limit && slices.Equal(Parse([]byte(cut)).Criteria, issue.Criteria) {
			return cut
		}
	}
	return clip(trim(start+end.String()), limit)
}

// criteria returns the acceptance criteria in the order of the text.
func criteria(doc ast.Node, src []byte) []string {
	var asked, plain, names []string
	inside := 0 // the level of the section's heading
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if inside == 0 || n.Level <= inside {
				inside = 0
				if section().MatchString(line(n, src)) {
					inside = n.Level
				}
			}
		case *ast.ListItem:
			item := n.FirstChild()
			if item == nil {
				return ast.WalkContinue, nil
			}
			words := line(item, src)
			if box, ok := item.FirstChild().(*tasks.TaskCheckBox); ok && box != nil {
				words = strings.TrimSpace(words[min(len(words), 3):])
				names = append(names, words)
				if inside > 0 {
					asked = append(asked, words)
				}
			} else if _, nested := n.Parent().Parent().(*ast.ListItem); inside > 0 && !nested {
				plain = append(plain, words)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, list := range [][]string{asked, plain, names} {
		if found := distinct(list); len(found) > 0 {
			return found
		}
	}
	return nil
}

func distinct(list []string) []string {
	var out []string
	for _, c := range list {
		if c = clip(c, maxCriterion); c != "" && !slices.Contains(out, c) && len(out) < MaxCriteria {
			out = append(out, c)
		}
	}
	return out
}

// line returns the source of a block as one line.
func line(n ast.Node, src []byte) string {
	if n.Type() != ast.TypeBlock {
		return ""
	}
	return strings.Join(strings.Fields(string(n.Lines().Value(src))), " ")
}

// after returns the source after a heading.
func after(h *ast.Heading, src []byte) string {
	lines := h.Lines()
	if lines.Len() == 0 {
		return string(src)
	}
	_, below, _ := strings.Cut(string(src[lines.At(lines.Len()-1).Stop:]), "\n")
	if lineStart := bytes.LastIndexByte(src[:lines.At(0).Start], '\n') + 1; !bytes.ContainsRune(src[lineStart:lines.At(0).Start], '#') {
		_, below, _ = strings.Cut(below, "\n") // the line under the heading made it one
	}
	return below
}

// normal makes the source valid UTF-8 of limited length, without control characters.
func normal(source []byte) []byte {
	s := strings.ToValidUTF8(string(source[:min(len(source), MaxSource)]), "")
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return []byte(s)
}

// FrontMatter splits Markdown into the YAML between its first two lines of three hyphens, and the rest, both with Unix
// line ends. The YAML keeps its line numbers of the whole text.
func FrontMatter(text string) (matter, rest string) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	if m := front().FindStringSubmatchIndex(text); m != nil {
		return text[m[2]:m[3]], text[m[1]:]
	}
	return "", text
}

var front = lazyregexp.New(`(?ms)\A---[ \t]*$(.*?\n)---[ \t]*$\n?`)

// uncommented returns the source without HTML comments. Comments in code stay.
func uncommented(src []byte) []byte {
	var cut [][2]int
	doc := markdown.Parse(text.NewReader(src))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			if n.HTMLBlockType == ast.HTMLBlockType2 && n.Lines().Len() > 0 {
				end := n.Lines().At(n.Lines().Len() - 1).Stop
				if n.HasClosure() {
					end = n.ClosureLine.Stop
				}
				cut = append(cut, [2]int{n.Lines().At(0).Start, end})
			}
		case *ast.RawHTML:
			if s := n.Segments; s.Len() > 0 && strings.HasPrefix(string(src[s.At(0).Start:s.At(0).Stop]), "<!--") {
				cut = append(cut, [2]int{s.At(0).Start, s.At(s.Len() - 1).Stop})
			}
		}
		return ast.WalkContinue, nil
	})
	var out []byte
	offset := 0
	for _, c := range cut {
		if c[0] >= offset {
			out, offset = append(out, src[offset:c[0]]...), c[1]
		}
	}
	return append(out, src[offset:]...)
}

// blankLines matches the blank lines at the beginning of a text.
var blankLines = lazyregexp.New(`^\s*\n`)

// trim removes blank lines at both ends.
func trim(s string) string {
	return strings.TrimRight(s[len(blankLines().FindString(s)):], " \t\n")
}

// clip returns at most n bytes of s, cut between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:max(n, 0)], ""))
}
