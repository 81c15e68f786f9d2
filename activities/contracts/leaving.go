package contracts

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"pawl/activities/hosted"
	"pawl/internal/git"
	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
	"pawl/internal/spec"
	"pawl/internal/store"
)

// mostLooked limits how many links and how many manifests are read.
const mostLooked = 200

// manifests are the files that name other projects by their path.
var manifests = []string{"go.mod", "go.work", "package.json", "Cargo.toml", "pyproject.toml", "requirements.txt", "Gemfile", "composer.json", "pubspec.yaml", "mix.exs", "tsconfig.json"}

// upwards matches a path that begins with the folder above, as a value: it follows a sign or a space.
var upwards = lazyregexp.New(`(?:^|[\s"'=:(])(\.\./[^\s"',;)\]}]*)`)

// leaving returns a note about links and a note about paths of commands and manifests that lead out of the repository.
// The trees of a loop are elsewhere, so a relative one finds nothing there; and the sandbox shows nothing outside.
func leaving(ctx context.Context, ws *hosted.Workspace, s spec.Spec, entries []store.TreeEntry, read func(string) string) (notes []string, err error) {
	links, err := linksOut(ctx, ws, s, entries)
	if err != nil {
		return nil, err
	}
	if len(links) > 0 {
		notes = append(notes, "these links lead out of the repository, and find nothing in a loop's trees: "+git.QuoteSome(links)+
			". Commit what they lead to, or make them absolute and name the folder in sandbox.allow")
	}

	var paths []string
	for _, command := range []string{s.Setup.Command, s.Verify.Command, s.Guard.Command, s.Check.Command, s.Test.Command} {
		paths = append(paths, commandOut(command)...)
	}
	looked := 0
	for _, e := range entries {
		if !slices.Contains(manifests, path.Base(e.Path)) || looked == mostLooked {
			continue
		}
		looked++
		for _, found := range upwards().FindAllStringSubmatch(read(e.Path), -1) {
			if out(path.Dir(e.Path), found[1]) {
				paths = append(paths, found[1]+" in "+e.Path)
			}
		}
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) > 0 {
		notes = append(notes, "these paths leave the repository, and a loop's trees are elsewhere: "+git.QuoteSome(paths)+
			". Name what is there by its absolute path, or let setup.command fetch it")
	}
	return notes, nil
}

// linksOut returns the tracked links that lead out of the repository, but for those to what every sandbox shows.
func linksOut(ctx context.Context, ws *hosted.Workspace, s spec.Spec, entries []store.TreeEntry) (links []string, err error) {
	const link = "120000"
	looked := 0
	for _, e := range entries {
		if e.Mode != link || looked == mostLooked {
			continue
		}
		looked++
		text, err := ws.Objects.BlobByID(ctx, e.Blob, maxLink)
		if err != nil {
			return nil, fmt.Errorf("reading the link %s: %w", git.Quote(e.Path), err)
		}
		target := string(text)
		shown := func(dir string) bool {
			return target == dir || strings.HasPrefix(target, strings.TrimSuffix(dir, "/")+"/")
		}
		if path.IsAbs(target) && slices.ContainsFunc(append(slices.Clone(s.Sandbox.Allow), systemFolders...), shown) {
			continue
		}
		if path.IsAbs(target) || out(path.Dir(e.Path), target) {
			links = append(links, e.Path+" -> "+target)
		}
	}
	return links, nil
}

// maxLink is as long as the target of a link can be.
const maxLink = 4096

// systemFolders are shown in every sandbox.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc", "/nix/store"}

// commandOut returns the words of a command that name something above the repository.
func commandOut(command string) (paths []string) {
	for _, c := range shell.Read(command, ".", nil) {
		for _, word := range c.Words {
			_, value, assigned := strings.Cut(word.Text, "=")
			name := word.Text
			if assigned {
				name = value
			}
			if !word.Unknown && strings.HasPrefix(name+"/", "../") && out(c.Dir, name) {
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// out reports whether a relative path in a folder of the repository leads out of the repository.
func out(dir, name string) bool {
	if path.IsAbs(name) || path.IsAbs(dir) {
		return false
	}
	return strings.HasPrefix(path.Join(dir, name)+"/", "../")
}
