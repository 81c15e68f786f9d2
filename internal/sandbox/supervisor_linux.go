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
			// They last beyond the execution of a program, until Enter drops them. An overlay has a folder that nobody may open,
			// and mounting one opens it: CAP_DAC_OVERRIDE.
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE},
		}
	}
	return &syscall.SysProcAttr{}
}

// Processes is where the table of this machine's processes is, for a supervisor that of all that runs under it.
var Processes = "/proc"

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
	table, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the table of its processes: %w", err)
	}
	// Commands get one without the supervisor and its threads: through each of those root could look at this machine's
	// mounts and network, and have the kernel end the supervisor first.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=ptraceable"); err != nil {
		return fmt.Errorf("the table of its commands' processes: %w", err)
	}
	Processes = opened(table)
	shelf.Lock()
	defer shelf.Unlock()
	shelf.own = true
	return nil
}
