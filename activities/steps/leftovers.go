package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"pawl/activities/hosted"
	"pawl/internal/durable"
	"pawl/internal/held"
	"pawl/internal/secret"
)

// maxLeftovers bounds how many paths are known that commands leave behind.
const maxLeftovers = 100

// leftovers are the paths that commands have left in a tree: what git does not ignore, setup did not make and was not
// there before. They are in history, so what looks like a secret is not named.
func leftovers(ctx context.Context, t *hosted.Tree, head string, before []string) ([]string, error) {
	names, err := t.Leftovers(ctx, head)
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(before, name) || !utf8.ValidString(name) || secret.Redact(name) != name
	})
	return names[:min(len(names), maxLeftovers)], err
}

// leftUnchanged are what a command has left in the judge, where that had the unchanged code: what the code of a change
// writes there says nothing.
func (w *Work) leftUnchanged(ctx context.Context) ([]string, error) {
	if w.In.Key.Iteration > 0 {
		return nil, nil
	}
	return leftovers(ctx, w.Workspace.Judge, w.In.Head, nil)
}

// leftBefore are the agent's own new files on the desk, as they were when the step began. A step that runs again finds
// besides what it has left itself.
func (w *Work) leftBefore(ctx context.Context) (before, own []string, err error) {
	if err := os.MkdirAll(held.At(w.Dir), 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the step's folder: %w", err)
	}
	path := filepath.Join(w.Dir, "before.json")
	switch err := durable.ReadJSON(path, &before); {
	case err == nil:
		own, err = leftovers(ctx, w.Workspace.Desk, w.In.Head, before)
		return before, own, err
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, durable.ErrTorn):
		return nil, nil, fmt.Errorf("reading which files were new: %w", err)
	}
	if before, err = w.Workspace.Desk.Leftovers(ctx, w.In.Head); err != nil {
		return nil, nil, err
	}
	return before, nil, durable.CacheJSON(path, before)
}
