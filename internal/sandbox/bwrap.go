package sandbox

import "os"

// Wrap returns the command that runs argv in the sandbox where that takes a program: bubblewrap.
// Elsewhere it is argv. path is the file that argv[0] was found to be.
func (p Policy) Wrap(path string, argv []string) (string, []string) {
	if p.By != ByBwrap {
		return path, argv
	}
	wrapped := []string{p.Bwrap, "--unshare-user", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent"}
	if os.Geteuid() == 0 {
		wrapped = append(wrapped, "--cap-drop", "ALL")
		for _, c := range kept {
			wrapped = append(wrapped, "--cap-add", c.name)
		}
	}
	for _, place := range p.Places {
		info, err := os.Stat(place.Path)
		if err != nil {
			continue // it has gone since the policy was made
		}
		switch {
		case place.Access >= Write:
			wrapped = append(wrapped, "--bind", place.Path, place.Path)
		case place.Access == Read, place.Access == Copy: // no copy without a descriptor to hand over: it can be read
			wrapped = append(wrapped, "--ro-bind", place.Path, place.Path)
		case info.IsDir():
			wrapped = append(wrapped, "--tmpfs", place.Path)
		default:
			wrapped = append(wrapped, "--ro-bind", "/dev/null", place.Path)
		}
	}
	wrapped = append(wrapped, "--", path)
	return p.Bwrap, append(wrapped, argv[1:]...)
}
