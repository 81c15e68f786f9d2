package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enter puts the calling thread into the sandbox. The thread must be locked to its goroutine and end with
// it. What it executes from then on is in the sandbox, and nothing else of this process is. A thread costs
// a command nothing; executing a helper first would cost up to thirty milliseconds. There is no way back.
func Enter(p Policy) error {
	if p.By == ByNamespace || p.By == ByUserNamespace {
		if err := mountAll(p.Places); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: giving up new privileges: %w", err)
	}
	if err := landlock(p); err != nil {
		return fmt.Errorf("sandbox: Landlock: %w", err)
	}
	if p.By != ByBwrap { // which needs them, and drops them itself
		dropCapabilities(p.By == ByUserNamespace)
	}
	return nil
}

// mountAll gives the thread a file system of its own in which the places are what they should be.
func mountAll(places []Place) error {
	if err := ownMounts(); err != nil {
		return err
	}
	// What is to stay visible inside of something hidden must be opened before that is covered.
	type piece struct {
		Place
		tree int
		info os.FileInfo
		data []byte
	}
	var pieces []piece
	defer func() {
		for _, p := range pieces {
			if p.tree >= 0 {
				unix.Close(p.tree)
			}
		}
	}()
	for _, place := range places {
		info, err := os.Stat(place.Path)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has gone since the policy was made
		}
		if err != nil {
			return err
		}
		p := piece{Place: place, tree: -1, info: info}
		switch {
		case place.Access == Copy:
			if p.data, err = os.ReadFile(place.Path); err != nil {
				return err
			}
		case place.Access != Hidden:
			if p.tree, err = treeOf(place.Path, unix.AT_RECURSIVE); err != nil {
				return fmt.Errorf("opening %s: %w", place.Path, err)
			}
			if place.Access == Read {
				attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
				if err := unix.MountSetattr(p.tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
					return fmt.Errorf("making %s read-only: %w", place.Path, err)
				}
			}
		}
		pieces = append(pieces, p)
	}
	for i := range pieces {
		p := &pieces[i]
		if err := p.make(p.tree, p.info, p.data); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return nil
}

// make puts a place where it belongs: its path may be in a folder that has just been hidden.
func (p Place) make(tree int, info os.FileInfo, data []byte) error {
	switch {
	case p.Access == Hidden && info.IsDir():
		if err := os.MkdirAll(p.Path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("pawl", p.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=512m"); err != nil {
			return err
		}
		if p.Path == "/dev" {
			for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
				if err := os.Symlink(to, filepath.Join(p.Path, name)); err != nil {
					return err
				}
			}
		}
		return nil
	case p.Access == Copy:
		if err := os.MkdirAll(filepath.Dir(p.Path), 0o755); err != nil {
			return err
		}
		// Only in memory: the one that it is a copy of must not be written.
		return os.WriteFile(p.Path, data, info.Mode().Perm())
	case p.Access == Hidden:
		var err error
		if tree, err = treeOf("/dev/null", 0); err != nil {
			return err
		}
		defer unix.Close(tree)
	}
	if err := point(p.Path, info.IsDir()); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, p.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// point makes a mount point, where there is none.
func point(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// treeOf opens a copy of what is mounted at a path.
func treeOf(path string, flags uint) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
}

// ownMounts gives the thread mounts of its own. What is mounted and unmounted outside still shows inside.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keeping mounts to itself: %w", err)
	}
	return nil
}

// dropCapabilities takes from what the thread will execute what could undo the sandbox: mounting,
// tracing, loading code into the kernel.
func dropCapabilities(all bool) {
	spared := map[int]bool{}
	for _, c := range kept {
		spared[c.number] = !all
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if !spared[c] {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) // without CAP_SETPCAP there is nothing to drop
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) == nil {
		data[0].Inheritable, data[1].Inheritable = 0, 0
		_ = unix.Capset(&header, &data[0]) // giving up is always allowed
	}
}

const ruleNetPort = 2 // LANDLOCK_RULE_NET_PORT, which x/sys has not

// landlock closes ports. Its rules can only allow, so each port that is not closed gets one. That takes
// about fifty milliseconds, once for everything that a thread will run.
func landlock(p Policy) error {
	type portRule struct{ access, port uint64 }
	attr := unix.LandlockRulesetAttr{}
	if p.Landlock >= landlockNet && len(p.Closed) > 0 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if p.Landlock >= landlockScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if p.Landlock == 0 || attr == (unix.LandlockRulesetAttr{}) {
		return nil // an older one cannot be asked for tracing alone; bubblewrap's processes are apart
	}
	// An older kernel takes a shorter structure, and a longer one if the rest of it is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("making the rules: %w", errno)
	}
	defer unix.Close(int(fd))
	if attr.Handled_access_net != 0 {
		for port := range 1 << 16 {
			if slices.Contains(p.Closed, port) {
				continue
			}
			rule := portRule{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
			// Raw: it never blocks, and there are many.
			if _, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
				return fmt.Errorf("rule for port %d: %w", port, errno)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("entering: %w", errno)
	}
	return nil
}

// landlockVersion returns the kernel's version of Landlock, 0 for none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Key tells policies apart for those who keep a thread per policy: a folder that was removed and
// made again is another one, and the thread still has the old one.
func (p Policy) Key() string {
	key := fmt.Appendf(nil, "%s %d %v", p.By, p.Landlock, p.Closed)
	for _, place := range p.Places {
		key = append(key, 0)
		key = append(key, place.Path...)
		key = strconv.AppendInt(append(key, 0), int64(place.Access), 10)
		var st unix.Stat_t
		if place.Access >= Read && unix.Stat(place.Path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			key = strconv.AppendUint(append(key, ' '), st.Ino, 10)
		}
	}
	return string(key)
}
