package start_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func TestTwoLoopsOfOneName(t *testing.T) {
	w := world.New(t, `until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+world.Raises)
	first := w.Start("run", "--json", "--yes", w.SpecFile())
	w.Waits("running")
	s := w.Pawl("run", "--json", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err, "ALO_LOOP_ALREADY_RUNNING")
	require.Contains(t, s.Err, "pawl halt "+w.Loop)
	w.Write("go", "")
	require.Equal(t, 0, first.Wait().Code)

	r := w.Run(0)
	require.Equal(t, "pawl/"+w.Loop+".2", r.Result.Branch)
	require.Equal(t, 0, w.Pawl("run", "--yes", w.SpecFile()).Code)
	require.Equal(t, []string{
		"refs/heads/pawl/" + w.Loop, "refs/heads/pawl/" + w.Loop + "-clean",
		"refs/heads/pawl/" + w.Loop + ".2", "refs/heads/pawl/" + w.Loop + ".2-clean", "refs/heads/pawl/" + w.Loop + ".3", "refs/heads/pawl/" + w.Loop + ".3-clean",
		"refs/pawl-ledger/" + w.Loop, "refs/pawl-ledger/" + w.Loop + ".2", "refs/pawl-ledger/" + w.Loop + ".3",
	}, strings.Fields(w.PawlRefs()))
	require.Equal(t, w.Results(w.Loop), w.Results(w.Loop+".3"))
}

func TestSpecFileThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		says                []string
	}{
		{"missing", "", "", []string{"there is no spec file", "INVALID_SPEC", "Name the file, or write one"}},
		{"a folder", "repo", "", []string{"INVALID_SPEC"}},
		{"empty", "spec.yaml", "", []string{"INVALID_SPEC"}},
		{"not YAML", "spec.yaml", "goal: [climb\nscope: {", []string{"INVALID_SPEC", "spec.yaml"}},
		{"a list", "spec.yaml", "- goal\n- scope\n", []string{"INVALID_SPEC", "spec.yaml"}},
		{"not TOML", "spec.toml", "goal = climb", []string{"INVALID_SPEC", "spec.toml"}},
		{"not JSON", "spec.json", `{"goal": "climb",}`, []string{"INVALID_SPEC", "spec.json"}},
		{"binary", "spec.yaml", "\x00\xff\x7fELF", []string{"INVALID_SPEC"}},
		{"wrong in many ways at once", "spec.yaml", `
name: "-x"
goal: ""
scop: ["work/**"]
scope: ["/work/**"]
verify: {command: "", timeout: soon, direction: sideways, minDelta: -1}
limits: {iterations: 0, toolCalls: many, phaseTimeout: -1s}
agent: {use: magic}
approvals: {plan: maybe}
policies: {default: {maxFiles: none}}
breakpoints: [lunch]
repo: {path: /x, url: "https://example.com/x"}
`, []string{
			"INVALID_SPEC", "spec.yaml:2", "name", "goal", `scop`, "scope[0]", "verify.command", "verify.timeout", "verify.direction", "verify.minDelta",
			"limits.iterations", "limits.toolCalls", "limits.phaseTimeout", "agent.use", "approvals.plan", "approvals.tools", "policies.default.maxFiles", "breakpoints[0]", "repo: has both",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, world.Raises)
			file := filepath.Join(w.Dir, c.file)
			if c.content != "" || c.name == "empty" {
				w.Write(c.file, c.content)
			} else if c.file == "" {
				file = filepath.Join(w.Dir, "missing.yaml")
			}
			s := w.Pawl("run", "--yes", file)
			require.Equal(t, 2, s.Code, s.Err)
			require.Empty(t, s.Out)
			for _, text := range c.says {
				require.Contains(t, s.Err, text)
			}
			world.Plain(t, s.Err)
			require.Empty(t, w.PawlRefs())
		})
	}
}

func TestWrongUsage(t *testing.T) {
	w := world.New(t, world.Raises)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"rnu"}, "rnu"},
		{[]string{"run", "--fast"}, "--fast"},
		{[]string{"run", "a", "b"}, ""},
		{[]string{"show"}, "pawl list"},
		{[]string{"log", "x", "--follow=perhaps"}, `invalid argument "perhaps" for "-f, --follow" flag`},
		{[]string{"approve", "x"}, "--hash"},
		{[]string{"steer", "x"}, ""},
		{[]string{"run", w.SpecFile(), "--set", "limits.iterations"}, "--set"},
		{[]string{"run", w.SpecFile(), "--set", "limits.iteration=5"}, "limits.iteration"},
		{[]string{"run", w.SpecFile(), "--id", "other"}, w.Loop},
	} {
		s := w.Pawl(c.args...)
		require.Equal(t, 2, s.Code, "%v: %s", c.args, s.Err)
		require.Contains(t, s.Err, c.says)
		require.Empty(t, s.Out)
		world.Plain(t, s.Err)
	}
}

// pawl.yaml in the repository itself is the usual case. There, repo.path is ".".
func TestSpecInTheRepository(t *testing.T) {
	w := world.New(t, world.Raises)
	w.Write("repo/pawl.yaml", `# comment
goal: climb
name: `+w.Loop+`
scope: ["work/**"]
verify: {command: sh measure.sh}
guard: {command: sh guard.sh}
agent: {command: sh `+filepath.Join(w.Dir, "agent.sh")+`}
limits: {iterations: 7}
approvals: {diff: auto, tools: ["*"]}
`)
	w.Commit("spec")
	c := w.Prepare("run", "--yes")
	c.Cmd.Dir = filepath.Join(w.Repo, "work")
	s := c.Begin().Wait()
	require.Equal(t, 2, s.Code)
	require.Contains(t, s.Err, "there is no spec file pawl.yaml")
	c = w.Prepare("run", "--yes", "--set", "limits.iterations=2")
	c.Cmd.Dir = w.Repo
	s = c.Begin().Wait()
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Out, "Loop complete: 2 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2)")
	require.Equal(t, "12", w.Kept("work/n"))
}

// With approvals.plan: auto, the contract is approved at the start.
func TestA1_ContractApprovedBySpec(t *testing.T) {
	world.Slow(t, "TestA1_ContractIsApprovedByItsHash")
	w := world.New(t, world.Raises).Set(doc{"approvals": doc{"plan": "auto"}})
	s := w.Pawl("run", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Equal(t, "spec (approvals.plan: auto)", w.Show().Contract.ApprovedBy)
}

// A loop's ID can be nearly anything. Its names in git and on disk are always valid.
func TestOddLoopIDs(t *testing.T) {
	world.Slow(t, "the other tests have ordinary IDs")
	w := world.New(t, world.Raises).Set(doc{"verify": doc{"target": 10}})
	delete(w.Spec, "name")
	file := w.SpecFile()
	for id, branch := range map[string]string{
		"../../" + w.Loop: "-.--.-" + w.Loop, w.Loop + "/a.lock": w.Loop + "-a-lock", w.Loop + " ~^:?*[\\@{x}": "",
		w.Loop + strings.Repeat("n", 190): w.Loop + strings.Repeat("n", 190),
	} {
		s := w.Pawl("run", "--json", "--yes", "--id", id, file)
		require.Equal(t, 0, s.Code, "%s: %s", id, s.Err)
		var r world.Report
		world.Decode(t, s.Out, &r)
		require.Equal(t, id, r.Loop)
		if branch != "" {
			require.Equal(t, "pawl/"+branch, r.Result.Branch)
		}
		require.Equal(t, 0, w.Pawl("show", id).Code)
	}
	for _, id := range []string{"-x", "größe", "a\nb", strings.Repeat("n", 201)} {
		s := w.Pawl("run", "--yes", "--id="+id, file)
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "--id ")
		world.Plain(t, s.Err)
	}
}

// A loop without a name is called after the repository's folder.
func TestLoopIsNamedAfterItsFolder(t *testing.T) {
	world.Slow(t, "TestOddLoopIDs has odd names")
	w := world.New(t, world.Raises).Set(doc{"verify": doc{"target": 10}})
	old := w.Repo
	w.Repo = filepath.Join(w.Dir, "größte Höhe")
	require.NoError(t, os.Rename(old, w.Repo))
	w.Set(doc{"repo": doc{"path": w.Repo}})
	delete(w.Spec, "name")
	require.Regexp(t, `^gr--te H-he-[0-9a-f]{4}$`, w.Run(0).Loop)
}
