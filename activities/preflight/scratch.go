package preflight

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/exec/supervisor"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
)

// The trees of a dry run have paths that are as long as those of a loop, because programs bind sockets below them:
// the folder's name replaces a part of the trees' short name.
const (
	scratchFolder = "validate"
	scratchName   = 4
	scratchShort  = hostrecord.ShortLength - len("/"+scratchFolder+"/") - scratchName
)

// shortName returns the short name of the trees of a dry run in that folder.
func shortName(dir string) string {
	return hostrecord.ShortName(home.Home{Dir: dir}, "")[:scratchShort]
}

// scratch makes a folder under $PAWL_HOME and returns a function that removes it. It also removes folders of
// processes that died, whose locks nobody holds.
func scratch(h home.Home) (dir string, discard func(), err error) {
	folder := filepath.Join(h.Dir, scratchFolder)
	if err := os.MkdirAll(dirfd.At(folder), 0o700); err != nil {
		return "", nil, home.Unusable("making a folder to validate in", err)
	}
	old, err := os.ReadDir(dirfd.At(folder))
	if err != nil {
		return "", nil, home.Unusable("looking for what dead ones left to validate in", err)
	}
	for _, e := range old {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok {
			continue
		}
		if lock, err := durable.TryLock(filepath.Join(folder, e.Name())); err == nil {
			removeScratch(filepath.Join(folder, name), lock)
		}
	}
	for tries := 0; ; tries++ {
		dir = filepath.Join(folder, strings.ToLower(rand.Text()[:scratchName]))
		lock, err := durable.TryLock(dir + ".lock")
		if err == nil {
			err = os.Mkdir(dirfd.At(dir), 0o700)
		}
		if err == nil {
			return dir, func() { removeScratch(dir, lock) }, nil
		}
		if tries == 3 { // it may happen once, if another process takes the new folder for that of a dead process
			return "", nil, home.Unusable("making a folder to validate in", err)
		}
	}
}

// removeScratch removes a folder with its lock, and ends what runs in it.
func removeScratch(dir string, lock *os.File) {
	_, _ = supervisor.Reap("pawl-validate-" + filepath.Base(dir))
	_ = remove.All(dir)
	_ = os.Remove(dirfd.At(dir + ".lock"))
	lock.Close()
}
