package commands_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/config"
	"pawl/internal/cli/scaffold"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/test/harness/world"
)

// example is the entry of an example in examples/README.md.
type example struct {
	code  int
	lines []string
}

func examples(t *testing.T) map[string]example {
	t.Helper()
	found := map[string]example{}
	for _, m := range regexp.MustCompile("(?s)\n## ([a-z-]+)\n(.*?)with exit code (\\d).*?\n```\n(.*?)\n```").FindAllStringSubmatch(world.ReadFile("examples/README.md"), -1) {
		code, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		found[m[1]] = example{code, strings.Split(m[4], "\n")}
	}
	return found
}

// Every loop in examples/ runs as its README shows, with the script that the README names.
func TestExamplesRunWithoutAnyKey(t *testing.T) {
	shown := examples(t)
	specs, err := filepath.Glob("examples/*/pawl.yaml")
	require.NoError(t, err)
	require.Len(t, shown, len(specs))
	for _, name := range world.Sample(1, slices.Sorted(maps.Keys(shown))) {
		e := shown[name]
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Raises) // for its folder and the shared engine
			script, err := filepath.Abs("examples/try")
			require.NoError(t, err)
			cmd := exec.Command(script, name)
			cmd.Env = append(world.Environ(w.Home, w.Dir), "PAWL="+world.Program(t), "TMPDIR="+w.Dir)
			world.TieToParent(cmd)
			out, err := cmd.CombinedOutput()
			require.Equal(t, e.code, cmd.ProcessState.ExitCode(), "%v\n%s", err, out)
			comeInOrder(t, e.lines, string(out))
		})
	}
}

func TestExamplesOfAgentsAreSpecs(t *testing.T) {
	files, err := filepath.Glob("examples/agents/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(scaffold.Agents))
	more, err := filepath.Glob("examples/*/pawl.yaml")
	require.NoError(t, err)
	for _, path := range append(files, more...) {
		s, err := config.LoadSpec(path, nil)
		require.NoError(t, err)
		if filepath.Base(filepath.Dir(path)) == "agents" {
			require.Equal(t, strings.TrimSuffix(filepath.Base(path), ".yaml"), s.Agent.Use, "as pawl init writes it")
			require.Contains(t, world.ReadFile("examples/README.md"), path[len("examples/"):])
		}
	}
}

// ofASteward reports whether only the spec of a steward has a key.
func ofASteward(key string) bool {
	return slices.Contains(charter.Keys(), key) && !slices.Contains(spec.KeysOf(spec.Spec{}), key)
}

// Every YAML block in the README and the docs is a spec, or a part of one.
func TestSpecsInTheDocsAreSpecs(t *testing.T) {
	const whole = "goal: climb\nscope: [\"work/**\"]\nverify: {command: ./measure.sh}\nagent: {command: ./agent.sh}\napprovals: {tools: [\"*\"]}\n"
	n := 0
	for _, page := range pages(t) {
		for _, m := range fenced.FindAllStringSubmatch(world.ReadFile(page), -1) {
			if m[1] != "yaml" {
				continue
			}
			n++
			var part, spec map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(m[2]), &part), page)
			if part["receivers"] != nil {
				continue // a file of Alertmanager's
			}
			base, steward := whole, slices.ContainsFunc(slices.Collect(maps.Keys(part)), ofASteward)
			if steward {
				base = "kind: steward\nname: shop\n"
			}
			require.NoError(t, yaml.Unmarshal([]byte(base), &spec))
			if part["goal"] != nil {
				spec = part
			}
			maps.Copy(spec, part)
			text, err := yaml.Marshal(spec)
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "pawl.yaml")
			require.NoError(t, os.WriteFile(path, text, 0o600))
			file, err := config.Open(path, nil)
			require.NoError(t, err, "%s\n%s", page, m[2])
			if steward {
				_, err = file.Steward()
			} else {
				_, err = file.Loop()
			}
			require.NoError(t, err, "%s\n%s", page, m[2])
		}
	}
	require.Greater(t, n, 5)
}
