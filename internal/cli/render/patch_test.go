package render_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
)

func TestA7_WhatCannotBeSeenIsWrittenOut(t *testing.T) {
	for line, want := range map[string]string{
		"+\tif x {  // ä 世界 é 👍":                        "+\tif x {  // ä 世界 é 👍",
		"+  trailing blanks  ":                          "+  trailing blanks  ",
		"+a\u202eb\u2066c\u2069d\u200fe":                `+a\u{202e}b\u{2066}c\u{2069}d\u{200f}e`,
		"+a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg":  `+a\u{200b}b\u{200c}c\u{200d}d\u{2060}e\u{feff}f\u{ad}g`,
		"+a\u034fb\u115fc\u3164d\uffa0e\u17b4f\u180eg":  `+a\u{34f}b\u{115f}c\u{3164}d\u{ffa0}e\u{17b4}f\u{180e}g`,
		"+a\ufe0fb\U000e0101c\U000e0041d":               `+a\u{fe0f}b\u{e0101}c\u{e0041}d`,
		"+a\u00a0b\u2003c\u3000d\u2028e\u2029f\u2800g":  `+a\u{a0}b\u{2003}c\u{3000}d\u{2028}e\u{2029}f\u{2800}g`,
		"+\x1b[2J\x1b]8;;http://x\x07y\x00z\x7f\u009bw": `+\u{1b}[2J\u{1b}]8;;http://x\u{7}y\u{0}z\u{7f}\u{9b}w`,
		"+windows\r":                      `+windows\r`,
		"+\xff\xfe \xc3\x28 \xed\xa0\x80": `+\xff\xfe \xc3( \xed\xa0\x80`,
		"+the rune \ufffd itself":         "+the rune \ufffd itself",
		"+private \ue000":                 `+private \u{e000}`,
	} {
		require.Equal(t, want, render.Style{}.Exact(line, ""))
	}
	for r := rune(0); r <= unicode.MaxRune; r++ { // no invisible character stays
		if r != ' ' && r != '\t' && !unicode.IsGraphic(r) && r < 0xD800 || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) && r != ' ' && r != '\t' {
			require.Contains(t, render.Style{}.Exact("a"+string(r)+"b", ""), `\`, "%U", r)
		}
	}
}

const patch = `diff --git a/a b/a
index 0000000..1111111 100644
--- a/a
+++ b/a
@@ -1,3 +1,4 @@ func f() {
 	kept
--- a/looks like a header
-@@ -1 +1 @@
++++ b/looks like one too
+	indented
+diff --git a/x b/x
@@ -9 +10 @@
-old
\ No newline at end of file
+new
diff --git a/b b/b
GIT binary patch
literal 3
Kc$@

`

func TestA7_APatchIsShownExactly(t *testing.T) {
	show := func(s render.Style, text string) string {
		var b bytes.Buffer
		require.NoError(t, s.Patch(&b, strings.NewReader(text)))
		return b.String()
	}
	require.Equal(t, patch, show(render.Style{}, patch), "to the byte")
	require.Equal(t, patch, decolored(show(render.Style{Color: true}, patch)))
	colored := strings.Split(show(render.Style{Color: true}, patch), "\n")
	for i, want := range []string{
		"\x1b[1m", "\x1b[1m", "\x1b[1m", "\x1b[1m", "\x1b[36m", " \t", "\x1b[31m", "\x1b[31m", "\x1b[32m", "\x1b[32m", "\x1b[32m",
		"\x1b[36m", "\x1b[31m", `\ No`, "\x1b[32m", "\x1b[1m", "\x1b[1m", "literal", "Kc",
	} {
		require.True(t, strings.HasPrefix(colored[i], want), "line %d: %q", i, colored[i])
	}
	require.Equal(t, "\x1b[32m+a\x1b[7m\\u{200b}\x1b[0m\x1b[32mb\x1b[0m", strings.Split(show(render.Style{Color: true}, "@@ -0,0 +1 @@\n+a\u200bb\n"), "\n")[1])
	require.Equal(t, "no end", strings.TrimSuffix(show(render.Style{}, "no end"), "\n"))
}

func decolored(text string) string {
	for _, code := range []string{"\x1b[0m", "\x1b[1m", "\x1b[7m", "\x1b[31m", "\x1b[32m", "\x1b[36m"} {
		text = strings.ReplaceAll(text, code, "")
	}
	return text
}

func TestAPatchShowsNamesAsTheyAre(t *testing.T) {
	header := `diff --git "a/gr\303\274n.txt" "b/a\342\200\213\"b"` + "\nindex 0000000..1111111 100644\n"
	lines := `--- "a/gr\303\274n.txt"` + "\n+++ /dev/null\n@@ -1 +0,0 @@\n"
	content := `--- "a/gr\303\274n.txt"` + "\n"
	var b bytes.Buffer
	require.NoError(t, render.Style{}.Patch(&b, strings.NewReader(header+lines+content+`rename to "\346\227\245"`)))
	require.Equal(t, `diff --git a/grün.txt "b/a\342\200\213\"b"`+"\nindex 0000000..1111111 100644\n"+
		"--- a/grün.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n"+content+"rename to 日\n", b.String())
}
