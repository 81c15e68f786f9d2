package hostile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attempts by calls that few programs make.

// What <linux/fcntl.h> and x/sys have not.
const (
	fSetSignal = 10 // F_SETSIG
	dnModify   = 2  // DN_MODIFY
)

// leases holds up whoever opens a file of the repository for writing, for as long as the kernel waits for the holder.
func leases() error {
	f, err := os.Open(filepath.Join(os.Getenv("REPO"), "README.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// notifies hears of what happens in a folder by a signal.
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

// signalsByFile has the kernel send a signal of its choice to a process, as one whose input has come.
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
		_, err = unix.FcntlInt(uintptr(pair[0]), fSetSignal, int(unix.SIGWINCH)) // which nobody minds
		return err
	}
}

// signalsThreads sends every signal that ends a program to the threads of the supervisor, which have numbers that no
// process has. Where that ends the supervisor, it ends the step with it.
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

// movesPages has the kernel move another's memory.
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

// advises tells the kernel what becomes of another's memory.
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

// compares asks whether another has the same files open.
func compares(whom string) func() error {
	return func() error {
		_, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(number(whom)), 2, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// mountsAnew mounts by the calls that are not mount.
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

// unlocks takes from what is mounted that it can't be written.
func unlocks() error {
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// hears listens to what the kernel tells of a kind.
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
		if err != nil && os.Getenv("CONFINED") == "" { // as root of a container
			return errLacks
		}
		return err
	}
}

// schedules asks for a share of the processor that nobody else gets.
func schedules() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE, Runtime: 1e6, Deadline: 1e7, Period: 1e7}
	err := unix.SchedSetAttr(0, &attr, 0)
	if err != nil && os.Getenv("CONFINED") == "" { // it has promised too much to others
		return errLacks
	}
	return err
}

// anotherKernel is told that what it asks for can't be, where it may ask.
func anotherKernel() error {
	_, _, errno := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffff, 0, 0)
	return allowed(errno, unix.EINVAL)
}

// freezes ends that the disk under the tree is held up, which it is not: who may do that may do the other as well.
func freezes() error {
	const thaw = 0xc0045878 // FITHAW
	err := control(".", thaw)
	if errors.Is(err, unix.EOPNOTSUPP) && os.Getenv("CONFINED") == "" {
		return errLacks
	}
	return allowed(err, unix.EINVAL)
}

// seeds has the kernel take new numbers for its own.
func seeds() error {
	const reseed = 0x5207 // RNDRESEEDCRNG
	return control("/dev/urandom", reseed)
}

// control asks what is at a path to do something.
func control(path string, what uintptr) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return call(unix.SYS_IOCTL, f.Fd(), what, 0)
}

// quotas has those of all disks written out.
func quotas() error {
	const sync = 0x800001 << 8 // Q_SYNC
	return call(unix.SYS_QUOTACTL, sync, 0, 0)
}

// swaps ends that memory is kept where none is kept.
func swaps() error {
	path, err := unix.BytePtrFromString("/dev/null")
	if err != nil {
		return err
	}
	return allowed(call(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(path)), 0, 0), unix.EINVAL, unix.ENOTBLK)
}

// bySMC has a TCP socket become one of another protocol before it connects: no rule about TCP's ports is asked then.
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

// findsPages asks where the pages of another's memory are.
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

// findsLocks asks where another keeps the locks that it holds.
func findsLocks(whom string) func() error {
	return func() error {
		var head, size uintptr
		return call(unix.SYS_GET_ROBUST_LIST, uintptr(number(whom)), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
	}
}

// sharesCore has the kernel run this process beside another on one core, which tells the one what the other does.
func sharesCore(whom string) func() error {
	return func() error {
		const schedCore, shareFrom = 62, 3 // PR_SCHED_CORE, PR_SCHED_CORE_SHARE_FROM
		err := unix.Prctl(schedCore, shareFrom, uintptr(number(whom)), 0, 0)
		if err != nil && os.Getenv("CONFINED") == "" { // there is one processor on a core, or the kernel can't
			return errLacks
		}
		return err
	}
}
