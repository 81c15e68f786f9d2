package activities

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
	"strconv"
	"sync"
	"time"

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/ledger"
	"pawl/internal/mending"
	"pawl/internal/proc"
	"pawl/internal/remove"
	"pawl/internal/store"
	"pawl/internal/trees"
	"pawl/internal/workspace"
)

// loopWorkspace is what this host has of a loop, or of a steward. All of it can be made again from the
// workspace record.
type loopWorkspace struct {
	workspace.Record
	machine *machine
	store   *store.Store
	ledger  *ledger.Ledger  // of a loop
	steward *ledger.Steward // of a steward
	desk    *tree
	judge   *tree

	sides    map[int]*loopWorkspace // what candidates have of it, by the numbers of their desks; under mu
	planning sync.Mutex             // the desk of a steward is one
	pushes   pushes

	mu         sync.Mutex
	supervisor *proc.Supervisor
	caches     caches
	locks      locked    // the lockfiles of the last commit that was asked for
	repeats    []string  // setups that ran again, and nobody has been told
	same       [2]string // two commits with one tree: a revert, and what it went back to
	env        []string  // what commands inherit, once it is known
	turn       int       // counts what has run in the trees
}

// workspace returns the workspace of the loop named ref.
func (a *Workspaces) workspace(ctx context.Context, ref string) (*loopWorkspace, error) {
	if err := a.Home.InPlace(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ws := a.workspaces[ref]; ws != nil {
		return ws, nil
	}
	record, err := workspace.Read(a.Home, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(fault.New(fault.PreconditionFailed, "this host has no workspace for the loop %s any more", ref).
			Advise("Start the loop again from its ledger."))
	}
	if err != nil {
		return nil, err
	}
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return nil, err
	}
	a.workspaces[ref] = ws
	return ws, nil
}

func (m *machine) openWorkspace(ctx context.Context, r workspace.Record) (*loopWorkspace, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	ws := &loopWorkspace{
		Record: r, machine: m, caches: caches{epoch: strconv.FormatInt(time.Now().UnixNano(), 36)}, store: store, ledger: ledger.Open(store), steward: ledger.OpenSteward(store),
		sides: map[int]*loopWorkspace{},
	}
	ws.desk, ws.judge = ws.tree(r.Beside(workspace.Desk(m.Home, r.Ref))), ws.tree(workspace.Judge(m.Home, r.Ref))
	return ws, nil
}

// tree is one of the loop's trees, in a folder of its own.
func (ws *loopWorkspace) tree(dir string) *tree {
	admin := workspace.Admin(ws.machine.Home, ws.Ref, filepath.Base(dir))
	t := trees.At(ws.store, dir, admin, cmp.Or(git.BranchName(ws.Branch), ws.Onto))
	t.Origin = ws.Origin
	return &tree{Tree: t}
}

// at is the workspace of a desk: of a candidate's one with a supervisor, an exchange and layers over caches of its own,
// over the same store and ledger. It appends nothing.
func (ws *loopWorkspace) at(desk int) *loopWorkspace {
	if desk == 0 {
		return ws
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if side := ws.sides[desk]; side != nil {
		return side
	}
	side := &loopWorkspace{Record: ws.Record, machine: ws.machine, caches: caches{epoch: ws.caches.epoch}, store: ws.store, ledger: ws.ledger, steward: ws.steward}
	side.Side = desk
	side.desk = side.tree(side.Beside(ws.desk.Dir))
	side.judge = ws.tree(ws.judge.Dir) // which nothing of it runs in
	ws.sides[desk] = side
	return side
}

// besides are the workspaces of the candidates' desks that are on this host.
func (ws *loopWorkspace) besides() (all []*loopWorkspace) {
	for _, r := range ws.Sides(ws.machine.Home) {
		all = append(all, ws.at(r.Side))
	}
	return all
}

// exchange is the folder in which the agents on the desk find their prompts and leave their results.
func (ws *loopWorkspace) exchange() string {
	return ws.Beside(workspace.Exchange(ws.machine.Home, ws.Ref))
}

// storeOf is where a repository's objects are kept on this host.
func (m *machine) storeOf(address string) string {
	key := sha256.Sum256([]byte(address))
	return m.Home.Store(hex.EncodeToString(key[:8]))
}

// record is the workspace record of a loop on this host, by its ID or, of an earlier loop of that
// ID, by its name in refs.
func (m *machine) record(id string) (workspace.Record, bool) {
	if r, ok := workspace.Latest(m.Home, id); ok {
		return r, true
	}
	r, err := workspace.Read(m.Home, git.RefName(id))
	return r, err == nil
}

func (ws *loopWorkspace) author() git.Identity { return git.Identity{Name: ws.Name, Email: ws.Email} }

// loopStop says where a loop-stop file asks the loop to end, "" where there is none. It counts where no agent
// can write: at the root of the user's repository, and in the loop's folder under $PAWL_HOME.
func (ws *loopWorkspace) loopStop() string {
	for _, dir := range []string{ws.Local(), ws.machine.Home.Loop(ws.Ref)} {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, "loop-stop")
		if _, err := os.Lstat(held.At(path)); err == nil {
			return "the file " + path + " asks the loop to stop"
		}
	}
	return ""
}

