package hosted

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
	"pawl/internal/lazyregexp"
	"pawl/internal/proc"
	"pawl/internal/secret"
)

// MaxOutput is how many bytes of an output are read. The supervisor keeps no more anyway.
const MaxOutput = 2 * proc.DefaultOutputLimit

// TailLength is how many bytes of an output enter history, for people.
const TailLength = 600

// TailOf returns the end of a command's output, then of its errors, without colours and empty lines. If it has both, each
// gets half of the room.
func TailOf(dir string) string {
	var said []string
	for _, name := range []string{"stdout", "stderr"} {
		b, err := ReadTail(filepath.Join(dir, name), 4*TailLength)
		text := strings.TrimSpace(emptyLines.ReplaceAllString(strings.ToValidUTF8(string(evidence.Plain(b)), "?"), "\n"))
		if len(text) > TailLength {
			text = strings.ToValidUTF8(text[len(text)-TailLength:], "")
		}
		if err == nil && text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 2 {
		for i, other := range []int{len(said[1]), len(said[0])} {
			if room := max(TailLength/2, TailLength-other); len(said[i]) > room {
				said[i] = "…" + strings.ToValidUTF8(said[i][len(said[i])-room:], "")
			}
		}
	}
	return secret.Redact(strings.Join(said, "\n"))
}

var emptyLines = lazyregexp.New(`\n(?:[ \t\r]*\n)+`)

// Digest returns the SHA-256 of a file. A missing file counts as empty, because a command that could not be started
// has printed nothing.
func Digest(path string) (string, error) {
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

// ReadFile returns at most the first limit bytes of a file, none if there is no such file.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(held.At(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a command that could not be started has printed nothing
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// ReadTail returns at most the last n bytes of a file.
func ReadTail(path string, n int64) ([]byte, error) {
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

// Said returns text of an agent as one line. What looks like a credential is removed, because the text is committed,
// recorded, shown and pushed.
func Said(text string) string {
	return secret.Redact(evidence.Description(secret.Redact(text))) // the whole text before it is cut, and the line as it is shown
}
