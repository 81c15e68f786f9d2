package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// FileChange is one file's part in a change.
type FileChange struct {
	Path       string // as it is, any bytes: Quote it for people
	OldPath    string // of a rename, else ""
	Status     byte   // A added, M modified, D deleted, T another type, R renamed (and perhaps modified)
	OldMode    string // 100644, 100755, 120000 (symlink), 160000 (submodule), 000000 (none)
	NewMode    string
	OldBlob    string // all zeros for none
	NewBlob    string
	Insertions int // lines
	Deletions  int
	Binary     bool   // by content; lines are not counted
	Size       int64  // of a staged file as it is in the tree, in bytes; else 0
	Target     string // of a symlink that is added or changed
	Escapes    bool   // that target is, or could be, outside the tree or inside its .git
}

// Modes of tree entries.
const (
	modeLink    = "120000"
	modeGitlink = "160000"
	modeNone    = "000000"
)

// diffFormat makes diff-tree and diff-index print what parseChanges reads.
var diffFormat = []string{"--raw", "--numstat", "-z", "-r", "-M", "-l1000", "--abbrev=40", "--no-color",
	"--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}

// Changes lists what differs from one commit or tree to another.
func (s *Store) Changes(ctx context.Context, base, head string) ([]FileChange, error) {
	if err := errors.Join(checkRev(base), checkRev(head)); err != nil {
		return nil, err
	}
	out, err := s.git(ctx, append(append([]string{"diff-tree"}, diffFormat...), base, head, "--")...)
	if err != nil {
		return nil, err
	}
	files, err := parseChanges(out)
	if err != nil {
		return nil, err
	}
	return files, s.readTargets(ctx, files)
}

// parseChanges reads raw records, then numstat records, all NUL-separated:
//
//	:<old mode> <new mode> <old blob> <new blob> <status>NUL<path>NUL          (rename: two paths)
//	<insertions>TAB<deletions>TAB<path>NUL                    (rename: TAB NUL<old>NUL<new>NUL)
func parseChanges(out []byte) ([]FileChange, error) {
	fields := strings.Split(string(out), "\x00")
	if n := len(fields); n > 0 && fields[n-1] == "" {
		fields = fields[:n-1]
	}
	next := func() (string, bool) {
		if len(fields) == 0 {
			return "", false
		}
		f := fields[0]
		fields = fields[1:]
		return f, true
	}
	bad := fmt.Errorf("repo: git's diff output is not understood: %.200q", out)
	var files []FileChange
	at := map[string]int{}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		head, _ := next()
		f := strings.Fields(head[1:])
		path, ok := next()
		if !ok || len(f) != 5 || f[4] == "" {
			return nil, bad
		}
		c := FileChange{Path: path, Status: f[4][0], OldMode: f[0], NewMode: f[1], OldBlob: f[2], NewBlob: f[3]}
		if c.Status == 'R' || c.Status == 'C' {
			c.OldPath = path
			if c.Path, ok = next(); !ok {
				return nil, bad
			}
		}
		at[c.Path] = len(files)
		files = append(files, c)
	}
	for len(fields) > 0 {
		rec, _ := next()
		ins, rest, _ := strings.Cut(rec, "\t")
		del, path, ok := strings.Cut(rest, "\t")
		if ok && path == "" {
			_, _ = next()
			path, ok = next()
		}
		i, known := at[path]
		if !ok || !known {
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

// readTargets fills in where the change's symlinks point to, as the store has it.
func (s *Store) readTargets(ctx context.Context, files []FileChange) error {
	var links []int
	for i, f := range files {
		if f.NewMode == modeLink {
			links = append(links, i)
		}
	}
	if len(links) == 0 {
		return nil
	}
	return s.batch(ctx, func(b *batch) error {
		for _, i := range links {
			_, _, target, err := b.get(files[i].NewBlob, -1)
			if err != nil {
				return err
			}
			files[i].Target = string(target)
			files[i].Escapes = escapes(files[i].Path, string(target))
		}
		return nil
	})
}

// escapes reports whether a symlink at path could lead out of the tree or into its .git. Only
// targets that cannot, whatever other symlinks there are, pass: first as many ".." as stay inside
// (a link's own folder is a real one), then names. A ".." after a name could climb out of
// wherever that name's own link leads.
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

// Diff returns the difference as text for people, cut off after maxBytes. It holds file contents
// as they are: whatever shows it has to neutralise control characters.
func (s *Store) Diff(ctx context.Context, base, head string, maxBytes int) (text string, truncated bool, err error) {
	if err := errors.Join(checkRev(base), checkRev(head)); err != nil {
		return "", false, err
	}
	c := s.call("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", base, head, "--")
	var b bytes.Buffer
	c.stdout = func(r io.Reader) error {
		if _, err := io.Copy(&b, io.LimitReader(r, int64(maxBytes)+1)); err != nil {
			return err
		}
		if b.Len() > maxBytes {
			return errEnough
		}
		return nil
	}
	if _, err := c.run(ctx); err != nil && !errors.Is(err, errEnough) {
		return "", false, err
	}
	if b.Len() > maxBytes {
		return string(b.Bytes()[:maxBytes]), true, nil
	}
	return b.String(), false, nil
}

// Proposal is the diff from Base to Head by its hash, which is what a person approves.
type Proposal struct {
	Hash       string // SHA-256, hex
	Base, Head string
	Files      int
	Insertions int
	Deletions  int
}

// proposalArgs are part of the public contract: the hash is the SHA-256 of what git prints.
var proposalArgs = []string{"diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"}

// Proposal computes the hash of the difference and how large it is.
func (s *Store) Proposal(ctx context.Context, base, head string) (Proposal, error) {
	if err := errors.Join(checkRev(base), checkRev(head)); err != nil {
		return Proposal{}, err
	}
	p := Proposal{Base: base, Head: head}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		sum := sha256.New()
		c := s.call(append(append([]string{}, proposalArgs...), base, head)...)
		c.stdout = func(r io.Reader) error {
			_, err := io.Copy(sum, r)
			return err
		}
		_, err := c.run(gctx)
		p.Hash = hex.EncodeToString(sum.Sum(nil))
		return err
	})
	g.Go(func() error {
		files, err := s.Changes(gctx, base, head)
		for _, f := range files {
			p.Files++
			p.Insertions += f.Insertions
			p.Deletions += f.Deletions
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return Proposal{}, err
	}
	return p, nil
}
