// Package testbin builds programs for tests that drive them from outside. Each program is linked once for all packages
// of a test run. The linked file stays beside go's cache, with a stamp of what it was made from. As long as the stamp
// is the same, go build does not run, because it takes a second of processor time to find that nothing has changed.
// Start at Building.
package testbin

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// Parallel parses the flags, and sets how many tests run at the same time unless -parallel does. These tests' processes
// wait as much as they work.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", fmt.Sprint(n))
	}
}

// Building returns a function that builds the program of a package at its first call, with these build flags, and
// returns the program's path, which is to(). root is the module's root.
func Building(root, pkg string, to func() string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		made, err := sources(root)
		if err != nil {
			return "", err
		}
		if err := build(root, pkg, made, to(), flags); err != nil {
			return "", fmt.Errorf("building %s: %w", pkg, err)
		}
		return to(), nil
	})
}

// build links the program from these sources to a file that all packages of the test run share, one package at a time.
// Then it gives the caller its own name for that file, which stays when a later change replaces the shared one.
func build(root, pkg, made, to string, flags []string) error {
	shared, err := place(root, pkg, flags)
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(shared+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := link(shared, root, pkg, made, flags); err != nil {
		return err
	}
	if os.Link(shared, to) == nil {
		return nil
	}
	return exec.Command("cp", shared, to).Run() // it is on another file system
}

// place returns the path at which all tests of this checkout share the program of a package.
func place(root, pkg string, flags []string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(strings.Join(append([]string{root, pkg}, flags...), "\x00")))
	dir := filepath.Join(cache, "pawl-test", "bin")
	return filepath.Join(dir, fmt.Sprintf("%s-%x", filepath.Base(filepath.Join(root, pkg)), key[:6])), os.MkdirAll(dir, 0o700)
}

// link builds the program, unless the file was built from the same sources.
func link(shared, root, pkg, made string, flags []string) error {
	file, err := os.Stat(shared)
	if err == nil {
		stamp, err := os.ReadFile(shared + ".stamp")
		if err == nil && string(stamp) == made+identity(file) {
			return nil
		}
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", shared}, flags...), pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if file, err = os.Stat(shared); err != nil {
		return err
	}
	return os.WriteFile(shared+".stamp", []byte(made+identity(file)), 0o600)
}

// sources returns a stamp of everything that the module's programs are made from. It looks at each file, which makes
// the result of a test depend on it. Otherwise `go test` would use an old result, because the test's binary does not
// contain the program.
func sources(root string) (string, error) {
	made := sha256.New()
	fmt.Fprintln(made, runtime.Version())
	for _, kv := range os.Environ() { // GOFLAGS, CGO_ENABLED and the like
		if strings.HasPrefix(kv, "GO") || strings.HasPrefix(kv, "CGO") || strings.HasPrefix(kv, "CC=") {
			fmt.Fprintln(made, kv)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case !d.IsDir() && !strings.HasSuffix(path, "_test.go"):
			var info fs.FileInfo
			if info, err = os.Stat(path); err == nil {
				fmt.Fprintln(made, path, identity(info))
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it belongs to another test
		}
		return err
	})
	return fmt.Sprintf("%x", made.Sum(nil)), err
}

// identity returns what differs after any change of a file.
func identity(f fs.FileInfo) string {
	file, _ := f.Sys().(*syscall.Stat_t)
	return fmt.Sprint(" ", file.Ino, f.Size(), f.ModTime().UnixNano())
}
