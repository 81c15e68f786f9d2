// Package workspace is the record on disk of what a loop or a steward has on this host: which workflow
// it is, where its store and trees are. Recovery and commands that read without an engine start
// from these records. It keeps no state of the loop: that is in the ledger, from which a record
// that was torn by a power cut is made again. Start at Record.
package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/internal/durable"
	"pawl/internal/held"
	"pawl/internal/home"
	"pawl/internal/kind"
	"pawl/internal/spec"
)

// Record says what is where. It is written by Open and removed with the loop's folder.
type Record struct {
	Loop      string `json:"loop"`           // the workflow ID
	Kind      string `json:"kind,omitempty"` // of the workflow; "" is a loop of whichever kind
	Ref       string `json:"ref"`            // the loop's name in refs and folders, unique on this host
	FirstRun  string `json:"firstRun"`
	Namespace string `json:"namespace"`
	Repo      string `json:"repo"`             // the user's repository, its path or its URL
	Remote    bool   `json:"remote,omitempty"` // Repo is a URL
	Origin    string `json:"origin,omitempty"` // the URL that the trees show as origin, without credentials
	// Tree and Git are which folders the repository's working tree and its git directory were, where it is on
	// this host.
	Tree   home.Folder `json:"tree,omitzero"`
	Git    home.Folder `json:"git,omitzero"`
	Store  string      `json:"store"`
	Branch string      `json:"branch"`         // refs/heads/pawl/<ref>; "" of a steward, whose loops have them
	Ledger string      `json:"ledger"`         // refs/pawl-ledger/<ref>
	Onto   string      `json:"onto,omitempty"` // the branch that the loop started from, as people name it
	// Name and Email are the user's git identity, which commits carry.
	Name  string `json:"name"`
	Email string `json:"email"`
	// Setup and Keep are what the trees need again when they are made anew.
	Setup string   `json:"setup,omitempty"`
	Keep  []string `json:"keep,omitempty"`
	// Sandbox is what keeps what runs in them from the rest of the machine.
	Sandbox spec.Sandbox `json:"sandbox,omitzero"`
	// Memory, Processes and DeskBytes are the spec's limits of what runs at a time, 0 where it gives none.
	Memory    spec.Size `json:"memory,omitempty"`
	Processes int       `json:"processes,omitempty"`
	DeskBytes spec.Size `json:"deskBytes,omitempty"`
	Closed    bool      `json:"closed,omitempty"` // the loop is over and its trees are given up
	// ClosedAt is when that was. The workflow ends a moment later.
	ClosedAt time.Time `json:"closedAt,omitzero"`
	// Side is the desk of a candidate that this is the record of, in memory alone; 0 is the loop's own.
	Side int `json:"-"`
}

// CleanBranch is the ref beside a loop's branch that has the kept changes alone, "" where there is no branch.
func CleanBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return branch + "-clean"
}

// Steward reports whether it is a steward's.
func (r Record) Steward() bool { return r.Kind == kind.Steward.Name }

// Token marks the processes that run for a loop on this host, so that they can be found after a crash.
// The store makes it this host's: another one on the same machine may have the loop since.
func (r Record) Token() string {
	where := sha256.Sum256([]byte(r.Store))
	return r.Beside("pawl-" + r.FirstRun + "-" + hex.EncodeToString(where[:4]))
}

// Beside is the name of what a desk has of its own: that of the loop's, for a candidate's with its number.
func (r Record) Beside(name string) string {
	if r.Side == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, r.Side)
}

// Desk is the agent's tree, Judge the one that its work is judged in.
func Desk(h home.Home, ref string) string  { return filepath.Join(h.Loop(ref), "desk") }
func Judge(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "judge") }

// Admin is where pawl keeps a tree's index and notes, outside the tree.
func Admin(h home.Home, ref, tree string) string { return filepath.Join(h.Loop(ref), "admin", tree) }

// Exchange is where agents find their prompts and leave their results.
func Exchange(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "exchange") }

// Sides are the desks of candidates that a loop has on this host, by their numbers; none where that can't be read.
func (r Record) Sides(h home.Home) (sides []Record) {
	found, _ := os.ReadDir(held.At(h.Loop(r.Ref)))
	for _, e := range found {
		number, is := strings.CutPrefix(e.Name(), filepath.Base(Desk(h, r.Ref))+".")
		if n, err := strconv.Atoi(number); is && err == nil && n > 0 {
			side := r
			side.Side = n
			sides = append(sides, side)
		}
	}
	return sides
}

// Steps is the folder of the steps' logs and results.
func Steps(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "steps") }

// Heads is the file that says where ledger and branch stand.
func Heads(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "heads.json") }

func file(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "workspace.json") }

