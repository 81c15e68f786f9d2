// Package testbin builds programs for tests that drive them from outside. Each program is linked once for
// all packages of a test run: the linked file stays beside go's cache, with a stamp of what it was made of. While that is
// the same, go build is not even asked: to find out that nothing has changed takes it a second of the processor. Start at
// Building.
package testbin

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

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

// build links the program, made of these sources, where the packages of a test run share it, one at a time, and gives the
// caller a name for it that stays when the next change replaces the shared one.
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
	return copyFile(shared, to) // another file system
}

// place is where the program of a package is shared by everything that tests this checkout.
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

// link builds the program, unless the file is what these sources have been built into.
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

// sources tells apart everything that programs of the module are made of. It looks at each file, so that the result of a
// test depends on it: a test's binary does not contain it, and `go test` would take an old result for this one.
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
		case errors.Is(err, fs.ErrNotExist):
			return nil // another test's
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case !d.IsDir() && !strings.HasSuffix(path, "_test.go"):
			var info fs.FileInfo
			if info, err = os.Stat(path); err == nil {
				fmt.Fprintln(made, path, identity(info))
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return fmt.Sprintf("%x", made.Sum(nil)), err
}

// identity is what no change of a file leaves as it was.
func identity(f fs.FileInfo) string {
	file, _ := f.Sys().(*syscall.Stat_t)
	return fmt.Sprint(" ", file.Ino, f.Size(), f.ModTime().UnixNano())
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
