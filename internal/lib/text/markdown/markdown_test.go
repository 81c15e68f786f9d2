package markdown_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"pawl/internal/lib/text/markdown"
	"pawl/internal/lib/text/visible"
)

var reader = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList)).Parser()

// hostile are pieces for texts that try to be more than a text.
var hostile = []string{
	"a", "word", " ", "  ", "\n", "\r\n", "\t", "\\", "\\\\", "`", "``", "```", "|", "\\|", "||", "*", "**", "_", "__", "~~", "[", "]", "(", ")", "![", "](", "<", ">",
	"<script>", "<!--", "-->", "<b", "&lt;", "&#60;", "&", "#", "# ", "- ", "+ ", "1. ", "1) ", "=", "===", "---", "| - | - |", ":-:", ": ", "> ", "http://x.example", "https://x.example/a_b_c",
	"www.x.example", "ftp://x.example", "mailto:a@b.example", "a@b.example", "javascript:alert(1)", "[a](http://b)", "[^1]", "[^1]: x", "[x]: http://y", "- [x] ", "\u202e", "\u200b", "\x1b[31m",
	"\xff", "$x$", ":smile:", "@user", "\u00a0", "\u2028", "!", "{", "}", "'", "\"", "...", "--", "  \n", "~~~", "\x00", "é", "世",
}

// read renders a document and returns the kinds of its nodes, and the text of its cells or paragraphs.
func read(t *testing.T, doc string) (kinds map[string]int, texts []string) {
	t.Helper()
	kinds = map[string]int{}
	source := []byte(doc)
	var words func(n ast.Node) string
	words = func(n ast.Node) string {
		var b bytes.Buffer
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			switch c := c.(type) {
			case *ast.Text:
				b.Write(c.Segment.Value(source))
				if c.SoftLineBreak() {
					b.WriteByte(' ')
				}
			case *ast.String:
				b.Write(c.Value)
			default:
				b.WriteString(words(c))
			}
		}
		return b.String()
	}
	root := reader.Parse(text.NewReader(source))
	require.NoError(t, ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			kinds[n.Kind().String()]++
			if n.Kind() == table.KindTableCell || n.Kind() == ast.KindParagraph {
				texts = append(texts, words(n))
			}
		}
		return ast.WalkContinue, nil
	}))
	return kinds, texts
}

// seen returns what a reader sees of Markdown's source: without the escapes.
func seen(source string) string {
	var b strings.Builder
	for i := 0; i < len(source); i++ {
		if source[i] == '\\' && i+1 < len(source) && strings.ContainsRune("\\`*_{}[]()<>#|~&!$+-=.:", rune(source[i+1])) {
			i++
		}
		b.WriteByte(source[i])
	}
	return b.String()
}

func TestForeignWordsAreNoMarkdown(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 7))
	for range 20000 {
		var b strings.Builder
		for range 1 + rnd.IntN(8) {
			b.WriteString(hostile[rnd.IntN(len(hostile))])
		}
		foreign := b.String()
		doc := "### Waiting\n\n" + markdown.Text(foreign) + "\n\n| a | b | c |\n|---|---|---|\n| x | " + markdown.Text(foreign) + " | " + markdown.CodeCell(foreign) + " |\n| y | " + markdown.Code("z") + " | end |\n\n" +
			markdown.Block(foreign) + "\n\nlast\n"
		kinds, texts := read(t, doc)
		require.Equal(t, 1, kinds["Heading"], "%q\n%s", foreign, doc)
		require.Equal(t, 2, kinds["TableRow"], "%q\n%s", foreign, doc)
		require.Equal(t, 9, kinds["TableCell"], "%q\n%s", foreign, doc)
		require.Equal(t, 1, kinds["FencedCodeBlock"], "%q\n%s", foreign, doc)
		for _, kind := range []string{"Link", "Image", "AutoLink", "RawHTML", "HTMLBlock", "Emphasis", "Strikethrough", "List", "ListItem", "TaskCheckBox", "Blockquote", "ThematicBreak", "CodeBlock", "FootnoteLink", "FootnoteList", "DefinitionList"} {
			require.Zero(t, kinds[kind], "%s: %q\n%s", kind, foreign, doc)
		}
		require.Equal(t, "last", texts[len(texts)-1])
		require.Equal(t, "end", texts[len(texts)-2], "%q\n%s", foreign, doc)
		want := strings.Join(strings.Fields(visible.Clean(foreign)), "")
		cell := texts[len(texts)-6]
		require.Equal(t, want, strings.Join(strings.Fields(seen(cell)), ""), "%q\n%s", foreign, doc)
	}
}
