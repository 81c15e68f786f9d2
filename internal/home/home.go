// Package home knows the places under $PAWL_HOME: engine, stores, loops, logs. It makes
// folders (mode 0700) and knows this host's random id; it knows nothing of what is kept there.
// Start at Open.
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

	"pawl/internal/durable"
	"pawl/internal/fault"
	"pawl/internal/held"
)

// Home is pawl's own folder on this host.
type Home struct{ Dir string }

// Open returns $PAWL_HOME, by default $XDG_STATE_HOME/pawl, else ~/.local/state/pawl, making
// it where it is missing. A relative $PAWL_HOME is taken from the current folder. From then on this process holds the
// folder: what is written there by package durable, and what git does there, is done in it, whatever is renamed above it.
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
	if err := held.Keep(dir); err != nil {
		return Home{}, Unusable("opening PAWL_HOME", err)
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

// WorkerEnvironment is the file with what of its environment this host's worker gives to loops.
func (h Home) WorkerEnvironment() string { return filepath.Join(h.Dir, "worker-environment.json") }

// JudgeSlot is the lock of whichever loop of this host measures: they don't disturb each other.
func (h Home) JudgeSlot() string { return filepath.Join(h.Dir, "judge.lock") }

// Logs is where processes without a terminal write.
func (h Home) Logs() string { return filepath.Join(h.Dir, "logs") }

// HostID returns this host's random id, made once. Several processes may ask at the same time: the
// first to put its file there wins. A file that a power cut has emptied or filled with zeroes is
// replaced; what was known under the old id is then another host's.
func (h Home) HostID() (string, error) {
	path := filepath.Join(h.Dir, "host-id")
	for {
		b, err := os.ReadFile(held.At(path))
		if id := strings.TrimSpace(string(b)); hostID.MatchString(id) {
			return id, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", Unusable("reading this host's id", err)
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
