package security_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attempts with calls that few programs make.

// Constants that x/sys lacks.
const (
	fSetSignal = 10 // F_SETSIG
	dnModify   = 2  // DN_MODIFY
)

// leases delays everybody who opens a file of the repository for writing, as long as the kernel waits for the holder of
// the lease.
func leases() error {
	f, err := os.Open(filepath.Join(os.Getenv("REPO"), "README.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// notifies gets a signal when something happens in a folder.
func notifies() error {
	f, err := os.Open(os.Getenv("REPO"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_NOTIFY, dnModify)
	if errors.Is(err, unix.EINVAL) {
		return errLacks
	}
	return err
}

// signalsByFile makes the kernel send a signal of the agent's choice to a process, as if its input had come.
func signalsByFile(whom string) func() error {
	return func() error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		to := number(whom)
		if os.Getenv("CONFINED") != "" {
			to = 1 // its own supervisor, or bubblewrap
		}
		if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETOWN, to); err != nil {
			return err
		}
		_, err = unix.FcntlInt(uintptr(pair[0]), fSetSignal, int(unix.SIGWINCH)) // a signal that no program minds
		return err
	}
}

// signalsThreads sends every signal that ends a program to the supervisor's threads, whose numbers no process has. If
// that ends the supervisor, it also ends the step.
func signalsThreads() error {
	if os.Getenv("CONFINED") == "" {
		return unix.Kill(number("UP"), 0)
	}
	for n := 2; n < 64; n++ {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(n) + "/status")
		for s := unix.Signal(1); s < 32 && strings.Contains(string(status), "Tgid:\t1\n"); s++ {
			_ = unix.Kill(n, s)
			_ = call(unix.SYS_TKILL, uintptr(n), uintptr(s), 0)
		}
	}
	return unix.ESRCH
}

// movesPages makes the kernel move another process's memory.
func movesPages(whom string) func() error {
	return func() error {
		nodes := [1]uint64{1}
		_, _, errno := unix.Syscall6(unix.SYS_MIGRATE_PAGES, uintptr(number(whom)), 2, uintptr(unsafe.Pointer(&nodes)), uintptr(unsafe.Pointer(&nodes)), 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// advises tells the kernel what to do with another process's memory.
func advises(whom string) func() error {
	return func() error {
		p, err := unix.PidfdOpen(number(whom), 0)
		if err != nil {
			return err
		}
		at := [2]uintptr{0x400000, 4096}
		const cold = 20 // MADV_COLD
		_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(p), uintptr(unsafe.Pointer(&at)), 1, cold, 0, 0)
		if errno != 0 && errno != unix.ENOMEM && errno != unix.EINVAL {
			return errno
		}
		return nil
	}
}

// compares asks whether another process has the same files open.
func compares(whom string) func() error {
	return func() error {
		_, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(number(whom)), 2, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// mountsAnew mounts with the newer calls for mounting.
func mountsAnew() error {
	fs, err := unix.Fsopen("tmpfs", 0)
	if err != nil {
		return err
	}
	return unix.FsconfigCreate(fs)
}

func clonesMounts() error {
	_, err := unix.OpenTree(unix.AT_FDCWD, "/usr", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
	return err
}

// unlocks makes a read-only mount writable.
func unlocks() error {
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// hears listens to messages of the kernel.
func hears(of int, groups uint32) func() error {
	return func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM, of)
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return errLacks
		}
		if err != nil {
			return err
		}
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})
		if err != nil && os.Getenv("CONFINED") == "" { // the test may run as root of a container
			return errLacks
		}
		return err
	}
}

// schedules asks for a reserved share of the processor.
func schedules() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE, Runtime: 1e6, Deadline: 1e7, Period: 1e7}
	err := unix.SchedSetAttr(0, &attr, 0)
	if err != nil && os.Getenv("CONFINED") == "" { // the kernel has promised too much to others
		return errLacks
	}
	return err
}

// anotherKernel asks to boot another kernel, with arguments for which the kernel refuses even those who may ask.
func anotherKernel() error {
	_, _, errno := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffff, 0, 0)
	return allowed(errno, unix.EINVAL)
}

// freezes thaws the disk under the tree, which is not frozen. Who may do that may freeze it, too.
func freezes() error {
	const thaw = 0xc0045878 // FITHAW
	err := control(".", thaw)
	if errors.Is(err, unix.EOPNOTSUPP) && os.Getenv("CONFINED") == "" {
		return errLacks
	}
	return allowed(err, unix.EINVAL)
}

// seeds makes the kernel reseed its random numbers.
func seeds() error {
	const reseed = 0x5207 // RNDRESEEDCRNG
	return control("/dev/urandom", reseed)
}

// control makes an ioctl on a path.
func control(path string, what uintptr) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return call(unix.SYS_IOCTL, f.Fd(), what, 0)
}

// quotas makes the kernel write the quotas of all disks.
func quotas() error {
	const sync = 0x800001 << 8 // Q_SYNC
	return call(unix.SYS_QUOTACTL, sync, 0, 0)
}

// swaps turns off swap on a file that is no swap.
func swaps() error {
	path, err := unix.BytePtrFromString("/dev/null")
	if err != nil {
		return err
	}
	return allowed(call(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(path)), 0, 0), unix.EINVAL, unix.ENOTBLK)
}

// bySMC gives a TCP socket another protocol before it connects, for which the kernel checks no rule about TCP ports.
func bySMC() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP, "smc"); err != nil {
		if os.Getenv("CONFINED") == "" { // the kernel has no SMC
			return errLacks
		}
		return err
	}
	return unix.Connect(fd, engine())
}

// findsPages asks where the pages of another process's memory are.
func findsPages(whom string) func() error {
	return func() error {
		at, status := [1]uintptr{0x400000}, [1]int32{}
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, uintptr(number(whom)), 1, uintptr(unsafe.Pointer(&at)), 0, uintptr(unsafe.Pointer(&status)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// findsLocks asks where another process keeps the list of its locks.
func findsLocks(whom string) func() error {
	return func() error {
		var head, size uintptr
		return call(unix.SYS_GET_ROBUST_LIST, uintptr(number(whom)), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
	}
}

// sharesCore makes the kernel run this process beside another one on the same core, where it can observe the other
// one's work.
func sharesCore(whom string) func() error {
	return func() error {
		const schedCore, shareFrom = 62, 3 // PR_SCHED_CORE, PR_SCHED_CORE_SHARE_FROM
		err := unix.Prctl(schedCore, shareFrom, uintptr(number(whom)), 0, 0)
		if err != nil && os.Getenv("CONFINED") == "" { // a core has one processor, or the kernel can't do this
			return errLacks
		}
		return err
	}
}
