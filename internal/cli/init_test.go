package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/cli"
	"pawl/internal/cli/render"
	"pawl/test/harness/gittest"
)

// initWorld is a folder with a Go repository, and a PATH that has only the given agents.
func initWorld(t *testing.T, git bool, agents ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("PAWL_HOME", filepath.Join(dir, "home"))
	t.Setenv("ANTHROPIC_API_KEY", "")
	bin, root := filepath.Join(dir, "bin"), filepath.Join(dir, "repo")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sub"), 0o700))
	path, err := exec.LookPath("git")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, filepath.Join(bin, "git")))
	t.Setenv("PATH", bin)
	for _, agent := range agents {
		require.NoError(t, os.WriteFile(filepath.Join(bin, agent), []byte("#!/bin/sh\n"), 0o700))
	}
	for name, text := range map[string]string{"go.mod": "module x\n", "x.go": "package x\n", ".gitignore": "ignored.sh\n", "ignored.sh": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	if git {
		require.NoError(t, exec.Command(path, "init", "-q", "--object-format=sha1", root).Run())
		require.NoError(t, exec.Command(path, "-C", root, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x").Run())
	}
	return root
}

func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = cli.Execute(t.Context(), args, strings.NewReader(""), &out, &err, cli.Deps{})
	return code, out.String(), err.String()
}

func TestInitWritesASpecThatLoads(t *testing.T) {
	root := initWorld(t, true, "codex", "claude")
	t.Chdir(filepath.Join(root, "sub"))
	code, out, stderr := execute(t, "init")
	require.Equal(t, 0, code, stderr)
	path := filepath.Join(root, "pawl.yaml")
	require.Contains(t, out, "Wrote "+path)
	require.Contains(t, out, "pawl validate")
	require.Contains(t, out, "cd "+root, "the spec is in the root of the repository")
	s, err := config.LoadSpec(path, nil)
	require.NoError(t, err)
	require.Equal(t, root, s.Repo.Path)
	require.Equal(t, "go test -json ./...", s.Guard.Command)
	require.Equal(t, "claude", s.Agent.Use, "the first one that is known and there")
	require.Empty(t, s.Agent.Env, "there is no key in the environment to give it")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), os.Getenv("PAWL_HOME"), "others have no such folder")
	require.NotContains(t, string(text), root)
	require.True(t, strings.HasPrefix(string(text), "# A loop of pawl."), string(text))
}

func TestInitWritesAStewardsSpec(t *testing.T) {
	root := initWorld(t, true, "claude")
	code, out, stderr := execute(t, "init", "--kind", "steward", root)
	require.Equal(t, 0, code, stderr)
	for _, next := range []string{"git add steward.yaml", "pawl validate steward.yaml", "pawl steward up"} {
		require.Contains(t, out, next)
	}
	c, err := config.LoadCharter(filepath.Join(root, "steward.yaml"), nil)
	require.NoError(t, err)
	require.Equal(t, "repo", c.Name, "as the folder is called")
	require.Equal(t, root, c.Repo.Path)
	require.NoFileExists(t, filepath.Join(root, "pawl.yaml"))
	code, _, stderr = execute(t, "init", "--kind", "steward", "--force", "--goal", "Make it better", root)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "a steward gets its goals from tasks")
}

func TestInitOverwritesNothing(t *testing.T) {
	root := initWorld(t, true)
	path := filepath.Join(root, "pawl.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	code, out, stderr := execute(t, "init", root)
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "already exists")
	require.Contains(t, stderr, "--force")
	text, _ := os.ReadFile(path)
	require.Equal(t, "mine", string(text))

	code, out, stderr = execute(t, "init", "--force", "--json", "--goal", "Make it: better", root)
	require.Equal(t, 0, code, stderr)
	var d render.Drafted
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, path, d.Path)
	require.Equal(t, []string{"go"}, d.Found.Languages)
	require.Empty(t, d.Agents)
	require.Contains(t, d.Next, "pawl validate")
	s, err := config.LoadSpec(path, nil)
	require.NoError(t, err)
	require.Equal(t, "Make it: better", s.Goal)
	left, _ := filepath.Glob(filepath.Join(root, ".pawl-*"))
	require.Empty(t, left)
}

