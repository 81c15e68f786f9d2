package repository_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestP0_WhatTheCommandsLeaveBehindIsNotTheAgents has a repository without a .gitignore, whose setup, verify, guard and
// check all leave files, and an agent that runs the tests before its end.
func TestP0_WhatTheCommandsLeaveBehindIsNotTheAgents(t *testing.T) {
	world.Slow(t, "the tests of internal/git/worktree tell such files")
	w := world.New(t, `cat modules/lib >/dev/null; `+world.Raises+`; sh test.sh; cp work/n work/new`)
	w.Write("repo/test.sh", "mkdir -p out/deep; date >out/deep/$$; echo '<ok/>' >report.xml\n")
	w.Commit("tests that leave something")
	w.Set(doc{
		"setup":    doc{"command": "mkdir modules; echo lib >modules/lib"},
		"verify":   doc{"command": "echo x >measured; cat work/n"},
		"guard":    doc{"command": "cat modules/lib && sh test.sh", "report": []string{"report.xml"}},
		"check":    doc{"command": "cat modules/lib && mkdir -p .lint && echo x >.lint/cache"},
		"newFiles": "allow",
		"limits":   doc{"iterations": 2},
	})
	ready := w.Pawl("validate", w.SpecFile())
	require.Equal(t, 0, ready.Code, ready.Err)
	require.Contains(t, ready.Err, "the verify command leaves files behind that git does not ignore (measured)")
	require.Contains(t, ready.Err, "the guard command leaves files behind that git does not ignore (out)", "a report that the spec names is meant")
	require.Contains(t, ready.Err, "the check command leaves files behind that git does not ignore (.lint)")
	w.Run(0)
	st := w.Show()
	for _, row := range w.Results(w.Loop)[1:] {
		require.Equal(t, "yes", row.Kept(), "%v", row)
	}
	require.ElementsMatch(t, []string{"work/n", "work/new"}, st.ChangedFiles)
}
