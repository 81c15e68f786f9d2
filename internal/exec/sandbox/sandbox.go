// Package sandbox decides what a command of a loop may reach on this machine, and enforces it with what the machine
// offers: namespaces (made by the supervisor itself, else by bubblewrap), a filter of system calls, and Landlock where
// the network is the machine's own. It decides nothing about loops, runs nothing, and never claims a protection that it
// has not tried (Probe, Check).
//
// A command sees a root of its own that contains only the named places. What builds read is read-only. The command may
// write its tree and its own scratch space; everything else is absent. So a place that was forgotten is missing, not
// open. Start at Policy; Make in make.go collects the places; Enter in enter_linux.go builds the sandbox.
package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/exec/egress"
	"pawl/internal/lib/fsutil/dirfd"
)

// Access says what a command finds at a place.
type Access int

// The accesses.
const (
	// Hidden hides a place inside another one: the command finds an empty folder or file.
	Hidden Access = iota
	// Empty is an empty folder in memory, for this command alone.
	Empty
	// Copy is a private copy of a file, for programs that replace their settings by renaming. Changes to it are lost.
	Copy
	// Link is a symbolic link, as on the machine.
	Link
	Read
	// Layer is a folder that the command may write. The machine's own folder stays unchanged: what the command writes
	// goes to Upper.
	Layer
	Write
)

// Place is a file or folder and what a command finds there.
type Place struct {
	Path   string
	Access Access
	Target string   // of a Link
	Text   string   // of a Copy that has only a part of the file
	Lower  []string // of a Layer: what shows through, the uppermost first
	Upper  string   // of a Layer: where writes go, and beside it what overlays need
	// Missing marks a Layer over nothing.
	Missing bool
	// Apart marks a readable folder that others write: if the machine has overlays, its sockets and pipes lead to
	// nobody, and its locks block nobody.
	Apart bool
	// Public marks a place in which root's commands can read only what everybody may read, if the file system
	// supports that. A place that is Hidden and Public is only needed if it does not.
	Public bool
	// Whole marks a readable place inside a public one, including files that only root may read, because the spec
	// names it.
	Whole bool
}

// Network says what a command can reach on the network: sandbox.network of the spec.
type Network string

// The networks.
const (
	Filtered Network = "filtered" // a loopback of its own, and pawl's proxy
	None     Network = "none"     // a loopback of its own
	Open     Network = "open"     // this machine's network
)

// Policy says what a command may reach. A path that no place covers does not exist for it.
type Policy struct {
	// Places are sorted from the outside in; the innermost decides.
	Places []Place
	// Network is Filtered or None only if the machine has network namespaces. Egress says what the proxy allows.
	Network Network
	Egress  egress.Rules
	// Closed are the TCP ports that can't be reached on any host from an Open network, none for other networks.
	Closed []int
	// Limits are the resources that the command may use.
	Limits Limits
	// Tree and Fresh identify a room: the room of a tree is made again when Fresh changes.
	Tree, Fresh string
	// Layered changes when somebody other than the tree's commands has changed what is below its layers.
	Layered string
	// Machine is what enforces the policy.
	Machine Machine
}

// Opens reports whether a path is accessible.
func (p Policy) Opens(path string) bool {
	file := resolved(path)
	around := covering(p.Places, file)
	return file != "" && (around.Access == Read || around.Access == Write || around.Access == Layer)
}

// Rooted reports whether commands get their root from the thread that starts them.
func (p *Policy) Rooted() bool {
	return p != nil && (p.Machine.Files == ByNamespace || p.Machine.Files == ByUserNamespace)
}

// Hands reports whether a command of the policy reports its beginning over a socket, and passes on the listener for the
// proxy if it has one. The command's end of that socket is its file 3; Begun reads the other end.
func (p Policy) Hands() bool { return p.Machine.Files == ByBwrap }

// InPlace returns an error if the path of a folder that pawl holds, and that the policy has places in, has another folder
// now. A root that was made before follows a renamed folder if the folder above it is in the root, too.
func (p *Policy) InPlace() error {
	folders, err := dirfd.Anew(p.sources)
	folders.Close()
	return err
}

// sources yields the paths from which the places are made.
func (p Policy) sources(yield func(path string) bool) {
	for _, place := range p.Places {
		dirs := append(slices.Clone(place.Lower), place.Upper)
		if place.Access == Read || place.Access == Write || place.Access == Copy {
			dirs = append(dirs, place.Path)
		}
		for _, path := range dirs {
			if !yield(path) {
				return
			}
		}
	}
}

// Limits are what the commands of a loop may use at any time; 0 means no limit.
type Limits struct {
	Memory    int64 // bytes
	Processes int64
}

// sorted returns the places from the outside in. The last place for a path counts. A read-only place in a read-only
// place is dropped.
func sorted(places []Place) []Place {
	distinct, seen := make([]Place, 0, len(places)), make(map[string]bool, len(places))
	for _, p := range slices.Backward(places) {
		if !seen[p.Path] {
			seen[p.Path], distinct = true, append(distinct, p)
		}
	}
	slices.SortFunc(distinct, func(a, b Place) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
	var out []Place
	for _, p := range distinct {
		around := covering(out, p.Path)
		inside := around.Path != ""
		switch {
		case !inside && p.Access == Hidden:
		case inside && around.Access == p.Access && !(p.Whole && around.Public) && (p.Access == Read || p.Access == Write):
		case inside && around.Access != Empty && p.Access == Link: // it is there already
		case around.Access == Write && (p.Access == Layer || p.Access == Copy):
			// It adds nothing to a place where everything may be written, and making it would change the machine's folder.
		default:
			out = append(out, p)
		}
	}
	return out
}

// covering returns the innermost place that contains a path, the last of several; the zero Place, which is Hidden, if
// there is none.
func covering(places []Place, path string) (found Place) {
	for _, p := range places {
		if p.Access != Link && len(p.Path) >= len(found.Path) && within(path, p.Path) {
			found = p
		}
	}
	return found
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/') || dir == "/"
}

// resolved returns the kernel's path for a path, "" if nothing exists.
func resolved(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Lstat(dirfd.At(path)); err != nil { // most paths that are asked for do not exist
		return ""
	}
	file, err := dirfd.Real(path)
	if err != nil {
		return ""
	}
	return file
}

// links returns the symbolic links on the way to a path, so that the name that people use leads there too.
func links(path string) (places []Place) {
	split := func(path string) []string { return strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/") }
	reached := "/"
	for rest := split(path); len(rest) > 0; {
		reached, rest = filepath.Join(reached, rest[0]), rest[1:]
		target, err := os.Readlink(dirfd.At(reached))
		if err != nil {
			continue
		}
		if places = append(places, Place{Path: reached, Access: Link, Target: target}); len(places) == 40 { // the kernel's limit
			return nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(reached), target)
		}
		reached, rest = "/", append(split(target), rest...)
	}
	return places
}
