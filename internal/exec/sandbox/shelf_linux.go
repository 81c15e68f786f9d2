package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
)

// merged is where an overlay is mounted that several rooms share, beside its upper.
const merged = "merged"

// shelfLife is how long an overlay is used for new rooms. New rooms see changes of the machine's files below it after
// that time at the latest.
const shelfLife = time.Minute

// shelf has the overlays that this process keeps mounted, by the tree of their rooms. Mounting an overlay costs more
// than everything else about a room, and a room copies the process's mounts anyway.
var shelf struct {
	sync.Mutex
	trees map[string]*stock // nil if this process has no mount table of its own
}

// stock is what is kept mounted for the rooms of one tree.
type stock struct {
	layered string
	since   time.Time
	at      shelved
}

// shelved says where overlays are mounted, by their upper.
type shelved map[string]string

// shelve mounts the overlays of a policy for all rooms of its tree, and unmounts those whose layers have changed. It
// returns where they are; a room mounts those that are missing itself.
func shelve(p Policy) shelved {
	shelf.Lock()
	defer shelf.Unlock()
	if shelf.trees == nil || !p.Machine.Overlay || p.Tree == "" {
		return nil
	}
	s := shelf.trees[p.Tree]
	if s == nil || s.layered != p.Layered || time.Since(s.since) > shelfLife {
		if s != nil {
			for _, dir := range s.at {
				_ = unix.Unmount(dirfd.At(dir), unix.MNT_DETACH)
			}
		}
		s = &stock{layered: p.Layered, since: time.Now(), at: shelved{}}
		shelf.trees[p.Tree] = s
	}
	for upper, place := range overlaid(p.Places) {
		path := filepath.Join(upper, merged)
		if s.at[upper] == "" && os.MkdirAll(dirfd.At(path), 0o755) == nil && place.through(dirfd.At).overlay(dirfd.At(path)) == nil {
			s.at[upper] = path
		}
	}
	return maps.Clone(s.at) // another room may add to the original
}

// overlaid returns the layers of a policy that have something below them, by their upper. All caches that the machine
// does not have are in one layer: a folder on disk for each, made and removed with every judgement, would cost more than
// everything else about a room.
func overlaid(places []Place) map[string]Place {
	byDir := map[string]Place{}
	for _, p := range places {
		switch {
		case p.shared():
			place := Place{Upper: p.missing(), Lower: list.Map(p.Lower, func(dir string) string { return filepath.Dir(filepath.Dir(dir)) })}
			_ = os.MkdirAll(dirfd.At(p.Lower[0]), 0o755) // otherwise it can't be opened
			byDir[place.Upper] = place
		case p.Access == Layer && p.Upper != "" && len(p.Lower) > 0:
			byDir[p.Upper] = p
		}
	}
	return byDir
}

// shared reports whether a place is in the one layer for all missing caches.
func (p Place) shared() bool {
	return p.Access == Layer && p.Missing && p.Upper != "" && len(p.Lower) > 0
}

// missing returns the upper of that layer.
func (p Place) missing() string { return filepath.Join(filepath.Dir(p.Upper), missing) }

// open opens the mount for a place, -1 if there is none.
func (s shelved) open(p Place, folders dirfd.Folders) int {
	entry := s[p.Upper]
	if p.shared() {
		if entry = s[p.missing()]; entry != "" {
			entry = filepath.Join(entry, filepath.Base(p.Upper), upper)
		}
	}
	if entry == "" {
		return -1
	}
	tree, _ := openTree(folders.At(entry), 0, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	return tree
}

// asMade reports whether an empty folder is unchanged since it was made: it has the mode and owner of the folder beside
// it, which no command can reach, no attributes but the overlay's, and was never written to. If the file system does
// not report creation times, it returns false.
func asMade(path, model string) bool {
	var stat, modelStat unix.Statx_t
	const wanted = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, wanted, &stat) != nil ||
		unix.Statx(unix.AT_FDCWD, model, unix.AT_SYMLINK_NOFOLLOW, wanted, &modelStat) != nil {
		return false
	}
	overlays := "trusted.overlay."
	if os.Getuid() != 0 {
		overlays = "user.overlay."
	}
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if err != nil && err != unix.ENOTSUP {
		return false
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:max(n, 0)]), "\x00"), "\x00") {
		rest, overlay := strings.CutPrefix(name, overlays)
		if name != "" && name != "security.selinux" && (!overlay || strings.HasPrefix(rest, "overlay.")) { // a repeated prefix is an attribute that a command set
			return false
		}
	}
	return stat.Mode == modelStat.Mode && stat.Uid == modelStat.Uid && stat.Gid == modelStat.Gid && stat.Mask&unix.STATX_BTIME != 0 && stat.Mtime == stat.Btime
}
