package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/fault"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const yamlSpec = `
name: faster
goal: Make it faster
repo: {path: sub/repo}
scope: ["src/**"]
verify:
  command: make bench
  direction: lower
  minDelta: 0.10
agent:
  command: ["./agent.sh", "--fast"]
  env:
    MixedCase: "Yes"
    UPPER: "1"
limits: {iterations: 7, activeTime: 1h}
approvals: {tools: ["*"]}
`

const tomlSpec = `
name = "faster"
goal = "Make it faster"
scope = ["src/**"]
repo.path = "sub/repo"
[verify]
command = "make bench"
direction = "lower"
minDelta = 0.10
[agent]
command = ["./agent.sh", "--fast"]
[agent.env]
MixedCase = "Yes"
UPPER = "1"
[limits]
iterations = 7
activeTime = "1h"
[approvals]
tools = ["*"]
`

const jsonSpec = `{
	"name": "faster", "goal": "Make it faster", "scope": ["src/**"], "repo": {"path": "sub/repo"},
	"verify": {"command": "make bench", "direction": "lower", "minDelta": 0.10},
	"agent": {"command": ["./agent.sh", "--fast"], "env": {"MixedCase": "Yes", "UPPER": "1"}},
	"limits": {"iterations": 7, "activeTime": "1h"},
	"approvals": {"tools": ["*"]}
}`

func TestTheThreeFormatsSayTheSame(t *testing.T) {
	var specs []spec.Spec
	for name, text := range map[string]string{"pawl.yaml": yamlSpec, "pawl.toml": tomlSpec, "pawl.json": jsonSpec} {
		path := write(t, name, text)
		s, err := config.LoadSpec(path, nil)
		require.NoError(t, err, name)
		require.Equal(t, filepath.Join(filepath.Dir(path), "sub", "repo"), s.Repo.Path, "relative to the file")
		require.Equal(t, map[string]string{"MixedCase": "Yes", "UPPER": "1"}, s.Agent.Env, "names keep their case")
		require.Equal(t, []string{"./agent.sh", "--fast"}, s.Agent.Command.Args())
		s.Repo.Path, s.Session = "", nil
		require.Zero(t, s.Verify.MinDelta.Value.Cmp(metric.MustDecimal("0.1")))
		s.Verify.MinDelta = metric.Threshold{} // 0.10 and 0.1 are written differently
		specs = append(specs, s)
	}
	require.Equal(t, specs[0], specs[1])
	require.Equal(t, specs[0], specs[2])
}

func TestNumbersInYAMLKeepTheirDecimals(t *testing.T) {
	s, err := config.LoadSpec(write(t, "pawl.yaml", yamlSpec), nil)
	require.NoError(t, err)
	require.Equal(t, "0.10", s.Verify.MinDelta.String())
}

func TestSetOverridesTheFile(t *testing.T) {
	path := write(t, "pawl.yaml", yamlSpec)
	for _, c := range []struct {
		name string
		set  string
		got  func(spec.Spec) any
		want any
	}{
		{"a number", "limits.iterations=12", func(s spec.Spec) any { return s.Limits.Iterations }, 12},
		{"a duration", "limits.activeTime=90m", func(s spec.Spec) any { return s.Limits.ActiveTime.String() }, "1h30m"},
		{"a list", "scope=[a/**, b.go]", func(s spec.Spec) any { return s.Scope }, []string{"a/**", "b.go"}},
		{"a command with a colon and a hash sign", "verify.command=echo a: 1 # b", func(s spec.Spec) any { return s.Verify.Command }, "echo a: 1 # b"},
		{"a command that begins like a list", "verify.command=[ -e x ] && echo 1", func(s spec.Spec) any { return s.Verify.Command }, "[ -e x ] && echo 1"},
		{"a quoted text", `goal="12"`, func(s spec.Spec) any { return s.Goal }, "12"},
		{"an object that the file lacks", "guard.command=go test ./...", func(s spec.Spec) any { return s.Guard.Command }, "go test ./..."},
		{"a name of the user's own", "agent.env.NewName=Value", func(s spec.Spec) any { return s.Agent.Env["NewName"] }, "Value"},
		{"nothing, which is the default", "limits.iterations=", func(s spec.Spec) any { return s.Limits.Iterations }, 3},
		{"a value with an equals sign", "goal=x=y", func(s spec.Spec) any { return s.Goal }, "x=y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := config.LoadSpec(path, []string{c.set})
			require.NoError(t, err)
			require.Equal(t, c.want, c.got(s))
		})
	}
}

func TestSetBeatsEnvironmentBeatsFile(t *testing.T) {
	path := write(t, "pawl.yaml", yamlSpec)
	t.Setenv("PAWL_SPEC_LIMITS_ITERATIONS", "8")
	t.Setenv("PAWL_SPEC_VERIFY_MINDELTA", "0.5")
	s, err := config.LoadSpec(path, []string{"limits.iterations=9"})
	require.NoError(t, err)
	require.Equal(t, 9, s.Limits.Iterations)
	require.Equal(t, "0.5", s.Verify.MinDelta.String())
}

func TestAnUnknownVariableIsRefused(t *testing.T) {
	t.Setenv("PAWL_SPEC_LIMITS_ITERATION", "8")
	t.Setenv("PAWL_SPEC_AGENT_ENV_KEY", "x")
	t.Setenv("PAWL_SPEC_NOTHING_OF_THE_KIND", "x")
	_, err := config.LoadSpec(write(t, "pawl.yaml", yamlSpec), nil)
	require.ErrorContains(t, err, "PAWL_SPEC_LIMITS_ITERATION: is not the variable of a key of a spec; want: PAWL_SPEC_LIMITS_ITERATIONS (did you mean it?)")
	require.ErrorContains(t, err, "PAWL_SPEC_AGENT_ENV_KEY: is not the variable of a key of a spec; want: PAWL_SPEC_AGENT_ENV (did you mean it?)")
	require.ErrorContains(t, err, "PAWL_SPEC_NOTHING_OF_THE_KIND: is not the variable of a key of a spec; want: a name such as PAWL_SPEC_LIMITS_ITERATIONS")
}

func TestWhatIsWrongNamesWhereItComesFrom(t *testing.T) {
	t.Setenv("PAWL_SPEC_LIMITS_STEPS", "many")
	_, err := config.LoadSpec(write(t, "pawl.yaml", yamlSpec), []string{"agent.roles.Writer.model=x", "polices.small.maxFiles=3", "check.comand=x", "limits.tokens=few"})
	for _, line := range []string{
		"--set: agent.roles.Writer: is not a role", "--set: polices: is not a key of a spec; want: policies (did you mean it?)", "--set: check.comand: is not a key",
		"--set: limits.tokens: is \"few\"", "PAWL_SPEC_LIMITS_STEPS: limits.steps: is \"many\"; want: a whole number",
	} {
		require.ErrorContains(t, err, line)
	}
}

func TestARepositoryNamedOnTheCommandLineIsRelativeToTheCurrentFolder(t *testing.T) {
	path := write(t, "pawl.yaml", yamlSpec)
	here := t.TempDir()
	t.Chdir(here)
	s, err := config.LoadSpec(path, []string{"repo.path=there"})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "there"), s.Repo.Path)
}

func TestARepositoryMustHaveAPathThatJSONCanHold(t *testing.T) {
	here := filepath.Join(t.TempDir(), "r\xff")
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Skip("this file system has no such names: ", err)
	}
	path := filepath.Join(here, "pawl.yaml")
	require.NoError(t, os.WriteFile(path, []byte(yamlSpec), 0o600))
	_, err := config.LoadSpec(path, []string{"repo.path="})
	require.ErrorContains(t, err, `r\xff", which is not valid UTF-8`)
}

