package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"pawl/internal/git"
)

// Tx is what becomes durable together: at most one of Commit and Revert on the code branch, and the ledger entry for
// the result. Repeating an interrupted transaction completes it. Repeating a completed one changes nothing and returns
// the same result.
type Tx struct {
	Commit *CommitInput
	Revert *RevertInput
	// Entry returns the ledger entry for the commit that Commit or Revert makes; code is "" without them. An empty
	// Entry.Code means that commit. It must return the same entry for the same commit.
	Entry func(code string) (Entry, error)
}

// TxResult is what a transaction made, or found already made.
type TxResult struct {
	Code  string // "" without Commit and Revert
	Entry string // "" without Entry
}

// Transact checks that the refs are where the transaction starts from, then makes the commits and moves the refs, all
// in one git process. If any ref is elsewhere, it moves nothing and the error is *Fenced.
func (s *Store) Transact(ctx context.Context, tx Tx) (TxResult, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return TxResult{}, err
	}
	defer lock.Close()

	var r TxResult
	var code *git.Commit
	var branch, from string
	switch {
	case tx.Commit != nil && tx.Revert != nil:
		return r, errors.New("a transaction commits or reverts, not both")
	case tx.Commit != nil:
		o, err := tx.Commit.object()
		if err != nil {
			return r, err
		}
		code, branch, from = &o, tx.Commit.Branch, tx.Commit.Parent
	case tx.Revert != nil:
		o, err := s.revert(ctx, *tx.Revert)
		if err != nil {
			return r, err
		}
		code, branch, from = &o, tx.Revert.Branch, tx.Revert.Commit
	}

	var script importScript
	if code != nil {
		r.Code = code.ID
		switch have, err := s.refForCAS(ctx, branch, from); {
		case err != nil:
			return TxResult{}, err
		case have == from:
			script.commit(branch, *code)
		case have != r.Code:
			return TxResult{}, &Fenced{Ref: branch, Want: from, Have: have}
		}
	}
	if tx.Entry != nil {
		e, err := tx.Entry(r.Code)
		if err != nil {
			return TxResult{}, err
		}
		e.Code = cmp.Or(e.Code, r.Code)
		if err := e.check(); err != nil {
			return TxResult{}, err
		}
		switch have, err := s.refForCAS(ctx, e.Ref, e.Prev); {
		case err != nil:
			return TxResult{}, err
		case have == e.Prev:
			script.entry(e)
		case have == "":
			return TxResult{}, &Fenced{Ref: e.Ref, Want: e.Prev, Have: have}
		default:
			// It may be this very entry, from an attempt that died, even before it moved the branch: the order in which
			// fast-import moves refs is its own.
			would, err := s.dryRun(ctx, e, lock)
			if err != nil {
				return TxResult{}, err
			}
			if would != have {
				return TxResult{}, &Fenced{Ref: e.Ref, Want: e.Prev, Have: have}
			}
			r.Entry = have
		}
	}
	if len(script.refs) > 0 {
		ids, err := s.importScript(ctx, &script, lock)
		if err != nil {
			return TxResult{}, err
		}
		if script.code != "" && ids[0] != r.Code {
			return TxResult{}, fmt.Errorf("git made commit %s where %s was computed", ids[0], r.Code)
		}
		if script.hasEntry {
			r.Entry = ids[len(ids)-1]
		}
	}
	if code != nil {
		s.commits.put(*code)
	}
	s.foldPacks(ctx, lock)
	return r, nil
}

// refForCAS reads a ref that is about to be compared. An unreadable ref counts as one that is elsewhere.
func (s *Store) refForCAS(ctx context.Context, ref, want string) (string, error) {
	have, err := s.Ref(ctx, ref)
	if errors.Is(err, ErrDamagedRef) {
		return "", &Fenced{Ref: ref, Want: want, Have: Damaged}
	}
	return have, err
}

// dryRun writes an entry's objects without moving its ref, and returns its ID. It returns "" if the commits that it
// builds on are missing, because then it can't have been appended.
func (s *Store) dryRun(ctx context.Context, e Entry, lock *os.File) (string, error) {
	for _, c := range append([]string{e.Prev, e.Code}, e.Keeps...) {
		if c == "" {
			continue
		}
		switch _, err := s.readCommit(ctx, c); { // not from the cache, because a truncated chain may have lost it
		case errors.Is(err, git.ErrNotFound):
			return "", nil
		case err != nil:
			return "", err
		}
	}
	e.Ref = "refs/pawl-scratch/entry"
	var script importScript
	script.entry(e)
	// Only fast-import itself ever sees this ref; it is gone before refs are written.
	fmt.Fprintf(&script.b, "reset %s\nfrom %s\n\n", e.Ref, git.NoHash)
	script.refs = nil
	ids, err := s.importScript(ctx, &script, lock)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// importScript is the input for one git fast-import.
type importScript struct {
	b        bytes.Buffer
	refs     []string // the refs that it moves, in this order
	marks    int
	code     string // the ID of mark 1; "" if that is not a commit of code
	hasEntry bool
}

func (sc *importScript) begin(ref string, o git.Commit) {
	if sc.b.Len() == 0 {
		sc.b.WriteString("feature done\n")
	}
	sc.marks++
	fmt.Fprintf(&sc.b, "commit %s\nmark :%d\nauthor %s\ncommitter %[3]s\n", ref, sc.marks, o.Signature())
	sc.data([]byte(o.Message))
	sc.refs = append(sc.refs, ref)
}

func (sc *importScript) data(content []byte) {
	fmt.Fprintf(&sc.b, "data %d\n", len(content))
	sc.b.Write(content)
	sc.b.WriteByte('\n')
}

// commit adds a commit of a tree that is already in the store.
func (sc *importScript) commit(ref string, o git.Commit) {
	sc.begin(ref, o)
	sc.code = o.ID
	fmt.Fprintf(&sc.b, "from %s\nM 040000 %s \n\n", o.Parents[0], o.Tree)
}

// entry adds a ledger commit: the files of the previous entry with some replaced, and the code head as second parent.
func (sc *importScript) entry(e Entry) {
	sc.begin(e.Ref, git.NewCommit("", nil, e.Author, e.Time, e.Message, nil))
	if e.Prev != "" {
		fmt.Fprintf(&sc.b, "from %s\n", e.Prev)
	}
	code := e.Code
	if code == sc.code {
		code = ":1" // fast-import can't find by ID what it has not written yet
	}
	for _, parent := range append([]string{code}, e.Keeps...) {
		fmt.Fprintf(&sc.b, "merge %s\n", parent)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		content := e.Files[name]
		if content == nil {
			fmt.Fprintf(&sc.b, "D %s\n", name)
			continue
		}
		fmt.Fprintf(&sc.b, "M 100644 inline %s\n", name)
		sc.data(content)
	}
	sc.b.WriteByte('\n')
	sc.hasEntry = true
}

// importScript runs the script and returns the IDs of its commits.
func (s *Store) importScript(ctx context.Context, sc *importScript, lock *os.File) ([]string, error) {
	for _, ref := range sc.refs {
		if err := s.dropStaleLock(ref); err != nil {
			return nil, err
		}
	}
	for m := 1; m <= sc.marks; m++ {
		fmt.Fprintf(&sc.b, "get-mark :%d\n", m)
	}
	sc.b.WriteString("done\n")
	out, err := s.run.Command("fast-import", "--quiet").Input(sc.b.String()).Locked(lock).Run(ctx)
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != sc.marks || git.CheckHashes(ids...) != nil {
		return nil, fmt.Errorf("git fast-import answered %q", out)
	}
	return ids, nil
}
