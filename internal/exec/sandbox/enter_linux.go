package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/egress"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
)

// Enter puts the calling thread into the sandbox, for good. The thread must be locked to its goroutine and end with it.
// Everything it executes from then on is in the sandbox, and nothing else of this process is. A thread costs a command
// nothing; executing a helper first would cost up to 30 ms. proxy listens in the commands' network for connections to
// the proxy; nil if there is none. It was opened in their network and works in every thread.
func Enter(p Policy) (proxy net.Listener, err error) {
	if p.Rooted() {
		kept := shelve(p)
		if proxy, err = ownNamespaces(p); err != nil {
			return proxy, fmt.Errorf("sandbox: %w", err)
		}
		if err := ownRoot(p, kept); err != nil {
			return proxy, fmt.Errorf("sandbox: making its root: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return proxy, fmt.Errorf("sandbox: giving up new privileges: %w", err)
	}
	if err := landlock(p); err != nil {
		return proxy, fmt.Errorf("sandbox: Landlock: %w", err)
	}
	if p.Machine.Files != ByBwrap { // bubblewrap needs what is dropped here, and drops it itself
		dropCapabilities(p.Machine.Files == ByUserNamespace)
	}
	if p.Machine.Filter {
		if err := filterCalls(p.Machine.Begins); err != nil {
			return proxy, fmt.Errorf("sandbox: the filter of system calls: %w", err)
		}
	}
	return proxy, nil
}

// ownNamespaces gives the thread mounts, shared memory, a host name and a network of its own.
func ownNamespaces(p Policy) (proxy net.Listener, err error) {
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if p.Network != Open {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return nil, fmt.Errorf("making namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("keeping mounts to itself: %w", err)
	}
	if p.Network == Open {
		return nil, nil
	}
	if err := loopbackUp(); err != nil {
		return nil, fmt.Errorf("its loopback: %w", err)
	}
	if p.Network == Filtered {
		return listen()
	}
	return nil, nil
}

// listen opens the proxy's socket in the network of the calling thread.
func listen() (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port)))
}

// loopbackUp brings up the loopback of a new network.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, _ := unix.NewIfreq("lo") // only a name can be wrong
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// staging is where the new root is mounted while it is made: a folder that every machine has, and whose content in the
// new root comes from elsewhere.
const staging = "/usr"

// piece is a place with what was opened of it before the old root is gone.
type piece struct {
	Place
	from string // a path to it while the old root is there
	tree int    // -1 for none
	info os.FileInfo
	data []byte
}

