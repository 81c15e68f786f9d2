package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/remove"
)

// newRoot is a root while it is made, from the outside in. In its layers there are links already that an agent left in an
// earlier sandbox, and who makes it still sees the whole machine. So no link in it is followed, and none stays in a layer
// where something is put.
type newRoot struct {
	places  []Place
	folders map[string]int // that were opened, by their paths
}

// spot is a file or folder of a new root, or where one can be made: a name in a folder that is open. It is no link.
type spot struct {
	in   int
	name string
}

func openRoot(dir string, places []Place) (newRoot, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return newRoot{places, map[string]int{"/": fd}}, err
}

func (r newRoot) close() {
	for _, fd := range r.folders {
		unix.Close(fd)
	}
}

// path leads to a spot.
func (s spot) path() string { return opened(s.in) + "/" + s.name }

// open opens what is there.
func (s spot) open() (int, error) {
	return unix.Openat2(s.in, s.name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}

// is reports whether there is a folder, or else something that is none and no link.
func (s spot) is(dir bool) bool {
	var st unix.Stat_t
	if unix.Fstatat(s.in, s.name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	return dir && kind == unix.S_IFDIR || !dir && kind != unix.S_IFDIR && kind != unix.S_IFLNK
}

// spot opens the folder that a path is in, and makes it where there is none.
func (r newRoot) spot(path string) (spot, error) {
	dir, name := filepath.Split(path)
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	if fd, ok := r.folders[dir]; ok {
		return spot{fd, name}, nil
	}
	s, err := r.at(dir, true)
	if err != nil {
		return spot{}, err
	}
	fd, err := s.open()
	if err != nil {
		return spot{}, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	r.folders[dir] = fd
	return spot{fd, name}, nil
}

// at is where a folder or file is, which is made where there is none.
func (r newRoot) at(path string, dir bool) (spot, error) {
	s, err := r.spot(path)
	if err != nil {
		return s, err
	}
	make := func() error {
		if dir {
			return unix.Mkdirat(s.in, s.name, 0o755)
		}
		return unix.Mknodat(s.in, s.name, unix.S_IFREG|0o644, 0)
	}
	if err = make(); err == nil || s.is(dir) {
		return s, nil
	}
	if err = r.clear(s, path); err == nil {
		err = make()
	}
	if err != nil {
		err = &os.PathError{Op: "make", Path: path, Err: err}
	}
	return s, err
}

// write makes a file anew.
func (r newRoot) write(path string, data []byte, mode os.FileMode) error {
	s, err := r.spot(path)
	if err == nil {
		err = r.clear(s, path)
	}
	if err != nil {
		return err
	}
	fd, err := unix.Openat(s.in, s.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode))
	if err != nil {
		return &os.PathError{Op: "make", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// clear removes what is in the way in a layer, which is the agent's own. Elsewhere it stays.
func (r newRoot) clear(s spot, path string) error {
	if around, ok := covering(r.places, filepath.Dir(path)); ok && around.Access == Layer {
		return remove.All(s.path())
	}
	return nil
}

// opened is the path of what a descriptor is of.
func opened(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// mountPoint makes a folder or file in the upper of a layer where bubblewrap is to mount something: it would follow links.
func mountPoint(upper, path string, dir bool) error {
	root, err := openRoot(upper, []Place{{Path: "/", Access: Layer}})
	if err != nil {
		return err
	}
	defer root.close()
	_, err = root.at(path, dir)
	return err
}
