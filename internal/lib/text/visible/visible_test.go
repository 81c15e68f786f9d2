package visible_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/text/visible"
)

// TestE3_NothingInALineHides: what a person approves is what they see.
func TestE3_NothingInALineHides(t *testing.T) {
	for line, want := range map[string]string{
		"\tif a {":                 "\tif a {",
		"größer – 日本語 🙂":           "größer – 日本語 🙂",
		"a\x1b[2Jb":                `a\u{1b}[2Jb`,
		"end\r":                    `end\r`,
		"admin\u202e\u2066 }":      `admin\u{202e}\u{2066} }`,
		"pass\u200bword\ufeff":     `pass\u{200b}word\u{feff}`,
		"a\u00a0b\u3000c\u2800d":   `a\u{a0}b\u{3000}c\u{2800}d`,
		"x\ufe0fy\U000e0100\u115f": `x\u{fe0f}y\u{e0100}\u{115f}`,
		"not \xff text \ufffd":     `not \xff text ` + "\ufffd",
	} {
		require.Equal(t, want, visible.Line(line, nil), "%q", line)
	}
	require.Equal(t, `a<\u{200b}>b`, visible.Line("a\u200bb", func(s string) string { return "<" + s + ">" }))
}

func TestACleanTextIsOneLine(t *testing.T) {
	require.Equal(t, `one  two three\u{202e}`, visible.Clean(" one\r\ntwo\u2028three\u202e\n"))
	require.Equal(t, "\ufffd", visible.Clean("\xff"))
}
