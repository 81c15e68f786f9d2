package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// pure are the packages that decide everything about a loop.
var pure = []string{
	"internal/act",
	"internal/agent/stream", "internal/agent/transcript",
	"internal/assess", "internal/artifact",
	"internal/canary",
	"internal/charter",
	"internal/detect",
	"internal/evidence", "internal/evidence/sampling",
	"internal/excerpt",
	"internal/fault",
	"internal/foreign",
	"internal/govern",
	"internal/incoming",
	"internal/issue",
	"internal/kind",
	"internal/lazyregexp",
	"internal/launch",
	"internal/list",
	"internal/must",
	"internal/loop",
	"internal/markdown",
	"internal/meter/tally",
	"internal/outcome",
	"internal/phase",
	"internal/program",
	"internal/reason",
	"internal/seal",
	"internal/secret",
	"internal/shell",
	"internal/span",
	"internal/spec",
	"internal/steward",
	"internal/task",
	"internal/testreport",
	"internal/visible",
	"internal/wire",
	"workflows",
	"workflows/display",
	"workflows/gatekeeper",
	"workflows/hosting",
	"workflows/journal",
	"workflows/notices",
	"workflows/stewarding",
}

// worldly are imports with which pure code could touch the world.
var worldly = []string{"os", "os/exec", "net", "net/http", "io/ioutil", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "github.com/spf13/viper"}

// clocks are the functions of package time that depend on the machine's clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

func TestPurePackagesDoNotTouchTheWorld(t *testing.T) {
	for _, dir := range pure {
		for _, file := range sources(t, dir) {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				require.NotContains(t, worldly, path, "%s imports %s", dir, path)
				if own, ok := strings.CutPrefix(path, "pawl/"); ok {
					require.Contains(t, pure, own, "%s imports %s, which is not pure", dir, path)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
						require.False(t, slices.Contains(clocks, sel.Sel.Name), "%s uses time.%s", dir, sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

func TestOnlyTheRootLinksTheServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-C", root, "-deps", "-f", "{{.ImportPath}}", "./internal/cli", "./internal/host", "./config", "./workflows", "./activities", "./worker", "./starter").Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	require.Subset(t, linked, []string{"pawl/worker", "pawl/starter"})
	for _, path := range linked {
		require.False(t, strings.HasPrefix(path, "go.temporal.io/server/") || strings.HasPrefix(path, "github.com/temporalio/ui-server/"), path)
	}
}

func TestOnlyTestsImportWhatTestsShare(t *testing.T) {
	out, err := exec.Command("go", "list", "-C", root, "-f", "{{.ImportPath}}: {{.Imports}}", ".", "./worker", "./starter", "./config", "./activities/...", "./workflows/...", "./internal/...").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "pawl/internal/cli: ")
	require.NotContains(t, string(out), "pawl/test/")
}

// TestOneTemporalFreeCore keeps the rules free of Temporal, so that table tests can test them.
func TestOneTemporalFreeCore(t *testing.T) {
	for _, dir := range pure {
		if strings.HasPrefix(dir, "workflows") || dir == "internal/wire" {
			continue
		}
		for _, file := range sources(t, dir) {
			for _, spec := range file.Imports {
				require.False(t, strings.HasPrefix(strings.Trim(spec.Path.Value, `"`), "go.temporal.io/"), "%s imports Temporal", dir)
			}
		}
	}
}

// TestTheClientKnowsNoCommandLine keeps internal/client usable by activities.
func TestTheClientKnowsNoCommandLine(t *testing.T) {
	for _, file := range sources(t, "internal/client") {
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			for _, above := range []string{"github.com/spf13/", "pawl/internal/cli", "pawl/internal/ui", "pawl/internal/host", "pawl/activities", "pawl/config"} {
				require.False(t, strings.HasPrefix(path, above), "internal/client imports %s", path)
			}
		}
	}
}

// subjects are the packages of the activities, in order: none imports a later one. The root package puts them together.
var subjects = []string{
	"activities/hosted", "activities/contracts", "activities/recording", "activities/changes", "activities/proposals",
	"activities/steps", "activities/baselines", "activities/calls", "activities/opening", "activities/preflight", "activities/stewards", "activities",
}

func TestNoSubjectOfTheActivitiesImportsALaterOne(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root, "activities", "*", "*.go"))
	require.NoError(t, err)
	for _, file := range folders {
		require.Contains(t, subjects, "activities/"+filepath.Base(filepath.Dir(file)))
	}
	for i, dir := range subjects {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				path, own := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "pawl/")
				require.False(t, own && slices.Contains(subjects[i:], path), "%s imports %s", name, path)
			}
		}
	}
}

// TestNoGoroutineOfAnActivityEndsTheProcess: a panic in it would end all loops of the worker.
func TestNoGoroutineOfAnActivityEndsTheProcess(t *testing.T) {
	for _, dir := range []string{"activities", "internal/git", "internal/ledger", "internal/store", "internal/trees", "internal/userrepo", "internal/workspace"} {
		for _, file := range sources(t, dir) {
			for _, spec := range file.Imports {
				require.NotEqual(t, `"golang.org/x/sync/errgroup"`, spec.Path.Value, "%s: use internal/panics", dir)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if started, ok := n.(*ast.GoStmt); ok {
					caught := false
					ast.Inspect(started, func(n ast.Node) bool {
						sel, ok := n.(*ast.SelectorExpr)
						caught = caught || ok && sel.Sel.Name == "Caught"
						return true
					})
					require.True(t, caught, "%s starts a goroutine whose panic nobody catches: use internal/panics", dir)
				}
				return true
			})
		}
	}
}

func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	var out []*ast.File
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		out = append(out, f)
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, out, dir)
	return out
}
