// Package toolpath finds the programs that pawl itself runs (git, ssh, the desktop's notifier, bubblewrap) once, at the
// start. So pawl never runs a program that somebody puts into a folder of the PATH later.
//
// It runs nothing, and does not affect how the commands of a loop are found. Start at Down.
package toolpath

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

var pinned struct {
	sync.RWMutex
	paths map[string]string // "" for a program that was not found; nil before Down
}

// Down fixes where these programs are: each stays at the path that the PATH gives now, and one that is missing stays
// missing. It changes nothing for programs that were fixed before. A worker calls it before anything of a loop runs.
func Down(names ...string) {
	pinned.Lock()
	defer pinned.Unlock()
	if pinned.paths == nil {
		pinned.paths = map[string]string{}
	}
	for _, name := range names {
		if _, is := pinned.paths[name]; !is {
			pinned.paths[name], _ = find(name)
		}
	}
}

// Path returns a program's full path: the one that Down has found, or without Down the current one. The error is
// exec.ErrNotFound, in an *exec.Error.
func Path(name string) (string, error) {
	pinned.RLock()
	at, is := pinned.paths[name]
	pinned.RUnlock()
	switch {
	case !is:
		return find(name)
	case at == "":
		return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return at, nil
}

// find searches the PATH, except for folders that everybody can write, and relative folders.
func find(name string) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		st, err := os.Stat(dir)
		if err != nil || !filepath.IsAbs(dir) || st.Mode().Perm()&0o002 != 0 {
			continue
		}
		at := filepath.Join(dir, name)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
