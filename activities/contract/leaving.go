package contract

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
	"pawl/internal/spec"
)

// mostLooked limits how many links, manifests and sealed files are read.
const mostLooked = 200

// manifests are the files that name other projects by their path.
var manifests = []string{"go.mod", "go.work", "package.json", "Cargo.toml", "pyproject.toml", "requirements.txt", "Gemfile", "composer.json", "pubspec.yaml", "mix.exs", "tsconfig.json"}

// upwards matches a path that begins with the folder above, as a value: it follows a sign or a space.
var upwards = lazyregexp.New(`(?:^|[\s"'=:(])(\.\./[^\s"',;)\]}]*)`)

// outlook looks for what leads out of a repository. The trees of a loop are elsewhere, so what is relative finds nothing
// there; and the sandbox shows nothing outside.
type outlook struct {
	ws      *workspace.Workspace
	spec    spec.Spec
	entries []store.TreeEntry
	sealed  []string // the files that commands name and run
	read    func(path string) string
}

// commands returns the commands of the spec by their keys.
func (o outlook) commands() map[string]string {
	s := o.spec
	return map[string]string{
		"setup": s.Setup.Command, "verify": s.Verify.Command, "guard": s.Guard.Command, "check": s.Check.Command, "test": s.Test.Command,
	}
}

// notes returns one about links, and one about paths of commands and manifests.
func (o outlook) notes(ctx context.Context) ([]string, error) {
	var notes []string
	links, err := o.links(ctx)
	if err != nil {
		return nil, err
	}
	if len(links) > 0 {
		notes = append(notes, "these links lead out of the repository, and find nothing in a loop's trees: "+git.QuoteSome(links)+
			". Commit what they lead to, or make them absolute and name the folder in sandbox.allow")
	}
	if submodules := o.submodules(); len(submodules) > 0 {
		notes = append(notes, "what is in submodules can't change, and a loop's trees have it only if setup.command fetches it (git submodule update --init): "+git.QuoteSome(submodules))
	}
	if paths := o.paths(); len(paths) > 0 {
		notes = append(notes, "these paths leave the repository, and a loop's trees are elsewhere: "+git.QuoteSome(paths)+
			". Name what is there by its absolute path, or let setup.command fetch it")
	}
	if named := o.repository(); len(named) > 0 {
		notes = append(notes, "these name your repository by its path, and so see your files and not the change: "+git.QuoteSome(named)+
			". Commands start at the root of a loop's tree: write relative paths")
	}
	return notes, nil
}

// submodules returns the paths of the base's submodules.
func (o outlook) submodules() []string {
	var paths []string
	for _, e := range o.entries {
		if e.Mode == git.ModeGitlink {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// Naming returns the commands of a spec, and those of the sealed files, which name the user's repository by its path.
func Naming(ws *workspace.Workspace, s spec.Spec, sealed []string, read func(string) string) []string {
	return outlook{ws: ws, spec: s, sealed: sealed, read: read}.repository()
}

// repository returns the commands, and the files that they run, which name the user's repository by its path.
func (o outlook) repository() []string {
	repo := o.ws.Local()
	if repo == "" {
		return nil
	}
	path := regexp.MustCompile(regexp.QuoteMeta(repo) + `(?:[/\s"';&|)]|$)`)
	var named []string
	for key, command := range o.commands() {
		if path.MatchString(command) {
			named = append(named, key+".command")
		}
	}
	for _, file := range o.sealed[:min(len(o.sealed), mostLooked)] {
		if path.MatchString(o.read(file)) {
			named = append(named, file)
		}
	}
	slices.Sort(named)
	return named
}

// paths returns the paths of commands and manifests that lead out.
func (o outlook) paths() []string {
	var paths []string
	for _, command := range o.commands() {
		paths = append(paths, commandOut(command)...)
	}
	looked := 0
	for _, e := range o.entries {
		if !slices.Contains(manifests, path.Base(e.Path)) || looked == mostLooked {
			continue
		}
		looked++
		for _, found := range upwards().FindAllStringSubmatch(o.read(e.Path), -1) {
			if out(path.Dir(e.Path), found[1]) {
				paths = append(paths, found[1]+" in "+e.Path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// links returns the tracked links that lead out, but for those to what every sandbox shows.
func (o outlook) links(ctx context.Context) ([]string, error) {
	var links []string
	looked := 0
	for _, e := range o.entries {
		if e.Mode != git.ModeLink || looked == mostLooked {
			continue
		}
		looked++
		text, err := o.ws.Objects.BlobByID(ctx, e.Blob, maxLink)
		if err != nil {
			return nil, fmt.Errorf("reading the link %s: %w", git.Quote(e.Path), err)
		}
		target := string(text)
		if path.IsAbs(target) && !o.shown(target) || out(path.Dir(e.Path), target) {
			links = append(links, e.Path+" -> "+target)
		}
	}
	return links, nil
}

// shown reports whether the sandbox shows an absolute path.
func (o outlook) shown(target string) bool {
	return slices.ContainsFunc(slices.Concat(o.spec.Sandbox.Allow, systemFolders), func(dir string) bool {
		return target == dir || strings.HasPrefix(target, strings.TrimSuffix(dir, "/")+"/")
	})
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
