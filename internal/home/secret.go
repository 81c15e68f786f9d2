package home

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Secret is the content of a file with a secret, and warnings about the file.
type Secret struct {
	Value    []byte
	Warnings []string // reasons why others might read it, each a sentence without a full stop
}

// maxSecret is the maximum size in bytes, more than any key or token needs.
const maxSecret = 64 << 10

// Secret reads a secret from a file: its content without surrounding white space. A relative path starts at
// $PAWL_HOME, which no sandboxed command can reach. It returns an error if the file is missing, not a regular file,
// too large or empty. The error never contains any of the content.
func (h Home) Secret(path string) (Secret, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Secret{}, fmt.Errorf("reading a secret: %w", err)
	case !info.Mode().IsRegular(): // opening a FIFO would wait for its other end
		return Secret{}, fmt.Errorf("the secret %s is not a regular file", path)
	case info.Size() > maxSecret:
		return Secret{}, fmt.Errorf("the secret %s has more than %d bytes", path, maxSecret)
	}
	value, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, fmt.Errorf("reading a secret: %w", err)
	}
	s := Secret{Value: bytes.TrimSpace(value)}
	if len(s.Value) == 0 {
		return Secret{}, errors.New("the secret " + path + " is empty")
	}
	if info.Mode().Perm()&0o077 != 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("other users of this machine may read or write %s (mode %04o); run `chmod 600 %[1]s`", path, info.Mode().Perm()))
	}
	at, err := filepath.EvalSymlinks(path)
	if err == nil && !strings.HasPrefix(at, h.Dir+string(filepath.Separator)) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s is outside of %s; whether a sandbox keeps agents from reading it depends on where it is", path, h.Dir))
	}
	return s, nil
}
