package agentcall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

// deskFiles are files on the desk as they were before a call.
type deskFiles []deskFile

type deskFile struct {
	Name string
	Made []string // the folders that were made for it, the outermost first
	Was  []byte
	Mode fs.FileMode // the mode of the regular file that was there; 0 if there was none
	Link string      // the target of the link that was there
	Dir  bool        // a folder is there, which has no variables
}

// kept is the record of what was emptied: if the call is lost in the middle, the next attempt still knows it. Git does not
// bring back an ignored file.
type kept struct {
	Head  string // the commit of the desk
	Files deskFiles
}

// emptyVariables empties the files on a desk in which programs first look for variables: those from the repository could
// change where a program's key and its prompts are sent. The desk is at head; record is a file outside of it.
func emptyVariables(desk, head, record string, programs []agents.Program) (files deskFiles, err error) {
	var lost kept
	if durable.ReadJSON(record, &lost) == nil && lost.Head == head {
		if err := lost.Files.putBack(desk); err != nil {
			return lost.Files, err // the record is still needed
		}
	}
	root, err := os.OpenRoot(dirfd.At(desk))
	if err != nil {
		return nil, fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	refused := func(p agents.Program, err error) error {
		return workspace.Refuse(fault.New(fault.PreconditionFailed, "%s would take variables from the repository, which pawl can't prevent: %v", p.Name, err).
			Advise(fmt.Sprintf("Make %s a folder, or remove it from the repository.", path.Dir(p.Variables))))
	}
	programs = slices.DeleteFunc(slices.Clone(programs), func(p agents.Program) bool { return p.Variables == "" })
	for _, p := range programs {
		file, err := look(root, p.Variables)
		if err != nil {
			return nil, refused(p, err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, nil
	}
	if err := durable.WriteJSON(record, kept{head, files}); err != nil {
		return nil, err
	}
	for i, p := range programs {
		if err := files[i].empty(root); err != nil {
			return files, refused(p, err)
		}
	}
	return files, nil
}

// look returns what is at a name. It follows no links on the way.
func look(root *os.Root, name string) (f deskFile, err error) {
	f.Name = name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch info, err := root.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			f.Made = append([]string{dir}, f.Made...)
		case err != nil:
			return f, err
		case !info.IsDir():
			return f, fmt.Errorf("%s is no folder", dir)
		}
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
	case info.IsDir():
		f.Dir = true
	case info.Mode()&fs.ModeSymlink != 0:
		f.Link, err = root.Readlink(name)
	case info.Mode().IsRegular() && info.Size() <= maxLeft:
		f.Mode = info.Mode().Perm()
		f.Was, err = root.ReadFile(name)
	default:
		err = fmt.Errorf("%s is no file that can be put back", name)
	}
	return f, err
}

// empty puts an empty file in place of whatever has the name.
func (f deskFile) empty(root *os.Root) error {
	if f.Dir {
		return nil
	}
	if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
		return err
	}
	return f.replace(root, func(draft string) error { return root.WriteFile(draft, nil, 0o644) })
}

// replace puts a new file in place of the one that has the name; that one may have a second name, so it is not written
// to. The name is never missing, not even if the worker dies here: a missing one means that the agent removed it.
func (f deskFile) replace(root *os.Root, create func(draft string) error) error {
	draft := f.Name + ".pawl-draft"
	if err := root.RemoveAll(draft); err != nil { // left by a worker that died here
		return err
	}
	if err := create(draft); err != nil {
		return err
	}
	return root.Rename(draft, f.Name)
}

// putBack restores the files, whatever the agent wrote. If it removed or replaced one, that is a change, which is judged.
func (files deskFiles) putBack(desk string) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dirfd.At(desk))
	if err != nil {
		return fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for _, f := range files {
		if err := f.putBack(root); err != nil {
			return fmt.Errorf("putting %s back: %w", f.Name, err)
		}
	}
	return nil
}

func (f deskFile) putBack(root *os.Root) error {
	for dir := f.Name; dir != "."; dir = path.Dir(dir) {
		info, err := root.Lstat(dir)
		if err != nil {
			return nil //nolint:nilerr // the agent has removed it
		}
		isUnchangedKind := info.IsDir()
		if dir == f.Name {
			isUnchangedKind = info.Mode().IsRegular()
		}
		if !isUnchangedKind {
			return nil // the agent has replaced it
		}
	}
	switch {
	case f.Link != "":
		return f.replace(root, func(draft string) error { return root.Symlink(f.Link, draft) })
	case f.Mode != 0:
		return f.replace(root, func(draft string) error {
			if err := root.WriteFile(draft, f.Was, f.Mode); err != nil {
				return err
			}
			return root.Chmod(draft, f.Mode)
		})
	}
	if err := root.Remove(f.Name); err != nil {
		return err
	}
	for _, dir := range slices.Backward(f.Made) {
		_ = root.Remove(dir) // the folder stays if the agent has put something into it
	}
	return nil
}

// maxLeft is the maximum size of a file in which a program keeps its own settings.
const maxLeft = 1 << 20

// spare returns the files on the desk in which programs keep their own settings. Changes to them are not part of the
// loop's change. It leaves out those that the scope names: they are changed like any other file.
func spare(ws *workspace.Workspace, programs []agents.Program, s spec.Spec) (files deskFiles, err error) {
	root, err := os.OpenRoot(dirfd.At(ws.Desk.Dir))
	if err != nil {
		return nil, fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for _, p := range programs {
		for _, name := range p.Leaves {
			if f, err := look(root, name); err == nil && f.Link == "" && !f.Dir && !s.Match(name) { // otherwise it is not a file of the program
				files = append(files, f)
			}
		}
	}
	return files, nil
}
