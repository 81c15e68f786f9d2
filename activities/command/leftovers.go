package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"pawl/activities/workspace"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/secretscan"
)

// maxLeftovers is the maximum number of paths that are recorded as left by commands.
const maxLeftovers = 100

// leftovers returns the paths that commands have left in a tree: git does not ignore them, setup did not make them,
// and they are not in earlier. They enter history, so names that look like a secret are left out.
func leftovers(ctx context.Context, t *workspace.Tree, head string, earlier []string) ([]string, error) {
	names, err := t.Leftovers(ctx, head)
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(earlier, name) || !utf8.ValidString(name) || secretscan.Redact(name) != name
	})
	return names[:min(len(names), maxLeftovers)], err
}

// leftUnchanged returns what a command left in the judge of the unchanged code. What changed code leaves means nothing.
func (w *Work) leftUnchanged(ctx context.Context) ([]string, error) {
	if w.In.Key.Iteration > 0 {
		return nil, nil
	}
	return leftovers(ctx, w.Workspace.Judge, w.In.Head, nil)
}

// leftBefore returns the agent's own new files on the desk, as they were when the step began. ours are the files that
// an earlier attempt of the step left there.
func (w *Work) leftBefore(ctx context.Context) (earlier, ours []string, err error) {
	if err := os.MkdirAll(dirfd.At(w.Dir), 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the step's folder: %w", err)
	}
	path := filepath.Join(w.Dir, "before.json")
	switch err := durable.ReadJSON(path, &earlier); {
	case err == nil:
		ours, err = leftovers(ctx, w.Workspace.Desk, w.In.Head, earlier)
		return earlier, ours, err
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, durable.ErrTorn):
		return nil, nil, fmt.Errorf("reading which files were new: %w", err)
	}
	if earlier, err = w.Workspace.Desk.Leftovers(ctx, w.In.Head); err != nil {
		return nil, nil, err
	}
	return earlier, nil, durable.CacheJSON(path, earlier)
}
