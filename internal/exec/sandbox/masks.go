package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// masks returns the files and folders in the system's folders that only root may read now: passwords, keys. Without
// masks root's commands could read them; ordinary users can't anyway. Masks are only used where the file system does
// not support Place.Public, which also covers files that appear later.
func masks() []Place {
	if os.Geteuid() != 0 {
		return nil
	}
	return slices.Concat(masked.of("/etc", rootsOwn), masked.of("/opt", rootsOwn))
}

func rootsOwn(dir string) (places []Place) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := e.Info()
		switch {
		case err != nil || e.Type()&fs.ModeSymlink != 0:
		case e.IsDir() && info.Mode()&0o005 == 0:
			places = append(places, Place{Path: path, Access: Hidden, Public: true})
			return fs.SkipDir
		case !e.IsDir() && info.Mode()&0o004 == 0:
			places = append(places, Place{Path: path, Access: Hidden, Public: true})
		}
		return nil
	})
	return places
}
