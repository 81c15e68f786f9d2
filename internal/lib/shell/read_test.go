package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/lib/shell"
)

// words returns the words of the commands without quotes and operators. Those of a substitution come after those of the
// command that contains it.
func words(command string) (words []string) {
	for _, c := range shell.Read(command, "", nil) {
		for _, w := range c.All {
			words = append(words, w.Text)
		}
	}
	return words
}

func TestP3_WordsOfACommand(t *testing.T) {
	for command, want := range map[string]string{
		``:                                    ``,
		`go test ./...`:                       `go|test|./...`,
		`a && b; c | d || e & f`:              `a|b|c|d|e|f`,
		"a\nb # comment\n# more\nc":           `a|b|c`,
		`FOO=bar BAZ="a b" make check`:        `FOO=bar|BAZ=a b|make|check`,
		`sh -c 'a b' "c d" e\ f g'h'"i"`:      `sh|-c|a b|c d|e f|ghi`,
		`a "b \" \$x \n" '\n'`:                `a|b " $x \n|\n`,
		`a >out.txt 2>&1 <in.txt 2>/dev/null`: `a|out.txt|in.txt|/dev/null`,
		`a &>out b>>log >|c 3>&- d`:           `a|out|b|log|c|d`,
		`a $(b c) d`:                          `a|$(b c)|d|b|c`,
		`a "$(b "c d")/x" e`:                  `a|$(b "c d")/x|e|b|c d`,
		"a `b c` d":                           "a|`b c`|d|b|c",
		`a $X ${Y} ${Z:-z} $1 $? $`:           `a|$X|${Y}|${Z:-z}|$1|$?|$`,
		`a $((1 + 2)) b`:                      `a|$((1 + 2))|b`,
		`(cd x && a) | { b; }`:                `cd|x|a|b`,
		`if a; then b; else c; fi`:            `a|b|c`,
		`diff <(a b) c`:                       `diff|c|a|b`,
		"sh <<EOF\na b\nEOF\nc":               `sh|c`,
		`a 'not closed`:                       `a|not|closed`, // what can't be parsed falls apart
		`a "not closed $(b`:                   `a|not|closed|b`,
		`a \`:                                 `a|\`,
		"a \\\n b":                            `a|b`,
		`a '' "" b`:                           `a|||b`,
		`grüße 'wörld'`:                       `grüße|wörld`,
		"a\x00b":                              "a\x00b",
		`$'a b'`:                              `a b`,
		`))((`:                                ``,
	} {
		assert.Equal(t, want, strings.Join(words(command), "|"), "%q", command)
	}
}

// For plain commands, the shell itself decides what the words are.
func TestP3_WordsAreThoseOfTheShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	for _, args := range []string{
		`a b  c`, `a "b c" 'd e' f\ g`, `"a'b" 'c"d'`, `a\\b "c\\d" 'e\\f' "g\h"`, `--x="y z" -k='v'`, `"" '' a`, `a"b"'c'd`, `\"\'`, `"a\
b"`, `x=y z`, `a#b '#c'`,
	} {
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+args).Output()
		require.NoError(t, err, args)
		want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		assert.Equal(t, want, words("printf x " + args)[2:], args)
	}
}
