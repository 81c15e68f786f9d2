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

// TailOf returns the end of an agent's output, then of its errors, without colours and empty lines. If it has both, each
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

// Excerpt returns a command's output, then its errors, without colours and empty lines, in about limit bytes. It leaves
// out the middle, because some programs say first what is wrong, and others last. If the command has printed both, each
// gets half of the room.
func Excerpt(dir string, limit int) string {
	var said []string
	for _, name := range []string{"stdout", "stderr"} {
		if text := readEnds(filepath.Join(dir, name), limit); text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 1 {
		said[0] = ends(said[0], limit)
	} else if len(said) == 2 {
		first, second := len(said[0]), len(said[1])
		said[0], said[1] = ends(said[0], max(limit/2, limit-second)), ends(said[1], max(limit/2, limit-first))
	}
	return secret.Redact(strings.Join(said, "\n"))
}

// leftOut stands for the middle of an output.
const leftOut = "[…]"

// readEnds returns the text of a file that has at most limit bytes, else more than that from its start and its end.
func readEnds(path string, limit int) string {
	room := int64(4 * limit) // colours and empty lines will be removed
	b, err := ReadFile(path, 2*room)
	if err == nil && int64(len(b)) == 2*room {
		var tail []byte
		if tail, err = ReadTail(path, room); err == nil {
			b = append(append(b[:room], "\n"+leftOut+"\n"...), tail...)
		}
	}
	if err != nil {
		return ""
	}
	return strings.TrimSpace(emptyLines.ReplaceAllString(strings.ToValidUTF8(string(evidence.Plain(b)), "?"), "\n"))
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
	if _, rest, more := strings.Cut(tail, "\n"); more {
		tail = rest
	}
	return strings.ToValidUTF8(head, "") + "\n" + leftOut + "\n" + strings.ToValidUTF8(tail, "")
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
