// Package contract draws the contract of a spec at a base commit: what is in scope, what is sealed. It changes
// nothing. Start at Draw.
package contract

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/judge/evaluator"
	"pawl/internal/ledger"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Drawn is a contract that nobody was asked to approve yet.
type Drawn struct {
	Contract ledger.Contract
	Names    []string // the base's files
	InScope  int      // how many of them the scope matches
	Clash    []string // those of them that are sealed
	Warnings []string // what a person should know before approving
	Unsealed []string // folders that commands name and that may change
	Links    []string // the paths of submodules
	Seals    evaluator.Set
	Read     func(file string) string
	modes    map[string]string
}

// Mode returns the mode that git has for a file of the base, "" if there is none. linked is true if the path leads
// through a link or a submodule, so that the base does not say what is there.
func (d Drawn) Mode(name string) (mode string, linked bool) {
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if m := d.modes[dir]; m == git.ModeLink || m == git.ModeGitlink {
			return m, true
		}
	}
	return d.modes[name], false
}

// Draw makes the contract of a spec at a base commit.
func Draw(ctx context.Context, ws *workspace.Workspace, s spec.Spec, base string) (Drawn, error) {
	entries, err := ws.Objects.Entries(ctx, base)
	if err != nil {
		return Drawn{}, fmt.Errorf("listing the base's files: %w", err)
	}
	d := Drawn{Names: make([]string, len(entries)), modes: map[string]string{}}
	blobs := map[string]store.TreeEntry{}
	for i, e := range entries {
		d.Names[i], blobs[e.Path] = e.Path, e
		d.modes[e.Path] = e.Mode
		switch {
		case e.Mode == git.ModeGitlink:
			d.Links = append(d.Links, e.Path)
		case s.Match(e.Path):
			d.InScope++
		}
	}
	var sealed []loop.Seal
	read, unreadable := Reading(ctx, ws, blobs)
	seals := evaluator.Find(s, d.Names, read)
	d.Unsealed = evaluator.Unsealed(s, d.Names, read)
	unsaid, shown := untold(s, d.Names, seals, read)
	if err := unreadable(); err != nil {
		return Drawn{}, err
	}
	for _, name := range seals.Files {
		sealed = append(sealed, loop.Seal{Path: git.Quote(name), Blob: blobs[name].Blob, Mode: blobs[name].Mode, By: git.Quote(seals.By[name]), Untold: !unsaid.Has(name)})
	}
	type of struct{ new, there bool }
	names := map[of]string{{false, false}: loop.SealLines, {true, false}: loop.SealNew, {false, true}: loop.SealThere, {true, true}: loop.SealAll}
	for _, g := range seals.Groups {
		sealed = append(sealed, loop.Seal{Path: g.Glob, Names: names[of{g.New, g.There}], Lines: strings.Fields(g.Lines), Except: seals.Open, By: git.Quote(seals.By[g.Glob]), Untold: !slices.Contains(unsaid.Groups, g)})
	}
	outside, err := ws.Outside(seals.Outside)
	if err != nil {
		return Drawn{}, err
	}
	sealed = append(sealed, outside...)
	d.Clash = list.Filter(d.Names, func(name string) bool { return s.Match(name) && seals.Has(name) })
	d.Seals, d.Read, d.Contract = seals, read, rules.Draw(s, base, ws.Onto, sealed)
	d.Warnings, err = filtered(ctx, ws, entries)
	if err != nil {
		return Drawn{}, err
	}
	notes, err := outlook{ws, s, entries, seals.Files, read}.notes(ctx)
	if err != nil {
		return Drawn{}, err
	}
	d.Warnings = append(d.Warnings, notes...)
	d.Warnings = append(d.Warnings, rules.Unpermitted(s)...)
	if len(seals.Unread) > 0 {
		d.Warnings = append(d.Warnings, "pawl can't tell what these run in turn, so that is sealed only if `protect` names it: "+git.PrintSome(seals.Unread))
	}
	if len(shown) > 0 {
		d.Warnings = append(d.Warnings, "the agent can read these files, which hold or name the holdout: "+git.QuoteSome(shown)+". Keep the holdout outside of the repository, and if the spec is committed, give the command with --set verify.holdout.command=…")
	}
	return d, err
}

