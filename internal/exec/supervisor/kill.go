package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/list"
)

const (
	// killWithin is how long a process may survive SIGKILL. A process that waits for a dead network disk survives for a
	// while; a process of another user (sudo) can't be killed at all.
	killWithin = 10 * time.Second
	// maxLooks is how often freeze looks at the process table.
	maxLooks = 20
	// orphanWithin is how long Reap waits for a supervisor whose worker died to clean up by itself.
	orphanWithin = 5 * time.Second
)

// process is an entry of the process table. Its start time distinguishes it from a later process with the same ID.
type process struct {
	pid, ppid, pgid int
	start           uint64
	ticks           int  // the CPU time that it has used, where that is known
	terminal        bool // has a controlling terminal
	ending          bool // has begun to exit by itself, or has been killed
	ended           bool // a zombie
}

// target says what end has to end.
type target struct {
	find   func() ([]process, error)
	gone   func() (bool, error)
	wait   func(pause time.Duration)
	groups bool // no other process is in the process groups of those found
}

// end stops and kills what t finds, repeatedly, until nothing is left. It stops processes before it kills them, so that
// they can't fork meanwhile. It returns the IDs of the processes that it had to kill.
func end(t target) (map[int]bool, error) {
	killed := map[int]bool{}
	deadline := time.Now().Add(killWithin)
	for pause := 500 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if ended, err := t.gone(); ended || err != nil {
			return killed, err
		}
		found, err := t.freeze()
		if err != nil {
			return killed, err
		}
		for _, p := range found {
			_ = p.signal(unix.SIGKILL)
			if !p.ending {
				killed[p.pid] = true
			}
		}
		if time.Now().After(deadline) {
			if ended, err := t.gone(); ended || err != nil {
				return killed, err
			}
			return killed, fmt.Errorf("SIGKILL did not end these processes within %s: %v", killWithin, ids(found))
		}
		t.wait(pause)
	}
}

// freeze stops what it finds until the process table shows nothing new. It gives up after maxLooks: then something
// forks faster than freeze can look, and killing has to begin.
func (t target) freeze() ([]process, error) {
	seen := map[process]bool{} // by ID and start time
	// Never signal our own group. 0 means that group, and kill(2) reads -1 as "everybody".
	groups := map[int]bool{0: true, 1: true, unix.Getpgrp(): true}
	for looks := 0; ; looks++ {
		found, err := t.find()
		if err != nil {
			return nil, err
		}
		settled := looks == maxLooks
		for _, p := range found {
			if t.groups && !groups[p.pgid] {
				groups[p.pgid] = true
				_ = unix.Kill(-p.pgid, unix.SIGSTOP)
			}
			if k := (process{pid: p.pid, start: p.start}); !seen[k] {
				seen[k], settled = true, looks == maxLooks
				_ = p.signal(unix.SIGSTOP)
			}
		}
		if settled {
			return found, nil
		}
	}
}

// Reap kills every process on this machine that has SUPERVISED_BY=<token> in its environment, with
// its descendants, and every process whose working directory is one of dirs or inside one. It never
// kills this process or its ancestors. It returns how many it killed, once they are gone. It is for
// recovery after a kill -9.
//
// A supervisor of this token whose worker is dead ends its command by itself. Reap waits for that: a
// supervisor knows its descendants, and Reap has to guess them. A supervisor whose worker is alive
// stays, but what runs under it is killed. A process that is only found by its directory and has a
// controlling terminal stays too: it is the shell or editor of a person who looks at the tree.
func Reap(token string, dirs ...string) (int, error) {
	if token == "" && len(dirs) == 0 {
		return 0, errors.New("reap: neither token nor directory given")
	}
	places, err := clearable(dirs)
	if err != nil {
		return 0, fmt.Errorf("reap: %w", err)
	}
	orphans, err := endOrphans(token)
	if err != nil {
		return orphans, fmt.Errorf("reap: %w", err)
	}
	var seen []process
	find := func() ([]process, error) {
		found, err := leftovers(token, places)
		seen = append(seen, found...)
		return found, err
	}
	killed, err := end(target{
		find: find,
		gone: func() (bool, error) {
			if left, err := find(); len(left) > 0 || err != nil {
				return false, err
			}
			return haveEnded(seen)
		},
		wait: time.Sleep,
	})
	if err == nil && token != "" && !supervising(token) {
		err = sandbox.RemoveBounds(token)
	}
	if err != nil {
		err = fmt.Errorf("reap: %w", err)
	}
	return orphans + len(killed), err
}

// haveEnded reports whether none of the processes exists any more. A dying process loses its environment and directory
// before it ends, so searching by those is not enough.
func haveEnded(seen []process) (bool, error) {
	procs, err := processes()
	for _, p := range procs {
		if !p.ended && slices.ContainsFunc(seen, func(s process) bool { return s.pid == p.pid && s.start == p.start }) {
			return false, err
		}
	}
	return true, err
}

// leftovers returns what Reap has to kill.
func leftovers(token string, dirs []string) ([]process, error) {
	procs, err := processes()
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(procs))
	for _, p := range procs {
		parents[p.pid] = p.ppid
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = parents[pid] {
		spared[pid] = true
	}
	var found, carriers []process
	for _, p := range procs {
		if spared[p.pid] || p.ended {
			continue
		}
		if token != "" && slices.Contains(environment(p.pid), TokenVariable+"="+token) {
			carriers = append(carriers, p)
		} else if !p.terminal && inside(workingDirectory(p.pid), dirs) {
			found = append(found, p)
		}
	}
	for _, p := range descendants(procs, ids(carriers)...) {
		if !spared[p.pid] && !p.ended && !slices.Contains(found, p) && !slices.Contains(carriers, p) {
			found = append(found, p)
		}
	}
	return append(found, carriers...), nil
}

// descendants returns the children, grandchildren and so on of the given processes.
func descendants(procs []process, parents ...int) []process {
	children := make(map[int][]process, len(procs))
	for _, p := range procs {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []process
	seen := map[int]bool{}
	for len(parents) > 0 {
		next := children[parents[0]]
		parents = parents[1:]
		for _, p := range next {
			if !seen[p.pid] {
				seen[p.pid] = true
				found, parents = append(found, p), append(parents, p.pid)
			}
		}
	}
	return found
}

func ids(ps []process) []int {
	return list.Map(ps, func(p process) int { return p.pid })
}

// clearable returns dirs as the kernel shows them. It refuses directories that only a mistake of the caller can name:
// "" is this process's own directory, and many daemons of the host work in /.
func clearable(dirs []string) ([]string, error) {
	places := make([]string, len(dirs))
	for i, dir := range dirs {
		places[i] = resolve(dir)
		if dir == "" || places[i] == "/" {
			return nil, fmt.Errorf("%q is not a directory to clear of processes", dir)
		}
	}
	return places, nil
}

// inside reports whether path is one of dirs or below it.
func inside(path string, dirs []string) bool {
	return path != "" && slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+"/")
	})
}

// resolve returns dir as the kernel shows it. If dir was removed, it resolves the parents that still exist.
func resolve(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Clean(dir)
	}
	if resolved, err := filepath.EvalSymlinks(abs); err == nil {
		return resolved
	}
	if parent := filepath.Dir(abs); parent != abs {
		return filepath.Join(resolve(parent), filepath.Base(abs))
	}
	return abs
}
