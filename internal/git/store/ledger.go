package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"pawl/internal/git"
)

// Entry is one commit of a loop's ledger, with the loop's files as its tree. Its first parent is the previous entry.
// Its second parent is the code head at that time. The first entry has only the code head as a parent. Further
// parents are commits that are on no branch and must be kept.
type Entry struct {
	Ref   string   // refs/pawl-ledger/<loop>
	Prev  string   // the previous entry, "" for the first
	Code  string   // the code head
	Keeps []string // commits that are on no branch; not in the first entry
	Files map[string][]byte
	// Files replaces the named files; nil removes a file. All other files stay as in Prev. Names consist of letters,
	// digits, '.', '_', '-' and '/'.
	Message string
	Time    time.Time
	Author  git.Identity
}

func (e Entry) check() error {
	if err := errors.Join(git.CheckRef(e.Ref), git.CheckHashes(cmp.Or(e.Prev, git.NoHash)), git.CheckHashes(e.Keeps...)); err != nil {
		return err
	}
	if !git.IsHash(e.Code) {
		return fmt.Errorf("a ledger entry needs the code head it stands for, not %s", git.Quote(e.Code))
	}
	if len(e.Keeps) > 0 && e.Prev == "" {
		return errors.New("the first entry of a ledger keeps nothing beside the code head")
	}
	for name := range e.Files {
		if err := checkLedgerName(name); err != nil {
			return err
		}
	}
	return nil
}

var ledgerName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)

func checkLedgerName(name string) error {
	if !ledgerName.MatchString(name) {
		return fmt.Errorf("%s cannot be a file in a ledger", git.Quote(name))
	}
	return nil
}

// ReadLedger reads files of one entry. The map lacks files that the entry does not have.
func (s *Store) ReadLedger(ctx context.Context, commit string, files ...string) (map[string][]byte, error) {
	if err := git.CheckHashes(commit); err != nil {
		return nil, err
	}
	return ask(ctx, s, func(b *git.Batch) (map[string][]byte, error) { return ledgerFiles(b, commit, files) })
}

func ledgerFiles(b *git.Batch, commit string, files []string) (map[string][]byte, error) {
	m := make(map[string][]byte, len(files))
	for _, name := range files {
		if err := checkLedgerName(name); err != nil {
			return nil, err
		}
		kind, content, err := b.Get(commit+":"+name, -1)
		switch {
		case errors.Is(err, git.ErrNotFound):
			// batch reports an absent commit and an absent file in the same way.
			if _, err := b.Commit(commit); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case kind == "blob":
			m[name] = content
		}
	}
	return m, nil
}

// LedgerCommit is a stored entry.
type LedgerCommit struct {
	Commit string
	Prev   string // "" for the first
	Code   string
	Keeps  []string // commits that are on no branch
	Time   time.Time
	Files  map[string][]byte // the files that were asked for
}

// entryOf reads a commit as an entry of a ledger, with the previous entry and the code head as parents.
func entryOf(c git.Commit) (LedgerCommit, error) {
	l := LedgerCommit{Commit: c.ID, Time: c.Time}
	switch len(c.Parents) {
	case 0:
		return l, errors.New("it has 0 parents and is no ledger entry")
	case 1:
		l.Code = c.Parents[0]
	default:
		l.Prev, l.Code = c.Parents[0], c.Parents[1]
		l.Keeps = append(l.Keeps, c.Parents[2:]...)
	}
	return l, nil
}

// LedgerHistory returns the entries up to head, oldest first, with the requested files. The hashes cover what it reads,
// but only the caller can know that head is the right one.
func (s *Store) LedgerHistory(ctx context.Context, head string, files ...string) ([]LedgerCommit, error) {
	if err := git.CheckHashes(head); err != nil {
		return nil, err
	}
	return ask(ctx, s, func(b *git.Batch) (commits []LedgerCommit, err error) {
		for id := head; id != ""; id = commits[len(commits)-1].Prev {
			c, err := b.Commit(id)
			if err != nil {
				return nil, err
			}
			l, err := entryOf(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			if l.Files, err = ledgerFiles(b, id, files); err != nil {
				return nil, err
			}
			commits = append(commits, l)
		}
		slices.Reverse(commits)
		return commits, nil
	})
}
