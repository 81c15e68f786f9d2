package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoLoopsOfOneName(t *testing.T) {
	w := newWorld(t, `while ! [ -e "$WORLD/go" ]; do :; done; `+raises)
	first := w.start("run", "--json", "--yes", w.specFile())
	w.waits("running")
	s := w.pawl("run", "--json", "--yes", w.specFile())
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "ALO_LOOP_ALREADY_RUNNING")
	require.Contains(t, s.err, "pawl halt "+w.loop)
	w.write("go", "")
	require.Equal(t, 0, first.wait().code)

	r := w.run(0)
	require.Equal(t, "pawl/"+w.loop+".2", r.Result.Branch)
	require.Equal(t, 0, w.pawl("run", "--yes", w.specFile()).code)
	require.Equal(t, []string{
		"refs/heads/pawl/" + w.loop, "refs/heads/pawl/" + w.loop + ".2", "refs/heads/pawl/" + w.loop + ".3",
		"refs/pawl-ledger/" + w.loop, "refs/pawl-ledger/" + w.loop + ".2", "refs/pawl-ledger/" + w.loop + ".3",
	}, strings.Fields(w.pawlRefs()))
	require.Equal(t, w.results(w.loop), w.results(w.loop+".3"))
}

func TestSpecFileThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		says                []string
	}{
		{"missing", "", "", []string{"there is no spec file", "INVALID_SPEC", "pawl run FILE"}},
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
			w := newWorld(t, raises)
			file := filepath.Join(w.dir, c.file)
			if c.content != "" || c.name == "empty" {
				w.write(c.file, c.content)
			} else if c.file == "" {
				file = filepath.Join(w.dir, "missing.yaml")
			}
			s := w.pawl("run", "--yes", file)
			require.Equal(t, 2, s.code, s.err)
			require.Empty(t, s.out)
			for _, text := range c.says {
				require.Contains(t, s.err, text)
			}
			plain(t, s.err)
			require.Empty(t, w.pawlRefs())
		})
	}
}

func TestWrongUsage(t *testing.T) {
	w := newWorld(t, raises)
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
		{[]string{"run", w.specFile(), "--set", "limits.iterations"}, "--set"},
		{[]string{"run", w.specFile(), "--set", "limits.iteration=5"}, "limits.iteration"},
		{[]string{"run", w.specFile(), "--id", "other"}, w.loop},
	} {
		s := w.pawl(c.args...)
		require.Equal(t, 2, s.code, "%v: %s", c.args, s.err)
		require.Contains(t, s.err, c.says)
		require.Empty(t, s.out)
		plain(t, s.err)
	}
}

// pawl.yaml in the repository itself is the usual case: repo.path is "." there.
func TestSpecInTheRepository(t *testing.T) {
	w := newWorld(t, raises)
	w.write("repo/pawl.yaml", `# comment
goal: climb
name: `+w.loop+`
scope: ["work/**"]
verify: {command: sh measure.sh}
guard: {command: sh guard.sh}
agent: {command: sh `+filepath.Join(w.dir, "agent.sh")+`}
limits: {iterations: 7}
approvals: {diff: auto, tools: ["*"]}
`)
	w.commit("spec")
	c := w.prepare("run", "--yes")
	c.cmd.Dir = filepath.Join(w.repo, "work")
	s := c.begin().wait()
	require.Equal(t, 2, s.code)
	require.Contains(t, s.err, "there is no spec file pawl.yaml")
	c = w.prepare("run", "--yes", "--set", "limits.iterations=2")
	c.cmd.Dir = w.repo
	s = c.begin().wait()
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.out, "Loop complete: 2 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2)")
	require.Equal(t, "12", w.kept("work/n"))
}

// approvals.plan: auto is an approval that is given at the start.
func TestA1_ContractApprovedBySpec(t *testing.T) {
	w := newWorld(t, raises).set(doc{"approvals": doc{"plan": "auto"}})
	s := w.pawl("run", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	require.Equal(t, "spec (approvals.plan: auto)", w.show().Contract.ApprovedBy)
}

// A loop's ID can be nearly anything; what it is in git and on disk is safe.
func TestOddLoopIDs(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"target": 10}})
	delete(w.spec, "name")
	file := w.specFile()
	for id, branch := range map[string]string{
		"../../" + w.loop: "-.--.-" + w.loop, w.loop + "/a.lock": w.loop + "-a-lock", w.loop + " ~^:?*[\\@{x}": "",
		w.loop + strings.Repeat("n", 190): w.loop + strings.Repeat("n", 190),
	} {
		s := w.pawl("run", "--json", "--yes", "--id", id, file)
		require.Equal(t, 0, s.code, "%s: %s", id, s.err)
		var r report
		decode(t, s.out, &r)
		require.Equal(t, id, r.Loop)
		if branch != "" {
			require.Equal(t, "pawl/"+branch, r.Result.Branch)
		}
		require.Equal(t, 0, w.pawl("show", id).code)
	}
	for _, id := range []string{"-x", "größe", "a\nb", strings.Repeat("n", 201)} {
		s := w.pawl("run", "--yes", "--id="+id, file)
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "--id ")
		plain(t, s.err)
	}
}

// Without a name the loop is called after the repository's folder.
func TestLoopIsNamedAfterItsFolder(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"target": 10}})
	old := w.repo
	w.repo = filepath.Join(w.dir, "größte Höhe")
	require.NoError(t, os.Rename(old, w.repo))
	w.set(doc{"repo": doc{"path": w.repo}})
	delete(w.spec, "name")
	require.Regexp(t, `^gr--te H-he-[0-9a-f]{4}$`, w.run(0).Loop)
}
