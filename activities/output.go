package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/evidence"
	"pawl/internal/held"
	"pawl/internal/proc"
	"pawl/internal/secret"
)

// maxOutput bounds what is read of an output; the supervisor keeps no more than that anyway.
const maxOutput = 2 * proc.DefaultOutputLimit

// tailLength is how much of an output enters history, for people.
const tailLength = 600

// tailOf returns the end of a command's output, then of its errors. If it has both, each gets half of the room.
func tailOf(dir string) string {
	var said []string
	for _, name := range []string{"stdout", "stderr"} {
		b, err := readTail(filepath.Join(dir, name), tailLength)
		if text := strings.TrimSpace(strings.ToValidUTF8(string(b), "?")); err == nil && text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 2 {
		for i, other := range []int{len(said[1]), len(said[0])} {
			if room := max(tailLength/2, tailLength-other); len(said[i]) > room {
				said[i] = "…" + strings.ToValidUTF8(said[i][len(said[i])-room:], "")
			}
		}
	}
	return secret.Redact(strings.Join(said, "\n"))
}

// digest returns the SHA-256 of a file; a command that could not be started has said nothing.
func digest(path string) (string, error) {
	sum := sha256.New()
	f, err := os.Open(held.At(path))
	if err == nil {
		defer f.Close()
		_, err = io.Copy(sum, f)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(held.At(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a command that could not be started has said nothing
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func readTail(path string, n int64) ([]byte, error) {
	f, err := os.Open(held.At(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > n {
		if _, err := f.Seek(-n, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, n))
}

// said returns a line of an agent's words. What looks like a credential is removed: the words are committed, recorded,
// shown and pushed.
func said(text string) string {
	return secret.Redact(evidence.Description(secret.Redact(text))) // whole before it is cut, and as it is then shown
}
