package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/proc"
)

// keepAs tells this binary that it is not to test anything but to keep the program that `go run`
// has built under that name.
const keepAs = "PAWL_E2E_KEEP_AS"

// scratch is the folder of this test run.
var scratch string

func TestMain(m *testing.M) {
	proc.Main()
	if to := os.Getenv(keepAs); to != "" {
		if err := copyFile(os.Args[1], to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if !given("test.parallel") {
		flag.Set("test.parallel", "4") // the processes wait as much as they work
	}
	var err error
	if scratch, err = os.MkdirTemp("", "pawl-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

func given(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

// program builds the program in node once per test run and returns its path. Built by `go run`,
// because that caches what it links, and kept by this binary in the place of `go run`'s own
// execution.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = sync.OnceValues(func() (string, error) {
	if err := dependOnSources(); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	to := filepath.Join(scratch, "node")
	cmd := exec.Command("go", "run", "-tags", "crashtest", "-exec", self, "./node")
	cmd.Env = append(os.Environ(), keepAs+"="+to)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the node: %w\n%s", err, out)
	}
	return to, nil
})

// dependOnSources opens everything that the node is made of. The test binary does not contain it,
// and `go test` would take an old result for this one.
func dependOnSources() error {
	return filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !d.IsDir() && (strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") || d.Name() == "go.mod") {
			_, err = os.Stat(path)
		}
		return err
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// lines splits what a program said.
func lines(out []byte) []string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(out, []byte("?"))))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
