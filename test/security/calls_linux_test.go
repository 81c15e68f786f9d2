package security_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The attempts that need a system call. Each runs in its own process.

// errLacks says that the machine lacks what an attempt needs, with or without a sandbox.
var errLacks = errors.New("the machine lacks it")

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

func engine() *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: number("ENGINE"), Addr: [4]byte{127, 0, 0, 1}}
}

// missing returns the attempts whose calls the kernel was built without. Outside of a sandbox, a missing call does not
// count as refused.
func missing() (all []string) {
	const none = ^uintptr(0) // an invalid argument for every call
	for _, group := range attempts {
		for _, a := range group.deeds {
			if a.call == 0 {
				continue
			}
			if _, _, errno := unix.Syscall6(a.call, none, none, none, none, none, none); errno == unix.ENOSYS {
				all = append(all, strconv.Itoa(int(a.call)))
			}
		}
	}
	return all
}

// call makes a system call whose arguments are all numbers.
func call(trap uintptr, a, b, c uintptr) error {
	_, _, errno := unix.Syscall(trap, a, b, c)
	if errno != 0 {
		return errno
	}
	return nil
}

// allowed treats an error as success if the kernel returns it only after it has let the caller through.
func allowed(err error, after ...syscall.Errno) error {
	for _, a := range after {
		if errors.Is(err, a) {
			return nil
		}
	}
	return err
}

func multipath() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) {
		return errLacks
	}
	if err != nil {
		return err
	}
	return unix.Connect(fd, engine())
}

func multipathDialer() error {
	var d net.Dialer
	d.SetMultipathTCP(true)
	conn, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", os.Getenv("ENGINE")))
	if err == nil {
		conn.Close()
	}
	return err
}

func fastOpen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, engine())
}

func byRing() error {
	var params [120]byte // struct io_uring_params
	return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
}

func packets() error {
	_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	return err
}

func rawPackets() error {
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)
	return err
}

// family makes a socket of a family.
func family(of int, _ string) func() error {
	return func() error {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
			_, err := unix.Socket(of, kind, 0)
			if err == nil {
				return nil
			}
			if !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.ESOCKTNOSUPPORT) {
				return err
			}
		}
		return errLacks
	}
}

func routes() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo) // writes the flags unchanged
}

func traces(whom string) func() error {
	return func() error {
		runtime.LockOSThread()
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(number(whom)), 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil // the end of this process releases it
	}
}

func copies(whom string) func() error {
	return func() error {
		b := make([]byte, 1)
		local := []unix.Iovec{{Base: &b[0], Len: 1}}
		_, err := unix.ProcessVMReadv(number(whom), local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
		return allowed(err, unix.EFAULT)
	}
}

func takesFile(whom string) func() error {
	return func() error {
		p, err := unix.PidfdOpen(number(whom), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(p, 0, 0)
		return allowed(err, unix.EBADF)
	}
}

func entersBy(whom string) func() error {
	return func() error {
		runtime.LockOSThread()
		p, err := unix.PidfdOpen(number(whom), 0)
		if err != nil {
			return err
		}
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(p, unix.CLONE_NEWNS); err != nil {
			return err
		}
		_, err = os.Stat(filepath.Join(os.Getenv("H"), "engine"))
		return err
	}
}

func byHandle() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(".", &fs); err != nil || fs.Type != unix.EXT4_SUPER_MAGIC {
		return errLacks
	}
	at, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	handle := make([]byte, 8)
	const root = 2 // the number of the root folder
	binary.NativeEndian.PutUint32(handle, root)
	const byInode = 1
	top, err := unix.OpenByHandleAt(at, unix.NewFileHandle(byInode, handle), unix.O_RDONLY)
	if err != nil {
		return err
	}
	_, err = unix.Openat(top, strings.TrimPrefix(os.Getenv("H"), "/")+"/engine", unix.O_RDONLY, 0)
	return err
}

func watches() error {
	fd, err := unix.InotifyInit1(0)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, filepath.Join(os.Getenv("H"), "engine"), unix.IN_ALL_EVENTS)
	return err
}

func watchesAll() error {
	_, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, 0)
	return err
}

// The names of what the test shares with anybody who finds it.
const sharedKey = 0x7061776c

func queue(loop string) string { return "pawl-test-" + loop }

func sharedMemory() error {
	_, err := unix.SysvShmGet(sharedKey, 1, 0)
	return err
}

func messageQueue() error { return openQueue(queue(os.Getenv("LOOP")), unix.O_RDONLY) }

func openQueue(name string, flags uintptr) error {
	n, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(n)), flags, 0o666, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func unlinkQueue(name string) error {
	n, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(n)), 0, 0)
}

func keyring() error {
	_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", queue(os.Getenv("LOOP")), 0)
	return err
}

func module() error {
	return allowed(call(unix.SYS_FINIT_MODULE, ^uintptr(0), uintptr(unsafe.Pointer(&[]byte{0}[0])), 0), unix.EBADF, unix.ENOEXEC, unix.EINVAL)
}

func reboots() error { return allowed(call(unix.SYS_REBOOT, 0, 0, 0), unix.EINVAL) } // without the magic number

func accounts() error {
	name := []byte("/nowhere/at/all\x00")
	return allowed(call(unix.SYS_ACCT, uintptr(unsafe.Pointer(&name[0])), 0, 0), unix.ENOENT)
}

func loadsBPF() error {
	array := [4]uint32{2, 4, 4, 1} // a map with one number
	var attr [128]byte
	copy(attr[:], unsafe.Slice((*byte)(unsafe.Pointer(&array)), 16))
	return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), 128)
}

func measures() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK}
	attr.Size = uint32(unsafe.Sizeof(attr))
	_, err := unix.PerfEventOpen(&attr, -1, 0, -1, 0) // of all processes
	return err
}

func pageFaults() error { return call(unix.SYS_USERFAULTFD, 0, 0, 0) }

func clock() error {
	var now unix.Timex
	if _, err := unix.Adjtimex(&now); err != nil {
		return err
	}
	_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_TICK, Tick: now.Tick}) // unchanged
	return err
}

// belowMounts copies single file systems, without what is mounted in them.
func belowMounts() error {
	home := os.Getenv("H")
	if os.Getenv("CONFINED") == "" {
		_, err := os.Stat(filepath.Join(home, "engine"))
		return err
	}
	if os.Getenv("NESTED") == "" {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), "NESTED=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		return cmd.Run()
	}
	err := error(unix.ENOENT)
	for at := home; err != nil; at = filepath.Dir(at) {
		tree, cannot := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE)
		if cannot == nil {
			var below string
			below, _ = filepath.Rel(at, filepath.Join(home, "engine"))
			_, err = unix.Openat(tree, below, unix.O_RDONLY, 0)
		}
		if at == "/" {
			break
		}
	}
	return err
}

// fromMemory runs a program that is in no file system.
func fromMemory() error {
	program, err := os.ReadFile("/bin/bash")
	if err != nil {
		return errLacks
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, program); err != nil {
		return err
	}
	readable, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	unix.Close(fd) // a file that is open for writing can't be executed
	return exec.Command("/proc/self/fd/"+strconv.Itoa(readable), "-c", "exec 3<>/dev/tcp/127.0.0.1/"+os.Getenv("ENGINE")).Run()
}
