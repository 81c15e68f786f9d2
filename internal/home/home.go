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
				return Home{}, fmt.Errorf("finding a place for pawl's files: %w; set PAWL_HOME", err)
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
		return Home{}, fmt.Errorf("making pawl's folder: %w; set PAWL_HOME to a folder you can write", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Home{}, fmt.Errorf("resolving PAWL_HOME: %w", err)
	}
	return Home{dir}, nil
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
			return "", fmt.Errorf("reading this host's id: %w", err)
		}
		random := make([]byte, 6)
		rand.Read(random)
		tmp := path + "." + hex.EncodeToString(random)
		if err := os.WriteFile(tmp, []byte(hex.EncodeToString(random)+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("making this host's id: %w", err)
		}
		err = os.Link(tmp, path)
		os.Remove(tmp)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("making this host's id: %w", err)
		}
	}
}
