package scaffold_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/config"
	"pawl/internal/cli/scaffold"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
	"pawl/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// repositories are small repositories of many kinds: file name → content.
var repositories = map[string]map[string]string{
	"empty": {},
	"text":  {"README.md": "words"},
	"go": {
		"go.mod": "module x", "go.sum": "", "main.go": "package main", "parse/parse.go": "package parse", ".golangci.yml": "",
		"parse/parse_test.go": "package parse\n\nfunc TestParse(t *testing.T) {}\n", "parse/bench_test.go": "package parse\n\nfunc BenchmarkParse(b *testing.B) {}\n",
	},
	"go without benchmarks": {"go.mod": "module x", "x.go": "package x", "x_test.go": "package x\nfunc TestX(t *testing.T) {}"},
	"node": {
		"package.json":      `{"scripts": {"test": "vitest run", "lint": "eslint .", "bench": "node bench/all.mjs"}, "devDependencies": {"vitest": "1"}}`,
		"package-lock.json": "{}", "src/a.ts": "", "src/a.test.ts": "", "tsconfig.json": "{}", "bench/all.mjs": "",
	},
	"node as npm init leaves it": {"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`, "index.js": ""},
	"node with pnpm":             {"package.json": `{"scripts": {"test": "x", "typecheck": "tsc"}, "dependencies": {"a": "1"}}`, "pnpm-lock.yaml": "", "lib/a.js": ""},
	"node that is broken":        {"package.json": `{"scripts": `, "a.js": ""},
	"python":                     {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n", "uv.lock": "", "src/a/__init__.py": "", "tests/test_a.py": ""},
	"python of old":              {"setup.py": "", "thing/__init__.py": "", "thing/core.py": "", "test_thing.py": "", "benchmarks/bench_core.py": ""},
	"rust":                       {"Cargo.toml": "", "Cargo.lock": "", "src/lib.rs": "", "tests/a.rs": "", "benches/b.rs": ""},
	"make":                       {"Makefile": "CC := cc\nall: prog\ntest: prog\n\t./prog --test\nlint:\n\ttrue\nbench: prog\n\t./prog --bench\n", "prog.c": "", "src/a.c": ""},
	"several":                    {"go.mod": "module x", "a.go": "package a", "b.go": "package a", "web/x.ts": "", "package.json": `{"scripts": {"test": "jest"}}`, "Makefile": "test:\n\ttrue\n"},
	"ruby":                       {"Gemfile": "", "Gemfile.lock": "", "lib/a.rb": "", "spec/a_spec.rb": ""},
	"a script that measures":     {"measure.sh": "echo 1", "scripts/run-tests.sh": "", "work/n": "10"},
	"c":                          {"main.c": "", "include/a.h": "", "CMakeLists.txt": ""},
	"gradle":                     {"build.gradle.kts": "", "gradlew": "", "app/src/main/kotlin/A.kt": "", "app/src/test/kotlin/B.kt": "", "core/src/main/java/C.java": ""},
	"gradle without its wrapper": {"build.gradle": "", "src/main/java/C.java": ""},
	"many projects": {
		"README.md": "", "services/a/go.mod": "", "services/a/a.go": "package a", "services/a/a_test.go": "package a\nfunc BenchmarkA(b *testing.B) {}\n",
		"services/b/Cargo.toml": "", "services/b/src/main.rs": "", "web/package.json": "{}", "web/packages/x/package.json": "{}",
	},
	"java": {"pom.xml": "", "src/main/java/A.java": "", "src/test/java/ATest.java": ""},
}

func look(files map[string]string) scaffold.Repository {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	return scaffold.Look(scaffold.Checkout{Files: names, Read: func(name string) string { return files[name] }})
}

// decided returns r with a direction, if it has none.
func decided(r scaffold.Repository) scaffold.Repository {
	r.Metric.Direction = cmp.Or(r.Metric.Direction, "higher")
	return r
}

func TestSpecsForRepositoriesOfManyKinds(t *testing.T) {
	t.Parallel()
	for name, files := range repositories {
		t.Run(name, func(t *testing.T) {
			text := scaffold.Spec(kind.Improve, decided(look(files)), scaffold.Options{Agent: scaffold.Agents[0], OnPath: name != "empty"})
			golden := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".yaml")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), text)

			_, err = config.LoadSpec(golden, nil)
			if strings.Contains(text, `command: "" #`) {
				require.ErrorContains(t, err, "verify.command: is missing")
				return
			}
			require.NoError(t, err, "what init writes is a spec")
			require.NoError(t, conforms(t, text))
		})
	}
}

// TestWhatInitWritesIsFormatted: the check of a repository may look at all of its YAML. These are the rules of Prettier that
// a draft could break. We ran Prettier 3.7 on the golden files and on drafts of nine real repositories.
func TestWhatInitWritesIsFormatted(t *testing.T) {
	long := map[string]string{"go.mod": "", "go.sum": "", "a.go": "", "a_test.go": "", "api/a.pb.go": "", "vendor/x/x.go": "", "third_party/y/y.go": ""}
	for _, k := range kind.All {
		for name, files := range repositories {
			found := decided(look(files))
			for line := range strings.Lines(scaffold.Spec(k, found, scaffold.Options{Agent: scaffold.Agents[0], Name: "x"})) {
				require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "%s: blanks at the end", name)
				require.NotRegexp(t, `^ *[a-zA-Z]+: '[^"\\]*'`, line, "%s: single quotes", name)
			}
			text := scaffold.Spec(k, found, scaffold.Options{Agent: scaffold.Agents[0], Name: "x"})
			require.NotContains(t, text, "\n\n\n", name)
			for _, m := range regexp.MustCompile(`(?m)^( *)command: \|-\n( *)`).FindAllStringSubmatch(text, -1) {
				require.Equal(t, m[1]+"  ", m[2], name)
			}
		}
		for line := range strings.Lines(scaffold.Spec(k, look(long), scaffold.Options{Agent: scaffold.Agents[0], Name: "x"})) {
			if strings.Contains(line, ": [") {
				require.LessOrEqual(t, len(line), 81, line)
			}
		}
	}
}