func TestWithoutARepositoryTheSpecFilesFolderIsMeant(t *testing.T) {
	path := write(t, "pawl.yaml", yamlSpec)
	s, err := config.LoadSpec(path, []string{"repo.path="})
	require.NoError(t, err)
	require.Equal(t, filepath.Dir(path), s.Repo.Path)
}

func TestL12_TheSessionSaysWhoStartedTheLoopAndFromWhere(t *testing.T) {
	s, err := config.LoadSpec(write(t, "pawl.yaml", yamlSpec), nil)
	require.NoError(t, err)
	cwd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, config.User(), s.Session["user"])
	require.Equal(t, cwd, s.Session["cwd"])
	require.NotEmpty(t, s.Session["host"])

	// A caller that starts loops for others says for whom. The rest is still filled in.
	s, err = config.LoadSpec(write(t, "pawl.yaml", yamlSpec+"session: {user: ann, ticket: T-7}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "ann", s.Session["user"])
	require.Equal(t, "T-7", s.Session["ticket"])
	require.Equal(t, cwd, s.Session["cwd"])
}

func TestEverythingWrongIsSaidAtOnceWithItsLine(t *testing.T) {
	path := write(t, "pawl.yaml", `goal: Make it faster
scope: src
verify:
  comand: make bench
  timeout: soon
limits:
  iterations: 0
limits: {}
`)
	_, err := config.LoadSpec(path, []string{"nonsense", "goal.text=x"})
	var problems spec.Problems
	require.ErrorAs(t, err, &problems)
	got := map[string]int{}
	for _, p := range problems {
		if p.File != "--set" {
			require.Equal(t, path, p.File, p.String())
		}
		got[p.Key] = p.Line
	}
	require.Equal(t, 2, got["scope"])
	require.Equal(t, 4, got["verify.comand"])
	require.Equal(t, 5, got["verify.timeout"])
	require.Equal(t, 8, got["limits"], "given twice")
	require.Equal(t, 7, got["limits.iterations"])
	require.Equal(t, 3, got["verify.command"], "what is missing stands where it would be")
	require.Contains(t, got, "goal.text")
	require.ErrorContains(t, err, `"nonsense" is not of the form key=value`)
}

func TestJSONProblemsHaveTheirLine(t *testing.T) {
	path := write(t, "pawl.json", "{\n \"goal\": 7,\n \"goal\": \"x\",\n \"verify\": {\n  \"timeout\": 5}\n}")
	_, err := config.LoadSpec(path, nil)
	require.ErrorContains(t, err, path+":3: goal: is given twice")
	require.ErrorContains(t, err, path+":5: verify.timeout: ")
}

func TestBrokenFilesAreNamedWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a.yaml": {"goal: x\n  bad: [\n", "a.yaml:"},
		"b.toml": {"goal = 'x'\nbad =\n", "b.toml:2: not valid TOML"},
		"c.json": {"{\n\"goal\": }\n", "c.json:2: not valid JSON"},
		"d.yaml": {"- a\n", "d.yaml:1: is not an object"},
		"e.json": {"[]", "e.json:1: is not an object"},
		"f.yaml": {"goal: x\n---\ngoal: y\n", "holds more than one document"},
		"g.json": {`{"goal": "x"`, "not valid JSON: it ends too early"},
	} {
		_, err := config.LoadSpec(write(t, name, c.text), nil)
		require.ErrorContains(t, err, c.want)
	}
}

