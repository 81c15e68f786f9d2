package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/config"
	"pawl/internal/draft"
)

// example is what examples/README.md says about one.
type example struct {
	code  int
	lines []string
}

func examples(t *testing.T) map[string]example {
	t.Helper()
	found := map[string]example{}
	for _, m := range regexp.MustCompile("(?s)\n## ([a-z-]+)\n(.*?)Ends with exit code (\\d).*?\n```\n(.*?)\n```").FindAllStringSubmatch(readFile("examples/README.md"), -1) {
		code, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		found[m[1]] = example{code, strings.Split(m[4], "\n")}
	}
	return found
}

// Every loop that is in examples/ runs as its README shows, by the script that the README names.
func TestExamplesRunWithoutAnyKey(t *testing.T) {
	shown := examples(t)
	specs, err := filepath.Glob("examples/*/pawl.yaml")
	require.NoError(t, err)
	require.Len(t, shown, len(specs))
	for name, e := range shown {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, raises) // for its place, and the shared engine
			script, err := filepath.Abs("examples/try")
			require.NoError(t, err)
			cmd := exec.Command(script, name)
			cmd.Env = append(environ(w.home, w.dir), "PAWL="+program(t), "TMPDIR="+w.dir)
			tieToParent(cmd)
			out, err := cmd.CombinedOutput()
			require.Equal(t, e.code, cmd.ProcessState.ExitCode(), "%v\n%s", err, out)
			said := strings.Split(string(out), "\n")
			for _, line := range e.lines {
				at := 0
				for at < len(said) && !strings.HasPrefix(said[at], line) {
					at++
				}
				require.Less(t, at, len(said), "%q is not in\n%s", line, out)
				said = said[at+1:]
			}
		})
	}
}

func TestExamplesOfAgentsAreSpecs(t *testing.T) {
	files, err := filepath.Glob("examples/agents/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	more, err := filepath.Glob("examples/*/pawl.yaml")
	require.NoError(t, err)
	known := map[string]string{}
	for _, agent := range draft.Agents {
		known[agent.Name] = agent.Command
	}
	for _, path := range append(files, more...) {
		s, err := config.LoadSpec(path, nil)
		require.NoError(t, err)
		if filepath.Base(filepath.Dir(path)) == "agents" {
			require.Equal(t, known[strings.TrimSuffix(filepath.Base(path), ".yaml")], s.Agent.Command.Shell, "as pawl init writes it")
			require.Contains(t, readFile("examples/README.md"), path[len("examples/"):])
		}
	}
}

// What stands in the README and the docs as YAML with a goal is a spec.
func TestSpecsInTheDocsAreSpecs(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	n := 0
	for _, page := range append(pages, "README.md") {
		for _, m := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```").FindAllStringSubmatch(readFile(page), -1) {
			var doc map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(m[1]), &doc), page)
			if doc["goal"] == nil {
				continue
			}
			n++
			path := filepath.Join(t.TempDir(), "pawl.yaml")
			require.NoError(t, os.WriteFile(path, []byte(m[1]), 0o600))
			_, err := config.LoadSpec(path, nil)
			require.NoError(t, err, page)
		}
	}
	require.Positive(t, n)
}
