package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/test/harness/gittest"
)

// projectIn makes a repository with a Go benchmark and without a spec, and a PATH on which the given agents come first.
func projectIn(t *testing.T, b *bench, agents ...string) {
	t.Helper()
	for name, text := range map[string]string{
		".gitignore": "home\nbin\n", "agent.sh": "echo\n", "go.mod": "module x\n", "x.go": "package x\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc BenchmarkX(b *testing.B) {}\n",
	} {
		gittest.Write(t, filepath.Join(b.dir, name), text)
	}
	gittest.Git(t, b.dir, "init", "-q", "-b", "main")
	gittest.Git(t, b.dir, "add", "-A")
	gittest.Git(t, b.dir, "commit", "-qm", "base")
	bin := filepath.Join(t.TempDir(), "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, agent := range append(agents, "go") {
		require.NoError(t, os.WriteFile(filepath.Join(bin, agent), []byte("#!/bin/sh\n"), 0o700))
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Chdir(b.dir)
}

// answers types an answer to each question, once it is asked.
func answers(b *bench, all ...[2]string) io.Reader {
	stdin, typist := io.Pipe()
	go func() {
		for _, one := range all {
			b.awaitStderr(one[0])
			io.WriteString(typist, one[1]+"\n")
		}
	}()
	return stdin
}

// One command is enough to begin.
func TestRunWithoutASpecProposesCommitsAndStartsOne(t *testing.T) {
	for name, c := range map[string]struct {
		agents  []string
		answers [][2]string
		goal    string
		program string
	}{
		"with an agent": {
			agents:  []string{"claude"},
			answers: [][2]string{{"Goal [Enter: ", ""}},
			goal:    "Make what the benchmarks measure faster", program: "claude",
		},
		"with a program of one's own": {
			answers: [][2]string{{"Goal [Enter: ", "Make it: fast"}, {"Which command starts yours", "sh agent.sh"}},
			goal:    "Make it: fast", program: "sh agent.sh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			projectIn(t, b, c.agents...)
			b.atTerminal()
			asked := append(c.answers, [2]string{"and commit it, nothing else? [y/N", "y"}, [2]string{"and start? [y/n] ", "y"})
			require.Equal(t, 0, b.run(answers(b, asked...), "run"), b.stderr.String())
			require.Equal(t, "pawl.yaml", gittest.Git(t, b.dir, "show", "--format=", "--name-only", "HEAD"))
			require.Empty(t, gittest.Git(t, b.dir, "status", "--porcelain"))
			s, err := config.LoadSpec("pawl.yaml", nil)
			require.NoError(t, err)
			require.Equal(t, c.goal, s.Goal)
			require.Equal(t, "lower", s.Verify.Direction)
			if len(c.agents) > 0 {
				require.Equal(t, c.program, s.Agent.Use)
			} else {
				require.Equal(t, c.program, s.Agent.Command.Shell)
			}
			require.Equal(t, s.Goal, f.spec.Goal, "the loop has started")
			require.Contains(t, b.stderr.String(), "lower is better", "it is shown before it is written")
		})
	}
}

// Where nothing measures, only a person can say what is better.
func TestRunWithoutASpecAsksForTheMetric(t *testing.T) {
	for name, c := range map[string]struct {
		typed   [][2]string
		code    int
		says    string
		command string
	}{
		"a command": {
			typed: [][2]string{
				{"Which command prints the number to improve?", "echo METRIC ms=$(cat n)"}, {"Goal [Enter: ", ""},
				{"and commit it, nothing else? [y/N", "y"}, {"and start? [y/n] ", "y"},
			},
			says: "Improve what echo METRIC ms=$(cat n) measures", command: "echo METRIC ms=$(cat n)",
		},
		"a command that fails, then another": {
			typed: [][2]string{
				{"Which command prints the number to improve?", "cat none"}, {"(cat none) fails here: exit 1", "cat n"}, {"lower or higher? [l/h]", "l"}, {"Goal [Enter: ", ""},
				{"and commit it, nothing else? [y/N", "y"}, {"and start? [y/n] ", "y"},
			},
			says: "lower is better", command: "cat n",
		},
		"no answer": {
			typed: [][2]string{{"Which command prints the number to improve?", ""}},
			code:  2, says: "nothing here measures anything",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			projectIn(t, b, "claude")
			gittest.Git(t, b.dir, "rm", "-q", "go.mod", "x.go", "x_test.go")
			gittest.Write(t, filepath.Join(b.dir, "n"), "3\n")
			gittest.Git(t, b.dir, "add", "-A")
			gittest.Git(t, b.dir, "commit", "-qm", "a number")
			b.atTerminal()
			require.Equal(t, c.code, b.run(answers(b, c.typed...), "run"), b.stderr.String())
			require.Contains(t, b.stderr.String(), c.says)
			if c.command == "" {
				require.NoFileExists(t, filepath.Join(b.dir, "pawl.yaml"))
				return
			}
			s, err := config.LoadSpec("pawl.yaml", nil)
			require.NoError(t, err)
			require.Equal(t, c.command, s.Verify.Command)
			require.Equal(t, "lower", s.Verify.Direction)
		})
	}
}

