package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/remove"
)

// newRoot is a root under construction, built from the outside in. Its layers may contain links that an agent left in
// an earlier sandbox, and the builder still sees the whole machine. So no link in it is followed, and a link in a layer
// is removed where something has to be put.
type newRoot struct {
	places  []Place
	folders map[string]int // opened folders by path
}

// spot is a file or folder of a new root, or a free name: a name in an open folder. It is never a link.
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

// path returns a path to a spot.
func (s spot) path() string { return opened(s.in) + "/" + s.name }

// open opens the file or folder.
func (s spot) open() (int, error) {
	return unix.Openat2(s.in, s.name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}

// is reports whether the spot is a folder, or, without dir, something else that is no link.
func (s spot) is(dir bool) bool {
	var st unix.Stat_t
	if unix.Fstatat(s.in, s.name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	return dir && kind == unix.S_IFDIR || !dir && kind != unix.S_IFDIR && kind != unix.S_IFLNK
}

// spot returns a path's spot. It opens the path's folder, and makes it if it is missing.
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

// at returns the spot of a file or folder, and makes it if it is missing.
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

// write writes a new file.
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

// clear removes what is in the way in a layer, which belongs to the agent. Outside of layers, it removes nothing.
func (r newRoot) clear(s spot, path string) error {
	if covering(r.places, filepath.Dir(path)).Access == Layer {
		return remove.All(s.path())
	}
	return nil
}

// opened returns a path to an open descriptor.
func opened(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// mountPoint makes a folder or file in the upper of a layer on which bubblewrap mounts something, because bubblewrap
// would follow links.
func mountPoint(upper, path string, dir bool) error {
	root, err := openRoot(upper, []Place{{Path: "/", Access: Layer}})
	if err != nil {
		return err
	}
	defer root.close()
	_, err = root.at(path, dir)
	return err
}
