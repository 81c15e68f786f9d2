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

// estrange changes a tree of mounts so that root's commands see only what everybody may read, also of files that
// appear later. All files in it belong to nobody, so neither the owner's rights nor root's apply. Not every file
// system supports that.
func estrange(tree int) error {
	ns, err := strangers()
	if err != nil {
		return err
	}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())})
}

// HandStrangers lets a supervisor that is about to start inherit what estrange needs. So a worker makes it once. If
// each supervisor made its own, that would cost as much as a command. HandStrangers returns the number of the file, 0
// for none.
func HandStrangers(cmd *exec.Cmd, means Means) uintptr {
	if os.Geteuid() != 0 || means != ByNamespace {
		return 0
	}
	ns, err := strangers()
	if err != nil {
		return 0
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, ns)
	return uintptr(2 + len(cmd.ExtraFiles))
}

// TakeStrangers keeps what HandStrangers passed to this process. Call it before any room is made.
func TakeStrangers(fd uintptr) {
	if fd != 0 {
		handed := os.NewFile(fd, "strangers")
		strangers = func() (*os.File, error) { return handed, nil }
	}
}

// strangers returns a user namespace that contains no user who owns files.
var strangers = sync.OnceValues(func() (*os.File, error) {
	runtime.LockOSThread() // this thread traces the process, so that the process stops before its first instruction
	defer runtime.UnlockOSThread()
	const nobody = 65534
	onlyNobody := []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}}
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: onlyNobody, GidMappings: onlyNobody, Ptrace: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	return os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
})
