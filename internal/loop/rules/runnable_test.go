package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func TestReachOf(t *testing.T) {
	for _, c := range []struct {
		file rules.Diff
		want rules.Reach
	}{
		{rules.Diff{Path: "bin/tool", Executable: true}, rules.Runnable},
		{rules.Diff{Path: "docs/notes.md", Executable: true}, rules.Runnable},
		{rules.Diff{Path: "tool", Script: true}, rules.Runnable},
		{rules.Diff{Path: "tool.py", Script: true}, rules.Runnable},
		{rules.Diff{Path: "link", Link: true}, rules.Runnable},
		{rules.Diff{Path: "a/RUN.SH"}, rules.Runnable},
		{rules.Diff{Path: "run.ps1"}, rules.Runnable},
		{rules.Diff{Path: "run.bat"}, rules.Runnable},
		{rules.Diff{Path: ".envrc"}, rules.Runnable},
		{rules.Diff{Path: "web/.npmrc"}, rules.Runnable},
		{rules.Diff{Path: ".github/workflows/ci.yml"}, rules.Runnable},
		{rules.Diff{Path: "a/.hidden/plain.txt"}, rules.Runnable},
		{rules.Diff{Path: "Makefile"}, rules.Runnable},
		{rules.Diff{Path: "web/package.json"}, rules.Runnable},
		{rules.Diff{Path: "tests/conftest.py"}, rules.Runnable},
		{rules.Diff{Path: "evil.pth"}, rules.Runnable},
		{rules.Diff{Path: "src/a.py"}, rules.Source},
		{rules.Diff{Path: "src/a.test.ts"}, rules.Source},
		{rules.Diff{Path: "src/a.go"}, rules.Other},
		{rules.Diff{Path: "README"}, rules.Other},
		{rules.Diff{Path: "a.sh.txt"}, rules.Other},
		{rules.Diff{Path: "data/a..b"}, rules.Other},
	} {
		require.Equal(t, c.want, rules.ReachOf(c.file), c.file.Path)
	}
}

func TestP2_NewFilesThatACommandCouldRunComeFirst(t *testing.T) {
	s := spec.Defaults()
	s.Scope, s.NewFiles = []string{"**"}, spec.Ask
	files := []rules.Diff{
		{Path: "a.txt", Added: true}, {Path: "b.py", Added: true}, {Path: "c.sh", Added: true}, {Path: "d.txt", Added: true},
		{Path: "old.sh"}, {Path: "y/.envrc", Added: true}, {Path: "z", Added: true, Executable: true},
	}
	v := rules.Judge(s, nil, rules.Change{Files: files}, git.Quote)
	require.Equal(t, []string{"c.sh", "y/.envrc", "z", "b.py", "a.txt", "d.txt"}, v.Asks)
	require.Equal(t, 3, v.Runnable)
}

func TestRunnableInWords(t *testing.T) {
	for want, c := range map[string][2]int{
		"": {0, 3}, " that a command could run": {1, 1}, ", which a command could run": {3, 3}, ", first the 2 that a command could run": {2, 9},
	} {
		require.Equal(t, want, rules.RunnableInWords(c[0], c[1]))
	}
}
