package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"pawl/internal/git"
)

// folder is a folder of a ledger's entry, in git's order.
type folder []item

type item struct {
	name   string
	id     string // of the file or the folder; "" for a folder that was changed
	folder bool
	within *folder // nil for a file, and for a folder that was not read
}

// order compares two names as git sorts them in a tree: a folder's as if it ended with a slash.
func (i item) order(other item) int {
	slash := func(i item) string {
		if i.folder {
			return i.name + "/"
		}
		return i.name
	}
	return cmp.Compare(slash(i), slash(other))
}

// errUnread says that a folder has to be read first.
var errUnread = errors.New("the folder was not read yet")

// open reads the folder of an item, unless that was done before. read returns the content of a tree object.
func (i *item) open(read func(tree string) ([]byte, error)) error {
	if i.within != nil {
		return nil
	}
	raw, err := read(i.id)
	if err != nil {
		return err
	}
	sub, err := parseFolder(raw, true)
	i.within = &sub
	return err
}

// parseFolder reads a tree object of a ledger, with the folders in it only if deep is true.
func parseFolder(raw []byte, deep bool) (f folder, err error) {
	for len(raw) > 0 { // "<mode> <name>NUL<20 bytes>", repeated
		head, rest, ok := bytes.Cut(raw, []byte{0})
		mode, name, named := strings.Cut(string(head), " ")
		if !ok || !named || len(rest) < 20 || mode != fileMode && !(deep && mode == folderMode) {
			return nil, errors.New("its tree has something that does not belong in a ledger: " + git.Quote(string(head)))
		}
		f = append(f, item{name: name, id: hex.EncodeToString(rest[:20]), folder: mode == folderMode})
		raw = rest[20:]
	}
	return f, nil
}

const (
	fileMode   = "100644"
	folderMode = "40000"
)

// set gives a file at a path below the folder another content, by its ID; "" removes it.
func (f *folder) set(path, id string, read func(tree string) ([]byte, error)) error {
	name, rest, below := strings.Cut(path, "/")
	i := slices.IndexFunc(*f, func(i item) bool { return i.name == name })
	if below {
		var entry item
		switch {
		case i < 0 && id == "":
			return nil
		case i < 0 || !(*f)[i].folder:
			entry = item{name: name, folder: true, within: &folder{}}
		default:
			entry = (*f)[i]
		}
		if err := entry.open(read); err != nil {
			return err
		}
		if err := entry.within.set(rest, id, read); err != nil {
			return err
		}
		entry.id = ""
		f.put(i, entry, len(*entry.within) == 0)
		return nil
	}
	f.put(i, item{name: name, id: id}, id == "")
	return nil
}

// put replaces item i, or inserts an item if i is negative.
func (f *folder) put(i int, entry item, remove bool) {
	if i >= 0 {
		*f = slices.Delete(*f, i, i+1)
	}
	if !remove {
		index, _ := slices.BinarySearchFunc(*f, entry, item.order)
		*f = slices.Insert(*f, index, entry)
	}
}

// write puts the folder and the changed folders below it into a pack, and returns the folder's ID.
func (f *folder) write(p *pack) string {
	var b bytes.Buffer
	for i := range *f {
		entry := &(*f)[i]
		mode := fileMode
		if entry.folder {
			mode = folderMode
			if entry.id == "" {
				entry.id = entry.within.write(p)
			}
		}
		id, _ := hex.DecodeString(entry.id)
		b.WriteString(mode + " " + entry.name + "\x00")
		b.Write(id)
	}
	return p.add("tree", b.Bytes())
}

// lastEntry is the folder of a ledger's last entry that this process wrote, so that the next entry needs no process to
// read it. It counts only as long as its pack is as it was written: so damage is noticed, and what was packed anew is read
// once.
type lastEntry struct {
	root    *folder
	pack    string
	size    int64
	written time.Time
}

// take returns the folder of an entry and forgets it, nil if it is not known.
func (s *Store) take(commit string) *folder {
	e, _ := s.entries.get(commit)
	s.entries.drop(commit)
	if info, err := os.Stat(e.pack); err != nil || info.Size() != e.size || !info.ModTime().Equal(e.written) {
		return nil
	}
	return e.root
}

func (s *Store) remember(commit string, root *folder, pack string) {
	if info, err := os.Stat(pack); err == nil {
		s.entries.put(commit, lastEntry{root, pack, info.Size(), info.ModTime()})
	}
}
