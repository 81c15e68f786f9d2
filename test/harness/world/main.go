package world

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/test/harness/testbin"
	"pawl/test/harness/testdir"
	"pawl/test/harness/tier"
)

// Update makes tests write what they compare with: docs/reference/escapes.md, the histories of loops.
var Update = flag.Bool("update", false, "write what tests compare anew: docs/reference/escapes.md, histories of loops")

// Scratch is the folder of this package's test run.
var Scratch string

// Main runs the tests of a package from the module's root, in memory if possible, and ends what they share.
func Main(m *testing.M) int {
	sandbox.Main()
	testdir.InMemory()
	return OnDisk(m)
}

// OnDisk is Main for tests that are about what is on disk when a process dies.
func OnDisk(m *testing.M) int {
	sandbox.Main()
	testbin.Parallel(6)
	if err := enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(Scratch)
	code := m.Run()
	for _, stop := range []func() error{stopShared, stopCluster} {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// enter changes to the module's root, because all paths start there, and makes Scratch.
func enter() error {
	for {
		if _, err := os.Stat("go.mod"); err == nil {
			break
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
		if dir, err := os.Getwd(); err != nil || dir == "/" {
			return errors.New("these tests are not in the module")
		}
	}
	dir, err := os.MkdirTemp("", "pawl-")
	if err == nil {
		Scratch, err = filepath.EvalSymlinks(dir)
	}
	return err
}

// All reports whether all tests are to run, however long they take.
func All() bool { return tier.Nightly || *Update }

// Slow skips a test that takes long or needs much, except at night. why names what stands for it otherwise.
func Slow(t testing.TB, why string) {
	t.Helper()
	if !All() {
		t.Skip("runs with -tags nightly: " + why)
	}
}

// Lacks skips a test because a tool is missing. Where all tools are to be there (PAWL_TEST_ALL=1) the test fails instead.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("PAWL_TEST_ALL") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Sample returns n of the cases, spread evenly and always the same, including the first and the last; at night all of them.
func Sample[T any](n int, cases []T) []T {
	if All() || len(cases) <= n {
		return cases
	}
	some := make([]T, 0, n)
	for i := range n {
		some = append(some, cases[i*(len(cases)-1)/max(1, n-1)])
	}
	return some
}

// EndToEnd returns all cases in the end-to-end tier, n of them below it.
func EndToEnd[T any](n int, cases []T) []T {
	if tier.EndToEnd {
		return cases
	}
	return Sample(n, cases)
}

// Program builds the program once per test run and returns its path.
func Program(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = Building("pawl", ".")

// Building returns a function that builds one of our programs.
func Building(name, pkg string, flags ...string) func() (string, error) {
	return testbin.Building(".", pkg, func() string { return filepath.Join(Scratch, name) }, flags...)
}

// caches are variables for go's caches, so that the tests' own $HOME does not make go build everything again.
var caches = sync.OnceValue(func() []string {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if f := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil && len(f) == 2 {
		return []string{"GOCACHE=" + f[0], "GOMODCACHE=" + f[1]}
	}
	return nil
})

// Environ returns a user's environment without anything that leads out of the test.
func Environ(home, dir string) []string {
	env := slices.Clone(caches())
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "PAWL_") && !strings.HasPrefix(name, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_DEFAULT_HASH=sha1", "GIT_DEFAULT_REF_FORMAT=files", "PAWL_HOME="+home, "GOGC=400") // no process lives long
}
