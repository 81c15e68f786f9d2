package security_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attempts that begin at something of the agent's own and ask the kernel for what it belongs to.

// Requests that x/sys lacks.
const (
	nsParent      = 0xb702     // NS_GET_PARENT
	mountsNext    = 0x8010b70b // NS_MNT_GET_NEXT
	mountsBefore  = 0x8010b70c // NS_MNT_GET_PREV
	socketNetwork = 0x894c     // SIOCGSKNS
	statmountSize = 512
)

// request makes an ioctl, and returns what it returns.
func request(fd, what uintptr, with unsafe.Pointer) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, what, uintptr(with))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// above asks for the namespaces that its own are in.
func above() (err error) {
	for _, kind := range []string{"user", "pid"} {
		var f *os.File
		if f, err = os.Open("/proc/self/ns/" + kind); err != nil {
			return err
		}
		if _, err = request(f.Fd(), nsParent, nil); err == nil {
			return nil
		}
	}
	return err
}

// otherMounts goes from its own table of mounts to those that the kernel has beside it.
func otherMounts() error {
	f, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	var info [16]byte
	binary.NativeEndian.PutUint32(info[:], uint32(len(info)))
	for _, which := range []uintptr{mountsNext, mountsBefore} {
		if _, err = request(f.Fd(), which, unsafe.Pointer(&info)); err == nil {
			return nil
		}
	}
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.ENOENT) && os.Getenv("CONFINED") == "" {
		return errLacks
	}
	return err
}

// takesNamespaces takes the supervisor's namespaces from its pidfd, if they are not its own.
func takesNamespaces() error {
	whom, own := number("SUPERVISOR"), map[uint64]bool{}
	if os.Getenv("CONFINED") != "" {
		whom = 1 // its own supervisor, or bubblewrap
		all, _ := filepath.Glob("/proc/self/ns/*")
		for _, path := range all {
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				return err
			}
			own[st.Ino] = true
		}
	}
	p, err := unix.PidfdOpen(whom, 0)
	if err != nil {
		return err
	}
	const first, last = 0xff01, 0xff0a // PIDFD_GET_CGROUP_NAMESPACE … PIDFD_GET_UTS_NAMESPACE
	for what := uintptr(first); what <= last; what++ {
		n, failed := request(uintptr(p), what, nil)
		var st unix.Stat_t
		if err = failed; err == nil {
			err = unix.Fstat(n, &st)
		}
		if err == nil && !own[st.Ino] {
			return nil
		}
	}
	if errors.Is(err, unix.ENOTTY) {
		return errLacks
	}
	return errors.Join(err, unix.EPERM)
}

// byPidHandle opens processes that have no number here by the handles of their pidfds, which are counted.
func byPidHandle() error {
	whom := os.Getpid()
	if os.Getenv("CONFINED") == "" {
		whom = number("UP")
	}
	p, err := unix.PidfdOpen(whom, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil {
		return err
	}
	const kind = 0xfe // FILEID_KERNFS
	for n := st.Ino; n > 0 && n+20000 > st.Ino; n-- {
		handle := make([]byte, 8)
		binary.NativeEndian.PutUint64(handle, n)
		fd, err := unix.OpenByHandleAt(p, unix.NewFileHandle(kind, handle), 0)
		switch {
		case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL) && n < st.Ino:
			continue
		case errors.Is(err, unix.EOPNOTSUPP):
			return errLacks
		case err != nil:
			return err
		}
		info, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		if os.Getenv("CONFINED") == "" || strings.Contains(string(info), "\nPid:\t0\n") {
			return nil
		}
		_ = unix.Close(fd)
	}
	return unix.ESRCH
}

// networkOfASocket asks the sockets that it has inherited for a network that is not its own.
func networkOfASocket() error {
	var own unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &own); err != nil {
		return err
	}
	err := error(unix.ENOTSOCK)
	for fd := range uintptr(64) {
		n, failed := request(fd, socketNetwork, nil)
		if failed != nil {
			continue
		}
		var is unix.Stat_t
		if err = unix.Fstat(n, &is); err == nil && is.Ino != own.Ino {
			return nil
		}
		err = unix.EEXIST
	}
	return err
}

// mountBelow looks at the mount that its root is mounted on.
func mountBelow() error {
	var root unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID_UNIQUE, &root); err != nil {
		return err
	}
	_, above, err := statmount(root.Mnt_id)
	if errors.Is(err, unix.ENOSYS) {
		return errLacks
	}
	if err != nil {
		return err
	}
	if above == root.Mnt_id {
		return unix.ENOENT // there is nothing
	}
	_, _, err = statmount(above)
	return err
}

// statmount returns the number of a mount, and of the one that it is mounted on.
func statmount(mount uint64) (own, above uint64, err error) {
	ask := struct {
		size, _       uint32
		mount, wanted uint64
	}{size: 24, mount: mount, wanted: 2} // STATMOUNT_MNT_BASIC
	var out [statmountSize]byte
	_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&ask)), uintptr(unsafe.Pointer(&out)), statmountSize, 0, 0, 0)
	if errno != 0 {
		return 0, 0, errno
	}
	return binary.NativeEndian.Uint64(out[40:]), binary.NativeEndian.Uint64(out[48:]), nil
}

// exchanges puts a file of its own in the place of one of the repository, and back.
func exchanges() error {
	own, theirs := filepath.Join("work", "exchanged"), filepath.Join(os.Getenv("REPO"), "README.md")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(own)
	swap := func() error { return unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, theirs, unix.RENAME_EXCHANGE) }
	if err := swap(); err != nil {
		return err
	}
	return swap()
}

// linksOpen gives a file of the repository that it has open a name in its own tree.
func linksOpen() error {
	f, err := os.Open(filepath.Join(os.Getenv("REPO"), "README.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	to := filepath.Join("work", "linked")
	if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW); err != nil {
		return err
	}
	return os.Remove(to)
}
