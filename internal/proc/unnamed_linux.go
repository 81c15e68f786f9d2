package proc

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Unnamed returns the bytes on disk of open files that have no name any more, of what runs under the supervisor. No
// walk through folders finds such files. Processes that can't be inspected are not counted.
func (s *Supervisor) Unnamed() (bytes int64) {
	all, err := processes()
	if err != nil {
		return 0
	}
	seen := map[[2]uint64]bool{}
	for _, p := range descendants(all, s.cmd.Process.Pid) {
		at := filepath.Join("/proc", strconv.Itoa(p.pid), "fd")
		dir, err := os.Open(at)
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			var st unix.Stat_t
			var on unix.Statfs_t
			file := filepath.Join(at, name)
			if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 || seen[[2]uint64{uint64(st.Dev), st.Ino}] {
				continue
			}
			seen[[2]uint64{uint64(st.Dev), st.Ino}] = true
			if unix.Statfs(file, &on) == nil && on.Type != unix.TMPFS_MAGIC {
				bytes += st.Blocks * 512
			}
		}
	}
	return bytes
}
