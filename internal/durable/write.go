// Package durable is how pawl writes the files that it depends on, and how its processes keep out of
// each other's way: one atomic writer and one file lock for the whole project. It knows nothing of
// what is in the files. Below a folder that is kept (package held) it works in that folder. Start at WriteFile and Lock.
//
// The writer is our own because the well-kept ones (google/renameio, natefinch/atomic) don't sync the
// directory: after a power cut the file that they have replaced may be the old one again. The lock
// is our own because a git process must be able to inherit it, and gofrs/flock keeps its file to itself.
package durable

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"pawl/internal/held"
)

// ErrTorn is what ReadJSON returns for a file that is there but holds no whole document, as after a
// power cut on a file system that lost the content and kept the name. Whoever reads such a file
// makes it again from what else there is.
var ErrTorn = errors.New("the file is empty or damaged")

// Draft is a file that is being written and has not yet taken its place.
type Draft struct {
	*os.File
	path string
}

// NewDraft begins a file that will replace path. It is in the same folder and has the same extension.
func NewDraft(path string, mode fs.FileMode) (*Draft, error) {
	at := held.At(path)
	f, err := os.CreateTemp(filepath.Dir(at), ".new-*"+filepath.Ext(at))
	if err != nil {
		return nil, held.Named(err, path)
	}
	d := &Draft{f, at}
	if err := f.Chmod(mode); err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// Replace puts the draft in its place, whether or not a file is there. When it returns nil, the file
// survives a power cut.
func (d *Draft) Replace() error { return d.place(os.Rename) }

// Create puts the draft in its place, or fails with fs.ErrExist where a file is there.
func (d *Draft) Create() error { return d.place(os.Link) }

func (d *Draft) place(put func(from, to string) error) error {
	defer d.Discard()
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return err
	}
	if err := put(d.Name(), d.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(d.path))
}

// Discard removes the draft. After Replace and Create it does nothing.
func (d *Draft) Discard() {
	_ = d.Close()
	_ = os.Remove(d.Name())
}

// WriteFile replaces path, so that a reader sees the old content or the new, also after a crash. When
// it returns nil, the new content survives a power cut.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	d, err := NewDraft(path, mode)
	if err != nil {
		return err
	}
	if _, err := d.Write(content); err != nil {
		d.Discard()
		return err
	}
	return d.Replace()
}

// WriteCache is WriteFile for what costs little to lose, mode 0600: it saves the wait for the disk. A
// crash of pawl leaves the old content or the new; a power cut may leave an empty file.
func WriteCache(path string, content []byte) error {
	d, err := NewDraft(path, 0o600)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(content); err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	return os.Rename(d.Name(), d.path)
}

// WriteJSON is WriteFile for a value, mode 0600.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	return WriteFile(path, append(summed(b), '\n'), 0o600)
}

// CacheJSON is WriteCache for a value.
func CacheJSON(path string, v any) error {
	b, err := Encode(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	return WriteCache(path, b)
}

// Encode returns what CacheJSON writes.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return summed(b), err
}

// sumOf is the checksum that a record ends with: of what it is without that.
var sumOf = regexp.MustCompile(`,\s*"sha256":\s*"([0-9a-f]{64})"(\s*}\s*)$`)

// summed adds its checksum to an object, so that a byte that changes on the disk is noticed. Anything else stays as it is.
func summed(b []byte) []byte {
	sum, form := sha256.Sum256(b), `,"sha256":"%x"}`
	body, indented := bytes.CutSuffix(b, []byte("\n}"))
	if indented {
		form = ",\n  \"sha256\": \"%x\"\n}"
	} else {
		body = bytes.TrimSuffix(b, []byte("}"))
	}
	if len(body) < 2 || body[0] != '{' {
		return b
	}
	return fmt.Appendf(slices.Clone(body), form, sum)
}

// verified is a record without its checksum. One that has none is taken as it is.
func verified(b []byte) ([]byte, error) {
	at := sumOf.FindSubmatchIndex(b)
	if at == nil {
		return b, nil
	}
	text := slices.Concat(b[:at[0]], bytes.TrimRight(b[at[4]:at[5]], "\n"))
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != string(b[at[2]:at[3]]) {
		return nil, errors.New("its checksum is another one")
	}
	return text, nil
}

// ReadJSON reads what WriteJSON or CacheJSON wrote. It fails with fs.ErrNotExist or ErrTorn where that is not there.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(held.At(path))
	if err != nil {
		return held.Named(err, path)
	}
	text, err := verified(b)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrTorn, err)
	}
	return nil
}

// Rename is os.Rename, and survives a power cut when it has returned nil.
func Rename(from, to string) error {
	at := held.At(to)
	if err := os.Rename(held.At(from), at); err != nil {
		return held.Named(err, to)
	}
	return syncDir(filepath.Dir(at))
}

// syncDir brings the names in a folder to the disk. Some file systems (FUSE, network shares) can't do
// that and say so; there is nothing better to do on them.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
