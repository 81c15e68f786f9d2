package userrepo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"pawl/internal/git"
)

// FolderName is the folder of a project to which a steward writes files for people.
const FolderName = ".pawl"

// Folder is a project's .pawl folder. Writes never leave it, and it follows no link in it.
type Folder struct {
	Path    string
	root    *os.Root
	project *os.Root // if OpenFolder has made the folder; else nil
}

// OpenFolder opens a project's .pawl folder. If needed, it makes the folder and makes git ignore it
// (.git/info/exclude). The error is *Precondition if something else is in the way. The caller closes the folder; if
// OpenFolder has made it and nothing was written, it is removed then.
func OpenFolder(ctx context.Context, repo Repo) (*Folder, error) {
	insp := inspector{ctx: ctx, repo: repo}
	inTheWay := func(problem, do string) error {
		return &Precondition{Code: FileInTheWay, What: problem, Do: do}
	}
	tracked, err := insp.git("ls-files", "-z", "--", FolderName)
	if err != nil {
		return nil, fmt.Errorf("looking for %s in git: %w", FolderName, err)
	}
	if tracked != "" {
		return nil, inTheWay("the project has files of its own in "+FolderName, "rename that folder, so that a steward can write there what you read")
	}
	project, err := repo.open()
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: filepath.Join(repo.Address, FolderName)}
	switch err := project.Mkdir(FolderName, 0o755); {
	case err == nil:
		f.project = project
	case !errors.Is(err, fs.ErrExist):
		project.Close()
		return nil, err
	default:
		defer project.Close()
	}
	f.root, err = project.OpenRoot(FolderName)
	if err == nil {
		err = same(project, f.root)
	}
	if err != nil {
		f.Close()
		return nil, inTheWay(fmt.Sprintf("%s in %s is no folder", FolderName, git.Quote(repo.Address)), "rename it, so that a steward can write there what you read")
	}
	if err := insp.ignore(FolderName); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// HasFolder reports whether a project has something of the folder's name.
