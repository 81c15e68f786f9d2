package testdir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"pawl/test/harness/tier"
)

const tmpfs = 0x01021994 // TMPFS_MAGIC of linux/magic.h

// InMemory runs the test binary again with a temporary folder in memory. Only this process and its children see the
// folder, and it is gone when the last of them ends. Call it before anything else that a test run needs. It does nothing
// if all tests are to run, if the temporary folder is in memory already, or if this user may not mount.
func InMemory() {
	if tier.Nightly || os.Getuid() != 0 {
		return
	}
	var at syscall.Statfs_t
	if syscall.Statfs(os.TempDir(), &at) != nil || at.Type == tmpfs {
		return
	}
	runtime.LockOSThread() // the mount is in this thread's namespace, and the thread that executes a program keeps its own
	dir := filepath.Join(os.TempDir(), "pawl-test")
	_ = os.Mkdir(dir, 0o755) // it stays: whoever removes it unmounts what other processes have there
	if syscall.Unshare(syscall.CLONE_NEWNS) != nil || syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") != nil ||
		syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777") != nil {
		return
	}
	self, err := os.Executable()
	if err == nil {
		_ = os.Setenv("TMPDIR", dir)
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "the tests can't run again:", err)
	os.Exit(1)
}
