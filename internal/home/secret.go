package home

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Secret is what a file of a secret holds, and what is to be said about the file.
type Secret struct {
	Value    []byte
	Warnings []string // why somebody else might read it, each a sentence without its full stop
}

// maxSecret is more than any key or token needs.
const maxSecret = 64 << 10

// Secret reads a secret from a file: the content without the white space around it. A relative path
// starts at $PAWL_HOME, which no sandboxed command can reach. An error means that there is no secret: the file is
// missing, no regular file, too large or empty. It never says anything of the content.
func (h Home) Secret(path string) (Secret, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Secret{}, fmt.Errorf("reading a secret: %w", err)
	case !info.Mode().IsRegular(): // opening a FIFO would wait for its other end
		return Secret{}, fmt.Errorf("the secret %s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("reading a secret: %w", err)
	}
	defer f.Close()
	value, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return Secret{}, fmt.Errorf("reading a secret: %w", err)
	}
	if len(value) > maxSecret {
		return Secret{}, fmt.Errorf("the secret %s has more than %d bytes", path, maxSecret)
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
