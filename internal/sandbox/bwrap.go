package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The first arguments by which this program knows that it was started in bubblewrap's sandbox.
const (
	checkName = "pawl-sandbox-check" // to answer questions
	entryName = "pawl-sandbox-entry" // to hand out the proxy's socket and become the command
)

// Wrap returns the command that runs argv in the sandbox where that takes a program: bubblewrap.
// Elsewhere it is argv. path is the file that argv[0] was found to be.
func (p Policy) Wrap(path string, argv []string) (string, []string) {
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
	for i, place := range p.Places {
		info, err := os.Stat(place.Path)
		there := err == nil
		// What an agent linked in its layer bubblewrap would follow, while it still sees the whole machine.
		if around, _ := covering(p.Places[:i], filepath.Dir(place.Path)); around.Access == Layer && around.Upper != "" && place.Access != Link {
			dir := place.Access == Empty || place.Access == Layer || there && info.IsDir()
			if mountPoint(filepath.Join(around.Upper, upper), strings.TrimPrefix(place.Path, around.Path), dir) != nil {
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
			if os.MkdirAll(up, 0o755) == nil {
				wrapped = append(wrapped, "--bind", up, place.Path)
			}
		case place.Access == Layer:
			wrapped = append(wrapped, "--tmpfs", place.Path)
		case !there: // it has gone since the policy was made
		case place.Text != "": // no part of a file without a descriptor to hand over
		case place.Access == Write:
			wrapped = append(wrapped, "--bind", place.Path, place.Path)
		case place.Access == Read, place.Access == Copy: // no copy without a descriptor to hand over: it can be read
			wrapped = append(wrapped, "--ro-bind", place.Path, place.Path)
		case info.IsDir():
			wrapped = append(wrapped, "--tmpfs", place.Path)
		default:
			wrapped = append(wrapped, "--ro-bind", "/dev/null", place.Path)
		}
	}
	if p.Hands() && !slices.Contains(argv, checkName) {
		self, err := os.Readlink("/proc/self/exe")
		if err != nil {
			return path, argv // it fails, as this system has no /proc
		}
		wrapped = append(wrapped, "--ro-bind", self, self)
		return p.Machine.Bwrap, append(append(wrapped, "--remount-ro", "/", "--", self, entryName, path), argv...)
	}
	wrapped = append(wrapped, "--remount-ro", "/", "--", path)
	return p.Machine.Bwrap, append(wrapped, argv[1:]...)
}
