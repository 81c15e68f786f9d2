package scaffold_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A benchmark of the standard library may be most of a mean, and no change in scope can improve it.
func TestGoBenchmarksOfOtherPackagesAreLeftOut(t *testing.T) {
	t.Parallel()
	const code = "package a\n\ntype Doc struct{}\n\nfunc Get(s string) Doc { return Doc{} }\n"
	const own = "func BenchmarkGet(b *testing.B) { for b.Loop() { Get(text) } }\n"
	for name, test := range map[string]struct{ body, command, why string }{
		"of the standard library": {
			body:    "package a\nimport (\"encoding/json\"; \"testing\")\nvar text = `{}`\n" + own + "func BenchmarkStd(b *testing.B) { var v any; json.Unmarshal([]byte(text), &v) }\n",
			command: "-bench '^BenchmarkGet$' -count 3 . |", why: "the Go benchmark in the root; not BenchmarkStd, where nothing of this module is measured",
		},
		"through a helper of the tests": {
			body:    "package a\nimport (\"encoding/json\"; \"testing\")\nfunc help() { json.Valid(nil); Get(``) }\nfunc BenchmarkHelped(b *testing.B) { help() }\n",
			command: "-bench '^BenchmarkHelped$' ", why: "the Go benchmark in the root",
		},
		"through a variable of the tests": {
			body:    "package a\nimport (\"fmt\"; \"testing\")\nvar doc = Get(``)\nfunc BenchmarkShown(b *testing.B) { fmt.Sprint(doc) }\n",
			command: "-bench '^BenchmarkShown$' ", why: "the Go benchmark in the root",
		},
		"in a package of tests": {
			body:    "package a_test\nimport (\"strings\"; \"testing\"; x \"example.com/a\")\nfunc BenchmarkOut(b *testing.B) { x.Get(``) }\nfunc BenchmarkRest(b *testing.B) { strings.Fields(``) }\n",
			command: "-bench '^BenchmarkOut$' ", why: "not BenchmarkRest, where",
		},
		"in doubt": {
			body:    "package a\nimport (\"strings\"; \"testing\")\nfunc BenchmarkBroken(b *testing.B) { strings.Fields(``) }\nfunc (\n",
			command: "-bench '^BenchmarkBroken$' ", why: "the Go benchmark in the root",
		},
		"of a loop alone": {
			body:    "package a\nimport \"testing\"\nfunc BenchmarkLoop(b *testing.B) { for range b.N {} }\n",
			command: "-bench '^BenchmarkLoop$' ", why: "the Go benchmark in the root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := look(map[string]string{"go.mod": "module example.com/a\n", "a.go": code, "a_test.go": test.body})
			require.Contains(t, found.Metric.Command, test.command)
			require.Contains(t, found.Metric.Why, test.why)
		})
	}
	none := look(map[string]string{"go.mod": "module example.com/a\n", "a.go": code,
		"a_test.go":          "package a\nimport (\"strings\"; \"testing\")\nfunc BenchmarkStd(b *testing.B) { strings.Fields(``) }\n",
		"testdata/b_test.go": "package b\nfunc BenchmarkIgnored(b *testing.B) {}\n", "_old/c_test.go": "package c\nfunc BenchmarkOld(b *testing.B) {}\n"})
	require.NotContains(t, none.Metric.Command, "go test", "nothing of this module is measured by what go test sees")
}

func TestGoBenchmarksAreNamedIfTheyAreFew(t *testing.T) {
	t.Parallel()
	file := func(count int) string {
		text := "package a\nimport (\"strings\"; \"testing\")\nfunc BenchmarkStd(b *testing.B) { strings.Fields(``) }\n"
		for i := range count {
			text += fmt.Sprintf("func Benchmark%d(b *testing.B) { Get() }\n", i)
		}
		return text
	}
	command := func(text string) string {
		return look(map[string]string{"go.mod": "module a\n", "a.go": "package a\nfunc Get() {}\n", "a_test.go": text}).Metric.Command
	}
	require.Contains(t, command(file(2)), "-bench '^Benchmark(0|1)$' -count 3 .")
	require.Contains(t, command(file(13)), "-bench . -skip '^BenchmarkStd$' -count 3")
	require.Contains(t, command(strings.ReplaceAll(file(13), "strings.Fields(``)", "Get()")), "-bench . -count 3")
}

// The command is run with a go that prints given lines.
func TestTheMeanOfGoBenchmarks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("no awk")
	}
	command := look(map[string]string{"go.mod": "module a\n", "a_test.go": "package a\nfunc BenchmarkA(b *testing.B) {}\nfunc BenchmarkB(b *testing.B) {}\n"}).Metric.Command
	for name, test := range map[string]struct {
		lines  string
		stdout string
		fails  bool
	}{
		"each counts the same": {lines: "goos: linux\nBenchmarkA-8 100 10.0 ns/op 3 B/op\nBenchmarkB/x-8 100 4000 ns/op\nPASS\nok a 1s\n", stdout: "METRIC ns=200.00\n"},
		"one fails":            {lines: "BenchmarkA-8 100 10.0 ns/op\n--- FAIL: BenchmarkB\nFAIL\nexit status 1\nFAIL a 1s\n", fails: true},
		"does not compile":     {lines: "FAIL a [build failed]\nFAIL\n", fails: true},
		"nothing ran":          {lines: "PASS\nok a 1s\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "lines"), []byte(test.lines), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\ncat "+dir+"/lines\n"), 0o700))
			cmd := exec.Command("sh", "-c", command)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.Output()
			require.Equal(t, test.fails, err != nil)
			require.Equal(t, test.stdout, string(out))
		})
	}
}
