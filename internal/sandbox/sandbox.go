// Package sandbox says what a command of a loop may reach on this machine, and sees to it with
// what the machine has: a mount namespace for the files (made by the supervisor itself, else by
// bubblewrap) and Landlock for the ports, signals and abstract sockets. It decides nothing about
// loops, runs nothing, and never claims a protection that it has not tried (Probe).
//
// A command sees the machine's own file system without the places on a list. It is a list of what is
// denied, not of what is allowed: a build needs compilers, caches and scratch space that nobody can name
// beforehand. Start at Policy; places.go has the tables; Enter in enter_linux.go carries it out.
package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Access is what a command may do with a place and with everything in it.
type Access int

// The accesses, from nothing to everything.
const (
	// Hidden is an empty folder of the command's own, in memory; an empty file where it is one.
	Hidden Access = iota
	// Copy is a file of the command's own that begins as a copy, for programs that replace their
	// settings by renaming. What it becomes is lost.
	Copy
	Read
	Write
	// Fixed is Write to what can be neither renamed nor removed itself.
	Fixed
)

// Place is a file or folder and what may be done with it.
type Place struct {
	Path   string
	Access Access
}

// Policy is what a command may reach. What no place covers stays as it is.
type Policy struct {
	// Places are sorted from the outside in; the innermost decides.
	Places []Place
	// Closed are the TCP ports, on any host, to which no connection can be made.
	Closed []int
	// By is how files are kept out of reach; Bwrap is the program, where it is that.
	By    Means
	Bwrap string
	// Landlock is the version of it that the machine has, 0 for none.
	Landlock int
}

// Means is how files are kept out of reach.
type Means string

// The means, the cheapest first: the supervisor's own mount namespace costs nothing per command,
// bubblewrap some eight milliseconds.
const (
	ByNothing       Means = ""
	ByNamespace     Means = "a mount namespace"
	ByUserNamespace Means = "a user and mount namespace"
	ByBwrap         Means = "bubblewrap"
)

// What Landlock's versions bring.
const (
	landlockNet   = 4
	landlockScope = 6
)

// Machine is what Probe found.
type Machine struct {
	Files    Means
	Bwrap    string // its path
	Landlock int    // its version, 0 for none
}

// Covers reports whether both files and the engine's ports (closed) are out of reach on this machine (E6).
func (m Machine) Covers(closed []int) bool { return m.Lacks(closed) == "" }

// Lacks says in words what the machine lacks, "" where it has everything.
func (m Machine) Lacks(closed []int) string {
	var lacks []string
	if m.Files == ByNothing {
		lacks = append(lacks, "mount namespaces (neither by itself nor with bubblewrap)")
	}
	switch {
	case m.Landlock == 0:
		lacks = append(lacks, "Landlock")
	case m.Landlock < landlockNet:
		lacks = append(lacks, fmt.Sprintf("Landlock for ports (it has version %d, Linux 6.7 brings %d)", m.Landlock, landlockNet))
	case len(closed) == 0:
		lacks = append(lacks, "a port of the engine's that is not everybody's")
	}
	return strings.Join(lacks, " and ")
}

// Protections are the lines of the contract that say which protections this machine has, by what means,
// and which it lacks. The spec may open some of the closed ports.
func (m Machine) Protections(closed, open []int) []string {
	var lines []string
	if m.Files != ByNothing {
		lines = append(lines,
			"sandbox, by "+string(m.Files)+": $PAWL_HOME, your home and other programs' sockets are out of reach of agent and commands, and your repository can't be written; caches, temporary folders and what the spec names can")
	} else {
		lines = append(lines, "no sandbox for files: agent and commands run with your rights on this machine, and could reach $PAWL_HOME, your home and your repository")
	}
	shut := slices.DeleteFunc(slices.Clone(closed), func(port int) bool { return slices.Contains(open, port) })
	if m.Landlock >= landlockNet && len(shut) > 0 {
		slices.Sort(shut)
		lines = append(lines, "sandbox, by Landlock: the engine, its UI and the stewards' triggers are out of reach (no connection to port "+strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Compact(shut)), " ", ", "), "[]")+")")
	} else {
		lines = append(lines, "no sandbox for ports: agent and commands could reach the engine and its UI, and answer a gate")
	}
	switch {
	case m.Landlock >= landlockScope:
		lines = append(lines, "sandbox, by Landlock: no signals to pawl's processes, and no tracing of them")
	case m.Files == ByBwrap: // in a process namespace of its own
		lines = append(lines, "sandbox, by bubblewrap: no signals to pawl's processes, and no tracing of them")
	case m.Files != ByNothing: // without the right to trace those that have more rights
		lines = append(lines, "sandbox, by "+string(m.Files)+": no tracing of pawl's processes; signals can be sent to them, and what they end is started again")
	case m.Landlock >= landlockNet && len(shut) > 0:
		lines = append(lines, "sandbox, by Landlock: no tracing of pawl's processes; signals can be sent to them, and what they end is started again")
	default:
		lines = append(lines, "no sandbox for processes: agent and commands could end or trace pawl's; what they end is started again")
	}
	return lines
}

// sorted returns the places from the outside in. The last of several for one path counts. A place that
// allows the same as the place around it is dropped.
func sorted(places []Place) []Place {
	last := map[string]Place{}
	for _, p := range places {
		last[p.Path] = p
	}
	var all []Place
	for _, p := range last {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Place) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
	var out []Place
	for _, p := range all {
		if around(out, p.Path) != p.Access {
			out = append(out, p)
		}
	}
	return out
}

// around is the access that a path has by the places so far; Write where none covers it.
func around(places []Place, path string) Access {
	access := Write
	for _, p := range places { // from the outside in
		if within(path, p.Path) {
			access = p.Access
		}
	}
	return access
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// resolved is a path as the kernel has it, "" where there is nothing.
func resolved(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Lstat(path); err != nil { // most of what is asked for is not there
		return ""
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return at
}
