package store

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/durable"
)

// Mended is the result of Mend.
type Mended struct {
	Aside string   // where the unreadable objects are, "" if there are none
	Lost  []string // refs whose commits were nowhere to be found; they are removed
	Older []string // refs of which only an earlier commit was found
}

// scratchRefs is the prefix of the refs that bring fetches. The rest of each name is the ref's name at its source.
const scratchRefs = "refs/pawl-mend/"

// Sound says what is damaged in the store, as far as refs lead: a ref that names nothing, or missing commits, folders
// and files. It returns "" if nothing is. With deep, every object is read and checked against its hash, which takes as
// long as reading the whole repository. Without it, only what the refs have beyond known is checked.
func (s *Store) Sound(ctx context.Context, deep bool, refs, expected []string) (string, error) {
	if _, err := os.Stat(s.path("objects")); errors.Is(err, fs.ErrNotExist) {
		return "the store " + s.dir + " is gone", nil
	}
	args := []string{"rev-list", "--objects", "--quiet"}
	for _, ref := range refs {
		switch path, err := s.Ref(ctx, ref); {
		case errors.Is(err, ErrDamagedRef):
			return err.Error(), nil
		case err != nil:
			return "", err
		case path != "":
			args = append(args, path)
		}
	}
	if len(args) > 3 {
		for _, k := range expected {
			if git.IsHash(k) && s.has(ctx, k) {
				args = append(args, "^"+k)
			}
		}
		if _, err := s.run.Run(ctx, append(args, "--")...); err != nil {
			return s.saying(ctx, err)
		}
	}
	if !deep {
		return "", nil
	}
	// Keep others from packing or unpacking meanwhile.
	lock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	fsck := s.run.Command("fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress")
	if _, err := fsck.Holding(lock).Run(ctx); err != nil {
		return s.saying(ctx, err)
	}
	return "", nil
}

// saying turns an error of a git command that read the store into a description of the damage.
func (s *Store) saying(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	ge := git.Failure(err)
	if ge == nil || ge.Err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(ge.Stderr), "\n")
	return fmt.Sprintf("the store %s is damaged: %s", s.dir, git.Printable(strings.ReplaceAll(first, s.dir+"/", ""))), nil
}

func (s *Store) has(ctx context.Context, id string) bool {
	_, err := s.run.Run(ctx, "cat-file", "-e", id)
	return err == nil
}

// Mend repairs the store from everything readable in it, and from what bring fetches into a repository of its own,
// under refs/pawl-mend/ by the refs' names at the source. want says where refs have to be, and noted where they once
// were. Each ref is set to the first of these that is complete in the store: want, the ref's own value, noted, the
// fetched value. Unreadable objects are kept aside.
func (s *Store) Mend(ctx context.Context, want, noted map[string]string, bring func(context.Context, *Store) error) (m Mended, err error) {
	if err := os.MkdirAll(s.path(), 0o700); err != nil {
		return m, err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return m, err
	}
	defer lock.Close()
	if err := s.goBack(); err != nil {
		return m, err
	}
	fresh := &Store{dir: s.dir + ".mend", run: git.Hardened(s.dir + ".mend")}
	if err := os.RemoveAll(fresh.path()); err != nil { // left by a process that died here
		return m, err
	}
	if err := fresh.create(ctx, lock); err != nil {
		return m, fmt.Errorf("making room to mend the store: %w", err)
	}
	defer os.RemoveAll(fresh.path())
	if err := copyFile(s.path(shallowFile), fresh.path(shallowFile)); err != nil {
		return m, err
	}
	whole, err := s.salvage(ctx, fresh)
	if err != nil {
		return m, fmt.Errorf("saving what can be read of the store: %w", err)
	}
	// Without what bring fetches, the store may still become whole.
	unreached := bring(ctx, fresh)
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	writtenRefs, damaged, err := s.written()
	if err != nil {
		return m, err
	}
	refs := map[string]string{}
	names := maps.Clone(writtenRefs)
	maps.Copy(names, want)
	maps.Copy(names, noted)
	for _, name := range damaged {
		names[name] = ""
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		brought, err := fresh.Ref(ctx, scratchRefs+strings.TrimPrefix(name, "refs/")) // "" if it was not fetched
		if err != nil && !errors.Is(err, ErrDamagedRef) {
			return m, err
		}
		for _, path := range []string{want[name], writtenRefs[name], noted[name], brought} {
			if path == "" {
				continue
			}
			ok, err := fresh.Holds(ctx, path)
			if err != nil {
				return m, err
			}
			if ok {
				refs[name] = path
				break
			}
		}
		if expected := cmp.Or(want[name], writtenRefs[name], noted[name]); refs[name] != "" && expected != "" && refs[name] != expected {
			m.Older = append(m.Older, name)
		}
		if refs[name] == "" && (writtenRefs[name]+want[name]+noted[name] != "" || slices.Contains(damaged, name)) {
			m.Lost = append(m.Lost, name)
		}
	}
	if len(m.Lost) > 0 && unreached != nil {
		return m, fmt.Errorf("what is lost of the store %s can't be fetched: %w", s.dir, unreached)
	}
	if err := fresh.replaceRefs(ctx, refs, lock); err != nil {
		return m, err
	}
	m.Aside, err = s.exchange(fresh, whole)
	return m, err
}

// Holds reports whether a commit is complete in the store, with everything that it refers to. An error says that git
// could not be run, so nobody knows.
func (s *Store) Holds(ctx context.Context, id string) (bool, error) {
	_, err := s.run.Run(ctx, "rev-list", "--objects", "--quiet", id, "--")
	if git.Failure(err) != nil {
		return false, nil
	}
	return err == nil, err
}

