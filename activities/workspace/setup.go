package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// setupLimit is how long setup.command may take: it may have to fetch dependencies.
const setupLimit = 20 * time.Minute

// lockfiles lists the files that say which dependencies are fetched, by name in any folder.
var lockfiles = []string{
	"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "go.sum", "Cargo.lock", "uv.lock", "poetry.lock",
	"pdm.lock", "Pipfile.lock", "requirements*.txt", "*-requirements.txt", "Gemfile.lock", "composer.lock", "mix.lock", "packages.lock.json", "gradle.lockfile",
	"pubspec.lock", "Package.resolved", "flake.lock", ".gitmodules",
}

// setUp is the record of a tree's setup. It is beside the log of the setup.
type setUp struct {
	Locks map[string]string `json:"locks"` // the blobs of the lockfiles, by path
	Times int               `json:"times"` // how often setup.command ran for this tree
}

// setupDir returns the folder of the log of a tree's setup.
func (ws *Workspace) setupDir(t *Tree) string {
	return filepath.Join(hostrecord.Steps(ws.Machine.Home, ws.Ref), "setup-"+t.Name)
}

// setupDue compares the lockfiles of the commit with those of the tree's setup. If one differs, setup fetched
// dependencies for another commit, so the tree is removed and made again; reason names that lockfile.
func (ws *Workspace) setupDue(ctx context.Context, t *Tree, commit string) (pending setUp, reason string, err error) {
	if ws.Setup == "" {
		return pending, "", nil
	}
	pending.Locks, err = ws.locksAt(ctx, commit)
	if err != nil {
		return pending, "", err
	}
	var last setUp
	err = durable.ReadJSON(filepath.Join(ws.setupDir(t), "setup.json"), &last)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrTorn) {
		return pending, "", nil
	}
	if err != nil {
		return pending, "", fmt.Errorf("reading what %s was set up with: %w", t.Dir, err)
	}
	if pending.Times = last.Times; maps.Equal(last.Locks, pending.Locks) {
		return pending, "", nil
	}
	differs := func(name string) bool { return last.Locks[name] != pending.Locks[name] }
	merged := map[string]string{}
	maps.Copy(merged, last.Locks)
	maps.Copy(merged, pending.Locks)
	names := slices.Sorted(maps.Keys(merged))
	return pending, "another " + git.Quote(names[slices.IndexFunc(names, differs)]), t.Remove(ctx)
}

// locksAt returns the lockfiles of a commit. It caches the last result.
func (ws *Workspace) locksAt(ctx context.Context, commit string) (map[string]string, error) {
	if last := ws.locks.Load(); last != nil && last.commit == commit {
		return last.files, nil
	}
	entries, err := ws.Objects.Entries(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("looking for lockfiles: %w", err)
	}
	files := map[string]string{}
	for _, e := range entries {
		matches := func(glob string) bool { ok, _ := path.Match(glob, path.Base(e.Path)); return ok }
		if slices.ContainsFunc(lockfiles, matches) {
			files[e.Path] = e.Blob
		}
	}
	ws.locks.Store(&locked{commit, files})
	return files, nil
}

// locked are the lockfiles of a commit.
type locked struct {
	commit string
	files  map[string]string
}

// setup runs setup.command in a new tree. If it ran before, the next step reports that and why.
func (ws *Workspace) setup(ctx context.Context, t *Tree, pending setUp, reason string, surroundings Surroundings) error {
	if ws.Setup == "" {
		return nil
	}
	meant := t.anew || ws.Side == hostrecord.Review // the tree is made anew on purpose; a reviewer's desk always is
	if reason := cmp.Or(reason, t.Why); pending.Times > 0 && reason != "" && !meant {
		note := fmt.Sprintf("setup.command ran again in the %s: %s", t.Name, reason)
		ws.Machine.Logger.Info("setup ran again", "loop", ws.Loop, "what", note)
		ws.mu.Lock()
		ws.repeats = append(ws.repeats, note)
		ws.mu.Unlock()
	}
	s, err := ws.Supervise()
	if err != nil {
		return err
	}
	dir := ws.setupDir(t)
	if err := os.MkdirAll(dirfd.At(dir), 0o700); err != nil {
		return err
	}
	inherited, err := ws.Environment()
	if err != nil {
		return err
	}
	command := supervisor.Command{
		Argv: []string{"sh", "-c", ws.Setup}, Dir: t.Dir, Env: ws.CommandEnvironment(inherited, t.Dir), Limit: setupLimit,
		Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
	}
	if err := ws.Confine(ctx, &command, inherited, surroundings, nil); err != nil {
		return err
	}
	result, err := s.Run(ctx, command)
	if err != nil {
		return err
	}
	if result.ExitCode != 0 || result.Interrupted {
		lacks := ""
		if empty, err := t.EmptySubmodules(); err == nil && len(empty) > 0 {
			lacks = "; submodules are empty there: " + git.QuoteSome(empty)
		}
		_ = t.Remove(context.WithoutCancel(ctx)) // a tree whose setup failed must not be used
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return Refuse(fault.New(fault.PreconditionFailed, "the setup command fails (exit %d%s): `%s`\n%s", result.ExitCode, lacks, ws.Setup, Excerpt(dir, 2*TailLength)).
			Advise("Run it in a fresh clone of the repository; its output is in " + dir + ".").In(fault.Setup))
	}
	pending.Times++
	if err := durable.WriteJSON(filepath.Join(dir, "setup.json"), pending); err != nil {
		return fmt.Errorf("noting what %s was set up with: %w", t.Dir, err)
	}
	return nil
}

// RepeatedSince returns which setups ran again since the last call, "" for none.
func (ws *Workspace) RepeatedSince() string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	text := strings.Join(ws.repeats, "; ")
	ws.repeats = nil
	return text
}