func TestSpecsForEveryAgent(t *testing.T) {
	t.Parallel()
	for _, agent := range scaffold.Agents {
		path := filepath.Join(t.TempDir(), "pawl.yaml")
		text := scaffold.Spec(kind.Improve, look(repositories["go"]), scaffold.Options{Agent: agent, Goal: "it's \"faster\": #1\nor so"})
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := config.LoadSpec(path, nil)
		require.NoError(t, err, text)
		require.Equal(t, agent.Name, s.Agent.Use)
		require.Equal(t, "it's \"faster\": #1\nor so", s.Goal)
	}
}

// TestDeliverIsWrittenInKeysOfTheContract checks that init writes a valid spec. Only the verify command is missing if
// no tests were found, because the user has to say when the work is done.
func TestDeliverIsWrittenInKeysOfTheContract(t *testing.T) {
	t.Parallel()
	for name, files := range repositories {
		found := look(files)
		text := scaffold.Spec(kind.Deliver, found, scaffold.Options{Agent: scaffold.Agents[0], OnPath: true})
		var doc map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &doc), "%s\n%s", name, text)
		require.NoError(t, conforms(t, text), name)
		_, err := spec.FromMap(doc)
		if found.Test != "" {
			require.NoError(t, err, name)
			continue
		}
		var problems spec.Problems
		require.ErrorAs(t, err, &problems, name)
		require.Len(t, problems, 1, name)
		assert.Equal(t, "verify.command", problems[0].Key, name)
	}
}

// TestAStewardsDraftLoadsForEveryRepository checks that the draft loads as a charter, and that its loops get
// everything that a step of each kind needs.
func TestAStewardsDraftLoadsForEveryRepository(t *testing.T) {
	t.Parallel()
	for name, files := range repositories {
		for _, agent := range scaffold.Agents {
			path := filepath.Join(t.TempDir(), "steward.yaml")
			text := scaffold.Spec(kind.Steward, decided(look(files)), scaffold.Options{Agent: agent, OnPath: true, Name: "it's 1: shop"})
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			c, err := config.LoadCharter(path, nil)
			require.NoError(t, err, "%s\n%s", name, text)
			require.NoError(t, conforms(t, text), name)
			require.Equal(t, "it's 1: shop", c.Name)
			_, asks := c.Planner()
			require.True(t, asks)
			require.Equal(t, agent.Name, c.Agent.Use)
			if look(files).Metric.Command == "" {
				continue // each plan says when its work is done
			}
			for _, k := range kind.Loops() {
				s, err := c.Loop(task.Step{ID: "fix", Kind: k}, charter.Caps{Loop: "shop-a-fix", Task: "a", Goal: "Mend it", Plan: "p", Last: true})
				require.NoError(t, err, "%s\n%s", name, text)
				require.Contains(t, s.Protect, "steward.yaml")
			}
		}
	}
}

// The size of the code is a metric only if tests guard it: deleting the code would be the best way to make it smaller.
func TestTheMetricOfARepositoryWithoutOneIsItsSize(t *testing.T) {
	t.Parallel()
	for want, files := range map[string][]string{
		"find src lib -type f -exec cat {} + | wc -c":                                               {"src/a.c", "lib/b.c"},
		"find . -type f -not -path './.git/*' -not -path '*/node_modules/*' -exec cat {} + | wc -c": {"a.txt"},
		"find . -type f -not -path './.git/*' -not -path '*/node_modules/*' \\( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.cpp' -o -name '*.cxx' -o -name '*.hpp' \\) -exec cat {} + | wc -c":    {"a.c"},
		"find . -type f -not -path './.git/*' -not -path '*/node_modules/*' \\( -name '*.py' \\) -exec cat {} + | wc -c":                                                                                     {"setup.py"},
		"find . -type f -not -path './.git/*' -not -path '*/node_modules/*' \\( -name '*.go' \\) -exec cat {} + | wc -c":                                                                                     {"go.mod", "a.go"},
		"find . -type f -not -path './.git/*' -not -path '*/node_modules/*' \\( -name '*.js' -o -name '*.mjs' -o -name '*.cjs' -o -name '*.jsx' -o -name '*.ts' -o -name '*.tsx' \\) -exec cat {} + | wc -c": {"package.json"},
	} {
		bare := scaffold.Look(scaffold.Checkout{Files: files, Read: func(string) string { return "" }})
		if bare.Test == "" {
			require.Empty(t, bare.Metric.Command, files)
		}
		tested := scaffold.Look(scaffold.Checkout{Files: append(files, "Makefile"), Read: func(name string) string {
			if name == "Makefile" {
				return "test:\n\ttrue\n"
			}
			return ""
		}})
		require.Equal(t, want, tested.Metric.Command)
	}
}

// conforms validates a YAML text by the schema.
func conforms(t *testing.T, text string) error {
	t.Helper()
	var raw any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	data, err := json.Marshal(raw)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	require.NoError(t, err)
	of, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema.JSON)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("s.json", of))
	s, err := c.Compile("s.json")
	require.NoError(t, err)
	return s.Validate(doc)
}
