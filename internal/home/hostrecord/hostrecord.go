// Package hostrecord is the record on disk of what a loop or a steward has on this host: its workflow, its store and
// its trees. Recovery and commands that read without an engine start from these records. A record has no state of the
// loop: the state is in the ledger. If a power cut tears a record, it is made again from the ledger. Start at Record.
package hostrecord

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

	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/text/excerpt"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Record says where everything of a loop is. Open writes it, and it is removed with the loop's folder.
type Record struct {
	Loop      string `json:"loop"`           // the workflow ID
	Kind      string `json:"kind,omitempty"` // of the workflow; "" is a loop of any kind
	Ref       string `json:"ref"`            // the loop's name in refs and folders, unique on this host
	FirstRun  string `json:"firstRun"`
	Namespace string `json:"namespace"`
	Repo      string `json:"repo"`             // the user's repository, its path or its URL
	Remote    bool   `json:"remote,omitempty"` // Repo is a URL
	Origin    string `json:"origin,omitempty"` // the URL that the trees show as origin, without credentials
	// Tree and Git identify the folders of the repository's working tree and git directory, if it is on this host.
	Tree   home.Folder `json:"tree,omitzero"`
	Git    home.Folder `json:"git,omitzero"`
	Store  string      `json:"store"`
	Branch string      `json:"branch"`         // refs/heads/pawl/<ref>; "" for a steward, whose loops have branches
	Ledger string      `json:"ledger"`         // refs/pawl-ledger/<ref>
	Onto   string      `json:"onto,omitempty"` // the branch from which the loop started, as people name it
	// Short names the loop's trees, which are below $PAWL_HOME/trees: unlike the loop's own name it is short, since
	// programs bind sockets below their folder. It is "" for a loop that began with its trees in the loop's folder.
	Short string `json:"short,omitempty"`
	// Name and Email are the user's git identity, for commits.
	Name  string `json:"name"`
	Email string `json:"email"`
	// Setup and Keep are needed when the trees are made again.
	Setup string   `json:"setup,omitempty"`
	Keep  []string `json:"keep,omitempty"`
	// Sandbox says how the commands in the trees are kept apart from the rest of the machine.
	Sandbox spec.Sandbox `json:"sandbox,omitzero"`
	// Memory, Processes and DeskBytes are the spec's limits for what runs at one time, 0 for none.
	Memory    spec.Size `json:"memory,omitempty"`
	Processes int       `json:"processes,omitempty"`
	DeskBytes spec.Size `json:"deskBytes,omitempty"`
	Closed    bool      `json:"closed,omitempty"` // the loop is over and its trees are removed
	// OpenedAt is when a run last opened the loop on this host, anew or from its ledger. Of the records with one workflow
	// ID, the one opened last belongs to the run that Temporal has.
	OpenedAt time.Time `json:"openedAt,omitzero"`
	// ClosedAt is when the loop was closed. The workflow ends a moment later.
	ClosedAt time.Time `json:"closedAt,omitzero"`
	// Unpushed says that the repository did not take the last push of a loop that is over.
	Unpushed bool `json:"unpushed,omitempty"`
	// Side is the number of the desk that this record describes: 0 is the loop's own, Review a reviewer's, any other one a
	// candidate's. It is never on disk.
	Side int `json:"-"`
}

// Demand records what a spec demands of the trees and of the commands in them.
func (r *Record) Demand(s spec.Spec) {
	r.Remote, r.Setup, r.Keep, r.Sandbox = s.Repo.Remote(), s.Setup.Command, s.Judge.Keep, s.Sandbox
	r.Memory = *cmp.Or(s.Limits.Memory, new(spec.Size))
	r.Processes = *cmp.Or(s.Limits.Processes, new(int))
	r.DeskBytes = *cmp.Or(s.Limits.DeskBytes, new(spec.Size))
}

// CleanBranch returns the ref beside a loop's branch that has only the kept changes, "" if there is no branch.
func CleanBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return branch + "-clean"
}

// Steward reports whether the record is a steward's.
func (r Record) Steward() bool { return r.Kind == kind.Steward.Name }

// Resuming returns the command that starts the loop or steward again from its ledger, without the ledger's commit.
func (r Record) Resuming() string {
	if r.Steward() {
		return "pawl steward up --ledger"
	}
	return "pawl start --id " + r.Loop + " --ledger"
}

// Token returns the mark of the processes that run for a loop on this host, by which they can be found after a crash.
// It contains a hash of the store's path, because another pawl on the same machine may have the loop since.
func (r Record) Token() string {
	where := sha256.Sum256([]byte(r.Store))
	return r.Beside("pawl-" + r.FirstRun + "-" + hex.EncodeToString(where[:4]))
}

