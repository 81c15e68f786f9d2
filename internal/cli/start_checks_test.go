package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/durable"
	"pawl/test/harness/gittest"
)

// startable puts a loop's spec into a repository in which it can start, without committing the spec.
func startable(t *testing.T, b *bench) {
	t.Helper()
	gittest.Write(t, filepath.Join(b.dir, ".gitignore"), "home\n")
	gittest.Write(t, filepath.Join(b.dir, "bench.sh"), "echo 1\n")
	gittest.Write(t, filepath.Join(b.dir, "src/a"), "a\n")
	gittest.Write(t, filepath.Join(b.dir, "agent.sh"), "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "agent.sh"), 0o700))
	gittest.Git(t, b.dir, "init", "-q", "-b", "main")
	gittest.Git(t, b.dir, "add", "-A")
	gittest.Git(t, b.dir, "commit", "-qm", "base")
	b.spec()
	t.Chdir(b.dir)
}

// workerHere makes it look as if a worker of this host ran.
func workerHere(t *testing.T) {
	t.Helper()
	h, err := home.Open()
	require.NoError(t, err)
	require.NoError(t, workspace.NoteEnvironment(h))
	lock, err := durable.TryLock(h.WorkerLock())
	require.NoError(t, err)
	t.Cleanup(func() { lock.Close() })
}

// TestStartRefusesWhatTheWorkerHereWouldRefuse: nobody watches a loop that was left to a worker.
func TestStartRefusesWhatTheWorkerHereWouldRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		dirty  bool // the spec is not committed
		set    string
		nobody bool // works on this host
		says   string
	}{
		"nothing is wrong":                {set: "limits.iterations=3"},
		"no such agent":                   {set: "agent.command=nowhere --fast", says: "nowhere"},
		"no such agent by path":           {set: "agent.command=./nowhere.sh", says: "./nowhere.sh"},
		"no such program":                 {set: "verify.command=nowhere src", says: "nowhere"},
		"nothing in scope":                {set: "scope=[\"lib/**\"]", says: "lib/**"},
		"a spec that is not committed":    {dirty: true, set: "limits.iterations=3", says: "git commit -m 'A loop of pawl' -- pawl.yaml"},
		"a worker elsewhere may have all": {set: "agent.command=nowhere --fast", nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			b := newBench(t, f)
			b.noWorkerHere()
			startable(t, b)
			if !c.dirty {
				gittest.Git(t, b.dir, "add", "-A")
				gittest.Git(t, b.dir, "commit", "-qm", "spec")
			}
			if !c.nobody {
				workerHere(t)
			}
			code := b.run(nil, "start", "--set", "verify.command=sh bench.sh", "--set", c.set)
			if c.says == "" {
				require.Equal(t, 0, code, b.stderr.String())
				require.Equal(t, "loop-1", f.id)
				return
			}
			require.Equal(t, 2, code, b.stderr.String())
			require.Contains(t, b.stderr.String(), c.says)
			require.Contains(t, b.stderr.String(), "PRECONDITION_FAILED")
			require.Empty(t, f.id, "no loop has started")
		})
	}
}

func TestStartOffersToCommitTheSpecAsRunDoes(t *testing.T) {
	f := newFake()
	b := newBench(t, f)
	startable(t, b)
	workerHere(t)
	b.atTerminal()
	stdin, typist := io.Pipe()
	go func() {
		b.awaitStderr("Commit it, and nothing else? [y/N] ")
		io.WriteString(typist, "y\n")
	}()
	require.Equal(t, 0, b.run(stdin, "start", "--set", "verify.command=sh bench.sh"), b.stderr.String())
	require.Equal(t, "pawl.yaml", gittest.Git(t, b.dir, "show", "--format=", "--name-only", "HEAD"))
	require.Equal(t, "loop-1", f.id)
}

func TestRunAndStartSayThatTheWorkerFindsOtherPrograms(t *testing.T) {
	for _, command := range []string{"run", "start"} {
		for _, differs := range []bool{true, false} {
			b := newBench(t, improving())
			startable(t, b)
			gittest.Git(t, b.dir, "add", "-A")
			gittest.Git(t, b.dir, "commit", "-qm", "spec")
			workerHere(t)
			if differs {
				t.Setenv("PATH", t.TempDir()+":"+os.Getenv("PATH"))
			}
			require.Equal(t, 0, b.run(nil, command, "--yes", "--set", "verify.command=sh bench.sh"), b.stderr.String())
			says := "another PATH than this shell has"
			if differs {
				require.Contains(t, b.stderr.String(), says, command)
			} else {
				require.NotContains(t, b.stderr.String(), says, command)
			}
		}
	}
}
