package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// FileChange is the change of one file.
type FileChange struct {
	Path       string // unescaped, any bytes: use Quote for people
	OldPath    string // of a rename; else ""
	Status     byte   // A added, M modified, D deleted, T type changed, R renamed (and perhaps modified)
	OldMode    string // one of the modes below, or that of a regular file
	NewMode    string
	OldBlob    string // all zeros for none
	NewBlob    string
	Insertions int // lines
	Deletions  int
	Binary     bool   // by content; lines are not counted
	Size       int64  // size of a staged file in the tree, in bytes; else 0
	Target     string // of a symlink that was added or changed
	Escapes    bool   // the target is, or could be, outside the tree or inside its .git
}

// Modes of tree entries that are not regular files (100644, 100755).
const (
	ModeLink    = "120000"
	ModeGitlink = "160000" // a submodule
	modeNone    = "000000"
)

// HasContent reports whether there is a regular file after the change.
func (c FileChange) HasContent() bool {
	return c.NewMode != ModeLink && c.NewMode != ModeGitlink && c.NewMode != modeNone
}

// DiffFormat makes diff-tree and diff-index print the format that ParseChanges reads.
var DiffFormat = []string{"--raw", "--numstat", "-z", "-r", "-M", "-l1000", "--abbrev=40", "--no-color",
	"--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}

// ParseChanges reads raw records, then numstat records, all NUL-separated:
//
//	:<old mode> <new mode> <old blob> <new blob> <status>NUL<path>NUL          (rename: two paths)
//	<insertions>TAB<deletions>TAB<path>NUL                    (rename: TAB NUL<old>NUL<new>NUL)
func ParseChanges(out []byte) ([]FileChange, error) {
	fields := Fields(out)
	next := func() (field string) { // "" after the last one, because no path is empty
		if len(fields) > 0 {
			field, fields = fields[0], fields[1:]
		}
		return field
	}
	bad := fmt.Errorf("git's diff output is not understood: %.200q", out)
	var files []FileChange
	index := map[string]int{}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		f := strings.Fields(next()[1:])
		if len(f) != 5 {
			return nil, bad
		}
		c := FileChange{Path: next(), Status: f[4][0], OldMode: f[0], NewMode: f[1], OldBlob: f[2], NewBlob: f[3]}
		if c.Status == 'R' || c.Status == 'C' {
			c.OldPath, c.Path = c.Path, next()
		}
		if c.Path == "" {
			return nil, bad
		}
		index[c.Path] = len(files)
		files = append(files, c)
	}
	for len(fields) > 0 {
		ins, rest, _ := strings.Cut(next(), "\t")
		del, path, ok := strings.Cut(rest, "\t")
		if ok && path == "" {
			_ = next() // the old path
			path = next()
		}
		i, found := index[path]
		if !ok || !found {
			return nil, bad
		}
		if ins == "-" {
			files[i].Binary = true
			continue
		}
		n, err1 := strconv.Atoi(ins)
		m, err2 := strconv.Atoi(del)
		if err := errors.Join(err1, err2); err != nil {
			return nil, bad
		}
		files[i].Insertions += n
		files[i].Deletions += m
	}
	return files, nil
}

// Fields splits the output of git with -z.
func Fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// ReadTargets fills in the targets of the changed symlinks, from the repository.
func (r Runner) ReadTargets(ctx context.Context, files []FileChange) error {
	var links []*FileChange
	for i := range files {
		if files[i].NewMode == ModeLink {
			links = append(links, &files[i])
		}
	}
	if len(links) == 0 {
		return nil
	}
	return r.Batch(ctx, func(b *Batch) error {
		for _, link := range links {
			_, target, err := b.Get(link.NewBlob, -1)
			if err != nil {
				return err
			}
			link.Target = string(target)
			link.Escapes = escapes(link.Path, link.Target)
		}
		return nil
	})
}

// escapes reports whether a symlink at path could lead out of the tree or into its .git. It accepts only targets that
// can't, whatever other symlinks there are: some ".." that stay inside the tree (a link's own folder is a real one),
// then names. A ".." after a name is refused, because the name may be a link to somewhere else.
func escapes(path, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") {
		return true
	}
	depth := strings.Count(path, "/")
	named := false
	for c := range strings.SplitSeq(target, "/") {
		switch {
		case c == "" || c == ".":
		case c == "..":
			if depth--; named || depth < 0 {
				return true
			}
		default:
			named = true
			if strings.EqualFold(c, ".git") {
				return true
			}
		}
	}
	return false
}
