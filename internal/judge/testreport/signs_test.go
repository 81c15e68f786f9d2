package testreport

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASignIsFoundByTheStartOfItsLine(t *testing.T) {
	for expr, want := range map[string]string{
		`^ok`: "o", `^\s*ok`: " o", `^(?:Ran|\d+) `: "1R", `(?i)^a`: "Aa", `^(?:=+ )?no`: "=n", `^[^a]`: " 1=ARno", `ok`: " 1=ARano", `^a|b`: " 1=ARano", `^`: " 1=ARano",
	} {
		got := ""
		set := starts(regexp.MustCompile(expr))
		for _, b := range " 1=ARano" {
			if set[b] {
				got += string(b)
			}
		}
		require.Equal(t, want, got, expr)
	}

	files, err := filepath.Glob("testdata/*.*")
	require.NoError(t, err)
	for _, file := range files {
		out, err := os.ReadFile(file)
		require.NoError(t, err)
		want := map[string]bool{}
		eachLine([][]byte{out}, func(line string) {
			for _, f := range formats {
				e, ok := noTests[f.name]
				if f.sign().MatchString(line) || ok && e().MatchString(line) {
					want[f.name] = true
				}
			}
		})
		seen, _ := sniff([][]byte{out})
		require.Equal(t, want, seen, file)
	}
}

// BenchmarkRead reads a megabyte of short lines.
func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]string{"two bytes": "x\n", "numbers": "12345\n", "empty": "\n", "calls": "    at f (a.js:1)\n"} {
		b.Run(name, func(b *testing.B) {
			out := append(bytes.Repeat([]byte(line), 1<<20/len(line)), "3 passed in 0.01s\n"...)
			b.SetBytes(int64(len(out)))
			for b.Loop() {
				Read(out)
			}
		})
	}
}