func HasFolder(repo Repo) (bool, error) {
	project, err := repo.open()
	if err != nil {
		return false, err
	}
	defer project.Close()
	_, err = project.Lstat(FolderName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// same returns an error if the opened folder is not the one in the project, but the target of a link.
func same(project, folder *os.Root) error {
	info, err := project.Lstat(FolderName)
	if err != nil {
		return err
	}
	opened, err := folder.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("it is a link")
	}
	return err
}

// ignore makes git ignore a folder at the root of the working tree, if it does not yet.
func (insp *inspector) ignore(folder string) error {
	ignored := func() (bool, error) {
		_, ok, err := insp.maybe("check-ignore", "-q", "--", folder+"/x")
		return ok, err
	}
	if ok, err := ignored(); err != nil || ok {
		return err
	}
	common, err := insp.gitDir("--git-common-dir")
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := exclude(dir, "/"+folder+"/"); err != nil {
		return &Precondition{Code: FileInTheWay, What: fmt.Sprintf("git can't be told to ignore %s: %v", folder, err),
			Do: "add the line /" + folder + "/ to .git/info/exclude yourself"}
	}
	ok, err := ignored()
	if err == nil && !ok {
		err = &Precondition{Code: FileInTheWay, What: "a .gitignore of the project says that git is not to ignore " + folder,
			Do: "take that line out, so that what a steward writes does not become a part of the project"}
	}
	return err
}

// exclude adds a line to info/exclude, once.
func exclude(dir *os.Root, line string) error {
	const name = "info/exclude"
	if err := dir.MkdirAll("info", 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	var text []byte
	for _, part := range []string{"info", name} {
		st, err := dir.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case part == name && st.Mode().IsRegular():
			mode = st.Mode().Perm()
			if text, err = dir.ReadFile(name); err != nil {
				return err
			}
		case part == name || !st.IsDir():
			return fmt.Errorf("%s is a link, or no file", part)
		}
	}
	for have := range bytes.Lines(text) {
		if string(bytes.TrimSpace(have)) == line {
			return nil
		}
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	draft, err := draftOf(dir, name, append(text, line+"\n"...), mode)
	if err != nil {
		return err
	}
	return dir.Rename(draft, name)
}

// draftOf writes what a file is to become beside it, and returns the name.
func draftOf(root *os.Root, name string, content []byte, mode fs.FileMode) (string, error) {
	draft := path.Join(path.Dir(name), "."+path.Base(name)+".pawl")
	if err := root.RemoveAll(draft); err != nil { // left by a process that died here
		return "", err
	}
	f, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = root.RemoveAll(draft)
	}
	return draft, err
}

// Close closes the folder.
func (f *Folder) Close() error {
	var err error
	if f.root != nil {
		err = f.root.Close()
	}
	if f.project == nil {
		return err
	}
	_ = f.project.Remove(FolderName) // this fails if something was written
	return errors.Join(err, f.project.Close())
}

// What Digest returns if there is no regular file.
const (
	Absent  = ""
	NoFile  = "no regular file"
	TooLong = "a file that is too large"
)

// maxFile limits how many bytes of a file in the folder are read. pawl's own files are much smaller.
const maxFile = 8 << 20

// Digest returns the SHA-256 of a file in the folder, or one of the constants above if it is no regular file.
func (f *Folder) Digest(name string) (string, error) {
	switch ok, err := f.folders(path.Dir(name), false); {
	case errors.Is(err, errNoFolder):
		return NoFile, nil
	case err != nil || !ok:
		return Absent, err
	}
	switch st, err := f.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return Absent, nil
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return NoFile, nil
	case st.Size() > maxFile:
		return TooLong, nil
	}
	file, err := f.root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(file, maxFile+1)); err != nil || n > maxFile {
		return TooLong, err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ErrChanged is the error of Write for a file that somebody has changed meanwhile.
var ErrChanged = errors.New("somebody has just changed the file")

// Write gives a file of the folder that content, all of it or nothing, if it still is what Digest said. It replaces
// whatever that was, also a folder. If somebody changes the file meanwhile, their version stays, and the error is
// ErrChanged. A file system that can't exchange two files leaves them a moment in which their version is lost.
func (f *Folder) Write(name string, content []byte, digest string) error {
	if err := f.is(name, digest); err != nil {
		return err
	}
	if _, err := f.folders(path.Dir(name), true); err != nil {
		return err
	}
	if digest == NoFile { // it may have been in a folder's place
		var err error
		if digest, err = f.Digest(name); err != nil {
			return err
		}
	}
	draft, err := draftOf(f.root, name, content, 0o644)
	if err != nil {
		return err
	}
	dir, err := f.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	swap := func() error { return exchange(dir, path.Base(draft), path.Base(name)) }
	if digest != Absent && swap() == nil {
		err := f.is(draft, digest)
		if err != nil {
			if back := swap(); back != nil {
				return errors.Join(err, fmt.Errorf("%s has what was in %s: %w", draft, name, back))
			}
		}
		return errors.Join(err, f.root.RemoveAll(draft))
	}
	err = f.is(name, digest)
	if err == nil && digest == NoFile {
		err = f.root.RemoveAll(name)
	}
	if err == nil {
		err = f.root.Rename(draft, name)
	}
	if err != nil {
		_ = f.root.RemoveAll(draft)
	}
	return err
}

// is returns ErrChanged if Digest says something else about a file.
func (f *Folder) is(name, digest string) error {
	current, err := f.Digest(name)
	if err == nil && current != digest {
		err = ErrChanged
	}
	return err
}

var errNoFolder = errors.New("a file or a link where a folder should be")

// folders reports whether the folders of a path exist, as folders and not as links. With create it creates them.
func (f *Folder) folders(dir string, create bool) (bool, error) {
	if dir == "." {
		return true, nil
	}
	if ok, err := f.folders(path.Dir(dir), create); err != nil || !ok {
		return ok, err
	}
	st, err := f.root.Lstat(dir)
	switch {
	case err == nil && st.IsDir():
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case !create && err == nil:
		return false, errNoFolder
	case !create:
		return false, nil
	case err == nil:
		if err := f.root.RemoveAll(dir); err != nil {
			return false, err
		}
	}
	return true, f.root.Mkdir(dir, 0o755)
}

// Unwritten reports whether an error says that nobody can write to a folder: its file system is read-only, or it
// belongs to somebody else.
func Unwritten(err error) bool {
	return errors.Is(err, fs.ErrPermission) || err != nil && strings.Contains(err.Error(), "read-only file system")
}
