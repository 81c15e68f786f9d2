// Package workspace is the record on disk of what a loop has on this host: which workflow it
// is, where its store and trees are. Recovery and commands that read without an engine start
// from these records. It keeps no state of the loop: that is in the ledger. Start at Record.
package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"pawl/internal/home"
	"pawl/internal/spec"
)

// Record says what is where. It is written by Open and removed with the loop's folder.
type Record struct {
	Loop      string `json:"loop"` // the workflow ID
	Ref       string `json:"ref"`  // the loop's name in refs and folders, unique on this host
	FirstRun  string `json:"firstRun"`
	Namespace string `json:"namespace"`
	Repo      string `json:"repo"`             // the user's repository, its path or its URL
	Remote    bool   `json:"remote,omitempty"` // Repo is a URL
	Store     string `json:"store"`
	Branch    string `json:"branch"`         // refs/heads/pawl/<ref>
	Ledger    string `json:"ledger"`         // refs/pawl-ledger/<ref>
	Onto      string `json:"onto,omitempty"` // the branch that the loop started from, as people name it
	// Name and Email are the user's git identity, which commits carry.
	Name  string `json:"name"`
	Email string `json:"email"`
	// Setup and Keep are what the trees need again when they are made anew.
	Setup string   `json:"setup,omitempty"`
	Keep  []string `json:"keep,omitempty"`
	// Sandbox is what keeps what runs in them from the rest of the machine.
	Sandbox spec.Sandbox `json:"sandbox,omitzero"`
	Closed  bool         `json:"closed,omitempty"` // the loop is over and its trees are given up
	// ClosedAt is when that was. The workflow ends a moment later.
	ClosedAt time.Time `json:"closedAt,omitzero"`
}

// Token marks the processes that run for a loop on this host, so that they can be found after a crash.
// The store makes it this host's: another one on the same machine may have the loop since.
func (r Record) Token() string {
	where := sha256.Sum256([]byte(r.Store))
	return "pawl-" + r.FirstRun + "-" + hex.EncodeToString(where[:4])
}

// Desk is the agent's tree, Judge the one that its work is judged in.
func Desk(h home.Home, ref string) string  { return filepath.Join(h.Loop(ref), "desk") }
func Judge(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "judge") }

// Admin is where pawl keeps a tree's index and notes, outside the tree.
func Admin(h home.Home, ref, tree string) string { return filepath.Join(h.Loop(ref), "admin", tree) }

// Exchange is where agents find their prompts and leave their results.
func Exchange(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "exchange") }

// Steps is the folder of the steps' logs and results.
func Steps(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "steps") }

func file(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "workspace.json") }

// Write stores the record, atomically.
func Write(h home.Home, r Record) error {
	if err := os.MkdirAll(h.Loop(r.Ref), 0o700); err != nil {
		return fmt.Errorf("making the loop's folder: %w", err)
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := file(h, r.Ref) + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the workspace record: %w", err)
	}
	return os.Rename(tmp, file(h, r.Ref))
}

// Read returns the record of ref; fs.ErrNotExist where there is none.
func Read(h home.Home, ref string) (Record, error) {
	b, err := os.ReadFile(file(h, ref))
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("reading the workspace record of %s: %w", ref, err)
	}
	return r, nil
}

// List returns all records of this host, sorted by ref. Folders without one are passed over.
func List(h home.Home) ([]Record, error) {
	entries, err := os.ReadDir(h.Loops())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, e := range entries {
		if r, err := Read(h, e.Name()); err == nil {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Ref < out[j].Ref })
	return out, nil
}

// Announce says on disk that Open is at work on a loop that may have no record yet. A loop that is
// killed so early is found by it.
func Announce(h home.Home, r Record) error {
	if err := os.MkdirAll(opening(h), 0o700); err != nil {
		return fmt.Errorf("announcing the loop %s: %w", r.Loop, err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := announcement(h, r) + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("announcing the loop %s: %w", r.Loop, err)
	}
	return os.Rename(tmp, announcement(h, r))
}

// Retract takes an announcement back: Open is done, or will not be tried again.
func Retract(h home.Home, r Record) { _ = os.Remove(announcement(h, r)) }

// Announced returns what is announced and not retracted: loops whose Open was cut off.
func Announced(h home.Home) ([]Record, error) {
	names, err := fs.Glob(os.DirFS(opening(h)), "*.json") // and not filepath.Glob: $PAWL_HOME may have a bracket in it
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, name := range names {
		var r Record
		if b, err := os.ReadFile(filepath.Join(opening(h), name)); err == nil && json.Unmarshal(b, &r) == nil {
			out = append(out, r)
		}
	}
	return out, nil
}

func opening(h home.Home) string { return filepath.Join(h.Dir, "opening") }

func announcement(h home.Home, r Record) string { return filepath.Join(opening(h), r.FirstRun+".json") }

// Latest returns the newest record of a loop ID: of name, name.2, name.3 … the last.
func Latest(h home.Home, loop string) (Record, bool) {
	records, err := List(h)
	if err != nil {
		return Record{}, false
	}
	var best Record
	for _, r := range records {
		if r.Loop == loop && (best.Ref == "" || len(r.Ref) > len(best.Ref) || (len(r.Ref) == len(best.Ref) && r.Ref > best.Ref)) {
			best = r
		}
	}
	return best, best.Ref != ""
}
