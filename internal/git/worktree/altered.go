package worktree

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/lib/fsutil/dirfd"
)

// Altered returns the tracked files of head that the tree no longer has as head has them: another content, mode or
// kind, or none. They are sorted. Apart from files that were touched, it reads only their times.
func (t *Tree) Altered(ctx context.Context, head string) ([]string, error) {
	if err := git.CheckHashes(head); err != nil {
		return nil, err
	}
	v, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if v.root == nil || !v.indexIsAt(head) {
		return nil, nil // nothing is known about the tree: the next Restore makes it again
	}
	ix, err := readIndex(v.indexPath())
	if err != nil {
		return nil, fmt.Errorf("looking for altered files: %w", err)
	}
	index, err := stampFile(v.indexPath())
	if err != nil {
		return nil, err
	}

	var altered, rewritten []string
	for path, entry := range ix.entries {
		if entry.isGitlink() {
			continue
		}
		current, err := v.root.lstatAt(path)
		if git.Starved(err) {
			return nil, err
		}
		switch {
		case err != nil: // missing, or below something that is no folder any more
			altered = append(altered, path)
		case entry.unchanged(current, index.Mtime):
		case !entry.sameKind(current):
			altered = append(altered, path)
		case v.blobAt(path, current) != entry.blobText():
			rewritten = append(rewritten, path)
		}
	}
	rewritten, err = v.confirm(ctx, rewritten)
	if err != nil {
		return nil, err
	}

	altered = append(altered, rewritten...)
	slices.Sort(altered)
	return altered, nil
}

// sameKind reports whether a file has the entry's kind and may be executed if the entry's may.
func (e indexEntry) sameKind(current stamp) bool {
	kind := current.Mode & unix.S_IFMT
	if e.mode&unix.S_IFMT == unix.S_IFLNK {
		return kind == unix.S_IFLNK
	}
	executable := current.Mode&0o111 != 0
	return kind == unix.S_IFREG && executable == (e.mode&0o111 != 0)
}

// blobAt returns the ID that a file, or the target of a symlink, has as a blob; "" if it can't be read.
func (v *visit) blobAt(path string, current stamp) string {
	if current.Mode&unix.S_IFMT != unix.S_IFLNK {
		id, err := v.root.blobID(path)
		if err != nil {
			return ""
		}
		return id
	}
	target, err := v.root.readlinkAt(path)
	if err != nil {
		return ""
	}
	h := git.NewHash("blob", int64(len(target)))
	h.Write([]byte(target))
	return hex.EncodeToString(h.Sum(nil))
}

// confirm returns those of the files that differ for git too: it converts line ends as .gitattributes says.
func (v *visit) confirm(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	raw, err := os.ReadFile(dirfd.At(v.indexPath()))
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(v.state, "compared")
	defer os.Remove(dirfd.At(copied))
	if err := os.WriteFile(dirfd.At(copied), raw, 0o600); err != nil {
		return nil, err
	}
	// git reads each file that is not older than its index, whatever the file's times say.
	if err := os.Chtimes(dirfd.At(copied), time.Time{}, time.Unix(1, 0)); err != nil {
		return nil, err
	}

	runner := v.store.Git().With("GIT_WORK_TREE="+v.Dir, "GIT_INDEX_FILE="+copied, "GIT_LITERAL_PATHSPECS=1")
	args := []string{"-c", "diff.autoRefreshIndex=true", "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"}
	if len(paths) <= maxCompared { // else git compares all
		args = append(append(args, "--"), paths...)
	}
	out, err := runner.Command(args...).Holding(v.lock).Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("comparing the tree with its commit: %w", err)
	}
	differing := git.Fields(out)
	return slices.DeleteFunc(paths, func(path string) bool { return !slices.Contains(differing, path) }), nil
}

// maxCompared is how many files git gets by name.
const maxCompared = 200

// readlinkAt returns the target of a symlink, which it reaches through real folders only.
func (d *folder) readlinkAt(path string) (target string, err error) {
	err = d.within(path, func(dir *folder, name string) error {
		buffer := make([]byte, 2*maxPath)
		n, err := unix.Readlinkat(dir.fd(), name, buffer)
		if err != nil {
			return &os.PathError{Op: "readlink", Path: path, Err: err}
		}
		target = string(buffer[:n])
		return nil
	})
	return target, err
}