func TestRunWithoutASpecWritesNothingThatNobodyAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		typed    [][2]string
		args     []string
		dirty    bool
		code     int
		says     string
	}{
		"no terminal":  {code: 2, says: "there is no spec file pawl.yaml"},
		"--yes":        {terminal: true, args: []string{"--yes"}, code: 2, says: "there is no spec file pawl.yaml"},
		"another file": {terminal: true, args: []string{"other.yaml"}, code: 2, says: "there is no spec file other.yaml"},
		"a dirty tree": {terminal: true, dirty: true, code: 2, says: "the working tree is not clean: x.go"},
		"n":            {terminal: true, typed: [][2]string{{"Goal [", ""}, {"nothing else? [y/N", "n"}}, code: 5, says: "nothing was written"},
		"another word": {terminal: true, typed: [][2]string{{"Goal [", ""}, {"nothing else? [y/N", "ok"}, {"is no answer to this", ""}}, code: 5, says: "nothing was written"},
	} {
		t.Run(name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			projectIn(t, b, "claude")
			if c.terminal {
				b.atTerminal()
			}
			if c.dirty {
				gittest.Write(t, filepath.Join(b.dir, "x.go"), "package x // changed\n")
			}
			head := gittest.Git(t, b.dir, "rev-parse", "HEAD")
			require.Equal(t, c.code, b.run(answers(b, c.typed...), append([]string{"run"}, c.args...)...), b.stderr.String())
			require.Contains(t, b.stderr.String(), c.says)
			require.NoFileExists(t, filepath.Join(b.dir, "pawl.yaml"))
			require.Equal(t, head, gittest.Git(t, b.dir, "rev-parse", "HEAD"))
			require.Empty(t, f.taken())
		})
	}
}

// TestRunWithoutASpecAsksNothingAboutASpecThatCannotStart: what is missing is said before the question, and nothing
// is written or committed.
func TestRunWithoutASpecAsksNothingAboutASpecThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		lacks string
		typed [][2]string
		says  string
	}{
		"no program for the metric": {lacks: "go", typed: [][2]string{{"Goal [", ""}}, says: "go"},
		"no such agent": {
			lacks: "claude", typed: [][2]string{{"Goal [", ""}, {"Which command starts yours", "nowhere --fast"}}, says: "nowhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := improving()
			b := newBench(t, f)
			projectIn(t, b, "claude")
			bin, _, _ := strings.Cut(os.Getenv("PATH"), ":")
			require.NoError(t, os.Remove(filepath.Join(bin, c.lacks)))
			b.atTerminal()
			head := gittest.Git(t, b.dir, "rev-parse", "HEAD")
			require.Equal(t, 2, b.run(answers(b, c.typed...), "run"), b.stderr.String())
			require.Contains(t, b.stderr.String(), c.says)
			require.Contains(t, b.stderr.String(), "PRECONDITION_FAILED")
			require.NotContains(t, b.stderr.String(), "and commit it")
			require.Empty(t, gittest.Git(t, b.dir, "status", "--porcelain"))
			require.Equal(t, head, gittest.Git(t, b.dir, "rev-parse", "HEAD"))
			require.Empty(t, f.taken())
		})
	}
}

// TestInitSaysWhatWouldRefuseTheStart: also that other files are not committed; that the spec is not is what init says
// next anyway.
func TestInitSaysWhatWouldRefuseTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		lacks, leaves string
		says, omits   []string
	}{
		"nothing":        {omits: []string{"problem "}},
		"a program":      {lacks: "go", says: []string{"problem ", "verify.command needs go, which is not on the PATH"}},
		"an agent":       {lacks: "claude", says: []string{"none found on the PATH"}, omits: []string{"problem "}},
		"another change": {leaves: "other.txt", says: []string{"problem ", "the working tree is not clean: other.txt", "Then commit the other files"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, newFake())
			projectIn(t, b, "claude")
			if c.lacks != "" {
				bin, _, _ := strings.Cut(os.Getenv("PATH"), ":")
				require.NoError(t, os.Remove(filepath.Join(bin, c.lacks)))
			}
			if c.leaves != "" {
				gittest.Write(t, filepath.Join(b.dir, c.leaves), "x\n")
			}
			require.Equal(t, 0, b.run(nil, "init"), b.stderr.String())
			out := strings.Join(strings.Fields(b.stdout.String()), " ")
			for _, says := range c.says {
				require.Contains(t, out, says)
			}
			for _, omits := range c.omits {
				require.NotContains(t, out, omits)
			}
		})
	}
}

func TestRunInASubfolderNamesTheSpecOfTheProject(t *testing.T) {
	b := newBench(t, improving())
	projectIn(t, b, "claude")
	b.spec()
	gittest.Git(t, b.dir, "add", "pawl.yaml")
	gittest.Git(t, b.dir, "commit", "-qm", "spec")
	require.NoError(t, os.Mkdir("sub", 0o700))
	t.Chdir("sub")
	b.atTerminal()
	require.Equal(t, 2, b.run(nil, "run"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "`pawl run ../pawl.yaml`")
	require.NotContains(t, b.stderr.String(), "--force")
}
