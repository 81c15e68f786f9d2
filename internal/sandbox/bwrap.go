package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/held"
)

// The first arguments by which this program knows that it was started in bubblewrap's sandbox.
const (
	checkName = "pawl-sandbox-check" // to answer questions
	entryName = "pawl-sandbox-entry" // to say that a command begins, and become it
)

// entry is what this program does in bubblewrap's sandbox before it becomes the command.
type entry struct {
	Proxy  bool       // it hands out the proxy's socket
	Stands []standing // bubblewrap knows nothing but paths: what it has mounted is looked at
}

// standing is which file or folder has to stand at a path.
type standing struct {
	Path          string
	Device, Inode uint64
}

// expects notes that at a path in the sandbox stands what there is at another on this machine, where pawl holds the folder
// that it is in.
func (e *entry) expects(path, of string) {
	at := held.At(of)
	if at == of {
		return
	}
	var st unix.Stat_t
	_ = unix.Stat(at, &st) // what is not there stands nowhere
	e.Stands = append(e.Stands, standing{path, uint64(st.Dev), st.Ino})
}

// Wrap returns the command that runs argv in a folder in the sandbox where that takes a program: bubblewrap.
// Elsewhere it is argv. path is the file that argv[0] was found to be.
func (p Policy) Wrap(path string, argv []string, dir string) (string, []string) {
	if p.Machine.Files != ByBwrap {
		return path, argv
	}
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
	first := entry{Proxy: p.Network == Filtered}
	for i, place := range p.Places {
		info, err := os.Stat(held.At(place.Path))
		there := err == nil
		// What an agent linked in its layer bubblewrap would follow, while it still sees the whole machine.
		if around, _ := covering(p.Places[:i], filepath.Dir(place.Path)); around.Access == Layer && around.Upper != "" && place.Access != Link {
			dir := place.Access == Empty || place.Access == Layer || there && info.IsDir()
			if mountPoint(held.At(filepath.Join(around.Upper, upper)), strings.TrimPrefix(place.Path, around.Path), dir) != nil {
				continue
			}
		}
		switch {
		case place.Path == "/proc", within(place.Path, "/dev"): // bubblewrap has its own
		case place.Access == Empty:
			wrapped = append(wrapped, "--tmpfs", place.Path)
		case place.Access == Link:
			wrapped = append(wrapped, "--symlink", place.Target, place.Path)
		case place.Access == Layer && place.Upper != "": // without an overlay it is the layer alone
			up := filepath.Join(place.Upper, upper)
			if os.MkdirAll(held.At(up), 0o755) == nil {
				wrapped = append(wrapped, "--bind", up, place.Path)
				first.expects(place.Path, up)
			}
		case place.Access == Layer:
			wrapped = append(wrapped, "--tmpfs", place.Path)
		case !there: // it has gone since the policy was made
		case place.Text != "": // no part of a file without a descriptor to hand over
		case place.Access == Write:
			wrapped = append(wrapped, "--bind", place.Path, place.Path)
			first.expects(place.Path, place.Path)
		case place.Access == Read, place.Access == Copy: // no copy without a descriptor to hand over: it can be read
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
	if !slices.Contains(argv, checkName) {
		self, err := os.Readlink("/proc/self/exe")
		if err != nil {
			return path, argv // it fails, as this system has no /proc
		}
		says, _ := json.Marshal(first) // of what can be said
		wrapped = append(wrapped, "--ro-bind", self, self)
		return p.Machine.Bwrap, append(append(wrapped, "--remount-ro", "/", "--", self, entryName, string(says), path), argv...)
	}
	wrapped = append(wrapped, "--remount-ro", "/", "--", path)
	return p.Machine.Bwrap, append(wrapped, argv[1:]...)
}
