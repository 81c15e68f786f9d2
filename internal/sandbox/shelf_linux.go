package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/held"
)

// merged is where an overlay is mounted that more than one room has, beside its upper.
const merged = "merged"

// shelfLife is how long an overlay is used for further rooms. What changes below it, on the machine, is seen after that at
// the latest.
const shelfLife = time.Minute

// shelf has the overlays that this process keeps mounted, by the tree of their rooms. To mount one costs more than all
// else of a room; a room copies the table of mounts of the process anyway.
var shelf struct {
	sync.Mutex
	own   bool // whether the table of mounts is this process's own
	trees map[string]*stock
}

// stock is what is kept mounted for the rooms of one tree.
type stock struct {
	layered string
	since   time.Time
	at      shelved
}

// shelved is where overlays are mounted, by their upper.
type shelved map[string]string

// shelve mounts the overlays of a policy for all rooms of its tree, and unmounts those of layers that are other ones by
// now. It returns where they are: nothing where a room has to mount its own.
func shelve(p Policy) shelved {
	shelf.Lock()
	defer shelf.Unlock()
	if !shelf.own || !p.Machine.Overlay || p.Tree == "" {
		return nil
	}
	s := shelf.trees[p.Tree]
	if s == nil || s.layered != p.Layered || time.Since(s.since) > shelfLife {
		if s != nil {
			for _, at := range s.at {
				_ = unix.Unmount(held.At(at), unix.MNT_DETACH)
			}
		}
		s = &stock{layered: p.Layered, since: time.Now(), at: shelved{}}
		if shelf.trees == nil {
			shelf.trees = map[string]*stock{}
		}
		shelf.trees[p.Tree] = s
	}
	kept := shelved{} // a room must not read what another one adds
	for upper, place := range overlaid(p.Places) {
		if s.at[upper] == "" {
			at := filepath.Join(upper, merged)
			if os.MkdirAll(held.At(at), 0o755) != nil || (piece{Place: place.through(held.At)}).overlay(held.At(at)) != nil {
				continue
			}
			s.at[upper] = at
		}
		kept[upper] = s.at[upper]
	}
	return kept
}

// overlaid are the layers of a policy that are over something, by their upper.
func overlaid(places []Place) map[string]Place {
	all := map[string]Place{}
	var lacking []Place
	for _, p := range places {
		switch {
		case p.shared():
			lacking = append(lacking, p)
		case p.Access == Layer && p.Upper != "" && len(p.Lower) > 0:
			all[p.Upper] = p
		}
	}
	if len(lacking) > 0 {
		one := shared(lacking)
		all[one.Upper] = one
	}
	return all
}

// open opens what is mounted for a place, -1 where nothing is.
func (s shelved) open(p Place, folders held.Folders) int {
	if at := s[p.Upper]; at != "" && p.Upper != "" {
		return branch(folders.At(at))
	}
	if !p.shared() {
		return -1
	}
	if at := s[filepath.Join(filepath.Dir(p.Upper), missing)]; at != "" {
		return branch(folders.At(filepath.Join(at, filepath.Base(p.Upper), upper)))
	}
	return -1
}

// asMade reports whether an empty folder is as it was made: of the mode and the owner that the one beside it has, which no
// command can reach, with no attributes but the overlay's, and never written to. Where the file system does not tell when
// it was made, it says no.
func asMade(path, beside string) bool {
	var is, other unix.Statx_t
	const wanted = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, wanted, &is) != nil ||
		unix.Statx(unix.AT_FDCWD, beside, unix.AT_SYMLINK_NOFOLLOW, wanted, &other) != nil {
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
		of, overlay := strings.CutPrefix(name, overlays)
		if name != "" && name != "security.selinux" && (!overlay || strings.HasPrefix(of, "overlay.")) { // twice: a command's
			return false
		}
	}
	return is.Mode == other.Mode && is.Uid == other.Uid && is.Gid == other.Gid && is.Mask&unix.STATX_BTIME != 0 && is.Mtime == is.Btime
}
