package git

import (
	"cmp"
	"os"
	"path/filepath"
	"sync/atomic"
)

// pinned is the program that Pin has found, "" before.
var pinned atomic.Value

// Pin has every git process from now on be the program that the PATH has now: one that somebody puts into a
// folder of the PATH later is never run. A worker calls it before anything of a loop runs. Folders that
// everybody can write are passed over. Where there is no git, each process looks for itself.
func Pin() {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		st, err := os.Stat(dir)
		if err != nil || !filepath.IsAbs(dir) || st.Mode().Perm()&0o002 != 0 {
			continue
		}
		at := filepath.Join(dir, "git")
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			pinned.CompareAndSwap(nil, at)
			return
		}
	}
}

// Program is git: its path once Pin has found it, before that its name.
func Program() string {
	at, _ := pinned.Load().(string)
	return cmp.Or(at, "git")
}
