package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
)

// Verified is the proof that a ledger is whole, or the list of its faults.
type Verified struct {
	Loop     string         `json:"loop"`
	Whole    bool           `json:"whole"`
	Ledger   string         `json:"ledger"` // its head
	Entries  int            `json:"entries"`
	Events   int            `json:"events"`
	Rows     int            `json:"rows"`
	Contract string         `json:"contract,omitempty"` // its hash
	Workflow string         `json:"workflow"`           // agrees, differs, unknown
	Copy     string         `json:"copy"`               // the copy in the user's repository: Agrees, differs, unknown
	Faults   []ledger.Fault `json:"faults"`
	CutOff   string         `json:"cutOff,omitempty"` // what was cut off before it could be recorded, and who goes on with it
}

// What the workflow and the copy say about a ledger.
const (
	Agrees  = "agrees"
	Differs = "differs"
	Unknown = "unknown" // nobody answers, or there is none
)

// Verify proves that the ledger of a loop or a steward on this host is whole, or returns its faults.
func (c *Client) Verify(ctx context.Context, id string, record hostrecord.Record) (Verified, error) {
	if c.begins(ctx, record) {
		return Verified{}, c.FamilyOf(ctx, id).NotFound(id).Advise(nothingYet(c.Home, record))
	}
	v := Verified{Loop: id, Workflow: Unknown, Copy: Unknown, Faults: []ledger.Fault{}}
	wrong := func(format string, args ...any) {
		v.Faults = append(v.Faults, ledger.Fault{What: fmt.Sprintf(format, args...)})
	}
	// The workflow is asked first: the ledger must contain everything that the workflow knows by now.
	reported := c.known(ctx, record)
	copied, err := copyOf(ctx, record)
	if err != nil {
		return v, err
	}
	store, err := OpenStore(ctx, record)
	if errors.Is(err, fs.ErrNotExist) {
		_, _, err = c.open(ctx, record)
	}
	if err != nil {
		return v, err
	}
	if v.Ledger, err = store.Ref(ctx, record.Ledger); err != nil {
		wrong("its ref can't be read: %v", err)
		return v, nil
	}
	report := ledger.Report{}
	if v.Ledger == "" {
		wrong("there is no %s in the store", record.Ledger)
	} else if report, err = ledger.Verify(ctx, store, v.Ledger); err != nil {
		return v, err
	}
	v.Entries, v.Events, v.Rows = report.Entries, report.Events, report.Rows
	v.Faults = append(v.Faults, report.Faults...)
	v.Contract = report.Terms
	if v.Workflow = has(report, reported); v.Workflow == Differs {
		wrong("the workflow's ledger is at %s, but this ledger has no such entry: it was cut off or rewritten", reported)
	}
	if v.Copy = has(report, copied); v.Copy == Differs {
		wrong("the copy in %s is at %s, but this ledger has no such entry: one of the two was cut off or rewritten", record.Repo, copied)
	}
	if record.Branch != "" && report.Code != "" && len(v.Faults) == 0 {
		if v.CutOff, err = c.branch(ctx, store, record, report, wrong); err != nil {
			return v, err
		}
	}
	v.Whole = len(v.Faults) == 0
	return v, nil
}

// branch reports a fault if the loop's branch does not have the head that the ledger says. It returns what was cut off:
// an apply brings the branch of an ended loop onto a moved base before it records that.
func (c *Client) branch(ctx context.Context, store *store.Store, record hostrecord.Record, report ledger.Report, wrong func(string, ...any)) (cutOff string, err error) {
	name := git.BranchName(record.Branch)
	commit, err := store.Ref(ctx, record.Branch)
	if err != nil || commit == "" {
		wrong("the branch %s is gone from the store", name)
		return "", err
	}
	if commit == report.Code {
		return "", nil
	}
	contained, err := store.Contains(ctx, commit, report.Code)
	if err == nil && contained && report.Ended {
		if contained, err = store.Renews(ctx, commit, report.Base, report.Code); contained {
			cutOff = fmt.Sprintf("an apply was cut off: the branch %s is on the moved base (%s), which the ledger does not record yet. The worker goes on with it, or apply again: `pawl apply %s`", name, commit, record.Loop)
		}
	}
	if err == nil && !contained {
		wrong("the branch %s is at %s, but the ledger records %s", name, commit, report.Code)
	}
	return cutOff, err
}

// known returns the ledger commit that the workflow of exactly this ledger knows, "" if none answers.
func (c *Client) known(ctx context.Context, record hostrecord.Record) string {
	if c.SDK == nil {
		return ""
	}
	d, err := c.asked(ctx, record.Loop)
	if err != nil || d.GetWorkflowExecutionInfo().GetFirstRunId() != record.FirstRun {
		return ""
	}
	state, _ := ask[struct {
		Ledger string `json:"ledger"`
	}](ctx, c, record.Loop, "state")
	return state.Ledger
}

// copyOf returns the head of the ledger's copy in the user's repository, "" if there is none.
func copyOf(ctx context.Context, record hostrecord.Record) (string, error) {
	if record.Remote {
		return "", nil
	}
	folder, err := record.Hold()
	if err != nil {
		return "", nil //nolint:nilerr // another repository in its place says as little as one that is gone
	}
	repo := userrepo.Held(folder)
	defer repo.Close()
	head, err := userrepo.RefAt(ctx, repo, record.Ledger)
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return head, nil // a repository that is gone says nothing
}

// has says whether a ledger has the commit that somebody else knows, if anybody does.
func has(r ledger.Report, commit string) string {
	switch {
	case slices.Contains(r.Commits, commit):
		return Agrees
	case r.Cut, commit == "":
		return Unknown
	}
	return Differs
}
