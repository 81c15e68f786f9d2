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

	"pawl/internal/egress"
	"pawl/internal/held"
)

// Access is what a command finds at a place.
type Access int

// The accesses.
const (
	// Hidden is nothing at a place that is inside of another: an empty folder or file.
	Hidden Access = iota
	// Empty is an empty folder of the command's own, in memory.
	Empty
	// Copy is a file of the command's own that begins as a copy, for programs that replace their
	// settings by renaming. What it becomes is lost.
	Copy
	// Link is a symbolic link as the machine has it.
	Link
	Read
	// Layer is a folder that the command may write while the machine's own stays as it is: what it writes
	// goes to Upper.
	Layer
	Write
)

// Place is a file or folder and what a command finds there.
type Place struct {
	Path   string
	Access Access
	Target string   // of a Link
	Text   string   // of a Copy that is not of the whole file
	Lower  []string // of a Layer: what is seen below, the uppermost first
	Upper  string   // of a Layer: where what is written goes. What overlays need is beside it
	// Missing is a Layer over nothing.
	Missing bool
	// Apart is of what can be read and others write: sockets and pipes in it lead to nobody, and a lock holds up nobody, where
	// the machine has overlays.
	Apart bool
}

// Network is what a command reaches of the network: sandbox.network of the spec.
type Network string

// The networks.
const (
	Filtered Network = "filtered" // a loopback of its own, and a proxy of pawl's
	None     Network = "none"     // a loopback of its own
	Open     Network = "open"     // this machine's
)

// Policy is what a command may reach. What no place covers is absent.
type Policy struct {
	// Places are sorted from the outside in; the innermost decides.
	Places []Place
	// Network is Filtered or None only where the machine has network namespaces. Egress is what the proxy
	// lets through.
	Network Network
	Egress  egress.Rules
	// Closed are the TCP ports, on any host, to which no connection can be made from an Open network.
	Closed []int
	// Limits are what the command may use up.
	Limits Limits
	// Tree and Fresh name the surroundings: those of one tree are made anew when Fresh is another.
	Tree, Fresh string
	// Layered is another one when somebody else than the tree's commands has changed what is below its layers.
	Layered string
	// Machine is what the policy is carried out with.
	Machine Machine
}

// Opens reports whether what there is at a path is in reach.
func (p Policy) Opens(path string) bool {
	at := resolved(path)
	if at == "" {
		return false
	}
	around, ok := covering(p.Places, at)
	return ok && (around.Access == Read || around.Access == Write || around.Access == Layer)
}

// Rooted reports whether commands have a root that the thread which starts them is in.
func (p *Policy) Rooted() bool {
	return p != nil && (p.Machine.Files == ByNamespace || p.Machine.Files == ByUserNamespace)
}

// Limits are what the commands of a loop may use up at any time; 0 is no limit.
type Limits struct {
	Memory    int64 // bytes
	Processes int64
}

// sorted returns the places from the outside in. The last of several for one path counts. A place that
// is read-only as the place around it is dropped.
func sorted(places []Place) []Place {
	last := make(map[string]int, len(places))
	for i, p := range places {
		last[p.Path] = i
	}
	all := make([]Place, 0, len(last))
	for i, p := range places {
		if last[p.Path] == i {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Place) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
	var out []Place
	for _, p := range all {
		around, ok := covering(out, p.Path)
		if ok && around.Access == p.Access && (p.Access == Read || p.Access == Write) || !ok && p.Access == Hidden {
			continue
		}
		if ok && p.Access == Link && around.Access != Empty { // it is there
			continue
		}
		// Where everything may be written there is nothing to put on top, and making it would change the
		// machine's own.
		if ok && around.Access == Write && (p.Access == Layer || p.Access == Copy) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// covering returns the innermost of the places that a path is at or in, the last of several; ok is false
// where there is none.
func covering(places []Place, path string) (found Place, ok bool) {
	for _, p := range places {
		if p.Access != Link && len(p.Path) >= len(found.Path) && within(path, p.Path) {
			found, ok = p, true
		}
	}
	return found, ok
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/') || dir == "/"
}

// resolved is a path as the kernel has it, "" where there is nothing.
func resolved(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Lstat(held.At(path)); err != nil { // most of what is asked for is not there
		return ""
	}
	at, err := held.Real(path)
	if err != nil {
		return ""
	}
	return at
}

// links are the symbolic links on the way to a path, so that the name that people use leads there too.
func links(path string) (all []Place) {
	for range 40 { // as the kernel does
		at := "/"
		again := false
		parts := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
		for i, part := range parts {
			at = filepath.Join(at, part)
			target, err := os.Readlink(held.At(at))
			if err != nil {
				continue
			}
			all = append(all, Place{Path: at, Access: Link, Target: target})
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			path, again = filepath.Join(append([]string{target}, parts[i+1:]...)...), true
			break
		}
		if !again {
			return all
		}
	}
	return nil
}
