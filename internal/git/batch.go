package git

import (
	"bufio"
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
	// ErrNotFound: the repository has no such object, or the commit no such path.
	ErrNotFound = errors.New("not in the store")
	// ErrTooLarge: the object is larger than the caller wants to have.
	ErrTooLarge = errors.New("larger than the limit")
)

// Batch is a conversation with one git cat-file --batch, about any number of objects.
type Batch struct {
	in  io.Writer
	out *bufio.Reader
}

// Batch starts the process, hands it to use and ends it.
func (r Runner) Batch(ctx context.Context, use func(*Batch) error) error {
	// A real pipe: once git is gone, a write fails instead of waiting for a reader.
	in, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	var useErr error
	c := r.Command("cat-file", "--batch")
	c.Stdin = in
	c.started = func() { _ = in.Close() }
	c.Stdout = func(out io.Reader) error {
		useErr = use(&Batch{in: w, out: bufio.NewReader(out)})
		_ = w.Close()
		if useErr != nil && !hungUp(useErr) {
			return ErrEnough
		}
		return nil
	}
	if _, err = c.Run(ctx); err != nil && (useErr == nil || hungUp(useErr)) {
		return err
	}
	return useErr
}

// hungUp reports whether a conversation failed because git is no longer there.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}

// Get reads one object. name is anything that git resolves, in one line; most < 0 is no limit.
func (b *Batch) Get(name string, most int) (id, kind string, content []byte, err error) {
	if strings.ContainsAny(name, "\n\x00") {
		return "", "", nil, fmt.Errorf("git: %s is no name of an object", Quote(name))
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
	if len(f) != 3 || !IsHash(f[0]) {
		return "", "", nil, fmt.Errorf("git cat-file answered %s", Quote(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return "", "", nil, err
	}
	if most >= 0 && size > most {
		return f[0], f[1], nil, fmt.Errorf("%s: %d bytes: %w", Quote(name), size, ErrTooLarge)
	}
	content = make([]byte, size+1) // and the line feed after it
	if _, err := io.ReadFull(b.out, content); err != nil {
		return "", "", nil, err
	}
	return f[0], f[1], content[:size], nil
}

// Commit reads a commit.
func (b *Batch) Commit(id string) (Commit, error) {
	_, kind, raw, err := b.Get(id, -1)
	if err != nil {
		return Commit{}, err
	}
	if kind != "commit" {
		return Commit{}, fmt.Errorf("%s is a %s, not a commit: %w", id, kind, ErrNotFound)
	}
	return ParseCommit(id, raw)
}
