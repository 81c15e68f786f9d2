package prompt

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
)

// Left reads a file that an agent left below a folder, nil if there is none. The agent can write everything in the
// folder. So Left follows nothing that leads elsewhere: no link of any kind, also in place of a folder, and no second
// name of a file. It never waits for a FIFO.
func Left(limit int, folder string, path ...string) ([]byte, error) {
	at, err := unix.Open(dirfd.At(folder), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	for i, name := range path {
		if err != nil {
			break
		}
		flags := unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
		if i < len(path)-1 {
			flags |= unix.O_DIRECTORY
		}
		parent := at
		at, err = unix.Openat(parent, name, flags, 0)
		_ = unix.Close(parent)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(at), path[len(path)-1])
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it is not a regular file")
	case st.Nlink > 1:
		return nil, errors.New("it has a second name (a hard link), so it may be somebody else's file")
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return b, err
}