// salvage copies every readable object into another store, and reports whether all were readable.
func (s *Store) salvage(ctx context.Context, dest *Store) (whole bool, err error) {
	objects := s.path("objects")
	whole = true
	err = filepath.WalkDir(objects, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case git.Starved(err):
			return err
		case err != nil:
			whole = false
			return nil //nolint:nilerr // what can't be listed can't be read
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(objects, path)
		if err != nil {
			return err
		}
		dir, name := filepath.Split(filepath.ToSlash(rel))
		switch id := strings.TrimSuffix(dir, "/") + name; {
		case strings.HasPrefix(name, "tmp_"):
		case dir == "pack/" && strings.HasSuffix(name, ".pack"):
			return dest.unpack(ctx, path, &whole)
		case git.IsHash(id):
			return dest.copyLoose(path, rel, id, &whole)
		}
		return nil
	})
	return whole, err
}

// unpack adds the objects of a pack: all at once, or else the readable ones.
func (s *Store) unpack(ctx context.Context, path string, whole *bool) error {
	runIn := func(args ...string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		c := s.run.Command(args...)
		c.Stdin = bufio.NewReader(f)
		_, err = c.Run(ctx)
		return err
	}
	for _, args := range [][]string{{"index-pack", "--stdin", "--fix-thin"}, {"unpack-objects", "-r", "-q"}} { // the latter skips what is damaged
		err := runIn(args...)
		// Nothing else that git says excuses a pack: it runs out of memory if a size in the pack is damaged.
		if ge := git.Failure(err); err == nil || ctx.Err() != nil || git.Starved(err) || ge != nil && ge.NoRoom() {
			return cmp.Or(ctx.Err(), err)
		}
		*whole = false
	}
	return nil
}

// copyLoose copies the file of a loose object if its content matches its hash.
func (s *Store) copyLoose(path, rel, id string, whole *bool) error {
	b, err := os.ReadFile(path)
	if git.Starved(err) {
		return err
	}
	if err != nil || !isObject(b, id) {
		*whole = false
		return nil //nolint:nilerr // it counts as lost
	}
	file := s.path("objects", rel)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o444)
}

// isObject reports whether a loose object's file has the content of its hash.
func isObject(file []byte, id string) bool {
	r, err := zlib.NewReader(bytes.NewReader(file))
	if err != nil {
		return false
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return false
	}
	head, body, ok := bytes.Cut(content, []byte{0})
	kind, _, _ := strings.Cut(string(head), " ")
	return ok && git.ObjectID(kind, body) == id
}

// written returns the refs as their files have them, and the refs whose file contains no hash.
func (s *Store) written() (refs map[string]string, damaged []string, err error) {
	refs = map[string]string{}
	packed, err := os.ReadFile(s.path("packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for line := range strings.Lines(string(packed)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && git.IsHash(hash) && git.CheckRef(name) == nil {
			refs[name] = hash
		}
	}
	err = filepath.WalkDir(s.path("refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.path(), path)
		name := filepath.ToSlash(rel)
		if err != nil || git.CheckRef(name) != nil || strings.HasSuffix(name, ".lock") {
			return err
		}
		b, err := os.ReadFile(path)
		if hash := strings.TrimSpace(string(b)); err == nil && git.IsHash(hash) {
			refs[name] = hash
		} else {
			delete(refs, name)
			damaged = append(damaged, name)
		}
		return nil
	})
	return refs, damaged, err
}

// exchanged are the parts of a store that exchange replaces. Each is put aside first.
var exchanged = []string{"objects", "refs"}

const putAside = ".damaged"

// goBack brings back a part that an exchange had put aside when its process died.
func (s *Store) goBack() error {
	for _, part := range exchanged {
		if _, err := os.Lstat(s.path(part)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(s.path(part+putAside), s.path(part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// exchange replaces this store's objects and refs with another store's.
func (s *Store) exchange(fresh *Store, whole bool) (aside string, err error) {
	for _, part := range exchanged {
		present, old := s.path(part), s.path(part+putAside)
		if err := os.RemoveAll(old); err != nil {
			return "", err
		}
		if err := os.Rename(present, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		crashpoint.At("mend.exchanging")
		if err := durable.Rename(fresh.path(part), present); err != nil {
			return "", err
		}
	}
	if err := os.Remove(s.path("packed-refs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := copyFile(fresh.path(shallowFile), s.path(shallowFile)); err != nil {
		return "", err
	}
	if err := durable.WriteFile(s.path("HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return "", err
	}
	if _, err := s.writeConfig(s.path()); err != nil {
		return "", err
	}
	err = os.RemoveAll(s.path("refs" + putAside))
	if aside = s.path("objects" + putAside); whole {
		err, aside = errors.Join(err, os.RemoveAll(aside)), ""
	}
	return aside, err
}

// shallowFile is the file in a git directory that lists commits stored without their parents.
const shallowFile = "shallow"

// copyFile copies a file if it exists.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.WriteFile(to, b, 0o600)
}

// replaceRefs sets the refs to exactly the given ones.
func (s *Store) replaceRefs(ctx context.Context, refs map[string]string, lock *os.File) error {
	if err := os.RemoveAll(s.path("refs")); err != nil {
		return err
	}
	if err := os.Remove(s.path("packed-refs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(s.path("refs", "heads"), 0o700); err != nil {
		return err
	}
	for name, path := range refs {
		if err := s.moveRef(ctx, name, path, lock); err != nil {
			return err
		}
	}
	return nil
}