// supervise returns the loop's supervisor, starting one where there is none. What an earlier
// one may have left is ended first.
func (ws *loopWorkspace) supervise() (*proc.Supervisor, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.supervisor != nil {
		return ws.supervisor, nil
	}
	s, err := proc.Start(ws.Token(), ws.means())
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	ws.supervisor = s
	return s, nil
}

// endProcesses gives up the loop's processes: the loop waits, or is over.
func (ws *loopWorkspace) endProcesses() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, side := range ws.sides {
		side.endProcesses()
	}
	if ws.supervisor != nil {
		ws.supervisor.Close()
		ws.supervisor = nil
	}
}

// removeTrees gives up the trees of a loop that is over. Logs, store and ledger stay.
func (a *Workspaces) removeTrees(ctx context.Context, ws *loopWorkspace) error {
	if err := ws.park(ctx); err != nil {
		return err
	}
	if err := ws.forget(); err != nil {
		return err
	}
	ws.Closed, ws.ClosedAt = true, time.Now()
	a.mu.Lock()
	delete(a.workspaces, ws.Ref)
	a.mu.Unlock()
	return workspace.Write(a.Home, ws.Record)
}

// forget removes what lies beside a desk that was given up.
func (ws *loopWorkspace) forget() error {
	if err := remove.All(ws.exchange()); err != nil {
		return err
	}
	if err := remove.All(ws.layers("")); err != nil {
		return err
	}
	// What a call has left on the desk is gone with it: a run that goes on with the loop makes the call again.
	if err := os.Remove(held.At(ws.callFile())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// callFile has the last call that was made on the desk.
func (ws *loopWorkspace) callFile() string {
	return ws.Beside(filepath.Join(ws.machine.Home.Loop(ws.Ref), "call"))
}

// lastOnDesk returns the last call that was made on the desk, "" if that is not known.
func (ws *loopWorkspace) lastOnDesk() string {
	b, err := os.ReadFile(held.At(ws.callFile()))
	if err != nil {
		return ""
	}
	return string(b)
}

// isMended says that something of a loop was damaged, and what was done about it.
func (ws *loopWorkspace) isMended(what string, err error) {
	ws.machine.Logger.Warn(what, "loop", ws.Loop, "error", err)
	mending.Note(ws.machine.Home.Loop(ws.Ref), what)
}

// workplace is where a command of the user's own runs: in the repository, where that is on this host.
func (m *machine) workplace(ref string) string {
	if r, err := workspace.Read(m.Home, ref); ref != "" && err == nil {
		if info, err := os.Stat(r.Repo); err == nil && info.IsDir() {
			return r.Repo
		}
	}
	return m.Home.Dir
}

// Known is the record of a loop that this worker is at work on, also where the one on disk is damaged.
func (a *Workspaces) Known(ref string) (workspace.Record, bool) {
	if ws := a.known(ref); ws != nil {
		return ws.Record, true
	}
	return workspace.Record{}, false
}

// recordOf is the record of a loop, as this worker has it or as it is on disk.
func (a *Workspaces) recordOf(ref string) (workspace.Record, bool) {
	if r, ok := a.Known(ref); ok {
		return r, true
	}
	r, err := workspace.Read(a.Home, ref)
	return r, err == nil
}
