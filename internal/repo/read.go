package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// TreeEntry is one file of a commit.
type TreeEntry struct {
	Path string // as it is, any bytes
	Mode string // 100644, 100755, 120000, 160000
	Blob string // object ID; the commit of a submodule
}

// Entries lists the files of a commit or tree, sorted by path as git sorts.
func (s *Store) Entries(ctx context.Context, commit string) ([]TreeEntry, error) {
	return s.listTree(ctx, commit)
}

// Files lists the paths of a commit or tree.
func (s *Store) Files(ctx context.Context, commit string) ([]string, error) {
	entries, err := s.listTree(ctx, commit)
	paths := make([]string, len(entries))
	for i, e := range entries {
		paths[i] = e.Path
	}
	return paths, err
}

func (s *Store) listTree(ctx context.Context, commit string, paths ...string) ([]TreeEntry, error) {
	if err := checkRev(commit); err != nil {
		return nil, err
	}
	c := s.call(append([]string{"ls-tree", "-r", "-z", "--full-tree", commit, "--"}, paths...)...)
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	out, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	var entries []TreeEntry
	for rec := range strings.SplitSeq(string(out), "\x00") {
		if rec == "" {
			continue
		}
		head, path, ok := strings.Cut(rec, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("repo: git ls-tree answered %q", rec)
		}
		entries = append(entries, TreeEntry{Path: path, Mode: f[0], Blob: f[2]})
	}
	return entries, nil
}

// Blob returns a file of a commit; ErrNotFound if it has none there, ErrTooLarge if it is larger
// than max bytes. A symlink's content is its target.
func (s *Store) Blob(ctx context.Context, commit, path string, max int) ([]byte, error) {
	if err := checkRev(commit); err != nil {
		return nil, err
	}
	entries, err := s.listTree(ctx, commit, path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Path == path && e.Mode != modeGitlink {
			return s.BlobByID(ctx, e.Blob, max)
		}
	}
	return nil, fmt.Errorf("%s: %w", Quote(path), ErrNotFound)
}

// BlobByID returns a blob by its object ID, as Entries and FileChange have it.
func (s *Store) BlobByID(ctx context.Context, blob string, max int) ([]byte, error) {
	if err := checkHashes(blob); err != nil {
		return nil, err
	}
	var content []byte
	err := s.batch(ctx, func(b *batch) error {
		_, kind, c, err := b.get(blob, max)
		if err == nil && kind != "blob" {
			err = fmt.Errorf("%s is a %s: %w", blob, kind, ErrNotFound)
		}
		content = c
		return err
	})
	return content, err
}

// Log returns the last n commits up to head, newest first, as "abc1234 subject" with everything
// escaped that could upset a terminal or a prompt.
func (s *Store) Log(ctx context.Context, head string, n int) ([]string, error) {
	if err := checkRev(head); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, errors.New("repo: a negative number of commits")
	}
	if lines, ok := s.logs.follow(&s.commits, head, n); ok {
		return lines, nil
	}
	out, err := s.git(ctx, "log", "-z", "--no-color", "--no-decorate", "--encoding=UTF-8", "--format=%H %s", "-n", strconv.Itoa(n), head, "--")
	if err != nil {
		return nil, err
	}
	var lines []string
	for rec := range strings.SplitSeq(string(out), "\x00") {
		if hash, subject, ok := strings.Cut(rec, " "); ok && len(hash) >= 7 {
			lines = append(lines, hash[:7]+" "+printable(subject))
		}
	}
	s.logs.remember(head, n, lines)
	return lines, nil
}

// logCache is the last log that was asked for. A loop asks again a commit or two later, and those
// this process made itself.
type logCache struct {
	mu    sync.Mutex
	head  string
	n     int
	lines []string
}

func (l *logCache) remember(head string, n int, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head, l.n, l.lines = head, n, lines
}

// follow returns the log at head where all commits since the last log are known and have one
// parent each: then git could only put them before it.
func (l *logCache) follow(commits *commitCache, head string, n int) ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n != l.n {
		return nil, false
	}
	var since []string
	for at := head; at != l.head; {
		c, known := commits.get(at)
		if !known || len(c.Parents) != 1 || len(since) == n {
			return nil, false
		}
		subject, _, _ := strings.Cut(c.Message, "\n\n")
		since = append(since, at[:7]+" "+printable(strings.Join(strings.Split(strings.TrimSpace(subject), "\n"), " ")))
		at = c.Parents[0]
	}
	lines := append(since, l.lines...)
	l.head, l.lines = head, lines[:min(n, len(lines))]
	return slices.Clone(l.lines), true
}

// printable escapes what is no graphic character as Quote does, byte by byte.
func printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