func TestInitWritesNothingIntoARepositoryThatCannotBeRead(t *testing.T) {
	bare := t.TempDir()
	require.NoError(t, exec.Command("git", "init", "-q", "--object-format=sha1", "--bare", bare).Run())
	code, _, stderr := execute(t, "init", bare)
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "is a bare repository (PRECONDITION_FAILED)")

	root := initWorld(t, true)
	require.NoError(t, os.Mkdir(filepath.Join(root, "pawl.yaml"), 0o700))
	code, _, stderr = execute(t, "init", "--force", root)
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "pawl.yaml is a folder")
	require.NoError(t, os.Remove(filepath.Join(root, "pawl.yaml")))

	t.Setenv("PATH", t.TempDir())
	code, _, stderr = execute(t, "init", root)
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "git is not on the PATH")
	require.NoFileExists(t, filepath.Join(root, "pawl.yaml"))
}

func TestInitInARepositoryWithoutACommitSaysToCommitEverything(t *testing.T) {
	root := initWorld(t, true)
	require.NoError(t, exec.Command("git", "-C", root, "update-ref", "-d", "HEAD").Run())
	code, out, stderr := execute(t, "init", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "git add --all\n")
	require.NotContains(t, out, "git init")
}

func TestInitWithoutARepositorySaysHowToMakeOne(t *testing.T) {
	root := initWorld(t, false, "gemini")
	t.Setenv("GEMINI_API_KEY", "k")
	code, out, stderr := execute(t, "init", "--json", root)
	require.Equal(t, 0, code, stderr)
	var d render.Drafted
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Contains(t, d.Next, "git init")
	require.Equal(t, "gemini", d.Agent)
	s, err := config.LoadSpec(d.Path, nil)
	require.NoError(t, err)
	require.Equal(t, "gemini", s.Agent.Use)
	require.Empty(t, s.Agent.Env, "a program that pawl knows gets its own key")
}

// A spec that this version would refuse is not written.
func TestInitWritesNoSpecThatIsRefused(t *testing.T) {
	root := initWorld(t, true)
	for _, args := range [][]string{{"init", "--kind", "destroy", root}, {"init", filepath.Join(root, "nowhere")}} {
		code, _, stderr := execute(t, args...)
		require.Equal(t, 2, code, stderr)
	}
	code, _, stderr := execute(t, "init", "--kind", "deliver", root)
	_, err := os.Stat(filepath.Join(root, "pawl.yaml"))
	require.Equal(t, code == 0, err == nil, stderr)
	if code != 0 {
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "kind: is \"deliver\", which is not built yet in this version")
	}
}

