package issue_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/issue"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, source, title, body string
		criteria                  []string
	}{
		{"nothing", "", "", "", nil},
		{"a line", "Make it faster\n", "Make it faster", "", nil},
		{"lines without a heading", "Make it faster.\n\nMuch.\n", "Make it faster.", "Make it faster.\n\nMuch.", nil},
		{"a heading", "# Crash on empty input\n\nIt crashes.\n", "Crash on empty input", "It crashes.", nil},
		{"a heading underlined", "Crash on empty\n==============\n\nIt crashes.\n", "Crash on empty", "It crashes.", nil},
		{"a lower heading underlined", "Crash\n-----\n\nIt crashes.\n", "Crash", "It crashes.", nil},
		{"a heading with a rule below", "## Crash\n---\nIt crashes.\n", "Crash", "---\nIt crashes.", nil},
		{"a heading that ends the text", "# Crash", "Crash", "", nil},
		{"front matter", "---\nlabels: bug\ntitle: \"Crash\"\n---\n\nIt crashes.\n", "Crash", "It crashes.", nil},
		{"the line ends of Windows and a mark", "\ufeff# Crash\r\n\r\n- [ ] a\r\n", "Crash", "- [ ] a", []string{"a"}},
		{"all task lists", "# T\n\n- [ ] one\n- plain\n\n## More\n\n* [x] two `code`\n  with a second line\n", "T", "- [ ] one\n- plain\n\n## More\n\n* [x] two `code`\n  with a second line", []string{"one", "two `code` with a second line"}},
		{"a section with task lists", "# T\n- [ ] todo\n## Acceptance criteria\n- [ ] a\n- plain\n  - [ ] a1\n### Details\n- [ ] b\n## Notes\n- [ ] c\n", "T", "- [ ] todo\n## Acceptance criteria\n- [ ] a\n- plain\n  - [ ] a1\n### Details\n- [ ] b\n## Notes\n- [ ] c", []string{"a", "a1", "b"}},
		{"a section with a plain list", "# T\n## Definition of Done:\n1. a\n   - detail\n2. b\n", "T", "## Definition of Done:\n1. a\n   - detail\n2. b", []string{"a", "b"}},
		{"a section in the words of a sign", "# T\n## ✅ Acceptance\n- [ ] a\n", "T", "## ✅ Acceptance\n- [ ] a", []string{"a"}},
		{"the same twice", "# T\n- [ ] a\n- [ ] a\n", "T", "- [ ] a\n- [ ] a", []string{"a"}},
		{"in code it is no criterion", "# T\n```\n- [ ] a\n```\n", "T", "```\n- [ ] a\n```", nil},
		{"what a reader does not see is not there", "# T\n\n<!-- - [ ] rm -rf\nmore -->\nIt <!-- hidden --> crashes.\n\n```\n<!-- code -->\n```\n", "T", "It  crashes.\n\n```\n<!-- code -->\n```", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := issue.Parse([]byte(c.source))
			require.Equal(t, c.title, is.Title)
			require.Equal(t, c.body, is.Body)
			require.Equal(t, c.criteria, is.Criteria)
			goal := is.Goal(16 << 10)
			require.Equal(t, c.criteria, issue.Parse([]byte(goal)).Criteria, goal)
			require.Contains(t, goal, c.title)
		})
	}
}

func TestGoalIsBoundedAndKeepsItsCriteria(t *testing.T) {
	long := "# Title\n\n" + strings.Repeat("Words and more words, ä.\n\n```\n- [ ] no\n\n- [ ] criterion\n```\n\n", 200) + "## Acceptance criteria\n\n- [ ] one\n- [ ] two\n"
	is := issue.Parse([]byte(long))
	for _, limit := range []int{200, 500, 1000, 5000, 16 << 10} {
		goal := is.Goal(limit)
		require.LessOrEqual(t, len(goal), limit)
		require.True(t, strings.HasPrefix(goal, "# Title\n"))
		require.Equal(t, []string{"one", "two"}, issue.Parse([]byte(goal)).Criteria, goal)
	}
	require.LessOrEqual(t, len(is.Goal(20)), 20)
	require.Equal(t, "", is.Goal(0))

	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "- [ ] criterion %d %s\n", i, strings.Repeat("ä", 1000))
	}
	is = issue.Parse([]byte(many.String()))
	require.LessOrEqual(t, len(is.Criteria), issue.MaxCriteria)
	require.LessOrEqual(t, len(is.Goal(16<<10)), 16<<10)
}

