package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Probe says what this machine has, by trying it; once per process.
var Probe = sync.OnceValue(func() Machine {
	m := Machine{Landlock: landlockVersion()}
	switch bwrap, ok := bubblewrap(); {
	case inOwnThread(ownMounts) == nil && capable():
		m.Files = ByNamespace
	case tryUserNamespace() == nil:
		m.Files = ByUserNamespace
	case ok:
		m.Files, m.Bwrap = ByBwrap, bwrap
	}
	return m
})

// inOwnThread does something on a thread that nothing else runs on afterwards. The thread stays: what
// it had forked before (git, a supervisor) is killed when it ends (PR_SET_PDEATHSIG goes by thread).
func inOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
		select {}
	}()
	return <-done
}

// capable reports whether the kernel has the calls that Enter mounts with (Linux 5.12).
func capable() bool {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{})
	return err != unix.ENOSYS
}

const probeName = "pawl-sandbox-probe"

// Main answers the question of a Probe if this process was executed to, and then never returns.
// Call it first in every main and TestMain; proc.Main does.
func Main() {
	if len(os.Args) == 1 && os.Args[0] == probeName {
		code := 0
		if err := inOwnThread(func() error { return mountAll([]Place{{"/proc", Read}, {"/tmp", Hidden}}) }); err != nil {
			code = 1
		}
		os.Exit(code)
	}
}

// tryUserNamespace makes this program again in a user namespace and has it mount something:
// where a security module forbids that, the namespace alone can still be made.
func tryUserNamespace() error {
	if os.Args[0] == probeName {
		return unix.EPERM // this program forgets Main, and would start itself for ever
	}
	if os.Geteuid() == 0 {
		return unix.EPERM // a root that may not mount is in a container, where this is shut as well
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{probeName}, []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = UserNamespace()
	return cmd.Run()
}

// UserNamespace are the attributes of a process that is in a user namespace of its own, as the
// same user, where it may mount.
func UserNamespace() *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		// It lasts beyond the execution of a program, until Enter drops it.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
}

// bubblewrap finds bwrap and tries it.
func bubblewrap() (path string, ok bool) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", false
	}
	return path, exec.Command(path, "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--tmpfs", "/tmp", path, "--version").Run() == nil
}