// ownRoot makes a root that contains the places and nothing else. kept says where overlays are mounted already.
func ownRoot(p Policy, kept shelved) error {
	folders, err := dirfd.Anew(p.sources)
	if err != nil {
		return err
	}
	defer folders.Close()
	pieces, err := gather(p.Places, kept, folders)
	defer func() {
		for _, p := range pieces {
			if p.tree >= 0 {
				unix.Close(p.tree)
			}
		}
	}()
	if err != nil {
		return err
	}
	if err := memory(staging, "mode=0755,size=16m"); err != nil {
		return err
	}
	root, err := openRoot(staging, p.Places)
	if err != nil {
		return err
	}
	defer root.close()
	for _, p := range pieces {
		if err := p.put(root); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	for _, p := range pieces {
		if p.Access == Hidden && p.info.IsDir() {
			if s, err := root.spot(p.Path); err == nil { // what is not mounted needs no closing
				_ = unix.MountSetattr(s.in, s.name, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
			}
		}
	}
	if err := furnish(); err != nil {
		return err
	}
	if err := unix.Chdir(staging); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing to it: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old one: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// gather opens the sources of the places. Sources in a folder that pawl holds are opened through that folder, with this
// thread's mounts.
func gather(places []Place, kept shelved, folders dirfd.Folders) (pieces []piece, err error) {
	var apart []Place // public places that need no masks
	for _, place := range places {
		p := piece{Place: place.through(folders.At), from: folders.At(place.Path), tree: -1}
		switch place.Access {
		case Layer:
			p.tree = kept.open(place, folders)
			fallthrough
		case Empty, Link:
			pieces = append(pieces, p)
			continue
		}
		if place.Access == Hidden && place.Public && estranged(apart, places, place.Path) {
			continue
		}
		p.info, err = os.Stat(p.from)
		if err != nil {
			continue // removed since the policy was made
		}
		switch place.Access {
		case Copy:
			if p.data = []byte(place.Text); place.Text == "" {
				p.data, err = os.ReadFile(p.from)
			}
		case Read, Write:
			// A device is written to even if its mount is read-only. Only its mode, owner and times then stay as they are.
			if p.tree, err = treeOf(p.from, place.Access == Read || p.info.Mode()&os.ModeDevice != 0); err == nil && place.Public && estrange(p.tree) == nil {
				apart = append(apart, place) // without that, only masks hide root's files
			}
		}
		if err != nil {
			return pieces, fmt.Errorf("opening %s: %w", place.Path, err)
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// estranged reports whether a path is in one of the public places that need no masks, and not in another place inside
// that.
func estranged(apart, places []Place, path string) bool {
	cover := covering(apart, path)
	return cover.Path != "" && !slices.ContainsFunc(places, func(p Place) bool {
		return p.Access != Hidden && p.Access != Link && len(p.Path) > len(cover.Path) && within(path, p.Path)
	})
}

// put adds a place to the new root.
func (p piece) put(root newRoot) error {
	switch p.Access {
	case Link:
		if s, err := root.spot(p.Path); err == nil { // otherwise what is there already equals the machine's
			_ = unix.Symlinkat(p.Target, s.in, s.name)
		}
		return nil
	case Copy: // the target must be in memory or in a layer, because the original must not be written
		return root.write(p.Path, p.data, p.info.Mode().Perm())
	case Hidden:
		return p.hide(root)
	}
	spot, err := root.at(p.Path, p.info == nil || p.info.IsDir())
	switch {
	case err != nil:
		return err
	case p.Access == Empty && (p.Path == "/run" || p.Path == "/dev"):
		return memory(spot.path(), "mode=0755")
	case p.Access == Empty:
		return memory(spot.path(), "mode=1777")
	case p.Access == Layer && p.tree < 0:
		return p.overlay(spot.path())
	case p.Apart && p.apart(spot.path()) == nil:
		return unix.MountSetattr(spot.in, spot.name, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	return unix.MoveMount(p.tree, "", spot.in, spot.name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// apart shows a folder through an overlay of its own, so that its sockets, pipes and locks are not those of the
// machine's folder. It fails if something is mounted in the folder, because an overlay would not show that.
func (p piece) apart(path string) error {
	mounted, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounted, []byte(" "+p.Path+"/")) {
		return errors.Join(err, unix.EBUSY)
	}
	nothing := filepath.Join(staging, missing)
	if err := os.Mkdir(nothing, 0o755); err != nil {
		return err
	}
	defer os.Remove(nothing)
	if err := memory(nothing, "mode=0755,size=1m"); err != nil {
		return err
	}
	// The overlay keeps what is mounted there. Over a folder that is removed it could list nothing.
	defer unix.Unmount(nothing, unix.MNT_DETACH)
	return unix.Mount("pawl", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir="+escaped(p.from)+":"+nothing)
}

// hide closes a place that a surrounding place shows.
func (p piece) hide(root newRoot) error {
	shown := spot{root.folders["/"], strings.TrimPrefix(p.Path, "/")}
	fd, err := shown.open()
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	unix.Close(fd)
	s, err := root.spot(p.Path)
	if err != nil {
		return err
	}
	if p.info.IsDir() {
		return unix.Mount("pawl", s.path(), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m") // made read-only at the end
	}
	null, err := treeOf(os.DevNull, true)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return unix.MoveMount(null, "", s.in, s.name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// through returns the place with the folders of its layer replaced by at.
func (p Place) through(translate func(path string) string) Place {
	p.Upper, p.Lower = translate(p.Upper), slices.Clone(p.Lower)
	for i, dir := range p.Lower {
		p.Lower[i] = translate(dir)
	}
	return p
}

// opaque reports whether a folder of a layer hides what is below it.
func opaque(path string) bool {
	for _, name := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		value := make([]byte, 1)
		if n, err := unix.Lgetxattr(path, name, value); err == nil && n == 1 && value[0] == 'y' {
			return true
		}
	}
	return false
}

// overlay mounts a layer over what is below. If there is nothing below, or the machine has no overlays, the command
// sees only the layer. It never sees the layer's own folder, so it can't redirect it.
func (p Place) overlay(path string) error {
	if p.Upper == "" {
		return memory(path, "mode=0755")
	}
	up, work := filepath.Join(p.Upper, upper), filepath.Join(p.Upper, working)
	if err := os.MkdirAll(up, 0o755); err != nil {
		return err
	}
	var lower []string
	for _, dir := range p.Lower {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			lower = append(lower, dir)
		}
	}
	if len(lower) > 0 && os.MkdirAll(work, 0o755) == nil && mountOverlay(path, lower, up, work) == nil {
		return nil
	}
	if err := unix.Mount(up, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
}

// mountOverlay mounts an overlay over the folders in lower, the uppermost first.
func mountOverlay(path string, lower []string, up, work string) error {
	options := "index=off,xino=off,metacopy=off,lowerdir=" + strings.Join(list.Map(lower, escaped), ":") + ",upperdir=" + escaped(up) + ",workdir=" + escaped(work)
	if os.Getuid() != 0 {
		options += ",userxattr"
	}
	return unix.Mount("pawl", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// escaped returns a path in the form of overlay's mount options.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(path)
}

// furnish adds what is made and not taken from the machine: terminals, and the links to a process's own files.
func furnish() error {
	dev := filepath.Join(staging, "dev")
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dev, "pts"), 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("/dev/pts: %w", err)
	}
	return nil
}

// memory mounts an empty folder in memory.
func memory(path, options string) error {
	if err := unix.Mount("pawl", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("an empty folder at %s: %w", path, err)
	}
	return nil
}

// treeOf opens a copy of the mounts at a path.
func treeOf(path string, readOnly bool) (int, error) {
	if readOnly {
		return openTree(path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_RDONLY)
	}
	return openTree(path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_NOSUID)
}

func openTree(path string, recursive uint, attributes uint64) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|recursive)
	if err != nil {
		return -1, err
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|recursive, &unix.MountAttr{Attr_set: attributes}); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// dropCapabilities removes the capabilities that could undo the sandbox: mounting, tracing, loading code into the
// kernel.
func dropCapabilities(every bool) {
	var spared uint64 // a bit for each
	for _, c := range kept {
		if !every {
			spared |= 1 << c.number
		}
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if spared&(1<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) // without CAP_SETPCAP there is nothing to drop
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) == nil { // dropping is always allowed
		for half := range data {
			left := uint32(spared >> (32 * half))
			data[half].Inheritable = 0
			data[half].Permitted &= left
			data[half].Effective &= left
		}
		_ = unix.Capset(&header, &data[0])
	}
}

// Key identifies a room, for callers that keep a thread for each. A folder that was removed and made again gets another
// key, because the thread still has the old folder.
func (p Policy) Key() string {
	key := fmt.Appendf(nil, "%+v %s %+v %v %+v %s", p.Machine, p.Network, p.Egress, p.Closed, p.Limits, p.Fresh)
	for _, place := range p.Places {
		key = fmt.Appendf(key, "\x00%d %s %s %s %s", place.Access, place.Path, place.Target, place.Upper, place.Text)
		var st unix.Stat_t
		if (place.Access == Read || place.Access == Write) && unix.Stat(dirfd.At(place.Path), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			key = strconv.AppendUint(append(key, ' '), st.Ino, 10)
		}
	}
	return string(key)
}
