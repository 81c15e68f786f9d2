package repo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

var (
	// ErrNotFound: the store has no such object, or the commit no such path.
	ErrNotFound = errors.New("not in the store")
	// ErrTooLarge: the object is larger than the caller wants to have.
	ErrTooLarge = errors.New("larger than the limit")
)

// batch is a conversation with one git cat-file --batch, for any number of objects.
type batch struct {
	in  io.Writer
	out *bufio.Reader
}

// errEnough ends a git process whose output nobody needs any more.
var errEnough = errors.New("enough")

// batch starts the process, hands it to use and ends it.
func (s *Store) batch(ctx context.Context, use func(*batch) error) error {
	// A real pipe: with git gone, a write fails instead of waiting for a reader.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	var useErr error
	c := s.call("cat-file", "--batch")
	c.stdin = r
	c.started = func() { _ = r.Close() }
	c.stdout = func(out io.Reader) error {
		useErr = use(&batch{in: w, out: bufio.NewReader(out)})
		_ = w.Close()
		if useErr != nil && !hungUp(useErr) {
			return errEnough
		}
		return nil
	}
	_, err = c.run(ctx)
	if err != nil && !errors.Is(err, errEnough) && (useErr == nil || hungUp(useErr)) {
		return err
	}
	return useErr
}

// hungUp reports whether a conversation failed because git is no longer there.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errBrokenPipe) || errors.Is(err, os.ErrClosed)
}

// get reads one object; name is anything that git resolves, in one line. max < 0 is no limit.
func (b *batch) get(name string, max int) (id, kind string, content []byte, err error) {
	if strings.ContainsAny(name, "\n\x00") {
		return "", "", nil, fmt.Errorf("repo: %s cannot be asked for", Quote(name))
	}
	if _, err := io.WriteString(b.in, name+"\n"); err != nil {
		return "", "", nil, err
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return "", "", nil, err
	}
	if strings.HasSuffix(head, " missing\n") {
		return "", "", nil, fmt.Errorf("%s: %w", Quote(name), ErrNotFound)
	}
	f := strings.Fields(head)
	if len(f) != 3 || !isHash(f[0]) {
		return "", "", nil, fmt.Errorf("repo: git cat-file answered %s", Quote(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return "", "", nil, err
	}
	if max >= 0 && size > max {
		return f[0], f[1], nil, fmt.Errorf("%s: %d bytes: %w", Quote(name), size, ErrTooLarge)
	}
	content = make([]byte, size+1) // and the line feed after it
	if _, err := io.ReadFull(b.out, content); err != nil {
		return "", "", nil, err
	}
	return f[0], f[1], content[:size], nil
}

func (b *batch) commit(id string) (CommitInfo, error) {
	_, kind, raw, err := b.get(id, -1)
	if err != nil {
		return CommitInfo{}, err
	}
	if kind != "commit" {
		return CommitInfo{}, fmt.Errorf("%s is a %s, not a commit: %w", id, kind, ErrNotFound)
	}
	return parseCommit(id, raw)
}
