package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/ui"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// Verified is what `pawl log --verify --json` prints.
type Verified struct {
	Loop     string         `json:"loop"`
	Whole    bool           `json:"whole"`
	Ledger   string         `json:"ledger"` // its head
	Entries  int            `json:"entries"`
	Events   int            `json:"events"`
	Rows     int            `json:"rows"`
	Contract string         `json:"contract,omitempty"` // its hash
	Workflow string         `json:"workflow"`           // agrees, differs, unknown
	Copy     string         `json:"copy"`               // in the user's repository: agrees, differs, unknown
	Faults   []ledger.Fault `json:"faults"`
}

// What others know of a ledger.
const (
	agrees  = "agrees"
	differs = "differs"
	unknown = "unknown" // nobody answers, or there is none
)

// verify proves the ledger of a loop whole, or says where it is not.
func (a *app) verify(ctx context.Context, id string) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	record, here := s.record(id)
	if !here {
		if s.client != nil {
			if err := s.alive(ctx, id); fault.CodeOf(err) == fault.LoopNotFound {
				return err
			}
		}
		return fault.New(fault.LoopNotFound, "this host has no ledger of the loop %s", id).Advise("Run this on the loop's host.")
	}
	v, err := s.proof(ctx, id, record)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(v)
	} else {
		err = a.print(v.text())
	}
	if err == nil && !v.Whole {
		err = &leaving{code: exitInternal}
	}
	return err
}

func (s *session) proof(ctx context.Context, id string, record workspace.Record) (Verified, error) {
	v := Verified{Loop: id, Workflow: unknown, Copy: unknown, Faults: []ledger.Fault{}}
	wrong := func(format string, args ...any) {
		v.Faults = append(v.Faults, ledger.Fault{What: fmt.Sprintf(format, args...)})
	}
	// The workflow first: what it knows by now the ledger has to have when it is looked at.
	known, asked := s.known(ctx, record)
	copied, err := copyOf(ctx, record)
	if err != nil {
		return v, err
	}
	if _, err := os.Stat(record.Store); err != nil {
		return v, fmt.Errorf("opening the store of the loop %s: %w", record.Loop, err)
	}
	store, err := store.Open(ctx, record.Store)
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
	} else if report, err = ledger.Open(store).Verify(ctx, v.Ledger); err != nil {
		return v, err
	}
	v.Entries, v.Events, v.Rows = report.Entries, report.Events, report.Rows
	v.Faults = append(v.Faults, report.Faults...)
	if c := report.State.Contract; c != nil {
		v.Contract = c.Hash
	}
	if asked && known.Ledger != "" {
		if v.Workflow = has(report, known.Ledger); v.Workflow == differs {
			wrong("the workflow's ledger is at %s, which is no entry of this one: it was cut off or rewritten", known.Ledger)
		}
	}
	if copied != "" {
		if v.Copy = has(report, copied); v.Copy == differs {
			wrong("the copy in %s is at %s, which is no entry of this one: one of the two was cut off or rewritten", record.Repo, copied)
		}
	}
	if report.State.Head != "" && len(v.Faults) == 0 {
		if err := s.branch(ctx, store, record, report.State, wrong); err != nil {
			return v, err
		}
	}
	v.Whole = len(v.Faults) == 0
	return v, nil
}

// branch wants the loop's branch to have the head that the ledger stands for.
func (s *session) branch(ctx context.Context, store *store.Store, record workspace.Record, state loop.State, wrong func(string, ...any)) error {
	at, err := store.Ref(ctx, record.Branch)
	if err != nil || at == "" {
		wrong("the branch %s is gone from the store", ui.Branch(record.Branch))
		return err
	}
	in, err := store.Contains(ctx, at, state.Head)
	if err == nil && (!in || state.Status.Ended() && at != state.Head) {
		wrong("the branch %s is at %s, the ledger stands for %s", ui.Branch(record.Branch), at, state.Head)
	}
	return err
}

// known is the state of the workflow, where one answers for this very ledger.
func (s *session) known(ctx context.Context, record workspace.Record) (loop.State, bool) {
	var state loop.State
	if s.client == nil {
		return state, false
	}
	d, err := s.client.DescribeWorkflowExecution(ctx, record.Loop, "")
	if err != nil || d.GetWorkflowExecutionInfo().GetFirstRunId() != record.FirstRun {
		return state, false
	}
	err = s.query(ctx, workerTimeout, record.Loop, &state, "state")
	return state, err == nil
}

// copyOf is where the ledger's copy in the user's repository stands, "" where there is none.
func copyOf(ctx context.Context, record workspace.Record) (string, error) {
	head, err := userrepo.RefAt(ctx, record.Repo, record.Ledger)
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return head, nil // a repository that is gone says nothing
}

func has(r ledger.Report, commit string) string {
	switch {
	case slices.Contains(r.Commits, commit):
		return agrees
	case r.Cut:
		return unknown
	}
	return differs
}

// text is the proof for people.
func (v Verified) text() string {
	var b strings.Builder
	if v.Whole {
		fmt.Fprintf(&b, "%s: the ledger is whole: %d entries, %d events, %d results, up to %s", v.Loop, v.Entries, v.Events, v.Rows, v.Ledger)
	} else {
		fmt.Fprintf(&b, "%s: the ledger is NOT whole", v.Loop)
	}
	for _, f := range v.Faults {
		where := "the ledger"
		if f.Entry > 0 {
			where = fmt.Sprintf("entry %d (%s)", f.Entry, ui.Short(f.Commit))
		} else if f.Commit != "" {
			where = "entry " + ui.Short(f.Commit)
		}
		fmt.Fprintf(&b, "\n  %s: %s", where, ui.Clean(f.What))
	}
	fmt.Fprintf(&b, "\n  the workflow %s, the copy in the repository %s", saying(v.Workflow), saying(v.Copy))
	return b.String()
}

func saying(what string) string {
	if what == unknown {
		return "was not asked or knows nothing"
	}
	return what
}