func TestAMissingFileSaysWhatToDo(t *testing.T) {
	_, err := config.LoadSpec(filepath.Join(t.TempDir(), "pawl.yaml"), nil)
	require.Equal(t, fault.InvalidSpec, fault.CodeOf(err))
	require.ErrorContains(t, err, "there is no spec file")
	require.ErrorContains(t, err, "pawl demo")
}

func TestAFolderIsNoSpec(t *testing.T) {
	_, err := config.LoadSpec(t.TempDir(), nil)
	require.Equal(t, fault.InvalidSpec, fault.CodeOf(err))
}

func TestYAMLAliasesAndMergesAreRead(t *testing.T) {
	path := write(t, "pawl.yaml", yamlSpec+`
guard: &g {command: make test, timeout: 1m}
check: {<<: {command: make lint}}
`)
	s, err := config.LoadSpec(path, nil)
	require.NoError(t, err)
	require.Equal(t, "make lint", s.Check.Command)
}

func TestYAMLAliasesCannotMultiplyWithoutEnd(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + "]\n"
	}
	_, err := config.LoadSpec(write(t, "pawl.yaml", bomb), nil)
	require.ErrorContains(t, err, "pawl.yaml: holds more than 20000 values; want: a spec that a person can read")
}

func TestOctalNumbersAreNotTakenForDecimals(t *testing.T) {
	s, err := config.LoadSpec(write(t, "pawl.yaml", yamlSpec), []string{"limits.iterations=0x10"})
	require.NoError(t, err)
	require.Equal(t, 16, s.Limits.Iterations)
}

// TestASpecInAFolderAboveIsNamed, but none outside of the repository.
func TestASpecInAFolderAboveIsNamed(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(inner, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "pawl.yaml"), []byte("{}"), 0o600))
	t.Chdir(inner)
	advice := func() string {
		_, err := config.LoadSpec("pawl.yaml", nil)
		refused, ok := errors.AsType[*fault.Error](err)
		require.True(t, ok, "%v", err)
		return refused.Do
	}
	require.Contains(t, advice(), "../../pawl.yaml")
	require.NoError(t, os.Mkdir(filepath.Join(root, "a", ".git"), 0o700))
	require.Contains(t, advice(), "`pawl init`")
}
