package metric_test

import (
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestP2_DescriptionWithTheWordAndIsNotAtomic(t *testing.T) {
	for description, parts := range map[string][]string{
		"improve X and remove Y":           {"improve X", "remove Y"},
		"improve X AND remove Y":           {"improve X", "remove Y"},
		"improve X, and remove Y.":         {"improve X", "remove Y."},
		"cache A, B and C and drop D":      {"cache A, B", "C", "drop D"},
		"inline f & g":                     {"inline f", "g"},
		"and so it goes":                   {"so it goes"},
		"this and":                         {"this"},
		"unroll\u00a0(and vectorise) it":   {"unroll\u00a0(", "vectorise) it"},
		"x &and y":                         {"x", "y"},
		"rename `and` to `or`":             {"rename `", "` to `or`"},
		"and":                              nil,
		"expand the band standard":         {"expand the band standard"},
		"simplify R&D":                     {"simplify R&D"},
		"use and_then":                     {"use and_then"},
		"speed up search-and-replace":      {"speed up search-and-replace"},
		"skip the check when a && b":       {"skip the check when a && b"},
		"tidy x; drop y":                   {"tidy x; drop y"},
		"die Länder andern":                {"die Länder andern"},
		"éand is a word":                   {"éand is a word"},
		"extract shared assertion helper":  {"extract shared assertion helper"},
		"":                                 nil,
		"  add branch coverage to lexer  ": {"add branch coverage to lexer"},
	} {
		assert.Equal(t, parts, metric.Split(description), "%q", description)
	}
}

func TestP2_PartsOfASplitAreAtomic(t *testing.T) {
	pieces := []string{"and", "AND", "&", " ", "x", ",", "-", "_", "é", "\xff", ";", "improve it"}
	property := func(picks []uint8) bool {
		var b strings.Builder
		for _, pick := range picks {
			b.WriteString(pieces[int(pick)%len(pieces)])
		}
		parts := metric.Split(b.String())
		for _, part := range parts {
			if again := metric.Split(part); len(again) != 1 || again[0] != part || strings.TrimSpace(part) == "" {
				return false
			}
		}
		return true
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 5000}))
}

func TestP2_DescriptionIsOneLine(t *testing.T) {
	for raw, want := range map[string]string{
		"add a cache\n":               "add a cache",
		"\n \n  add a cache \r\nmore": "add a cache",
		"\x1b[1madd\x1b[0m a\tcache":  "add a cache",
		"bad \xff byte\x00":           "bad \uFFFD byte",
		"a\u202eb\u2028c":             "ab c",
		"two  spaces stay":            "two  spaces stay",
		"":                            "",
		" \n\t":                       "",
	} {
		assert.Equal(t, want, metric.Description(raw), "%q", raw)
	}
	long := metric.Description(strings.Repeat("ä", 1<<20))
	assert.Equal(t, 200, utf8.RuneCountInString(long))
	assert.True(t, strings.HasSuffix(long, "…"))
	assert.Equal(t, "x", metric.Description(strings.Repeat(" ", 5000)+"x"))
	property := func(raw string) bool {
		d := metric.Description(raw)
		return d == metric.Description(d) && utf8.ValidString(d) && utf8.RuneCountInString(d) <= 200 && !strings.ContainsAny(d, "\n\r\t\x00\x1b")
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 2000}))
}

func TestP2_FingerprintIgnoresPunctuationCaseAndArticles(t *testing.T) {
	assert.Equal(t, metric.Fingerprint("Cache the token, in lexer.go"), metric.Fingerprint("cache a token in lexer go!"))
	assert.NotEqual(t, metric.Fingerprint("cache token"), metric.Fingerprint("token cache"))
}

func TestOneOfAThingIsNotSeveral(t *testing.T) {
	for want, of := range map[string]struct {
		n    int
		what string
	}{
		"0 files": {0, "file"}, "1 file": {1, "file"}, "2 files": {2, "file"}, "1 entry": {1, "entry"}, "2 entries": {2, "entry"},
	} {
		require.Equal(t, want, metric.Counted(of.n, of.what))
	}
}
