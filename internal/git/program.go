package git

import (
	"cmp"
	"os"
	"path/filepath"
	"sync/atomic"
)

// pinned and pinnedShell are the programs that Pin has found, "" before.
var pinned, pinnedShell atomic.Value

// Pin has every git process from now on be the program that the PATH has now, and the ssh that it runs too: one that
// somebody puts into a folder of the PATH later is never run. A worker calls it before anything of a loop runs. Folders
// that everybody can write are passed over. Where there is no such program, each process looks for itself.
func Pin() {
	pin(&pinned, "git")
	pin(&pinnedShell, "ssh")
}

func pin(to *atomic.Value, name string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		st, err := os.Stat(dir)
		if err != nil || !filepath.IsAbs(dir) || st.Mode().Perm()&0o002 != 0 {
			continue
		}
		at := filepath.Join(dir, name)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			to.CompareAndSwap(nil, at)
			return
		}
	}
}

// Program is git: its path once Pin has found it, before that its name.
func Program() string {
	at, _ := pinned.Load().(string)
	return cmp.Or(at, "git")
}
