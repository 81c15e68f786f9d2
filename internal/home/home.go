// Package home knows the places under $PAWL_HOME: engine, stores, loops, logs. It makes
// folders (mode 0700) and knows this host's random id; it knows nothing of what is kept there.
// Start at Open.
package home

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"pawl/internal/fault"
)

// Home is pawl's own folder on this host.
type Home struct{ Dir string }

// Open returns $PAWL_HOME, by default $XDG_STATE_HOME/pawl, else ~/.local/state/pawl, making
// it where it is missing. A relative $PAWL_HOME is taken from the current folder.
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
	return Home{dir}, nil
}

// Unusable is what keeps pawl from using its folder: PRECONDITION_FAILED where that is how the folder
// was chosen, an error of the machine where its disk is full or broken.
func Unusable(doing string, err error) error {
	for _, machine := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, machine) {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	return fault.New(fault.PreconditionFailed, "%s: %v", doing, err).Advise("Set PAWL_HOME to a folder that you can write.")
}

// Engine is where the embedded engine keeps its file and lock.
func (h Home) Engine() string { return filepath.Join(h.Dir, "engine") }

// Store is the bare repository for the repository named by key.
func (h Home) Store(key string) string { return filepath.Join(h.Dir, "stores", key+".git") }

// Loops is the folder of all loops.
func (h Home) Loops() string { return filepath.Join(h.Dir, "loops") }

// Loop is the folder of one loop: its workspace record, trees and step logs.
func (h Home) Loop(ref string) string { return filepath.Join(h.Loops(), ref) }

// WorkerLock is the lock of this host's one worker.
func (h Home) WorkerLock() string { return filepath.Join(h.Dir, "worker.lock") }

// Logs is where processes without a terminal write.
func (h Home) Logs() string { return filepath.Join(h.Dir, "logs") }

// HostID returns this host's random id, made once. Several processes may ask at the same time:
// the first to link its file wins.
func (h Home) HostID() (string, error) {
	path := filepath.Join(h.Dir, "host-id")
	for {
		b, err := os.ReadFile(path)
		if err == nil && len(strings.TrimSpace(string(b))) > 0 {
			return strings.TrimSpace(string(b)), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", Unusable("reading this host's id", err)
		}
		put := os.Link
		if err == nil { // it is empty: a power cut took what was in it
			put = os.Rename
		}
		random := make([]byte, 6)
		rand.Read(random)
		tmp := path + "." + hex.EncodeToString(random)
		err = write(tmp, hex.EncodeToString(random)+"\n")
		if err == nil {
			err = put(tmp, path)
		}
		os.Remove(tmp)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", Unusable("making this host's id", err)
		}
	}
}

// write writes a file that is on the disk when it returns.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