// untold returns what would be sealed without the holdout, and the files in which an agent would find the holdout:
// scripts that it runs, and settings with its command.
func untold(s spec.Spec, names []string, seals evaluator.Set, read func(string) string) (unsaid evaluator.Set, shown []string) {
	command := s.Verify.Holdout.Command
	if command == "" {
		return seals, nil
	}
	s.Verify.Holdout.Command = ""
	unsaid = evaluator.Find(s, names, read)
	for _, name := range names {
		hidden := seals.Has(name) && !unsaid.Has(name)
		setting := !strings.Contains(name, "/") && slices.Contains([]string{".yaml", ".yml", ".toml", ".json"}, path.Ext(name))
		if hidden || setting && strings.Contains(read(name), command) {
			shown = append(shown, name)
		}
	}
	return unsaid, shown
}

// Reading returns a function that reads regular files of a commit by their paths ("" for others), and a function that reports
// afterwards whether one could not be read. For a file longer than evaluator.MaxScript it returns that many zeros and one
// more, so that its text is not followed.
func Reading(ctx context.Context, ws *workspace.Workspace, files map[string]store.TreeEntry) (read func(file string) string, failed func() error) {
	var first error
	read = func(file string) string {
		if !Regular(files[file]) || first != nil {
			return ""
		}
		text, err := ws.Objects.BlobByID(ctx, files[file].Blob, evaluator.MaxScript+1)
		if errors.Is(err, git.ErrTooLarge) {
			return strings.Repeat("\x00", evaluator.MaxScript+1)
		}
		if err != nil {
			first = fmt.Errorf("reading %s, which judges the work: %w", git.Quote(file), err)
		}
		return string(text)
	}
	return read, func() error { return first }
}

// Terms returns what the contract adds to the spec.
func (d Drawn) Terms() api.Terms {
	return api.Terms{Contract: d.Contract.Hash(), Sealed: d.Contract.Sealed}
}

// Closed returns why no loop can start: no file could change, or the spec contains a credential; nil if one can.
func (d Drawn) Closed(ws *workspace.Workspace, s spec.Spec) *fault.Error {
	if f := rules.Contained(s); f != nil {
		return f
	}
	delivers := s.Kind == kind.Deliver.Name
	if links := d.onlyLinks(s.Scope); len(links) > 0 {
		return fault.New(fault.PreconditionFailed, "the scope matches nothing but submodules, which can't change: %s", git.QuoteSome(links)).
			Advise("Start a loop in the submodule's own repository, or add files of this one to `scope`.")
	}
	switch {
	case d.InScope == 0 && !slices.ContainsFunc(s.Scope, d.reachable):
		return fault.New(fault.PreconditionFailed, "the scope can never match a file: %s", strings.Join(s.Scope, ", ")).
			Advise("Git keeps no files in .git, behind symbolic links and in submodules: correct `scope`.")
	case d.InScope == 0 && delivers && s.NewFiles == spec.Allow: // it writes the first ones
		return nil
	case d.InScope == 0:
		advice := "Correct `scope`: globs are relative to the repository's root, ** crosses folders."
		if delivers {
			advice += " If the files are to be made, set `newFiles: allow`."
		}
		return fault.New(fault.PreconditionFailed, "the scope matches no file of %s: %s", ws.Repo, strings.Join(s.Scope, ", ")).Advise(advice)
	case len(d.Clash) == d.InScope && s.NewFiles == spec.Deny:
		return fault.New(fault.PreconditionFailed, "every file that the scope matches is sealed: %s", git.QuoteSome(d.Clash)).
			Advise("Sealed are the files of `protect`, files that guard names, files that verify, test and check run, and tests that guard and test find. To let tests change, name them in `scope` (tests/**, **/*_test.go). To let other files change, name them in a separate script, such as check.sh, and not in the command.")
	}
	return nil
}