// Write stores the record: it survives a power cut.
func Write(h home.Home, r Record) error {
	if err := os.MkdirAll(held.At(h.Loop(r.Ref)), 0o700); err != nil {
		return fmt.Errorf("making the loop's folder: %w", err)
	}
	if err := durable.WriteJSON(file(h, r.Ref), r); err != nil {
		return fmt.Errorf("writing the workspace record: %w", err)
	}
	return nil
}

// Read returns the record of ref; fs.ErrNotExist where there is none, durable.ErrTorn where it is not
// to be read.
func Read(h home.Home, ref string) (r Record, err error) {
	if err := durable.ReadJSON(file(h, ref), &r); err != nil {
		return Record{}, fmt.Errorf("reading the workspace record of %s: %w", ref, err)
	}
	if r.Ref != ref || r.Loop == "" {
		return Record{}, fmt.Errorf("reading the workspace record of %s: %w", ref, durable.ErrTorn)
	}
	return r, nil
}

// List returns all records of this host, sorted by ref. It passes over folders without one, and over
// records that are torn, which Torn returns.
func List(h home.Home) ([]Record, error) {
	records, _, err := list(h)
	return records, err
}

// Torn returns the refs of the loops whose record is torn or gone. The worker makes them again when it starts.
func Torn(h home.Home) ([]string, error) {
	_, torn, err := list(h)
	return torn, err
}

func list(h home.Home) (records []Record, torn []string, err error) {
	entries, err := os.ReadDir(held.At(h.Loops())) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		switch r, err := Read(h, e.Name()); {
		case err == nil:
			records = append(records, r)
		case errors.Is(err, durable.ErrTorn), errors.Is(err, fs.ErrNotExist) && hasRecorded(h, e.Name()):
			torn = append(torn, e.Name())
		}
	}
	return records, torn, err
}

// hasRecorded reports whether a loop whose record is gone had one.
func hasRecorded(h home.Home, ref string) bool {
	_, err := os.Stat(held.At(Heads(h, ref)))
	return err == nil
}

// Noted returns where a loop's refs were when it recorded something last, by their names; nothing where that can't be read.
func Noted(h home.Home, ref string) map[string]string {
	var at map[string]string
	if durable.ReadJSON(Heads(h, ref), &at) != nil {
		return nil
	}
	return at
}

// Note takes that down, and reports whether what was noted before could not be read any more. It is wanted where a
// ref or the record is lost.
func Note(h home.Home, ref string, at map[string]string) (damaged bool) {
	var before map[string]string
	err := durable.ReadJSON(Heads(h, ref), &before)
	_ = durable.CacheJSON(Heads(h, ref), at)
	return errors.Is(err, durable.ErrTorn)
}

// Drop removes a record that is torn and can't be made again.
func Drop(h home.Home, ref string) error {
	for _, path := range []string{file(h, ref), Heads(h, ref)} {
		if err := os.Remove(held.At(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Latest returns the newest record of a loop ID: of name, name.2, name.3 … the last.
func Latest(h home.Home, loop string) (Record, bool) {
	records, err := List(h)
	if err != nil {
		return Record{}, false
	}
	records = slices.DeleteFunc(records, func(r Record) bool { return r.Loop != loop })
	if len(records) == 0 {
		return Record{}, false
	}
	return slices.MaxFunc(records, func(x, y Record) int {
		return cmp.Or(cmp.Compare(len(x.Ref), len(y.Ref)), cmp.Compare(x.Ref, y.Ref))
	}), true
}

// Announce says on disk that Open is at work on a loop that may have no record yet. A loop that is
// killed so early is found by it.
func Announce(h home.Home, r Record) error {
	err := os.MkdirAll(held.At(opening(h)), 0o700)
	if err == nil {
		err = durable.WriteJSON(announcement(h, r), r)
	}
	if err != nil {
		return fmt.Errorf("announcing the loop %s: %w", r.Loop, err)
	}
	return nil
}

// Retract takes an announcement back: Open is done, or will not be tried again.
func Retract(h home.Home, r Record) { _ = os.Remove(held.At(announcement(h, r))) }

// Announced returns what is announced and not retracted: loops whose Open was cut off. One that is torn
// has its FirstRun only, which is its file's name.
func Announced(h home.Home) ([]Record, error) {
	entries, err := os.ReadDir(held.At(opening(h)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Record
	for _, e := range entries {
		run, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(run, ".") { // a draft that a crash left
			continue
		}
		var r Record
		switch err := durable.ReadJSON(filepath.Join(opening(h), e.Name()), &r); {
		case err == nil:
			out = append(out, r)
		case errors.Is(err, durable.ErrTorn):
			out = append(out, Record{FirstRun: run})
		}
	}
	return out, err
}

func opening(h home.Home) string { return filepath.Join(h.Dir, "opening") }

func announcement(h home.Home, r Record) string { return filepath.Join(opening(h), r.FirstRun+".json") }
