package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/proc"
	"pawl/internal/secret"
)

// maxOutput bounds what is read of an output; the supervisor keeps no more than that anyway.
const maxOutput = 2 * proc.DefaultOutputLimit

// tailLength is how much of an output enters history, for people.
const tailLength = 600

// tailOf returns the end of what a command said: of its errors, else of its output.
func tailOf(dir string) string {
	for _, name := range []string{"stderr", "stdout"} {
		b, err := readTail(filepath.Join(dir, name), tailLength)
		text := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
		if err == nil && text != "" {
			return secret.Redact(text)
		}
	}
	return ""
}

// digest returns the SHA-256 of a file; a command that could not be started has said nothing.
func digest(path string) (string, error) {
	sum := sha256.New()
	f, err := os.Open(path)
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
	f, err := os.Open(path)
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
	f, err := os.Open(path)
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
