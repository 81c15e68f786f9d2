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
	"internal/loop/api",
	"internal/agent/adapter", "internal/agent/transcript",
	"internal/steward/risk", "internal/steward/statusfile",
	"internal/judge/canary",
	"internal/steward/charter",
	"internal/steward/stuck",
	"internal/metric", "internal/metric/stats",
	"internal/lib/text/excerpt",
	"internal/fault",
	"internal/lib/loosejson",
	"internal/loop/rules",
	"internal/steward/api",
	"internal/steward/delivery",
	"internal/spec/issue",
	"internal/spec/kind",
	"internal/lib/lazyregexp",
	"internal/client/launch",
	"internal/lib/list",
	"internal/lib/must",
	"internal/loop",
	"internal/lib/text/markdown",
	"internal/exec/usage",
	"internal/loop/result",
	"internal/spec/phase",
	"internal/spec/agents",
	"internal/metric/reason",
	"internal/judge/evaluator",
	"internal/lib/secretscan",
	"internal/lib/shell",
	"internal/telemetry/span",
	"internal/spec",
	"internal/steward",
	"internal/steward/task",
	"internal/judge/testreport",
	"internal/lib/text/visible",
	"internal/fault/wire",
	"workflows/loop",
	"workflows/display",
	"workflows/gates",
	"workflows/placement",
	"workflows/journal",
	"workflows/steward",
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
	out, err := exec.Command("go", "list", "-C", root, "-deps", "-f", "{{.ImportPath}}", "./internal/cli", "./internal/worker", "./config", "./workflows/loop", "./activities", "./worker", "./starter").Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	require.Subset(t, linked, []string{"pawl/worker", "pawl/starter"})
	for _, path := range linked {
		require.False(t, strings.HasPrefix(path, "go.temporal.io/server/") || strings.HasPrefix(path, "github.com/temporalio/ui-server/"), path)
	}
}

// A program that starts commands starts itself as their supervisor, and as the client of an agent. One that does not become
// them begins its own work instead, and each command dies.
func TestEveryProgramBecomesTheSupervisorThatItStarts(t *testing.T) {
	const format = `{{if eq .Name "main"}}{{.Dir}} {{.Deps}}{{end}}`
	out, err := exec.Command("go", "list", "-C", root, "-f", format, ".", "./worker", "./starter").Output()
	require.NoError(t, err)
	for program := range strings.Lines(string(out)) {
		dir, deps, _ := strings.Cut(program, " ")
		for name, pkg := range map[string]string{"supervisor": "pawl/internal/exec/supervisor", "acp": "pawl/internal/agent/acp"} {
			if strings.Contains(deps, pkg) {
				require.True(t, callsInMain(t, dir, name), "main of %s has to call %s.Main first", dir, name)
			}
		}
	}
}

// callsInMain reports whether the main function of a folder calls Main of the package with that name.
func callsInMain(t *testing.T, dir, name string) (calls bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "main.go"), nil, 0)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		main, ok := decl.(*ast.FuncDecl)
		if !ok || main.Name.Name != "main" {
			continue
		}
		ast.Inspect(main, func(n ast.Node) bool {
			called, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := called.X.(*ast.Ident)
			calls = calls || ok && pkg.Name == name && called.Sel.Name == "Main"
			return true
		})
	}
	return calls
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
		if strings.HasPrefix(dir, "workflows") || dir == "internal/fault/wire" {
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
			for _, above := range []string{"github.com/spf13", "pawl/internal/cli", "pawl/internal/worker", "pawl/activities", "pawl/config"} {
				require.False(t, path == above || strings.HasPrefix(path, above+"/"), "internal/client imports %s", path)
			}
		}
	}
}

// subjects are the packages of the activities, in order: none imports a later one. The root package puts them together.
var subjects = []string{
	"activities/workspace", "activities/contract", "activities/record", "activities/commit", "activities/proposal",
	"activities/command", "activities/baseline", "activities/agentcall", "activities/open", "activities/preflight", "activities/steward", "activities",
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
	for _, dir := range []string{"activities", "internal/git", "internal/ledger", "internal/git/store", "internal/git/worktree", "internal/git/userrepo", "internal/home/hostrecord"} {
		for _, file := range sources(t, dir) {
			for _, spec := range file.Imports {
				require.NotEqual(t, `"golang.org/x/sync/errgroup"`, spec.Path.Value, "%s: use internal/lib/safego", dir)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if started, ok := n.(*ast.GoStmt); ok {
					caught := false
					ast.Inspect(started, func(n ast.Node) bool {
						sel, ok := n.(*ast.SelectorExpr)
						caught = caught || ok && sel.Sel.Name == "Caught"
						return true
					})
					require.True(t, caught, "%s starts a goroutine whose panic nobody catches: use internal/lib/safego", dir)
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
		if rel, _ := filepath.Rel(root, path); err == nil && d.IsDir() && rel != dir && slices.Contains(pure, filepath.ToSlash(rel)) {
			return filepath.SkipDir // it is on the list itself
		}
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
