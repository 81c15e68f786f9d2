package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/gittest"
)

// specIn puts a spec into a repository that has another file staged.
func specIn(t *testing.T, b *bench, tracked bool) {
	t.Helper()
	gittest.Write(t, filepath.Join(b.dir, ".gitignore"), "home\n")
	gittest.Write(t, filepath.Join(b.dir, "a"), "a\n")
	gittest.Git(t, b.dir, "init", "-q", "-b", "main")
	if tracked {
		gittest.Write(t, filepath.Join(b.dir, "pawl.yaml"), "old: 1\n")
	}
	gittest.Git(t, b.dir, "add", "-A")
	gittest.Git(t, b.dir, "commit", "-qm", "base")
	b.spec()
}

// A spec that is not committed yet is the most likely slip of all.
func TestRunOffersToCommitTheSpecAndNothingElse(t *testing.T) {
	for name, tracked := range map[string]bool{"new": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, improving())
			specIn(t, b, tracked)
			b.atTerminal()
			stdin, typist := io.Pipe()
			go func() {
				b.awaitStderr("Commit it, and nothing else? [y/N] ")
				io.WriteString(typist, "y\n")
				b.awaitStderr("and start? [y/n] ")
				io.WriteString(typist, "y\n")
			}()
			t.Chdir(b.dir)
			require.Equal(t, 0, b.run(stdin, "run"), b.stderr.String())
			require.Equal(t, "pawl.yaml", gittest.Git(t, b.dir, "show", "--format=", "--name-only", "HEAD"))
			require.Empty(t, gittest.Git(t, b.dir, "status", "--porcelain"))
		})
	}
}

func TestRunCommitsNothingThatNobodyAllowed(t *testing.T) {
	const command = "git add pawl.yaml && git commit -m 'A loop of pawl' -- pawl.yaml"
	for name, c := range map[string]struct {
		terminal bool
		typed    string
		args     []string
		staged   bool
		asks     bool
	}{
		"no terminal":        {},
		"--yes":              {terminal: true, args: []string{"--yes"}},
		"n":                  {terminal: true, typed: "n\n", asks: true},
		"another word":       {terminal: true, typed: "what\nn\n", asks: true},
		"another file, too":  {terminal: true, staged: true},
		"Enter is no answer": {terminal: true, typed: "\n", asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			specIn(t, b, false)
			if c.terminal {
				b.atTerminal()
			}
			if c.staged {
				gittest.Write(t, filepath.Join(b.dir, "a"), "b\n")
				gittest.Git(t, b.dir, "add", "a")
			}
			head := gittest.Git(t, b.dir, "rev-parse", "HEAD")
			stdin, typist := io.Pipe()
			go io.WriteString(typist, c.typed)
			t.Chdir(b.dir)
			require.Equal(t, 2, b.run(stdin, append([]string{"run"}, c.args...)...), b.stderr.String())
			require.Contains(t, b.stderr.String(), "the working tree is not clean: ")
			require.Contains(t, b.stderr.String(), command)
			require.NotContains(t, b.stderr.String(), "stash")
			if c.asks {
				require.Contains(t, b.stderr.String(), "Commit it, and nothing else?")
			} else {
				require.NotContains(t, b.stderr.String(), "Commit it, and nothing else?")
			}
			if name == "another word" {
				require.Contains(t, b.stderr.String(), `"what" is no answer to this`)
			}
			require.Equal(t, head, gittest.Git(t, b.dir, "rev-parse", "HEAD"))
			require.Empty(t, f.taken(), "no loop has started")
			_, err := os.Stat(filepath.Join(b.dir, "pawl.yaml"))
			require.NoError(t, err)
		})
	}
}