// onlyLinks returns the submodules that a scope leads into, if it leads nowhere else.
func (d Drawn) onlyLinks(scope []string) []string {
	if d.InScope > 0 {
		return nil
	}
	var links []string
	for _, glob := range scope {
		into := list.Filter(d.Links, func(link string) bool { return leadsInto(glob, link) })
		if len(into) == 0 {
			return nil
		}
		links = append(links, into...)
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// reachable reports whether files that a glob matches can be in a commit of the repository.
func (d Drawn) reachable(glob string) bool {
	folder, name := doublestar.SplitPattern(spec.Tidy(glob))
	if slices.ContainsFunc(strings.Split(folder+"/"+name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return false
	}
	_, linked := d.Mode(path.Join(folder, "x"))
	return !linked && !slices.ContainsFunc(d.Links, func(link string) bool { return leadsInto(glob, link) })
}

// leadsInto reports whether what a glob matches is a submodule, or in one.
func leadsInto(glob, link string) bool {
	glob = spec.Tidy(glob)
	folder, _ := doublestar.SplitPattern(glob)
	inside := folder == link || strings.HasPrefix(folder, link+"/")
	return inside || doublestar.MatchUnvalidated(glob, link)
}

// maxAttributes limits how much of a .gitattributes is read. Git itself ignores larger ones.
const maxAttributes = 100 << 20

// filter matches the name of a filter in a .gitattributes.
var filter = lazyregexp.New(`(?m)^[^#\n]*[ \t]filter=(\S+)`)

// filtered warns about files that git stores in another form than people see. Programs in the trees do not find the
// contents of Git LFS files there, unless setup.command fetches them. No other filter (git-crypt, nbstripout) runs
// for the loop, because it is defined in the user's configuration.
func filtered(ctx context.Context, ws *workspace.Workspace, entries []store.TreeEntry) (notes []string, err error) {
	var names []string
	for _, e := range entries {
		if path.Base(e.Path) != ".gitattributes" || e.Mode == git.ModeLink {
			continue
		}
		b, err := ws.Objects.BlobByID(ctx, e.Blob, maxAttributes)
		if err != nil && !errors.Is(err, git.ErrTooLarge) {
			return nil, fmt.Errorf("reading %s: %w", git.Quote(e.Path), err)
		}
		for _, found := range filter().FindAllSubmatch(b, -1) {
			name := string(found[1])
			if slices.Contains(names, name) || len(names) == git.MaxNamed {
				continue
			}
			names = append(names, name)
			if name == "lfs" {
				notes = append(notes, "the repository keeps files in Git LFS: the agent and the commands see their pointers ("+git.Quote(e.Path)+"); if they need the contents, let setup.command fetch them")
			} else {
				notes = append(notes, "the repository passes files through the filter "+git.Quote(name)+" ("+git.Quote(e.Path)+"), which does not run in the loop: the agent and the commands see the files as git stores them, and their changes are committed unfiltered")
			}
		}
	}
	return notes, nil
}

// Regular reports whether an entry of a tree is a file, and not a link or submodule.
func Regular(e store.TreeEntry) bool { return e.Mode == "100644" || e.Mode == "100755" }

// Programs returns the programs with which an agent is started.
func Programs(a spec.Agent) []string {
	switch {
	case len(a.Command.List) > 0:
		return a.Command.List[:1]
	case a.Command.Shell != "":
		return evaluator.NeedsOfAgent(a.Command.Shell).Programs
	case a.Use != spec.UseCommand:
		return []string{a.Use}
	}
	return nil
}
