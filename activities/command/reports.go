package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/activities/workspace"
	"pawl/internal/agent/prompt"
	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// reportsFile has the report files of a command, one after the other. It is beside the command's output.
const reportsFile = "reports.xml"

// The limits for reading reports. For a larger file there is a line that says how much was left out.
const (
	maxReports     = 2000
	maxReportBytes = 4 << 20
)

// eachReport calls do for the regular files in a tree that the globs match. No link leads it out of the tree.
func eachReport(dir string, globs []string, do func(root *os.Root, name string) error) error {
	if len(globs) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dirfd.At(dir))
	if err != nil {
		return fmt.Errorf("opening the judge: %w", err)
	}
	defer root.Close()
	var names []string
	seen := map[string]bool{}
	for _, glob := range globs {
		err := doublestar.GlobWalk(root.FS(), glob, func(name string, entry fs.DirEntry) error {
			if entry.Type().IsRegular() && !seen[name] && len(names) < maxReports {
				seen[name] = true
				names = append(names, name)
			}
			return nil
		}, doublestar.WithNoFollow())
		if err != nil {
			return fmt.Errorf("looking for the reports %s: %w", glob, err)
		}
	}
	for _, name := range names {
		if err := do(root, name); err != nil {
			return err
		}
	}
	return nil
}

// forgetReports removes the reports of an earlier run, which judge.keep may have kept. Those that the commit has stay,
// since the command has to find the commit as it is: it returns how they are before the command runs.
func forgetReports(dir string, globs []string, tracked func() (map[string]bool, error)) (previous map[string]fs.FileInfo, err error) {
	previous = map[string]fs.FileInfo{}
	var committed map[string]bool
	err = eachReport(dir, globs, func(root *os.Root, name string) error {
		if committed == nil {
			var err error
			if committed, err = tracked(); err != nil {
				return err
			}
		}
		if committed[filepath.ToSlash(name)] {
			info, err := root.Lstat(name)
			previous[name] = info
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the report of a run before: %w", err)
		}
		return nil
	})
	return previous, err
}

// tracked returns the names of the files that the step's commit has.
func (w *Work) tracked(ctx context.Context) (map[string]bool, error) {
	entries, err := w.Workspace.Objects.Entries(ctx, w.In.Head)
	if err != nil {
		return nil, fmt.Errorf("listing the files of the commit: %w", err)
	}
	names := map[string]bool{}
	for _, entry := range entries {
		names[entry.Path] = true
	}
	return names, nil
}

// rewritten reports whether a file is another one than before, or was written since.
func rewritten(previous, now fs.FileInfo) bool {
	if previous == nil {
		return true
	}
	untouched := os.SameFile(previous, now) && previous.Size() == now.Size() && previous.ModTime().Equal(now.ModTime())
	return !untouched
}

// keepReports copies the reports that the command has written: those that exist now, and were not so before. No link
// among them is followed. Paths in them begin in the tree.
func keepReports(dir string, globs []string, previous map[string]fs.FileInfo, target string) error {
	var builder bytes.Buffer
	inTree := []byte(dir + "/") // jest writes whole paths, and the next tree has another
	err := eachReport(dir, globs, func(root *os.Root, name string) error {
		now, err := root.Lstat(name)
		if err != nil || !rewritten(previous[name], now) {
			return nil
		}
		b, err := prompt.Left(maxReportBytes, dir, strings.Split(filepath.ToSlash(name), "/")...)
		if now.Size() > maxReportBytes || builder.Len()+len(b) > workspace.MaxOutput {
			fmt.Fprintf(&builder, supervisor.Omission, now.Size()) // its tests are not gone
			return nil
		}
		if err == nil { // a report that can't be read is ignored
			builder.Write(bytes.ReplaceAll(b, inTree, nil))
			builder.WriteByte('\n')
		}
		return nil
	})
	if err != nil || len(globs) == 0 {
		return err
	}
	return durable.WriteFile(target, builder.Bytes(), 0o600)
}
