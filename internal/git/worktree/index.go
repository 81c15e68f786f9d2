package worktree

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"pawl/internal/lib/fsutil/dirfd"
)

// indexEntry is an entry of git's index for one path.
type indexEntry struct {
	mode uint32
	blob [20]byte
	stat indexStat
}

// indexStat is the stat data that git recorded when file and entry were the same. git keeps the low 32 bits of each
// number.
type indexStat struct {
	ctime, ctimeNsec, mtime, mtimeNsec, ino, size uint32
}

func (s stamp) asIndexStat() indexStat {
	return indexStat{
		ctime: uint32(s.Ctime / 1e9), ctimeNsec: uint32(s.Ctime % 1e9),
		mtime: uint32(s.Mtime / 1e9), mtimeNsec: uint32(s.Mtime % 1e9),
		ino: uint32(s.Ino), size: uint32(s.Size),
	}
}

// matches reports whether a file's kind and stat data still equal the entry's.
func (e indexEntry) matches(current stamp) bool {
	if e.isGitlink() || e.stat != current.asIndexStat() {
		return false
	}
	if e.mode&0o170000 == 0o120000 {
		return current.Mode&0o170000 == 0o120000
	}
	return current.Mode&0o170000 == 0o100000 && current.Mode&0o111 != 0 == (e.mode&0o111 != 0)
}

// unchanged reports whether a file is certainly unchanged since the entry; written is when the index was written. A
// file touched in or after the tick of that write could have been touched again without a change of its times.
func (e indexEntry) unchanged(current stamp, written int64) bool {
	return e.matches(current) && current.Ctime < written
}

// gitReads reports whether git would compare the contents of a file whose times match. git distrusts files with an
// mtime in or after the second in which the index was written.
func (e indexEntry) gitReads(written int64) bool { return int64(e.stat.mtime) >= written/1e9 }

// deceives reports whether git could take a changed file for unchanged. As most distributions build it, git compares
// times by the second. If somebody sets the mtime back, git notices no rewrite within the second of the last check.
func (e indexEntry) deceives(current stamp, written int64) bool {
	stat := current.asIndexStat()
	bySecond := e.stat.ctime == stat.ctime && e.stat.mtime == stat.mtime && e.stat.ino == stat.ino && e.stat.size == stat.size
	return bySecond && !e.gitReads(written) && !e.unchanged(current, written)
}

func (e indexEntry) isGitlink() bool  { return e.mode&0o170000 == 0o160000 }
func (e indexEntry) blobText() string { return hex.EncodeToString(e.blob[:]) }

// index is the private index of a tree as git last wrote it: which paths are tracked. Reading it here saves a process
// for each question (gitformat-index(5); git.Hardened keeps it at version 2 or 3).
type index struct {
	entries map[string]indexEntry
	links   []string // the paths of submodules
	folders map[string]bool
}

var errIndex = errors.New("the index is damaged")

// readIndex reads an index. It returns errIndex for a damaged one, before any git command fails on it.
func readIndex(path string) (*index, error) {
	raw, err := os.ReadFile(dirfd.At(path))
	if err != nil {
		return nil, err
	}
	const header, fixed = 12, 62
	be := binary.BigEndian
	if len(raw) < header+20 || string(raw[:4]) != "DIRC" {
		return nil, errIndex
	}
	// No git command on a tree leaves out the checksum (index.skipHash).
	if sum := sha1.Sum(raw[:len(raw)-20]); !bytes.Equal(sum[:], raw[len(raw)-20:]) {
		return nil, errIndex
	}
	version, count := be.Uint32(raw[4:]), int(be.Uint32(raw[8:]))
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("%w: version %d", errIndex, version)
	}
	if count > len(raw)/fixed {
		return nil, errIndex
	}
	text := string(raw) // one allocation for all paths
	ix := &index{entries: make(map[string]indexEntry, count), folders: map[string]bool{}}
	offset := header
	for range count {
		if offset+fixed > len(raw) {
			return nil, errIndex
		}
		e := raw[offset:]
		flags := be.Uint16(e[60:])
		name := offset + fixed
		if flags&0x4000 != 0 { // extended
			name += 2
		}
		path, _, ended := strings.Cut(text[min(name, len(text)):], "\x00")
		if !ended || path == "" {
			return nil, errIndex
		}
		entry := indexEntry{mode: be.Uint32(e[24:]), stat: indexStat{
			ctime: be.Uint32(e), ctimeNsec: be.Uint32(e[4:]), mtime: be.Uint32(e[8:]), mtimeNsec: be.Uint32(e[12:]),
			ino: be.Uint32(e[20:]), size: be.Uint32(e[36:]),
		}}
		copy(entry.blob[:], e[40:60])
		ix.entries[path] = entry
		if entry.isGitlink() {
			ix.links = append(ix.links, path)
		}
		for i := len(path) - 1; i > 0; i-- {
			if path[i] == '/' {
				if ix.folders[path[:i]] {
					break
				}
				ix.folders[path[:i]] = true
			}
		}
		offset += (name + len(path) - offset + 8) &^ 7 // one to eight NULs up to a multiple of eight
	}
	return ix, nil
}