// TestInitLeavesOpenWhenADeliveryIsDone: where no tests say it, the user does.
func TestInitLeavesOpenWhenADeliveryIsDone(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "README.md"), []byte("Words.\n"), 0o600))
	require.NoError(t, exec.Command("git", "init", "-q", root).Run())
	commits(t, root)
	code, stdout, stderr := execute(t, "init", "--kind", "deliver", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "no tests were found, so verify.command has to say when the work is done: fill it in")
	require.Contains(t, stdout, "there is no TASK.md, so goal has to say what to build: fill it in")
	text, err := os.ReadFile(filepath.Join(root, "pawl.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "verify:\n  command: \"\" # such as sh check.sh\n")
	code, _, stderr = execute(t, "validate", filepath.Join(root, "pawl.yaml"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "verify.command: is missing; want: a command that says whether the work is done")
}

// commits commits everything in a repository.
func commits(t *testing.T, root string) {
	t.Helper()
	for _, args := range [][]string{{"add", "--all"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

func TestInitHonoursTheFolderThatItIsCalledIn(t *testing.T) {
	root := initWorld(t, true)
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub", "go.mod"), []byte("module y\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sub", "deep"), 0o700))
	t.Chdir(filepath.Join(root, "sub", "deep"))
	code, _, stderr := execute(t, "init")
	require.Equal(t, 0, code, stderr)
	path := filepath.Join(root, "sub", "pawl.yaml")
	s, err := config.LoadSpec(path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"sub/**/*.go"}, s.Scope)
	require.Equal(t, "cd sub && go test -json ./...", s.Guard.Command)
	require.Contains(t, s.Protect, "sub/pawl.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "# go is not on the PATH", "this PATH has git alone")
	require.NoFileExists(t, filepath.Join(root, "pawl.yaml"))
}

// A Python of the repository is not run: only its files say whether it has pytest.
func TestInitSeesAnEnvironmentOfPython(t *testing.T) {
	root := initWorld(t, true)
	require.NoError(t, os.Remove(filepath.Join(root, "go.mod")))
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".venv/lib/python3.12/site-packages/pytest"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte(".venv\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "pyproject.toml"), []byte("[tool.pytest.ini_options]\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "test_a.py"), []byte("def test_a(): pass\n"), 0o600))
	code, out, stderr := execute(t, "init", "--direction", "lower", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "pytest is in .venv, which is not active: activate it (. .venv/bin/activate)")
}

// TestInitSeesWhatAVirtualEnvironmentTakesFromTheSystem, which it does only if its settings say so.
func TestInitSeesWhatAVirtualEnvironmentTakesFromTheSystem(t *testing.T) {
	for takes, want := range map[string]bool{"true": true, "false": false} {
		t.Run(takes, func(t *testing.T) {
			root := initWorld(t, true)
			require.NoError(t, os.Remove(filepath.Join(root, "go.mod")))
			system := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(system, "lib/python3/dist-packages/pytest"), 0o700))
			require.NoError(t, os.MkdirAll(filepath.Join(root, ".venv/lib/python3.12/site-packages"), 0o700))
			settings := "home = " + system + "/bin\ninclude-system-site-packages = " + takes + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(root, ".venv/pyvenv.cfg"), []byte(settings), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte(".venv\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(root, "pyproject.toml"), []byte("[tool.pytest.ini_options]\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(root, "test_a.py"), []byte("def test_a(): pass\n"), 0o600))
			code, out, stderr := execute(t, "init", "--direction", "lower", root)
			require.Equal(t, 0, code, stderr)
			seen := strings.Contains(strings.Join(strings.Fields(out), " "), "pytest is in .venv, which is not active")
			require.Equal(t, want, seen, out)
		})
	}
}

// A benchmark whose direction is unknown is tried in a clone; if its output does not tell, a person is asked.
func TestInitTriesABenchmarkRatherThanGuessItsDirection(t *testing.T) {
	path := os.Getenv("PATH")
	root := initWorld(t, true)
	t.Setenv("PATH", path)
	bench := filepath.Join(root, "bench.sh")
	write := func(script string) {
		require.NoError(t, os.WriteFile(bench, []byte(script), 0o600))
		commits(t, root)
	}
	write("u=sec; touch ran; echo \"parse: 120 ops/$u\"\n")
	code, out, stderr := execute(t, "init", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "higher is better")
	require.NoFileExists(t, filepath.Join(root, "ran"), "it ran in a clone")
	s, err := config.LoadSpec(filepath.Join(root, "pawl.yaml"), nil)
	require.NoError(t, err)
	require.Equal(t, "higher", s.Verify.Direction)

	write("echo 17\n")
	require.NoError(t, os.Remove(filepath.Join(root, "pawl.yaml")))
	code, _, stderr = execute(t, "init", root)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "it ends with: 17")
	require.Contains(t, stderr, "--direction lower or --direction higher")
	require.NoFileExists(t, filepath.Join(root, "pawl.yaml"))
	code, _, stderr = execute(t, "init", "--direction", "lower", root)
	require.Equal(t, 0, code, stderr)
	code, _, stderr = execute(t, "init", "--force", "--direction", "up", root)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "it may be lower or higher")

	write("no-such-library; exit 3\n")
	code, out, stderr = execute(t, "init", "--force", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "the benchmark (sh bench.sh) fails here: exit 3. So this proposes the size of the code and not the benchmark")
	s, err = config.LoadSpec(filepath.Join(root, "pawl.yaml"), nil)
	require.NoError(t, err)
	require.Contains(t, s.Verify.Command, "wc -c")
	require.Equal(t, "lower", s.Verify.Direction)
}

