package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

var (
	// ErrNotFound says that the repository lacks the object, or the commit lacks the path.
	ErrNotFound = errors.New("not in the store")
	// ErrTooLarge says that the object is larger than the caller's limit.
	ErrTooLarge = errors.New("larger than the limit")
)

// Batch talks to one git cat-file --batch process, about any number of objects.
type Batch struct {
	in  io.Writer
	out *bufio.Reader
}

// Batch starts the process, calls use with it, and ends it.
func (r Runner) Batch(ctx context.Context, use func(*Batch) error) error {
	// A real pipe: when git is gone, a write fails instead of waiting for a reader.
	stdin, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	var useErr error
	c := r.Command("cat-file", "--batch")
	c.Stdin = stdin
	c.started = func() { _ = stdin.Close() }
	c.Stdout = func(out io.Reader) error {
		useErr = use(&Batch{in: w, out: bufio.NewReader(out)})
		_ = w.Close()
		if hungUp(useErr) {
			return nil // git's own error comes first
		}
		return useErr
	}
	_, err = c.Run(ctx)
	return cmp.Or(err, useErr)
}

// hungUp reports whether the error comes from a git that is gone.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}

// Get reads one object. name is anything on one line that git resolves. most is the largest size in bytes, < 0 for no
// limit. The error is ErrNotFound or ErrTooLarge if that is the cause.
func (b *Batch) Get(name string, limit int) (kind string, content []byte, err error) {
	if strings.ContainsAny(name, "\n\x00") {
		return "", nil, fmt.Errorf("git: %s is no name of an object", Quote(name))
	}
	if _, err := io.WriteString(b.in, name+"\n"); err != nil {
		return "", nil, err
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	if strings.HasSuffix(head, " missing\n") {
		return "", nil, fmt.Errorf("%s: %w", Quote(name), ErrNotFound)
	}
	f := strings.Fields(head)
	if len(f) != 3 || !IsHash(f[0]) {
		return "", nil, fmt.Errorf("git cat-file answered %s", Quote(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return "", nil, err
	}
	if limit >= 0 && size > limit {
		return f[1], nil, fmt.Errorf("%s: %d bytes: %w", Quote(name), size, ErrTooLarge)
	}
	content = make([]byte, size+1) // and the line feed after the content
	if _, err := io.ReadFull(b.out, content); err != nil {
		return "", nil, err
	}
	return f[1], content[:size], nil
}

// Of is Get for an object of one kind. The error is ErrNotFound if it is of another kind.
func (b *Batch) Of(kind, id string, limit int) ([]byte, error) {
	gotKind, content, err := b.Get(id, limit)
	if err == nil && gotKind != kind {
		err = fmt.Errorf("%s is a %s, not a %s: %w", id, gotKind, kind, ErrNotFound)
	}
	return content, err
}

// Commit reads a commit. The error is ErrNotFound if there is none.
func (b *Batch) Commit(id string) (Commit, error) {
	raw, err := b.Of("commit", id, -1)
	if err != nil {
		return Commit{}, err
	}
	return ParseCommit(id, raw)
}
