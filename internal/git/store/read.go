package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/git"
)

// TreeEntry is one file of a commit.
type TreeEntry struct {
	Path string // unescaped; any bytes
	Mode string // 100644, 100755, 120000, 160000
	Blob string // object ID; for a submodule, its commit
}

// Entries lists the files of a commit or tree, sorted by path as git sorts.
func (s *Store) Entries(ctx context.Context, commit string) ([]TreeEntry, error) {
	if err := git.CheckRev(commit); err != nil {
		return nil, err
	}
	out, err := s.run.Run(ctx, "ls-tree", "-r", "-z", "--full-tree", commit, "--")
	if err != nil {
		return nil, err
	}
	var entries []TreeEntry
	for _, rec := range git.Fields(out) {
		head, path, ok := strings.Cut(rec, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("git ls-tree answered %q", rec)
		}
		entries = append(entries, TreeEntry{Path: path, Mode: f[0], Blob: f[2]})
	}
	return entries, nil
}

// BlobByID returns the content of a blob by its object ID, as Entries and git.FileChange have it.
func (s *Store) BlobByID(ctx context.Context, blob string, limit int) ([]byte, error) {
	if err := git.CheckHashes(blob); err != nil {
		return nil, err
	}
	return ask(ctx, s, func(b *git.Batch) ([]byte, error) { return b.Of("blob", blob, limit) })
}

// Log returns the last n commits up to head, newest first, as "abc1234 subject", with everything escaped that could
// disturb a terminal or a prompt.
func (s *Store) Log(ctx context.Context, head string, n int) ([]string, error) {
	if err := git.CheckHashes(head); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, errors.New("a negative number of commits")
	}
	if lines, ok := s.logAfter(head, n); ok {
		return lines, nil
	}
	out, err := s.run.Run(ctx, "log", "-z", "--no-color", "--no-decorate", "--encoding=UTF-8", "--format=%H %s", "-n", strconv.Itoa(n), head, "--")
	if err != nil {
		return nil, err
	}
	var lines []string
	for rec := range strings.SplitSeq(string(out), "\x00") {
		if hash, subject, ok := strings.Cut(rec, " "); ok && len(hash) >= 7 {
			lines = append(lines, hash[:7]+" "+git.Printable(subject))
		}
	}
	s.logs.put(logKey(head, n), lines)
	return slices.Clone(lines), nil
}

func logKey(head string, n int) string { return fmt.Sprintf("%s %d", head, n) }

// logAfter returns the log at head if all commits since an earlier log are known and have one parent each: then they
// simply come first. A loop asks again a commit or two later, and this process made those commits itself.
func (s *Store) logAfter(head string, n int) (lines []string, ok bool) {
	for path := head; len(lines) <= n; {
		if cached, ok := s.logs.get(logKey(path, n)); ok {
			lines = append(lines, cached...)
			lines = lines[:min(n, len(lines))]
			s.logs.put(logKey(head, n), lines)
			return slices.Clone(lines), true
		}
		c, ok := s.commits.get(path)
		if !ok || len(c.Parents) != 1 {
			break
		}
		subject, _, _ := strings.Cut(c.Message, "\n\n")
		lines = append(lines, path[:7]+" "+git.Printable(strings.Join(strings.Split(strings.TrimSpace(subject), "\n"), " ")))
		path = c.Parents[0]
	}
	return nil, false
}
