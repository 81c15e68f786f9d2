package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/secretscan"
	"pawl/internal/metric"
)

// MaxOutput is how many bytes of an output are read. The supervisor keeps no more anyway.
const MaxOutput = 2 * supervisor.DefaultOutputLimit

// TailLength is how many bytes of an output enter history, for people.
const TailLength = 600

// TailOf returns the end of an agent's output and of its errors, without colours and empty lines.
func TailOf(dir string) string {
	read := func(path string) []byte {
		b, _ := ReadTail(path, 4*TailLength) // a command that could not be started has printed nothing
		return b
	}
	return printed(dir, TailLength, read, func(text string, limit int) string {
		if len(text) <= limit {
			return text
		}
		return "…" + strings.ToValidUTF8(text[len(text)-limit:], "")
	})
}

// Excerpt returns a command's output, then its errors, as TailOf does, in about limit bytes. It leaves out the middle:
// some programs say first what is wrong, others last.
func Excerpt(dir string, limit int) string {
	return printed(dir, limit, func(path string) []byte { return readEnds(path, limit) }, ends)
}

// printed returns a command's output, then its errors, without colours and empty lines, each cut to its part of limit.
func printed(dir string, limit int, read func(path string) []byte, cut func(text string, limit int) string) string {
	var said []string
	for _, name := range []string{"stdout", "stderr"} {
		text := strings.ToValidUTF8(string(metric.Plain(read(filepath.Join(dir, name)))), "?")
		if text = strings.TrimSpace(emptyLines().ReplaceAllString(text, "\n")); text != "" {
			said = append(said, text)
		}
	}
	switch len(said) {
	case 1:
		said[0] = cut(said[0], limit)
	case 2:
		first, second := len(said[0]), len(said[1])
		said[0], said[1] = cut(said[0], max(limit/2, limit-second)), cut(said[1], max(limit/2, limit-first))
	}
	return secretscan.Redact(strings.Join(said, "\n"))
}

// leftOut stands for the middle of an output.
const leftOut = "[…]"

// readEnds returns a file that has at most limit bytes, else more than that from its start and its end.
func readEnds(path string, limit int) []byte {
	room := int64(4 * limit) // colours and empty lines will be removed
	b, err := ReadFile(path, 2*room)
	if err == nil && int64(len(b)) == 2*room {
		var tail []byte
		if tail, err = ReadTail(path, room); err == nil {
			b = append(append(b[:room], "\n"+leftOut+"\n"...), tail...)
		}
	}
	if err != nil {
		return nil
	}
	return b
}

// ends returns the first third of a text and its end, in whole lines if possible, in at most limit bytes.
func ends(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	limit -= len("\n" + leftOut + "\n")
	head, tail := text[:limit/3], text[len(text)-(limit-limit/3):]
	if end := strings.LastIndexByte(head, '\n'); end > 0 {
		head = head[:end]
	}
	if _, rest, hasMore := strings.Cut(tail, "\n"); hasMore {
		tail = rest
	}
	return strings.ToValidUTF8(head, "") + "\n" + leftOut + "\n" + strings.ToValidUTF8(tail, "")
}

var emptyLines = lazyregexp.New(`\n(?:[ \t\r]*\n)+`)

// Digest returns the SHA-256 of a file. A missing file, of a command that could not be started, counts as empty.
func Digest(path string) (string, error) {
	sum := sha256.New()
	err := ReadFrom(path, 0, math.MaxInt64, sum)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// ReadFile returns at most the first limit bytes of a file, none if there is no such file.
func ReadFile(path string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	err := ReadFrom(path, 0, limit, &b)
	return b.Bytes(), err
}

// ReadFrom copies at most limit bytes of a file from a position on, none if there is no such file: a command that could
// not be started has printed nothing.
func ReadFrom(path string, offset, limit int64, w io.Writer) error {
	f, err := os.Open(dirfd.At(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		_, err = io.Copy(w, io.NewSectionReader(f, offset, limit))
	}
	return err
}

// ReadTail returns at most the last n bytes of a file.
func ReadTail(path string, n int64) ([]byte, error) {
	f, err := os.Open(dirfd.At(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(st.Size()-n, 0), n))
}

// Said returns text of an agent as one line, without credentials: it is committed, recorded, shown and pushed.
func Said(text string) string {
	return secretscan.Redact(metric.Description(secretscan.Redact(text))) // the whole text before it is cut, and the line as it is shown
}
