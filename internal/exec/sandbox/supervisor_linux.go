package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Supervisor returns the attributes for the process that enters rooms. With its own namespaces, it is the first process
// of a process namespace, so its commands see no other processes and end with it.
func Supervisor(means Means) *syscall.SysProcAttr {
	switch means {
	case ByNamespace:
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	case ByUserNamespace:
		uid, gid := os.Geteuid(), os.Getegid()
		return &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			// These capabilities survive exec, until Enter drops them. Mounting an overlay opens a folder of the
			// overlay that nobody may open, which needs CAP_DAC_OVERRIDE.
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE},
		}
	}
	return &syscall.SysProcAttr{}
}

// Begin makes a process start in the cgroup of version 2.
func (b *Bounds) Begin(a *syscall.SysProcAttr) {
	if b.unified >= 0 {
		a.UseCgroupFD, a.CgroupFD = true, b.unified
	}
}

// Processes is the process table of this machine; in a supervisor, of everything that runs under it.
var Processes = "/proc"

// Settle prepares a process that was started with Supervisor: it gets a process table of its own, and its memory and
// files are closed to others. In any other process it does nothing.
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
	table, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the table of its processes: %w", err)
	}
	// Commands get a process table without the supervisor and its threads. Through those, root could see this machine's
	// mounts and network, or make the kernel kill the supervisor first.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=ptraceable"); err != nil {
		return fmt.Errorf("the table of its commands' processes: %w", err)
	}
	Processes = opened(table)
	shelf.Lock()
	defer shelf.Unlock()
	shelf.trees = map[string]*stock{}
	return nil
}
