package dirfd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// names is the folder in which a process finds its open files by number.
const names = "/proc/self/fd/"

// Third is what leads a process to what it inherited as its file 3, "" where descriptors have no names.
const Third = names + "3"

func open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// real returns a path in the folder without symbolic links.
func (f *Folder) real(path string) (string, error) {
	below := strings.TrimPrefix(path[len(f.Path):], "/")
	if below == "" {
		return f.Path, nil
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	if fd, err := unix.Openat2(int(f.file.Fd()), below, &how); err == nil {
		return filepath.Clean(path), unix.Close(fd)
	}
	// There is a link on the way, or the kernel lacks openat2.
	fd, err := unix.Open(f.Here()+"/"+below, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	at, err := os.Readlink(names + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	top, err := os.Readlink(f.Here())
	if err != nil {
		return "", err
	}
	if rest, is := strings.CutPrefix(at, top+"/"); is {
		return filepath.Join(f.Path, rest), nil
	}
	return at, nil
}
