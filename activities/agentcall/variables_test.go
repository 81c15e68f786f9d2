package agentcall

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

func TestAProgramsVariablesAreEmptyForACallAndThenAsTheyWere(t *testing.T) {
	t.Parallel()
	gemini, _ := agents.Lookup(agents.Gemini)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, of := range map[string]struct {
		lies  func(t *testing.T, file string)
		found string // what is there afterwards, in the words of describe
	}{
		"nothing": {func(*testing.T, string) {}, "nothing, and no folder"},
		"a folder": {func(t *testing.T, file string) {
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		}, "nothing"},
		"a file": {func(t *testing.T, file string) {
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte("A=1"), 0o600))
			require.NoError(t, os.Chmod(file, 0o666)) // more permissions than a new file gets
		}, "-rw-rw-rw- A=1"},
		"a second name of somebody's file": {func(t *testing.T, file string) {
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(outside, []byte("A=1"), 0o640))
			require.NoError(t, os.Link(outside, file))
		}, "-rw-r----- A=1"},
		"a link": {func(t *testing.T, file string) {
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(outside, []byte("A=1"), 0o640))
			require.NoError(t, os.Symlink(outside, file))
		}, "a link to " + outside},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(outside)
			desk := t.TempDir()
			file := filepath.Join(desk, gemini.Variables)
			of.lies(t, file)
			all, err := emptyVariables(desk, "head", filepath.Join(t.TempDir(), "record"), []agents.Program{gemini})
			require.NoError(t, err)
			require.Equal(t, "-rw-r--r-- ", describe(t, file))
			require.NoError(t, os.WriteFile(file, []byte("what the agent writes"), 0o644))
			require.NoError(t, all.putBack(desk))
			require.Equal(t, of.found, describe(t, file))
			if b, err := os.ReadFile(outside); err == nil {
				require.Equal(t, "A=1", string(b))
			}
		})
	}
}

// TestAFileOfVariablesIsNeverMissing: a worker may die at any moment, and the next one takes a missing file for one that
// the agent removed.
func TestAFileOfVariablesIsNeverMissing(t *testing.T) {
	t.Parallel()
	gemini, _ := agents.Lookup(agents.Gemini)
	desk, record := t.TempDir(), filepath.Join(t.TempDir(), "record")
	file := filepath.Join(desk, gemini.Variables)
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("A=1"), 0o600))
	require.NoError(t, os.WriteFile(file+".pawl-draft", nil, 0o600), "left by a worker that died")
	over, missing := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-over:
				missing <- n
				return
			default:
			}
			if _, err := os.Lstat(file); err != nil {
				n++
			}
		}
	}()
	for range 300 {
		all, err := emptyVariables(desk, "head", record, []agents.Program{gemini})
		require.NoError(t, err)
		require.NoError(t, all.putBack(desk))
	}
	close(over)
	require.Zero(t, <-missing)
	require.Equal(t, "-rw------- A=1", describe(t, file))
	require.NoFileExists(t, file+".pawl-draft")
}

// TestVariablesOfALostAttemptAreNotLost: git does not bring back a file that it ignores, such as one that setup has made.
func TestVariablesOfALostAttemptAreNotLost(t *testing.T) {
	t.Parallel()
	gemini, _ := agents.Lookup(agents.Gemini)
	desk, record := t.TempDir(), filepath.Join(t.TempDir(), "record")
	file := filepath.Join(desk, gemini.Variables)
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("A=1"), 0o600))
	for range 2 { // the worker dies during each of them
		_, err := emptyVariables(desk, "head", record, []agents.Program{gemini})
		require.NoError(t, err)
		require.Equal(t, "-rw-r--r-- ", describe(t, file))
	}
	all, err := emptyVariables(desk+"/gone", "head", record, []agents.Program{gemini})
	require.Error(t, err)
	require.Error(t, all.putBack(desk+"/gone"), "so RunAgent keeps the record")
	all, err = emptyVariables(desk, "head", record, []agents.Program{gemini})
	require.NoError(t, err)
	require.NoError(t, all.putBack(desk))
	require.Equal(t, "-rw------- A=1", describe(t, file))

	require.NoError(t, os.WriteFile(file, []byte("A=2"), 0o600)) // of another commit
	all, err = emptyVariables(desk, "another head", record, []agents.Program{gemini})
	require.NoError(t, err)
	require.NoError(t, all.putBack(desk))
	require.Equal(t, "-rw------- A=2", describe(t, file))
}

func TestAProgramIsNotCalledWhereItWouldTakeVariables(t *testing.T) {
	t.Parallel()
	gemini, _ := agents.Lookup(agents.Gemini)
	desk := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(desk, "src"), 0o700))
	require.NoError(t, os.Symlink("src", filepath.Join(desk, ".gemini")))
	_, err := emptyVariables(desk, "head", filepath.Join(t.TempDir(), "record"), []agents.Program{gemini})
	require.ErrorContains(t, err, "gemini would take variables from the repository, which pawl can't prevent: .gemini is no folder")
	require.NoFileExists(t, filepath.Join(desk, "src", ".env"))
}

func TestWhatAnAgentPutsInThePlaceOfAFolderIsNotFollowed(t *testing.T) {
	t.Parallel()
	gemini, _ := agents.Lookup(agents.Gemini)
	desk := t.TempDir()
	file := filepath.Join(desk, "src", ".env")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("A=1"), 0o600))
	all, err := emptyVariables(desk, "head", filepath.Join(t.TempDir(), "record"), []agents.Program{gemini})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(desk, ".gemini")))
	require.NoError(t, os.Symlink("src", filepath.Join(desk, ".gemini")))
	require.NoError(t, all.putBack(desk))
	require.FileExists(t, file)
}

// describe returns in words what is at a path.
func describe(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		if _, err := os.Lstat(filepath.Dir(path)); err != nil {
			return "nothing, and no folder"
		}
		return "nothing"
	}
	if to, err := os.Readlink(path); err == nil {
		return "a link to " + to
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return info.Mode().String() + " " + string(b)
}
