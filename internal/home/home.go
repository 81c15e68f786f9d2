package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// Home is pawl's own folder on this host.
type Home struct{ Dir string }

// Open opens $PAWL_HOME, by default $XDG_STATE_HOME/pawl, else ~/.local/state/pawl. A relative $PAWL_HOME is relative
// to the current folder.
func Open() (Home, error) {
	dir := os.Getenv("PAWL_HOME")
	if dir == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return Home{}, Unusable("finding a place for pawl's files", err)
			}
			state = filepath.Join(user, ".local", "state")
		}
		dir = filepath.Join(state, "pawl")
	}
	return At(dir)
}

// At opens pawl's folder at dir, and makes it if it is missing. From then on this process holds the folder: what
// package durable and git write there is written in that folder, even if a folder above it is renamed.
func At(dir string) (Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, fmt.Errorf("making PAWL_HOME absolute: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Home{}, Unusable("making pawl's folder", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Home{}, Unusable("resolving PAWL_HOME", err)
	}
	if err := dirfd.Keep(dir); err != nil {
		return Home{}, Unusable("opening PAWL_HOME", err)
	}
	if err := hideFromGit(dir); err != nil {
		return Home{}, Unusable("hiding PAWL_HOME from git", err)
	}
	return Home{dir}, nil
}

// hideFromGit hides a new folder from git if it is in a working tree: otherwise no loop could start there, since the tree is
// never clean, and "git add" would take pawl's files.
func hideFromGit(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 0 || !inWorkingTree(filepath.Dir(dir)) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

func inWorkingTree(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// Unusable returns the error that keeps pawl from using its folder. It is a PRECONDITION_FAILED if another folder
// would help, and an error of the machine if a disk is full or broken, or the system lacks other resources.
func Unusable(doing string, err error) error {
	for _, machine := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, machine) {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	advice := "Set PAWL_HOME to a folder that you can write."
	if link := (*os.LinkError)(nil); errors.As(err, &link) && link.Op == "link" || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP) {
		advice = "Set PAWL_HOME to a folder on a file system with hard links and locks, such as one of a local disk."
	}
	return fault.New(fault.PreconditionFailed, "%s: %v", doing, err).Advise(advice)
}

// Engine returns the folder in which the embedded engine keeps its file and lock.
func (h Home) Engine() string { return filepath.Join(h.Dir, "engine") }

// Store returns the path of the bare repository for the repository with that key.
func (h Home) Store(key string) string { return filepath.Join(h.Dir, "stores", key+".git") }

// Loops returns the folder of all loops.
func (h Home) Loops() string { return filepath.Join(h.Dir, "loops") }

// Trees returns the folder of the loops' trees, which have short names there.
func (h Home) Trees() string { return filepath.Join(h.Dir, "trees") }

// Loop returns the folder of one loop: its workspace record, trees and step logs.
func (h Home) Loop(ref string) string { return filepath.Join(h.Loops(), ref) }

// WorkerLock returns the path of the lock of this host's worker.
func (h Home) WorkerLock() string { return filepath.Join(h.Dir, "worker.lock") }

// WorkerEnvironment returns the file with the part of its environment that this host's worker gives to loops.
func (h Home) WorkerEnvironment() string { return filepath.Join(h.Dir, "worker-environment.json") }

// JudgeSlot returns the path of the lock of the loop that measures at the moment, so that loops of this host don't
// disturb each other's measurements.
func (h Home) JudgeSlot() string { return filepath.Join(h.Dir, "judge.lock") }

// Baselines returns the folder with what `pawl validate` measured lately.
func (h Home) Baselines() string { return filepath.Join(h.Dir, "baselines") }

// Logs returns the folder in which processes without a terminal write.
func (h Home) Logs() string { return filepath.Join(h.Dir, "logs") }

// HostID returns this host's random ID, which is made once. If several processes make it at the same time, the first
// one to write its file wins. A file that a power cut has emptied or filled with zeroes is replaced. Everything under
// the old ID then belongs to another host.
func (h Home) HostID() (string, error) {
	path := filepath.Join(h.Dir, "host-id")
	for {
		b, err := os.ReadFile(dirfd.At(path))
		if id := strings.TrimSpace(string(b)); hostID.MatchString(id) {
			return id, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", Unusable("reading this host's id", err)
		}
		if target, notALink := os.Readlink(dirfd.At(path)); err != nil && notALink == nil {
			return "", Unusable("reading this host's id", fmt.Errorf("%s is a link to %s, where nothing is", path, target))
		}
		put := (*durable.Draft).Create
		if err == nil {
			put = (*durable.Draft).Replace
		}
		random := make([]byte, 6)
		rand.Read(random)
		d, err := durable.NewDraft(path, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(d, "%x\n", random)
			err = errors.Join(err, put(d))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", Unusable("making this host's id", err)
		}
	}
}

var hostID = regexp.MustCompile(`^[!-~]+$`)

// The engine and git may fail to write with fewer free bytes than tooLittle, or if fewer new files than tooFew can be
// made: one commit needs several.
const (
	tooLittle = 1 << 20
	tooFew    = 16
)

// Unwritable says why pawl's files can't be written: a full disk, one that an error has made read-only, or this process's
// limit for a file. It returns "" if they can.
func (h Home) Unwritable() string {
	var st unix.Statfs_t
	if unix.Statfs(dirfd.At(h.Dir), &st) == nil {
		switch free := int64(st.Bavail) * int64(st.Bsize); {
		case free < tooLittle:
			return fmt.Sprintf("the disk is full: %d KB are free at %s", free>>10, h.Dir)
		case st.Files > 0 && st.Ffree < tooFew:
			return fmt.Sprintf("the disk is full: %d more files can be made at %s", st.Ffree, h.Dir)
		}
	}
	// The engine says nothing of its files' size, and its writes fail.
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &most) == nil {
		largest := int64(0)
		files, _ := os.ReadDir(dirfd.At(h.Engine()))
		for _, f := range files {
			if is, err := f.Info(); err == nil {
				largest = max(largest, is.Size())
			}
		}
		if uint64(largest)+tooLittle > most.Cur {
			return fmt.Sprintf("a file may have at most %d KB here (ulimit -f), which is too little for the engine's database in %s", most.Cur>>10, h.Engine())
		}
	}
	d, err := durable.NewDraft(filepath.Join(h.Dir, "probe"), 0o600)
	if err == nil {
		_, err = d.WriteString("a quota may allow a file and nothing in it\n")
		d.Discard()
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		err = file.Err
	}
	if err != nil {
		return fmt.Sprintf("nothing can be written to %s: %v", h.Dir, err)
	}
	return ""
}
