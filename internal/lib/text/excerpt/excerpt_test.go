package excerpt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const header = "diff --git a/work/n b/work/n\nindex 1..2 100644\n--- a/work/n\n+++ b/work/n\n@@ -1 +1 @@\n"

// excerptOf writes a diff in pieces of the given size, as git's output arrives.
func excerptOf(t *testing.T, diff string, piece int) Excerpt {
	t.Helper()
	w := &Writer{}
	for rest := diff; rest != ""; {
		n := min(piece, len(rest))
		_, err := w.Write([]byte(rest[:n]))
		require.NoError(t, err)
		rest = rest[n:]
	}
	return w.Excerpt("cafe")
}

func TestAShortDiffIsShownWhole(t *testing.T) {
	for _, piece := range []int{1, 7, 4096} {
		e := excerptOf(t, header+"-10\n+11\n", piece)
		require.Equal(t, Excerpt{Hash: "cafe", Lines: strings.Split(header+"-10\n+11", "\n")}, e)
		require.Equal(t, "The diff that the hash covers:\n\n```diff\n"+header+"-10\n+11\n```\n\n", e.Markdown("pawl diff x"))
	}
}

func TestALongDiffEndsWithAWholeLineAndNamesTheFilesLeftOut(t *testing.T) {
	var diff strings.Builder
	for n := range 12 {
		fmt.Fprintf(&diff, "diff --git a/f%d b/f%d\n--- a/f%d\n+++ b/f%d\n@@ -0,0 +1,40 @@\n", n, n, n, n)
		for line := range 40 {
			fmt.Fprintf(&diff, "+line %d of %d\n", line, n)
		}
	}
	e := excerptOf(t, diff.String(), 100)
	require.Len(t, e.Lines, maxLines)
	require.Equal(t, "+line 13 of 3", e.Lines[maxLines-1])
	require.Equal(t, 12*44-maxLines, e.More)
	require.Equal(t, []string{"f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10"}, e.Files, "the file that is shown in part too")
	require.Equal(t, 1, e.Rest)
	require.True(t, strings.HasPrefix(e.Markdown("pawl diff x"), "The beginning of the diff that the hash covers. "+
		"**378 more lines are not shown here**, of `f3`, `f4`, `f5`, `f6`, `f7`, `f8`, `f9`, `f10` and 1 more file: `pawl diff x` shows all of it.\n\n```diff\n"))
}

func TestAnExcerptIsBounded(t *testing.T) {
	wide := excerptOf(t, header+strings.Repeat("+"+strings.Repeat("word ", 60)+"\n", 100), 4096)
	require.LessOrEqual(t, len(strings.Join(wide.Lines, "\n")), maxBytes)
	require.Positive(t, wide.More)

	long := excerptOf(t, header+"+"+strings.Repeat("ä", 1_000_000)+"\n+next\n", 4096)
	require.Equal(t, "+next", long.Lines[6], "a long line hides nothing that follows")
	require.Regexp(t, `^\+ä{199} \[cut: the line has 2000001 bytes\]$`, long.Lines[5])

	controls := excerptOf(t, header+strings.Repeat("+"+strings.Repeat("\u202e", 130)+"\n", 200), 4096)
	require.LessOrEqual(t, len(strings.Join(controls.Lines, "\n")), maxBytes, "what is written out counts as it is shown")
}

// The text of a diff is the agent's: it must neither hide, nor act, nor end the block in which it stands.
func TestNothingInADiffActs(t *testing.T) {
	e := excerptOf(t, header+"+a\u202eb\u200b\x1b[2Jc\xff\r\n+```\n+````\n+</pre><script>alert(1)</script>\n+# Approved\n", 3)
	text := e.Markdown("pawl diff x")
	require.Contains(t, text, "\n\n`````diff\n")
	require.Equal(t, 2, strings.Count(text, "`````"))
	require.Contains(t, text, `+a\u{202e}b\u{200b}\u{1b}[2Jc\xff\r`+"\n")
	for _, hidden := range []string{"\u202e", "\u200b", "\x1b", "\r"} {
		require.NotContains(t, text, hidden)
	}
	names := Excerpt{Lines: []string{"+"}, More: 1, Files: []string{"a`b *c* [x](http://evil.example)"}}.Markdown("pawl diff x")
	require.Contains(t, names, "`` a`b *c* [x](http://evil.example) ``")
}

func TestAnExcerptHasNoCredential(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE6", 6)
	for name, line := range map[string]string{
		"in a line":           "+token: " + token,
		"where a line is cut": "+" + strings.Repeat("x ", 195) + token + strings.Repeat(" y", 5000),
		"in a removed line":   "-token: " + token,
	} {
		e := excerptOf(t, header+line+"\n", 4096)
		require.NotContains(t, strings.Join(e.Lines, "\n"), token[:12], name)
	}
}

func TestBinaryContentTakesNoRoom(t *testing.T) {
	binary := "diff --git a/i.png b/i.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZQzWMN\n\nliteral 0\nHcmV?d00001\n\n"
	e := excerptOf(t, binary+header+"-10\n+11\n", 4096)
	require.Equal(t, []string{"diff --git a/i.png b/i.png", "index 1..2 100644", "[binary content]"}, e.Lines[:3])
	require.Equal(t, "+11", e.Lines[len(e.Lines)-1])
	require.Zero(t, e.More)
}

func TestTheFileOfAHeader(t *testing.T) {
	for names, want := range map[string]string{
		"a/x b/x":                   "x",
		"a/two words b/two words":   "two words",
		"a/x b/y":                   "a/x b/y",
		`"a/\303\244" "b/\303\244"`: `"a/\303\244" "b/\303\244"`,
		"":                          "",
	} {
		require.Equal(t, want, fileOf(names), names)
	}
}