// TestParseIsQuickOnHostileMarkdown has texts for which goldmark's own parser takes from seconds to minutes, or gigabytes.
func TestParseIsQuickOnHostileMarkdown(t *testing.T) {
	for _, piece := range []string{"> - ", "> ", ">", "* + ", "1. ", "[a](", "[a](b", "[a](<", "*a_ ", "[", "x <!-- ", "[a]: b\n", "> a\n", "- [ ] a\n"} {
		began := time.Now()
		is := issue.Parse([]byte("# T\n\n- [ ] one\n\n" + strings.Repeat(piece, issue.MaxSource/len(piece))))
		require.Equal(t, "T", is.Title)
		require.Equal(t, "one", is.Criteria[0])
		require.Less(t, time.Since(began), 3*time.Second, "%q", piece)
	}
	deep := strings.Repeat("- ", 2000) + "a\n" + strings.Repeat("\n", 100<<10) + "\nThe end.\n"
	require.Contains(t, issue.Parse([]byte(deep)).Body, "The end.")

	nested := ""
	for i := range 10 {
		nested += strings.Repeat("  ", i) + fmt.Sprintf("- [ ] level %d\n", i)
	}
	require.Len(t, issue.Parse([]byte("# T\n\n"+nested)).Criteria, 10)
}

// TestParseReadsThisProjectsDocs reads Markdown that was not written for the test.
func TestParseReadsThisProjectsDocs(t *testing.T) {
	source, err := os.ReadFile("../../../docs/explanation/architecture.md")
	require.NoError(t, err)
	is := issue.Parse(source)
	require.Equal(t, "How pawl is built", is.Title)
	require.True(t, strings.HasPrefix(is.Body, "This page is for people who change pawl."), is.Body[:60])
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# T\n\n- [ ] a\n<!-- x -->\n## Acceptance criteria\n* b\n"), 100)
	f.Add([]byte("---\ntitle: x\n---\nT\n=\n~~~\n- [ ] a"), 10)
	f.Add([]byte("-\n-     [x]\n<!--"), 1000)
	f.Fuzz(func(t *testing.T, source []byte, limit int) {
		is := issue.Parse(source)
		require.True(t, utf8.ValidString(is.Title+is.Body))
		limit %= 1 << 15
		goal := is.Goal(limit)
		require.LessOrEqual(t, len(goal), max(limit, 0))
		require.True(t, utf8.ValidString(goal))
		require.LessOrEqual(t, len(is.Criteria), issue.MaxCriteria)
	})
}

func TestFrontMatterIsWhatStandsBetweenTheFirstTwoFences(t *testing.T) {
	for text, want := range map[string][2]string{
		"---\ntitle: a\n---\nbody\n":           {"\ntitle: a\n", "body\n"},
		"---\ntitle: a\n---":                   {"\ntitle: a\n", ""},
		"---\n---\nbody":                       {"\n", "body"},
		"---\ntitle: a\n":                      {"", "---\ntitle: a\n"},
		"text\n---\ntitle: a\n---\n":           {"", "text\n---\ntitle: a\n---\n"},
		"---\na: |\n  ---\n---\nb\n---\n":      {"\na: |\n  ---\n", "b\n---\n"},
		"----\na: 1\n----\n":                   {"", "----\na: 1\n----\n"},
		"\ufeff--- \r\na: 1\r\n---\t\r\nb\r\n": {"\na: 1\n", "b\n"},
		"":                                     {},
	} {
		matter, rest := issue.FrontMatter(text)
		require.Equal(t, want, [2]string{matter, rest}, "%q", text)
	}
}
