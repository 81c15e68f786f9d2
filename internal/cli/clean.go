package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git/userrepo"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// cleanOptions say what is removed.
type cleanOptions struct {
	yes  bool // without asking
	refs bool // branches and ledgers in the repositories too
}

func (a *app) cleanCommand() *cobra.Command {
	var o cleanOptions
	cmd := &cobra.Command{
		Use: "clean [ID...]", Short: "Remove the files of ended loops from this host",
		Long: `Remove the files of ended loops from this host: working trees, logs of steps, and stores that nothing
else needs. Without IDs, the command does so for all ended loops. It lists what it would remove and
asks first. Without a terminal it only lists, unless you pass --yes.

It removes nothing of a loop that has not ended. It keeps the store and the record of a loop while a
worker runs on this host, while another loop needs the store, while a proposal in it can still be
applied, and while your repository lacks the kept work or the ledger. The branches pawl/… and the
ledgers in your repository stay, unless you pass --refs, and as long as the store stays. The same rules
hold for stewards. The files that a steward wrote into the folder .pawl of your project stay.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runClean(ctx, args, o) }),
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "remove it without asking")
	cmd.Flags().BoolVar(&o.refs, "refs", false, "also remove the loops' branches and ledgers from their repositories")
	return cmd
}

// Cleaned is what `pawl clean --json` prints.
type Cleaned struct {
	Removed bool      `json:"removed"` // if false, this is what would be removed
	Items   []Removal `json:"items"`
	Kept    []Keeping `json:"kept"`
}

// Removal is something that is left of a loop that has ended.
type Removal struct {
	Loop  string `json:"loop"`
	Kind  string `json:"kind"` // trees, logs, record, store, branch, ledger
	Path  string `json:"path"` // a ref of Repo for the last two kinds
	Repo  string `json:"repo,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`

	at string            // the commit of the ref
	of hostrecord.Record // the loop's record
}

// Keeping is something that is kept, and why.
type Keeping struct {
	Loop string `json:"loop"`
	What string `json:"what"`
	Why  string `json:"why"`
}

func (a *app) runClean(ctx context.Context, ids []string, o cleanOptions) error {
	s, err := a.newSession(false, false, nil)
	if err != nil {
		return err
	}
	defer s.close()
	lock, err := durable.TryLock(s.Home.WorkerLock()) // so that no worker starts a loop meanwhile
	if err == nil {
		defer lock.Close()
	}
	c := cleaning{s: s, workerRuns: err != nil, refs: o.refs, Cleaned: Cleaned{Items: []Removal{}, Kept: []Keeping{}}}
	if err := c.plan(ctx, ids); err != nil {
		return err
	}
	out := c.Cleaned
	if !a.json {
		if err := a.print(cleanTable(out)); err != nil {
			return err
		}
	}
	switch {
	case len(out.Items) == 0:
	case !o.yes && !a.json && a.terminal():
		if err := a.askAbout(ctx, nil, "", nil, "Remove this?", "nothing was removed"); err != nil {
			return err
		}
		o.yes = true
	case !o.yes:
		a.say("nothing was removed; pass --yes to remove it")
	}
	if o.yes {
		if err := c.abandon(ctx); err != nil {
			return err
		}
		out.Removed = len(out.Items) > 0
		failed := list.Map(out.Items, func(r Removal) error { return r.remove(ctx) })
		if err := errors.Join(failed...); err != nil {
			return err
		}
		if out.Removed && !a.json {
			a.say("removed")
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	return nil
}

// cleaning finds out what may be removed.
type cleaning struct {
	Cleaned
	s          *session
	workerRuns bool
	refs       bool
	gone       []hostrecord.Record // those that are removed
}

func (c *cleaning) plan(ctx context.Context, ids []string) error {
	records, err := hostrecord.List(c.s.Home)
	if err != nil {
		return err
	}
	if torn, err := hostrecord.Torn(c.s.Home); err != nil {
		return err
	} else if len(torn) > 0 {
		return fault.New(fault.PreconditionFailed, "the record of the loop %s is damaged, so pawl can't tell what the loop needs", torn[0]).
			Advise("Start a worker with `pawl up`: it makes the record again from the ledger.")
	}
	opening, err := hostrecord.Announced(c.s.Home)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if slices.ContainsFunc(records, func(r hostrecord.Record) bool { return r.Loop == id || r.Ref == id }) {
			continue
		}
		if err := c.unrecorded(ctx, id); err != nil {
			return err
		}
	}
	// needed says why a store is kept, by its path. A loop that was not named needs its store as much as one that
	// runs.
	needed := map[string]string{}
	for _, r := range opening {
		if r.Closed {
			continue // it was halted meanwhile
		}
		needed[r.Store] = "the loop " + r.Loop + " is being opened"
	}
	var chosen []hostrecord.Record
	for _, r := range records {
		switch {
		case len(ids) > 0 && !slices.Contains(ids, r.Loop) && !slices.Contains(ids, r.Ref):
			needed[r.Store] = "the loop " + r.Ref + " uses it too"
		case !hostrecord.Over(c.s.Home, r):
			c.Kept = append(c.Kept, Keeping{r.Ref, "everything", "it has not ended"})
			needed[r.Store] = "the loop " + r.Ref + " has not ended"
		default:
			chosen = append(chosen, r)
			if reason := unfinished(ctx, c.s.Home, r); reason != "" && needed[r.Store] == "" {
				needed[r.Store] = reason
			}
		}
	}
	stores := map[string]bool{}
	for _, r := range chosen {
		reason := needed[r.Store]
		if c.workerRuns {
			reason = "a worker runs on this host"
		}
		c.loop(ctx, r, reason)
		if reason == "" && !stores[r.Store] {
			stores[r.Store] = true
			c.add(Removal{Loop: r.Ref, Kind: "store", Path: r.Store})
		}
	}
	return nil
}

// unrecorded handles a named loop of which this host has no record: one that the engine knows was never opened here,
// so nothing is left of it.
func (c *cleaning) unrecorded(ctx context.Context, id string) error {
	var rows []launch.Row
	err := c.s.app.visit(ctx, func(s *session) (err error) {
		rows, err = s.Listed(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("finding the loop %s: %w", render.Clean(id), err)
	}
	found := slices.IndexFunc(rows, func(r launch.Row) bool { return r.Loop == id })
	switch {
	case found < 0:
		return fault.New(fault.LoopNotFound, "this host has no loop %s", id)
	case loop.Status(rows[found].Status).Ended():
		c.s.ForgetUnbegun(id)
		c.s.app.say("nothing of %s is on this host", render.Clean(id))
	default:
		c.Kept = append(c.Kept, Keeping{id, "everything", "it has not ended"})
	}
	return nil
}

// unfinished returns why the store of a loop that has ended is still needed, "" if it is not.
func unfinished(ctx context.Context, h home.Home, r hostrecord.Record) string {
	if end, _ := hostrecord.NotedEnd(h, r); end.Untold != nil && !r.Closed {
		return "the end of " + r.Ref + " is recorded when its engine answers again"
	}
	st, head, err := client.OpenRecord(ctx, r)
	if errors.Is(err, fs.ErrNotExist) || err == nil && head == "" {
		return ""
	}
	var state loop.State
	if err == nil && !r.Steward() {
		state, err = ledger.Open(st).State(ctx, head)
	}
	if err != nil {
		return "the ledger of " + r.Ref + " can't be read: " + err.Error()
	}
	if hostrecord.Awaits(h, r) && state.KeptCount > 0 && !state.Status.Ended() {
		return "the end of " + r.Ref + " and its proposal are recorded when a worker runs"
	}
	if p := state.Proposal; p != nil && (p.State == rules.Open || p.State == rules.Approved) {
		return "the proposal of " + r.Ref + " is " + p.State + ": apply or reject it"
	}
	for _, ref := range refsOf(r) {
		if _, lacks := pushed(ctx, r, ref, false); lacks != "" {
			return lacks
		}
	}
	return ""
}

// refsOf returns the refs of a loop or a steward in the user's repository.
func refsOf(r hostrecord.Record) []string {
	if r.Branch == "" {
		return []string{r.Ledger}
	}
	return []string{r.Branch, r.Ledger}
}

// pushed returns the commit of a loop's ref in the user's repository, and why it has to stay: what the repository lacks
// of the store's ref, or, if it is to be removed, that it can't be.
func pushed(ctx context.Context, r hostrecord.Record, ref string, removed bool) (commit, reason string) {
	if _, err := os.Stat(r.Repo); err != nil {
		return "", "the repository of " + r.Ref + " is gone, or not on this host"
	}
	ours := ""
	store, err := client.OpenStore(ctx, r)
	if err == nil {
		ours, err = store.Ref(ctx, ref)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a store that is gone has nothing that the repository could lack
		return "", err.Error()
	}
	folder, err := r.Hold()
	if err != nil {
		return "", fmt.Sprintf("%s can't be opened: %v", r.Repo, err)
	}
	defer folder.Close()
	repo := userrepo.Held(folder)
	if commit, err = userrepo.RefAt(ctx, repo, ref); err != nil {
		return "", err.Error()
	}
	if ours != "" && commit != ours {
		return commit, fmt.Sprintf("%s does not have %s as the loop left it", r.Repo, ref)
	}
	if commit == "" || !removed {
		return commit, ""
	}
	err = userrepo.Droppable(ctx, repo, ref)
	if pre, ok := errors.AsType[*userrepo.Precondition](err); ok {
		return commit, pre.What
	} else if err != nil {
		return commit, err.Error()
	}
	return commit, ""
}

// loop adds what is left of one loop. needed says why its store is kept.
func (c *cleaning) loop(ctx context.Context, r hostrecord.Record, needed string) {
	if c.refs {
		clean := hostrecord.CleanBranch(r.Branch)
		for _, ref := range append(refsOf(r), clean) {
			kind := "branch"
			if ref == r.Ledger {
				kind = "ledger"
			}
			commit, reason := pushed(ctx, r, ref, true)
			switch {
			case ref == clean && (ref == "" || commit == ""): // it does not exist or has no name
			case needed != "": // else a store would stay for ever for what the repository lacks
				c.Kept = append(c.Kept, Keeping{r.Ref, kind, "it stays with its store: " + needed})
			case reason != "":
				c.Kept = append(c.Kept, Keeping{r.Ref, kind, reason})
			case commit != "":
				c.add(Removal{Loop: r.Ref, Kind: kind, Path: ref, Repo: r.Repo, at: commit, of: r})
			}
		}
	}
	if needed == "" {
		c.gone = append(c.gone, r)
		if r.Short != "" { // else they are in the loop's folder
			c.trees(r)
		}
		c.add(Removal{Loop: r.Ref, Kind: "record", Path: c.s.Home.Loop(r.Ref)})
		return
	}
	c.Kept = append(c.Kept, Keeping{r.Ref, "store", needed})
	h := c.s.Home
	c.trees(r)
	c.add(Removal{Loop: r.Ref, Kind: "trees", Path: filepath.Dir(hostrecord.Admin(h, r.Ref, hostrecord.DeskName))})
	for _, logs := range []string{hostrecord.Steps(h, r.Ref), hostrecord.Exchange(h, r.Ref)} {
		c.add(Removal{Loop: r.Ref, Kind: "logs", Path: logs})
	}
}

// abandon ends the runs of halted loops whose record is removed.
func (c *cleaning) abandon(ctx context.Context) error {
	if !slices.ContainsFunc(c.gone, func(r hostrecord.Record) bool { return hostrecord.Awaits(c.s.Home, r) }) {
		return nil
	}
	return c.s.app.visit(ctx, func(s *session) error {
		return errors.Join(list.Map(c.gone, func(r hostrecord.Record) error { return s.Abandon(ctx, r) })...)
	})
}

// trees adds what a loop that ended without its worker has left of its trees.
func (c *cleaning) trees(r hostrecord.Record) {
	for _, tree := range []string{r.Desk(c.s.Home), r.Judge(c.s.Home)} {
		c.add(Removal{Loop: r.Ref, Kind: "trees", Path: tree})
	}
}

func (c *cleaning) add(r Removal) {
	if r.at == "" {
		if _, err := os.Lstat(dirfd.At(r.Path)); err != nil {
			return
		}
		r.Bytes = size(r.Path)
	}
	c.Items = append(c.Items, r)
}

// size returns the number of bytes of the files under a path. Files that can't be read count nothing.
func size(path string) (n int64) {
	_ = filepath.WalkDir(dirfd.At(path), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// remove removes it: a ref from the repository in which it was found.
func (r Removal) remove(ctx context.Context) error {
	if r.at == "" {
		return remove.All(r.Path)
	}
	repo, err := r.of.Hold()
	if err != nil {
		return fmt.Errorf("%s can't be opened: %w", r.Repo, err)
	}
	defer repo.Close()
	return userrepo.Drop(ctx, userrepo.Held(repo), r.Path, r.at)
}

func cleanTable(c Cleaned) string {
	var lines []string
	var total int64
	for _, r := range c.Items {
		total += r.Bytes
		amount := fmt.Sprintf("%8s", megabytes(r.Bytes))
		if r.at != "" {
			amount = strings.Repeat(" ", 8)
		}
		lines = append(lines, fmt.Sprintf("%-6s  %s  %s  %s", r.Kind, amount, render.Clean(r.Loop), render.Clean(strings.TrimSpace(r.Repo+" "+r.Path))))
	}
	for _, k := range c.Kept {
		lines = append(lines, "stays   "+render.Clean(k.Loop)+": "+k.What+" ("+render.Clean(k.Why)+")")
	}
	return strings.Join(append(lines, fmt.Sprintf("to be removed: %d, %s", len(c.Items), megabytes(total))), "\n")
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
