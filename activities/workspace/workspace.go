package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/worktree"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/remove"
)

// Workspace is what this host has of a loop or a steward. Everything can be made again from the workspace record.
type Workspace struct {
	hostrecord.Record
	Machine     *Machine
	Objects     *store.Store
	Book        *ledger.Ledger  // the ledger of a loop
	StewardBook *ledger.Steward // the ledger of a steward
	Desk        *Tree
	Judge       *Tree

	main     *Workspace         // of a workspace beside the loop's own: that one
	sides    map[int]*Workspace // the workspaces beside it, by the numbers of their desks; under mu
	planning chan struct{}      // has room for one: the planner on a steward's desk
	pushes   pushes
	locks    atomic.Pointer[locked] // the lockfiles of the last requested commit

	mu         sync.Mutex
	supervisor *supervisor.Supervisor
	caches     caches
	repeats    []string  // repeated setups that are not reported yet
	same       [2]string // two commits with the same tree: a revert, and the commit to which it went back
	Env        []string  // the environment that commands inherit, once it is known
	turn       int       // counts what ran in the trees
}

// Workspace returns the workspace of the loop named ref.
func (a *Workspaces) Workspace(ctx context.Context, ref string) (*Workspace, error) {
	if err := a.Home.InPlace(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ws := a.workspaces[ref]; ws != nil {
		return ws, nil
	}
	record, err := hostrecord.Read(a.Home, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Refuse(fault.New(fault.PreconditionFailed, "this host has no workspace for the loop %s any more", ref).
			Advise("Start the loop again from its ledger."))
	}
	if err != nil {
		return nil, err
	}
	ws, err := a.OpenWorkspace(ctx, record)
	if err != nil {
		return nil, err
	}
	a.workspaces[ref] = ws
	return ws, nil
}

// OpenWorkspace opens the workspace of a record. It becomes the workspace of the loop on this host only by Keep.
func (m *Machine) OpenWorkspace(ctx context.Context, r hostrecord.Record) (*Workspace, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	ws := &Workspace{
		Record: r, Machine: m, caches: caches{epoch: strconv.FormatInt(time.Now().UnixNano(), 36)}, Objects: store, Book: ledger.Open(store), StewardBook: ledger.OpenSteward(store),
		sides: map[int]*Workspace{}, planning: make(chan struct{}, 1),
	}
	ws.Desk = ws.tree(r.Desk(m.Home), r.Beside(hostrecord.DeskName))
	ws.Judge = ws.tree(r.Judge(m.Home), hostrecord.JudgeName)
	return ws, nil
}

// tree returns one of the loop's trees, which has its own folder. name is what people call it.
func (ws *Workspace) tree(dir, name string) *Tree {
	admin := hostrecord.Admin(ws.Machine.Home, ws.Ref, name)
	t := worktree.At(ws.Objects, dir, admin, cmp.Or(git.BranchName(ws.Branch), ws.Onto))
	t.Origin, t.Onto, t.Base = ws.Origin, ws.Onto, "refs/pawl/base/"+ws.Ref
	return &Tree{Tree: t, Name: name}
}

// At returns the workspace of a desk. Each desk beside the loop's own has its own supervisor, exchange and layers over
// caches, with the same store and ledger. Its workspace appends nothing; Main does.
func (ws *Workspace) At(desk int) *Workspace {
	if desk == 0 {
		return ws
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if side := ws.sides[desk]; side != nil {
		return side
	}
	side := &Workspace{main: ws, Record: ws.Record, Machine: ws.Machine, caches: caches{epoch: ws.caches.epoch}, Objects: ws.Objects, Book: ws.Book, StewardBook: ws.StewardBook}
	side.Side = desk
	side.Desk = side.tree(side.Record.Desk(ws.Machine.Home), side.Beside(hostrecord.DeskName))
	side.Judge = ws.tree(ws.Judge.Dir, ws.Judge.Name) // nothing of the candidate runs there
	ws.sides[desk] = side
	return side
}

// Planning waits until no other planner is on a steward's desk. The caller calls done when its planner has left. An error
// says that ctx has ended.
func (ws *Workspace) Planning(ctx context.Context) (done func(), err error) {
	select {
	case ws.planning <- struct{}{}:
		return func() { <-ws.planning }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Main returns the loop's own workspace, which appends to the ledger.
func (ws *Workspace) Main() *Workspace { return cmp.Or(ws.main, ws) }

// Exchange returns the folder in which agents on the desk find their prompts and leave their results.
func (ws *Workspace) Exchange() string {
	return ws.Beside(hostrecord.Exchange(ws.Machine.Home, ws.Ref))
}

// StoreOf returns the folder of a repository's store on this host.
func (m *Machine) StoreOf(address string) string {
	key := sha256.Sum256([]byte(address))
	return m.Home.Store(hex.EncodeToString(key[:8]))
}

// FindRecord returns the workspace record of a loop on this host, by its ID or, for an earlier loop, its name in refs.
func (m *Machine) FindRecord(id string) (hostrecord.Record, bool) {
	if r, ok := hostrecord.Latest(m.Home, id); ok {
		return r, true
	}
	r, err := hostrecord.Read(m.Home, git.RefName(id))
	return r, err == nil
}

// NoRecord returns why FindRecord finds nothing: the record is damaged, or this host has no such loop.
func (m *Machine) NoRecord(id string) error {
	if torn, err := hostrecord.Torn(m.Home); err == nil && slices.Contains(torn, git.RefName(id)) {
		return fault.New(fault.LedgerDamaged, "the workspace record of %s is damaged", id).Advise("`pawl up` makes it again from the ledger.")
	}
	return fault.New(fault.LoopNotFound, "this host has no loop %s", id)
}

// Author returns the identity under which the loop commits.
func (ws *Workspace) Author() git.Identity { return git.Identity{Name: ws.Name, Email: ws.Email} }

// LoopStop returns which loop-stop file asks the loop to end, "" for none. Such a file counts where no agent can write:
// in the loop's folder, and at the root of the user's repository, if that is still the same.
func (ws *Workspace) LoopStop() string {
	ours := ws.Machine.Home.Loop(ws.Ref)
	folders := map[string]string{ours: dirfd.At(ours)}
	if ws.Local() != "" {
		if f, err := ws.Hold(); err == nil {
			defer f.Close()
			folders[f.Path] = f.Here()
		}
	}
	for name, folder := range folders {
		if _, err := os.Lstat(filepath.Join(folder, "loop-stop")); err == nil {
			return "the file " + filepath.Join(name, "loop-stop") + " asks the loop to stop"
		}
	}
	return ""
}

// Supervise returns the loop's supervisor. If it has to start one, it first ends what an earlier one has left.
func (ws *Workspace) Supervise() (*supervisor.Supervisor, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.supervisor != nil {
		return ws.supervisor, nil
	}
	s, err := supervisor.Start(ws.Token(), ws.means())
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	ws.supervisor = s
	return s, nil
}

// EndProcesses ends the loop's processes, because the loop waits or is over.
func (ws *Workspace) EndProcesses() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, side := range ws.sides {
		side.EndProcesses()
	}
	if ws.supervisor != nil {
		ws.supervisor.Close()
		ws.supervisor = nil
	}
}

// CloseTrees removes the trees of a loop that is over. Logs, store and ledger stay.
func (a *Workspaces) CloseTrees(ctx context.Context, ws *Workspace) error {
	if err := ws.Park(ctx); err != nil {
		return err
	}
	if err := ws.forget(); err != nil {
		return err
	}
	r := ws.Record // others may be reading that
	r.Closed, r.ClosedAt = true, time.Now()
	ws.mu.Lock()
	r.Unpushed = ws.pushes.untaken.why != ""
	ws.mu.Unlock()
	a.mu.Lock()
	delete(a.workspaces, ws.Ref)
	a.mu.Unlock()
	return hostrecord.Write(a.Home, r)
}

// GiveUp removes a desk beside the loop's own, with what its commands left around it.
func (ws *Workspace) GiveUp(ctx context.Context) error {
	ws.EndProcesses()
	ws.Leave(ws.Desk)
	if err := ws.forget(); err != nil {
		return err
	}
	return ws.removeTree(ctx, ws.Desk)
}

// forget removes what lies beside a desk that was given up.
func (ws *Workspace) forget() error {
	// The changes of a call on the desk are gone, so a run that continues the loop makes the call again.
	for _, path := range []string{ws.Exchange(), ws.layers(""), ws.CallFile()} {
		if err := remove.All(path); err != nil {
			return err
		}
	}
	return nil
}

// CallFile returns the file that names the last call on the desk.
func (ws *Workspace) CallFile() string {
	return ws.Beside(filepath.Join(ws.Machine.Home.Loop(ws.Ref), "call"))
}

// IsMended records that something of a loop was damaged, and what was done about it.
func (ws *Workspace) IsMended(text string, err error) {
	ws.Machine.Logger.Warn(text, "loop", ws.Loop, "error", err)
	repairlog.Note(ws.Machine.Home.Loop(ws.Ref), text)
}

// Workplace returns the folder in which a command of the user's own runs: the repository, if it is on this host and still
// the one with which the loop began, else $PAWL_HOME. The caller calls release once the command has ended.
func (m *Machine) Workplace(ref string) (dir string, release func()) {
	if r, err := hostrecord.Read(m.Home, ref); ref != "" && err == nil && !r.Remote {
		if f, err := r.Hold(); err == nil {
			return f.Here(), func() { f.Close() }
		}
	}
	return dirfd.At(m.Home.Dir), func() {}
}

// RecordOf returns the record of a loop, from this worker or from disk.
func (a *Workspaces) RecordOf(ref string) (hostrecord.Record, bool) {
	if ws := a.Here(ref); ws != nil {
		return ws.Record, true
	}
	r, err := hostrecord.Read(a.Home, ref)
	return r, err == nil
}
