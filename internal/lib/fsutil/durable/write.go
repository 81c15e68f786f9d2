// Package durable writes the files on which pawl depends, and locks files between its processes: one atomic writer
// and one file lock for the whole project. It knows nothing about the content of files. Below a kept folder (package
// held) it works in that folder. Start at WriteFile and Lock.
//
// The writer is our own because well-kept ones (google/renameio, natefinch/atomic) do not sync the directory: after a
// power cut the path may have the old file again. The lock is our own because a git process must be able to inherit
// it, and gofrs/flock does not give out its file.
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

	"pawl/internal/lib/fsutil/dirfd"
)

// ErrTorn is the error of ReadJSON for a file without a complete document, or a folder in its place. A power cut can cause that on a file
// system that loses the content and keeps the name. The caller makes such a file again from other data.
var ErrTorn = errors.New("the file is empty or damaged")

// Draft is a file that is being written and is not at its path yet.
type Draft struct {
	*os.File
	path string
}

// NewDraft begins a file that will replace path. The draft is in the same folder and has the same extension.
func NewDraft(path string, mode fs.FileMode) (*Draft, error) {
	at := dirfd.At(path)
	f, err := os.CreateTemp(filepath.Dir(at), ".new-*"+filepath.Ext(at))
	if err != nil {
		return nil, dirfd.Named(err, path)
	}
	d := &Draft{f, at}
	if err := f.Chmod(mode); err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// Replace moves the draft to its path, and replaces a file there. When it returns nil, the file survives a power cut.
func (d *Draft) Replace() error { return d.place(os.Rename) }

// Create moves the draft to its path, or returns fs.ErrExist if a file is there.
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

// WriteFile replaces path. A reader sees the old content or the new one, even after a crash. When it returns nil, the
// new content survives a power cut.
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

// WriteCache is WriteFile, with mode 0600, for content that is cheap to lose: it does not wait for the disk. A crash
// of pawl leaves the old content or the new one. A power cut may leave an empty file.
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
	if err := vacate(path); err != nil {
		return err
	}
	return WriteFile(path, append(summed(b), '\n'), 0o600)
}

// Reserve makes a file of that size, unless there is one: the room for a later WriteReserved.
func Reserve(path string, size int) error {
	if fi, err := os.Stat(dirfd.At(path)); err == nil && fi.Size() >= int64(size) {
		return nil
	}
	return WriteCache(path, bytes.Repeat([]byte(" "), size))
}

// WriteReserved is WriteJSON on a full disk: it writes into the room that was reserved, and renames that to path.
func WriteReserved(path, reserve string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	f, err := os.OpenFile(dirfd.At(reserve), os.O_RDWR, 0)
	if err != nil {
		return dirfd.Named(err, reserve)
	}
	defer f.Close()
	room, err := f.Stat()
	if err != nil {
		return dirfd.Named(err, reserve)
	}
	b = summed(b)
	if int64(len(b)) > room.Size() {
		return fmt.Errorf("writing %s: %w", path, syscall.ENOSPC)
	}
	padding := bytes.Repeat([]byte("\n"), int(room.Size())-len(b))
	if _, err := f.WriteAt(append(b, padding...), 0); err != nil {
		return dirfd.Named(err, reserve)
	}
	if err := f.Sync(); err != nil {
		return dirfd.Named(err, reserve)
	}
	return Rename(reserve, path)
}

// vacate removes a folder that is where a record belongs. Such a record is torn, and nothing else could replace it.
func vacate(path string) error {
	at := dirfd.At(path)
	if fi, err := os.Lstat(at); err != nil || !fi.IsDir() {
		return nil // a file is replaced; other errors are the writer's
	}
	return os.RemoveAll(at)
}

// CacheJSON is WriteCache for a value. It leaves a file alone that has the value already.
func CacheJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	b = summed(b)
	if have, err := os.ReadFile(dirfd.At(path)); err == nil && bytes.Equal(have, b) {
		return nil
	}
	if err := vacate(path); err != nil {
		return err
	}
	return WriteCache(path, b)
}

// sumOf matches the checksum at the end of a record, which covers the rest of the record. It begins at the last comma.
var sumOf = regexp.MustCompile(`^,\s*"sha256":\s*"([0-9a-f]{64})"(\s*}\s*)$`)

// summed adds a checksum to an object, so that a changed byte on disk is noticed. It does not change any other value.
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

// verified returns a record without its checksum, and an error if the checksum is wrong. It accepts a record without
// one.
func verified(b []byte) ([]byte, error) {
	body := b[:max(0, bytes.LastIndexByte(b, ','))]
	found := sumOf.FindSubmatch(b[len(body):])
	if found == nil {
		return b, nil
	}
	text := slices.Concat(body, bytes.TrimRight(found[2], "\n"))
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != string(found[1]) {
		return nil, errors.New("its checksum is another one")
	}
	return text, nil
}

// ReadJSON reads what WriteJSON or CacheJSON wrote. It returns fs.ErrNotExist if there is no file, and ErrTorn if it
// is damaged.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(dirfd.At(path))
	if errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%s: %w: %w", path, ErrTorn, err)
	}
	if err != nil {
		return dirfd.Named(err, path)
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
	at := dirfd.At(to)
	if err := os.Rename(dirfd.At(from), at); err != nil {
		return dirfd.Named(err, to)
	}
	return syncDir(filepath.Dir(at))
}

// syncDir writes the names in a folder to the disk. Some file systems (FUSE, network shares) can't do that and return
// an error, which is ignored because nothing better is possible there.
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
