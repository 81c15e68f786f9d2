package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// estrange has a command of root's see of a tree what everybody may read, whatever is put there later: in it all files belong to
// nobody, so that neither an owner's rights nor root's reach them. Not every file system can do that.
func estrange(tree int) error {
	ns, err := strangers()
	if err != nil {
		return err
	}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())})
}

// HandStrangers has a supervisor that is yet to start inherit what estrange needs, so that a worker makes it once and not every
// supervisor for itself, which costs it as much as a command. It returns the number of the file, 0 for none.
func HandStrangers(cmd *exec.Cmd, by Means) uintptr {
	if os.Geteuid() != 0 || by != ByNamespace {
		return 0
	}
	ns, err := strangers()
	if err != nil {
		return 0
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, ns)
	return uintptr(2 + len(cmd.ExtraFiles))
}

// TakeStrangers keeps what HandStrangers has handed to this process. Call it before any room is made.
func TakeStrangers(fd uintptr) {
	if fd != 0 {
		handed := os.NewFile(fd, "strangers")
		strangers = func() (*os.File, error) { return handed, nil }
	}
}

// strangers is a user namespace that knows none of the users who have files.
var strangers = sync.OnceValues(func() (*os.File, error) {
	runtime.LockOSThread() // which traces the process: it stops before its first instruction
	defer runtime.UnlockOSThread()
	const nobody = 65534
	one := []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}}
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: one, GidMappings: one, Ptrace: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	return os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
})
