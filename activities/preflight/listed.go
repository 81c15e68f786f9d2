package preflight

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/command"
	"pawl/activities/contract"
	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/lib/shell"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// listTime is how long a runner may take to list its tests.
const listTime = time.Minute

// listed lets the runners list the files of their tests, for a note about unsealed ones that an agent may change.
func (f *Findings) listed(ctx context.Context, ws *workspace.Workspace, s spec.Spec, d contract.Drawn, tell func(string)) error {
	open, folders := map[string]bool{}, map[string]bool{}
	for _, name := range d.Names {
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
		if s.Match(name) && !d.Seals.Has(name) && !spec.MatchAny(d.Seals.Open, name) {
			open[name] = true
		}
	}
	var found []string
	for i, l := range d.Seals.Listings[:min(len(d.Seals.Listings), MaxListings)] {
		tell("list of tests")
		w := command.NewWork(ws, api.Step{Ref: ws.Ref, Key: api.Key{Name: "list", Sample: i}, Head: d.Contract.Base, LimitMs: listTime.Milliseconds()}, &command.Running{})
		r, err := w.Judged(ctx, "cd "+shell.Quote(cmp.Or(l.Dir, "."))+" && "+l.Command)
		if err := unlessInterrupted(ctx, r, err); err != nil {
			return err
		}
		if !r.OK() {
			continue // this runner can't list them
		}
		printed, err := workspace.ReadFile(filepath.Join(w.Dir, "stdout"), workspace.MaxOutput)
		if err != nil {
			return err
		}
		words := strings.FieldsFunc(string(printed), func(c rune) bool { return strings.ContainsRune(" \t\r\n\"',", c) })
		dirs := []string{"", l.Dir}
		for _, word := range words { // playwright prints the folder first, and names its files relative to it
			if dir, ok := strings.CutPrefix(word, ws.Judge.Dir+"/"); ok && folders[dir] && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		for _, word := range words {
			name, _, _ := strings.Cut(word, ":") // pytest prints a.py::test_b, or a.py: 1 with -q twice
			name = strings.TrimPrefix(name, ws.Judge.Dir+"/")
			for _, dir := range dirs {
				if name := path.Join(dir, name); open[name] {
					found, open[name] = append(found, name), false
				}
			}
		}
	}
	if len(found) > 0 {
		f.Notes = append(f.Notes, "these files have tests that the runner finds, but they are not sealed and the agent may change them: "+git.QuoteSome(found)+". Add those that hold only tests to protect")
	}
	return nil
}

// MaxListings is how many runners list their tests.
const MaxListings = 4