// Review is the number of the desk on which a reviewer works. There are never as many candidates.
const Review = 1000

// Beside returns the name of something that each desk has: name for the loop's own desk, name with the number for
// another one.
func (r Record) Beside(name string) string {
	if r.Side == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, r.Side)
}

// The names of a loop's trees: of their links in the loop's folder, and of their folders in an earlier loop.
const (
	DeskName  = "desk"
	JudgeName = "judge"
)

// ShortLength is the number of hexadecimal digits of a short name.
const ShortLength = 18

// ShortName returns the short name of a loop's trees. It is unique on this machine, even among several $PAWL_HOME,
// because programs name what they share with others by the folder that they run in.
func ShortName(h home.Home, ref string) string {
	sum := sha256.Sum256([]byte(h.Dir + "\x00" + ref))
	return hex.EncodeToString(sum[:])[:ShortLength]
}

// Desk returns the agent's tree: that of the record's side.
func (r Record) Desk(h home.Home) string { return r.Beside(r.tree(h, DeskName)) }

// Judge returns the tree in which the agent's work is judged.
func (r Record) Judge(h home.Home) string { return r.tree(h, JudgeName) }

func (r Record) tree(h home.Home, name string) string {
	if r.Short == "" {
		return filepath.Join(h.Loop(r.Ref), name)
	}
	return filepath.Join(h.Trees(), name[:1]+"-"+r.Short)
}

// Admin returns the folder with a tree's index and notes, which is outside the tree.
func Admin(h home.Home, ref, tree string) string { return filepath.Join(h.Loop(ref), "admin", tree) }

// Exchange returns the folder where agents find their prompts and leave their results.
func Exchange(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "exchange") }

// Sides returns the records of the desks beside its own that a loop has on this host, none if the folder can't be read.
func (r Record) Sides(h home.Home) (sides []Record) {
	own := r
	own.Side = 0
	desk := own.Desk(h)
	found, _ := os.ReadDir(dirfd.At(filepath.Dir(desk)))
	for _, e := range found {
		number, is := strings.CutPrefix(e.Name(), filepath.Base(desk)+".")
		if n, err := strconv.Atoi(number); is && err == nil && n > 0 {
			side := r
			side.Side = n
			sides = append(sides, side)
		}
	}
	return sides
}

// Steps returns the folder of the steps' logs and results.
func Steps(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "steps") }

// Heads returns the file with the positions of ledger and branch.
func Heads(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "heads.json") }

// Pushed returns the commit of a steward's ledger that was last pushed to the repository, "" if that is not known.
func Pushed(h home.Home, ref string) (commit string) {
	if durable.ReadJSON(pushedFile(h, ref), &commit) != nil {
		return ""
	}
	return commit
}

// NotePushed notes which commit of a steward's ledger was pushed.
func NotePushed(h home.Home, ref, commit string) error {
	if Pushed(h, ref) == commit {
		return nil
	}
	return durable.WriteJSON(pushedFile(h, ref), commit)
}

func pushedFile(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "pushed.json") }

// NoteDiff keeps the beginning of a diff that a person is asked about, in place of the one before.
func NoteDiff(h home.Home, ref string, e excerpt.Excerpt) error {
	if err := os.MkdirAll(dirfd.At(Steps(h, ref)), 0o700); err != nil {
		return fmt.Errorf("making the folder of the logs: %w", err)
	}
	return durable.CacheJSON(diffFile(h, ref), e)
}

// Diff returns the beginning of the diff with a hash, if this host has kept it.
func Diff(h home.Home, ref, hash string) (e excerpt.Excerpt, ok bool) {
	err := durable.ReadJSON(diffFile(h, ref), &e)
	return e, err == nil && e.Hash == hash
}

func diffFile(h home.Home, ref string) string { return filepath.Join(Steps(h, ref), "gate-diff.json") }

func file(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "workspace.json") }

// Write stores the record so that it survives a power cut.
func Write(h home.Home, r Record) error {
	if err := os.MkdirAll(dirfd.At(h.Loop(r.Ref)), 0o700); err != nil {
		return fmt.Errorf("making the loop's folder: %w", err)
	}
	if err := durable.WriteJSON(file(h, r.Ref), r); err != nil {
		return fmt.Errorf("writing the workspace record: %w", err)
	}
	if err := durable.Reserve(reserve(h, r.Ref), reserveSize); err != nil {
		return fmt.Errorf("reserving room for the note of an end: %w", err)
	}
	return nil
}