// Without tests, the best way to make code smaller is to delete it.
func TestInitLeavesTheMetricOpenIfNothingMeasures(t *testing.T) {
	path := os.Getenv("PATH")
	root := initWorld(t, true)
	t.Setenv("PATH", path)
	require.NoError(t, os.Remove(filepath.Join(root, "go.mod")))
	require.NoError(t, os.Remove(filepath.Join(root, "x.go")))
	gittest.Write(t, filepath.Join(root, "words.txt"), "one two\n")
	commits(t, root)

	code, out, stderr := execute(t, "init", root)
	require.Equal(t, 0, code, stderr)
	require.NotContains(t, out, "wc -c")
	require.Contains(t, out, "fill in verify.command and verify.direction, then")
	_, err := config.LoadSpec(filepath.Join(root, "pawl.yaml"), nil)
	require.ErrorContains(t, err, "verify.command: is missing")
	require.ErrorContains(t, err, "verify.direction")

	code, _, stderr = execute(t, "init", "--kind", "steward", root)
	require.Equal(t, 0, code, stderr)
	_, err = config.LoadCharter(filepath.Join(root, "steward.yaml"), nil)
	require.NoError(t, err, "each plan says when its work is done")

	gittest.Write(t, filepath.Join(root, "bench.sh"), "exit 3\n")
	commits(t, root)
	code, out, stderr = execute(t, "init", "--force", root)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "the benchmark (sh bench.sh) fails here: exit 3")
	require.NotContains(t, out, "size of the code")
}

// A step that took long leaves a line with its duration, also if it is interrupted. The benchmark runs once.
func TestInitSaysWhatTakesLong(t *testing.T) {
	path := os.Getenv("PATH")
	root := initWorld(t, true)
	t.Setenv("PATH", path)
	require.NoError(t, os.WriteFile(filepath.Join(root, "bench.sh"), []byte("u=sec; echo \"parse: 120 ops/$u\"\n"), 0o600))
	commits(t, root)
	now := time.Now()
	var mu sync.Mutex
	slow := cli.Deps{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(11 * time.Second)
		return now
	}}
	var out, stderr bytes.Buffer
	require.Equal(t, 0, cli.Execute(t.Context(), []string{"init", root}, strings.NewReader(""), &out, &stderr, slow), stderr.String())
	require.Regexp(t, `(?m)^  verify +\d\ds$`, stderr.String())
	require.Regexp(t, `(?m)^  repository +\d\ds$`, stderr.String())
	require.NotContains(t, stderr.String(), "verify again")
	require.Contains(t, out.String(), "not yet: pawl validate says whether they pass on the unchanged code")

	commits(t, root)
	stderr.Reset()
	args := []string{"validate", "--set", "validate.canary=false", "--set", "guard.command=sh bench.sh", "--set", "check.command=sh bench.sh", "--set", "agent.use=command", "--set", "agent.command=echo x", filepath.Join(root, "pawl.yaml")}
	require.Equal(t, 0, cli.Execute(t.Context(), args, strings.NewReader(""), &out, &stderr, slow), stderr.String())
	require.Regexp(t, `(?m)^  verify again  +\d\ds \(2 times\)$`, stderr.String(), "all runs on one line")
}
