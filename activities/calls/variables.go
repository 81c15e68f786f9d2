package calls

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"pawl/activities/hosted"
	"pawl/internal/fault"
	"pawl/internal/held"
	"pawl/internal/program"
)

// emptied are files on the desk in which an agent's program first looks for variables. They are empty during a call:
// variables from the repository could change where its key and its prompts are sent.
type emptied []emptiedFile

type emptiedFile struct {
	name string
	made []string // the folders that were made for it, the outermost first
	was  []byte
	mode fs.FileMode // the mode of the regular file that was there; 0 if there was none
	link string      // the target of the link that was there
}

func emptyVariables(desk string, programs []program.Program) (all emptied, err error) {
	root, err := os.OpenRoot(held.At(desk))
	if err != nil {
		return nil, fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for _, p := range programs {
		if p.Variables == "" {
			continue
		}
		one, err := emptyFile(root, p.Variables)
		if err != nil {
			return all, hosted.Refuse(fault.New(fault.PreconditionFailed, "%s would take variables from the repository, which pawl can't prevent: %v", p.Name, err).
				Advise(fmt.Sprintf("Make %s a folder, or remove it from the repository.", path.Dir(p.Variables))))
		}
		all = append(all, one)
	}
	return all, nil
}

// emptyFile puts an empty file in place of whatever has the name. It follows no links on the way.
func emptyFile(root *os.Root, name string) (f emptiedFile, err error) {
	f.name = name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch info, err := root.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			f.made = append([]string{dir}, f.made...)
		case err != nil:
			return f, err
		case !info.IsDir():
			return f, fmt.Errorf("%s is no folder", dir)
		}
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return f, err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, root.WriteFile(name, nil, 0o644)
	case err != nil:
	case info.IsDir():
		return f, nil // it is not a file, so it has no variables
	case info.Mode()&fs.ModeSymlink != 0:
		f.link, err = root.Readlink(name)
	case info.Mode().IsRegular() && info.Size() <= maxLeft:
		f.mode = info.Mode().Perm()
		f.was, err = root.ReadFile(name)
	default:
		err = fmt.Errorf("%s is no file that can be put back", name)
	}
	if err == nil {
		err = root.Remove(name) // the file may have a second name, so it is not truncated
	}
	if err == nil {
		err = root.WriteFile(name, nil, 0o644)
	}
	return f, err
}

// putBack restores the files, whatever the agent wrote. If it removed or replaced one, that is a change, which is judged.
func (all emptied) putBack(desk string) error {
	if len(all) == 0 {
		return nil
	}
	root, err := os.OpenRoot(held.At(desk))
	if err != nil {
		return fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for _, f := range all {
		if err := f.putBack(root); err != nil {
			return fmt.Errorf("putting %s back: %w", f.name, err)
		}
	}
	return nil
}

func (f emptiedFile) putBack(root *os.Root) error {
	for at := f.name; at != "."; at = path.Dir(at) {
		if info, err := root.Lstat(at); err != nil || at == f.name && !info.Mode().IsRegular() || at != f.name && !info.IsDir() {
			return nil //nolint:nilerr // the agent has removed or replaced it
		}
	}
	if err := root.Remove(f.name); err != nil {
		return err
	}
	switch {
	case f.link != "":
		return root.Symlink(f.link, f.name)
	case f.mode != 0:
		if err := root.WriteFile(f.name, f.was, f.mode); err != nil {
			return err
		}
		return root.Chmod(f.name, f.mode)
	}
	for _, dir := range slices.Backward(f.made) {
		_ = root.Remove(dir) // the folder stays if the agent has put something into it
	}
	return nil
}
