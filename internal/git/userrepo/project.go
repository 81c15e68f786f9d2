package userrepo

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/lib/list"
)

// Project is the repository of a folder, under all names that a loop may have for it.
type Project struct {
	Root    string   // the folder of its working tree
	remotes []string // the places of its remotes
}

// ProjectOf returns the project that a folder belongs to.
func ProjectOf(ctx context.Context, dir string) (Project, error) {
	root, err := Root(ctx, dir)
	if err != nil {
		return Project{}, err
	}
	p := Project{Root: root}
	out, err := At(root).user().Run(ctx, "config", "-z", "--get-regexp", `^remote\..*\.url$`)
	if err != nil { // most likely it has none
		return p, nil
	}
	p.remotes = list.Map(git.Fields(out), func(entry string) string {
		_, url, _ := strings.Cut(entry, "\n")
		return place(root, url)
	})
	return p, nil
}

// Has reports whether a loop of that path or URL works on the project.
func (p Project) Has(repo string) bool {
	if repo == "" {
		return false
	}
	return repo == p.Root || slices.Contains(p.remotes, place(p.Root, repo))
}

// place returns what the addresses of one repository have in common: its host and its path there. A path that is not
// absolute begins in root.
func place(root, address string) string {
	address = strings.TrimSuffix(strings.TrimRight(address, "/"), ".git")
	scheme, rest, url := strings.Cut(address, "://")
	host, path, scp := strings.Cut(address, ":")
	switch {
	case url && scheme == "file":
		return strings.TrimPrefix(rest, "localhost")
	case url:
		host, path, _ = strings.Cut(rest, "/")
	case scp && !strings.Contains(host, "/"):
		path = strings.TrimPrefix(path, "/")
	case filepath.IsAbs(address):
		return address
	default:
		return filepath.Join(root, address)
	}
	host = host[strings.LastIndex(host, "@")+1:]
	return strings.ToLower(host) + "/" + path
}
