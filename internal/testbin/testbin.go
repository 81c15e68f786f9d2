// Package testbin builds programs for tests that drive them from outside. They are built by
// `go run`, which caches what it links, and kept by the test's own binary in the place of
// `go run`'s execution: Main in a TestMain does that part. Start at Building.
package testbin

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// keepAs tells a test's binary that it is not to test anything but to keep the program that
// `go run` has built under that name.
const keepAs = "PAWL_TEST_KEEP_AS"

// Main keeps the program and exits where `go run` has started this binary to execute it. It has
// to come before anything else of a TestMain but other programs that the binary is.
func Main() {
	to := os.Getenv(keepAs)
	if to == "" {
		return
	}
	if err := copyFile(os.Args[1], to); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Parallel parses the flags and sets how many tests run at once, where -parallel does not: the
// processes of these tests wait as much as they work.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", fmt.Sprint(n))
	}
}

// Building returns what builds the program of a package the first time that it is called, with
// flags of the build, and returns its path: to() then. Root is the module's root.
func Building(root, pkg string, to func() string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		if err := dependOnSources(root); err != nil {
			return "", err
		}
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		cmd := exec.Command("go", append(append([]string{"run", "-exec", self}, flags...), pkg)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), keepAs+"="+to())
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
		return to(), nil
	})
}

// dependOnSources looks at everything that programs of the module are made of. A test's binary
// does not contain it, and `go test` would take an old result for this one.
func dependOnSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another test's
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case !d.IsDir() && !strings.HasSuffix(path, "_test.go"):
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
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