// Read returns the record of ref. The error is fs.ErrNotExist if there is none, and durable.ErrTorn if it can't be
// read.
func Read(h home.Home, ref string) (r Record, err error) {
	if err := durable.ReadJSON(file(h, ref), &r); err != nil {
		return Record{}, fmt.Errorf("reading the workspace record of %s: %w", ref, err)
	}
	if r.Ref != ref || r.Loop == "" {
		return Record{}, fmt.Errorf("reading the workspace record of %s: %w", ref, durable.ErrTorn)
	}
	return r, nil
}

// List returns all records of this host, sorted by ref. It skips folders without a record, and torn records, which
// Torn returns.
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
	entries, err := os.ReadDir(dirfd.At(h.Loops())) // sorted
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

// hasRecorded reports whether a loop without a record once had one.
func hasRecorded(h home.Home, ref string) bool {
	_, err := os.Stat(dirfd.At(Heads(h, ref)))
	return err == nil
}

// Noted returns the positions of a loop's refs at its last append, by the refs' names; nil if they can't be read.
func Noted(h home.Home, ref string) map[string]string {
	var at map[string]string
	if durable.ReadJSON(Heads(h, ref), &at) != nil {
		return nil
	}
	return at
}

// Lost returns the fault LEDGER_DAMAGED for a record whose ledger is not in its store, nil if nothing was ever recorded.
func Lost(h home.Home, r Record) error {
	if Noted(h, r.Ref)[r.Ledger] == "" {
		return nil
	}
	return fault.New(fault.LedgerDamaged, "%s is missing from the store %s", r.Ledger, r.Store).
		Advise("A worker that starts (`pawl up`) mends the store from the repository, if that still has the ledger.")
}

// Note records these positions, and reports whether the earlier ones could not be read. They are needed if a ref or
// the record is lost.
func Note(h home.Home, ref string, at map[string]string) (damaged bool) {
	var before map[string]string
	err := durable.ReadJSON(Heads(h, ref), &before)
	_ = durable.CacheJSON(Heads(h, ref), at)
	return errors.Is(err, durable.ErrTorn)
}

// Drop removes a torn record that can't be made again.
func Drop(h home.Home, ref string) error {
	return errors.Join(os.RemoveAll(dirfd.At(file(h, ref))), os.RemoveAll(dirfd.At(Heads(h, ref))))
}

// Of returns the records of a loop ID, which are called name, name.2, name.3 and so on. The one that was opened last is
// the first.
func Of(h home.Home, loop string) ([]Record, error) {
	records, err := List(h)
	records = slices.DeleteFunc(records, func(r Record) bool { return r.Loop != loop })
	slices.SortFunc(records, func(x, y Record) int {
		return cmp.Or(y.OpenedAt.Compare(x.OpenedAt), cmp.Compare(len(y.Ref), len(x.Ref)), cmp.Compare(y.Ref, x.Ref))
	})
	return records, err
}

// Latest returns the record of a loop ID that was opened last: usually the newest one, but a run may continue from the
// ledger of an earlier one.
func Latest(h home.Home, loop string) (Record, bool) {
	records, err := Of(h, loop)
	if err != nil || len(records) == 0 {
		return Record{}, false
	}
	return records[0], true
}

// Announce records on disk that Open is at work on a loop that may have no record yet. After a kill pawl finds such a
// loop by the announcement.
func Announce(h home.Home, r Record) error {
	err := os.MkdirAll(dirfd.At(opening(h)), 0o700)
	if err == nil {
		err = durable.WriteJSON(announcement(h, r), r)
	}
	if err != nil {
		return fmt.Errorf("announcing the loop %s: %w", r.Loop, err)
	}
	return nil
}

// Retract removes an announcement: Open is done, or will not be tried again.
func Retract(h home.Home, r Record) { _ = os.Remove(dirfd.At(announcement(h, r))) }

// RetractOpened removes an announcement after Open, unless a person has halted what was being opened meanwhile.
func RetractOpened(h home.Home, r Record) {
	var noted Record
	if durable.ReadJSON(announcement(h, r), &noted) == nil && noted.Closed {
		return
	}
	Retract(h, r)
}

// Announced returns the announcements that nobody retracted: loops whose Open was interrupted. A torn one has only
// its FirstRun, from the name of its file.
func Announced(h home.Home) ([]Record, error) {
	entries, err := os.ReadDir(dirfd.At(opening(h)))
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
