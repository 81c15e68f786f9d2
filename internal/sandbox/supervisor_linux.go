package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Supervisor are the attributes of the process that enters rooms: by its own namespaces it is the first
// process of a process namespace, so that what it starts sees nobody else, and ends with it.
func Supervisor(by Means) *syscall.SysProcAttr {
	switch by {
	case ByNamespace:
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	case ByUserNamespace:
		uid, gid := os.Geteuid(), os.Getegid()
		return &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			// They last beyond the execution of a program, until Enter drops them.
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN},
		}
	}
	return &syscall.SysProcAttr{}
}

// Settle makes the surroundings of a process that was started with Supervisor: a table of its own
// processes, and memory and files of its own that nobody else may look into. It does nothing in any other process.
func Settle() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping others from its memory: %w", err)
	}
	if os.Getpid() != 1 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keeping mounts to itself: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("the table of its processes: %w", err)
	}
	shelf.Lock()
	defer shelf.Unlock()
	shelf.own = true
	return nil
}
