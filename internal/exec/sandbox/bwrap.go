package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
)

// entryName is the first argument that tells this program that it was started in bubblewrap's sandbox.
const entryName = "pawl-sandbox-entry"

// entry is what this program does in bubblewrap's sandbox: it reports that a command begins, and becomes the command. Without
// a command it answers the questions on its standard input.
type entry struct {
	Proxy  bool       // hands out the proxy's socket
	Stands []standing // bubblewrap works with paths only, so what it mounted is checked
}

// standing says which file or folder has to be at a path.
type standing struct {
	Path          string
	Device, Inode uint64
}

// expects records that a path in the sandbox must show what another path on this machine has, looked up through the
// folders that pawl holds.
func (e *entry) expects(path, source string) {
	opened := dirfd.At(source)
	if opened == source {
		return
	}
	var st unix.Stat_t
	_ = unix.Stat(opened, &st) // a missing file has no identity to check
	e.Stands = append(e.Stands, standing{path, uint64(st.Dev), st.Ino})
}

// Wrap returns the command that runs argv in a folder in the sandbox, if a program (bubblewrap) makes the sandbox;
// otherwise it returns argv. path is the file found for argv[0].
func (p Policy) Wrap(path string, argv []string, dir string) (string, []string) {
	if p.Machine.Files != ByBwrap {
		return path, argv
	}
	return p.wrap(entry{Proxy: p.Network == Filtered}, dir, append([]string{path}, argv...)...)
}

// wrap returns the command that starts this program in the sandbox, in a folder, as the entry of a command (a path and the
// arguments) if there is one.
func (p Policy) wrap(first entry, dir string, command ...string) (string, []string) {
	wrapped := []string{
		p.Machine.Bwrap, "--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-pid", "--die-with-parent", "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev",
	}
	if p.Network != Open {
		wrapped = append(wrapped, "--unshare-net")
	}
	if os.Geteuid() == 0 {
		wrapped = append(wrapped, "--cap-drop", "ALL")
		for _, c := range kept {
			wrapped = append(wrapped, "--cap-add", c.name)
		}
	}
	for i, place := range p.Places {
		info, err := os.Stat(dirfd.At(place.Path))
		ok := err == nil
		// bubblewrap would follow a link that an agent put into its layer, while it still sees the whole machine.
		if around := covering(p.Places[:i], filepath.Dir(place.Path)); around.Access == Layer && around.Upper != "" && place.Access != Link {
			dir := place.Access == Empty || place.Access == Layer || ok && info.IsDir()
			if mountPoint(dirfd.At(filepath.Join(around.Upper, upper)), strings.TrimPrefix(place.Path, around.Path), dir) != nil {
				continue
			}
		}
		switch {
		case place.Path == "/proc", within(place.Path, "/dev"): // bubblewrap makes its own
		case place.Access == Empty:
			wrapped = append(wrapped, "--tmpfs", place.Path)
		case place.Access == Link:
			wrapped = append(wrapped, "--symlink", place.Target, place.Path)
		case place.Access == Layer && place.Upper != "": // without an overlay, the layer alone is shown
			up := filepath.Join(place.Upper, upper)
			if os.MkdirAll(dirfd.At(up), 0o755) == nil {
				wrapped = append(wrapped, "--bind", up, place.Path)
				first.expects(place.Path, up)
			}
		case place.Access == Layer:
			wrapped = append(wrapped, "--tmpfs", place.Path)
		case !ok: // removed since the policy was made
		case place.Text != "": // part of a file can't be shown without a descriptor to pass on
		case place.Access == Write:
			wrapped = append(wrapped, "--bind", place.Path, place.Path)
			first.expects(place.Path, place.Path)
		case place.Access == Read, place.Access == Copy: // a copy needs a descriptor to pass on, so the file is read-only
			wrapped = append(wrapped, "--ro-bind", place.Path, place.Path)
			first.expects(place.Path, place.Path)
		case info.IsDir():
			wrapped = append(wrapped, "--tmpfs", place.Path)
		default:
			wrapped = append(wrapped, "--ro-bind", "/dev/null", place.Path)
		}
	}
	if dir != "" {
		wrapped = append(wrapped, "--chdir", dir)
	}
	self, _ := os.Readlink("/proc/self/exe") // without /proc, nothing can be started
	encoded, _ := json.Marshal(first)        // all of it can be encoded
	wrapped = append(wrapped, "--ro-bind", self, self, "--remount-ro", "/", "--", self, entryName, string(encoded))
	return p.Machine.Bwrap, append(wrapped, command...)
}
