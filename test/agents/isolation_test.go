package agents_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestWhatAProgramWritesForItselfIsNoChange has a program that rewrites its own settings in its working folder, as
// opencode does.
func TestWhatAProgramWritesForItselfIsNoChange(t *testing.T) {
	world.Slow(t, "the tests of internal/spec/agents know each program's files")
	w := streams(t, "opencode", `echo '{"$schema":"x"}' >opencode.json; `+world.Raises+" >/dev/null; "+recorded("opencode-1.18.33"))
	r := w.Run(0)
	require.Equal(t, 1, r.Result.KeptCount)
	require.Equal(t, "work/n", onBranchChanged(w))
	require.Equal(t, "11", w.Kept("work/n"))
}

// TestARepositorysInstructionsReachAProgramThatIsNotLetReadThem has a CLAUDE.md. Claude Code may read no settings of
// the repository, and so does not read that file either.
func TestARepositorysInstructionsReachAProgramThatIsNotLetReadThem(t *testing.T) {
	w := streams(t, "claude", world.Raises+" >/dev/null; "+recorded("claude-2.1.330"))
	w.Write("repo/CLAUDE.md", "Numbers go up by one here.\n")
	w.Commit("instructions")
	w.Run(0)
	require.Contains(t, w.Read("prompt"), "## The repository's instructions for agents (CLAUDE.md)\n\nNumbers go up by one here.\n")
}

// TestAProgramFindsNoVariablesInTheRepository has files from which the Gemini CLI and Qwen Code would read variables
// first, and to which they write.
func TestAProgramFindsNoVariablesInTheRepository(t *testing.T) {
	recordings := map[string]string{"gemini": "gemini-0.61.0", "qwen": "qwen-0.24.4"}
	for _, use := range world.Sample(1, slices.Sorted(maps.Keys(recordings))) {
		t.Run(use, func(t *testing.T) {
			file := "." + use + "/.env"
			w := streams(t, use, "cat "+file+` >"$WORLD/found"; echo A=2 >>`+file+"; "+world.Raises+" >/dev/null; "+recorded(recordings[use]))
			w.Write("repo/"+file, "A=1\n")
			w.Commit("variables")
			w.Run(0)
			require.Empty(t, w.Read("found"))
			require.Equal(t, "work/n", onBranchChanged(w))
			require.Equal(t, "A=1\n", w.Read("repo/"+file))
		})
	}
}

// TestALoopEndsWhereAProgramWouldTakeVariables has a link in place of the folder in which the program looks for
// variables.
func TestALoopEndsWhereAProgramWouldTakeVariables(t *testing.T) {
	world.Slow(t, "TestAProgramFindsNoVariablesInTheRepository has the protection")
	w := streams(t, "gemini", world.Raises+" >/dev/null; "+recorded("gemini-0.61.0"))
	require.NoError(t, os.Symlink("work", filepath.Join(w.Repo, ".gemini")))
	w.Commit("a link")
	r := w.Run(2)
	require.Equal(t, "PRECONDITION_FAILED", r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "gemini would take variables from the repository, which pawl can't prevent: .gemini is no folder")
}
