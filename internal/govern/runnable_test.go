package govern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/spec"
)

func TestReachOf(t *testing.T) {
	for _, c := range []struct {
		file govern.Diff
		want govern.Reach
	}{
		{govern.Diff{Path: "bin/tool", Executable: true}, govern.Runnable},
		{govern.Diff{Path: "docs/notes.md", Executable: true}, govern.Runnable},
		{govern.Diff{Path: "tool", Script: true}, govern.Runnable},
		{govern.Diff{Path: "tool.py", Script: true}, govern.Runnable},
		{govern.Diff{Path: "link", Link: true}, govern.Runnable},
		{govern.Diff{Path: "a/RUN.SH"}, govern.Runnable},
		{govern.Diff{Path: "run.ps1"}, govern.Runnable},
		{govern.Diff{Path: "run.bat"}, govern.Runnable},
		{govern.Diff{Path: ".envrc"}, govern.Runnable},
		{govern.Diff{Path: "web/.npmrc"}, govern.Runnable},
		{govern.Diff{Path: ".github/workflows/ci.yml"}, govern.Runnable},
		{govern.Diff{Path: "a/.hidden/plain.txt"}, govern.Runnable},
		{govern.Diff{Path: "Makefile"}, govern.Runnable},
		{govern.Diff{Path: "web/package.json"}, govern.Runnable},
		{govern.Diff{Path: "tests/conftest.py"}, govern.Runnable},
		{govern.Diff{Path: "evil.pth"}, govern.Runnable},
		{govern.Diff{Path: "src/a.py"}, govern.Source},
		{govern.Diff{Path: "src/a.test.ts"}, govern.Source},
		{govern.Diff{Path: "src/a.go"}, govern.Other},
		{govern.Diff{Path: "README"}, govern.Other},
		{govern.Diff{Path: "a.sh.txt"}, govern.Other},
		{govern.Diff{Path: "data/a..b"}, govern.Other},
	} {
		require.Equal(t, c.want, govern.ReachOf(c.file), c.file.Path)
	}
}

func TestP2_NewFilesThatACommandCouldRunComeFirst(t *testing.T) {
	s := spec.Defaults()
	s.Scope, s.NewFiles = []string{"**"}, spec.Ask
	files := []govern.Diff{
		{Path: "a.txt", Added: true}, {Path: "b.py", Added: true}, {Path: "c.sh", Added: true}, {Path: "d.txt", Added: true},
		{Path: "old.sh"}, {Path: "y/.envrc", Added: true}, {Path: "z", Added: true, Executable: true},
	}
	v := govern.Judge(s, nil, govern.Change{Files: files}, git.Quote)
	require.Equal(t, []string{"c.sh", "y/.envrc", "z", "b.py", "a.txt", "d.txt"}, v.Asks)
	require.Equal(t, 3, v.Runnable)
}

func TestRunnableInWords(t *testing.T) {
	for want, c := range map[string][2]int{
		"": {0, 3}, " that a command could run": {1, 1}, ", which a command could run": {3, 3}, ", first the 2 that a command could run": {2, 9},
	} {
		require.Equal(t, want, govern.RunnableInWords(c[0], c[1]))
	}
}
