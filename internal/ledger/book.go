// Package ledger is the record of a loop or a steward: one ref whose n-th commit has the n-1st and
// the code head as parents, and in its tree the state, this entry's events and what else its kind
// keeps. It maps events to files and back and folds them into the state; store makes the commits. The
// state in an entry is the fold of all events up to it (A9), which Verify proves. Start at Book.Entry,
// then Ledger (a loop's) and Steward (a steward's).
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"pawl/internal/loop"
	"pawl/internal/store"
)

// The files that every entry has.
const (
	StateFile  = "state.json"
	EventsFile = "events.jsonl"
)

// State is what events fold into.
type State[S any] interface {
	// Apply returns the state after the event.
	Apply(loop.Event) S
	// At returns the state with the ledger commit that it follows.
	At(ledger string) S
	// Last returns the number of the last event that was applied.
	Last() int64
	// Code returns the commit that an entry stands for: a loop's head, the head of a steward's project.
	Code() string
}

// Page is what stands at one entry.
type Page[S any] struct {
	State   S
	Results []byte // of a loop

	contract *Contract // amended by the entry, else nil
	whole    bool      // its entry has all of the state in one file
}

// form is how the entries of a ledger have its state: in StateFile, and in further files beside it.
type form[S any] interface {
	// write returns the files in which two states differ, StateFile always; of a file that is gone, nil. With
	// all it returns every file of the second one.
	write(before, after S, all bool) map[string][]byte
	// read makes a state of StateFile and of those that more returns. whole says that it needed none.
	read(file []byte, more func(names []string) (map[string][]byte, error)) (state S, whole bool, err error)
}

// inOneFile is the form of a state that is small.
type inOneFile[S any] struct{}

func (inOneFile[S]) write(_, after S, _ bool) map[string][]byte {
	return map[string][]byte{StateFile: indent(after)}
}

func (inOneFile[S]) read(file []byte, _ func([]string) (map[string][]byte, error)) (state S, whole bool, err error) {
	return state, true, json.Unmarshal(file, &state)
}

// Book reads and prepares the entries of one ledger. It remembers the last page, so that an append
// needs no reading.
type Book[S State[S]] struct {
	store *store.Store
	begin func(loop string) S // the state before the first event
	check func(S) error       // that it is a state of this kind
	form  form[S]             // how entries have it

	mu   sync.Mutex
	head string // of the page
	page Page[S]
}

// Read returns the page at head; the empty page where head is "".
func (b *Book[S]) Read(ctx context.Context, head string) (Page[S], error) {
	if head == "" {
		return Page[S]{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if head == b.head {
		return b.page, nil
	}
	files, err := b.store.ReadLedger(ctx, head, StateFile, ResultsFile)
	if err != nil {
		return Page[S]{}, fmt.Errorf("reading the ledger: %w", err)
	}
	p := Page[S]{Results: files[ResultsFile]}
	p.State, p.whole, err = b.form.read(files[StateFile], func(names []string) (map[string][]byte, error) {
		return b.store.ReadLedger(ctx, head, names...)
	})
	if err == nil {
		err = b.check(p.State)
	}
	if err != nil {
		return Page[S]{}, fmt.Errorf("reading the ledger's state at %s: %w", head, err)
	}
	b.head, b.page = head, p
	return p, nil
}

// State returns the state at head, with head as its ledger position.
func (b *Book[S]) State(ctx context.Context, head string) (S, error) {
	p, err := b.Read(ctx, head)
	return p.State.At(head), err
}

// Entry returns the files of the entry that follows prev with these events, and the page that
// they make. Once it is a commit, say so to Appended.
func (b *Book[S]) Entry(ctx context.Context, prev string, events []loop.Event) (map[string][]byte, Page[S], error) {
	page, err := b.Read(ctx, prev)
	if err != nil {
		return nil, Page[S]{}, err
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return nil, Page[S]{}, fmt.Errorf("encoding an event: %w", err)
		}
	}
	if prev == "" && len(events) > 0 {
		page.State = b.begin(events[0].Loop)
	}
	before := page.State
	page.State = loop.Fold(before, events).At(prev)
	files := b.form.write(before, page.State, prev == "" || page.whole)
	files[EventsFile] = lines.Bytes()
	page.whole = false
	return files, page, nil
}

// Appended tells the ledger that the page now stands at head.
func (b *Book[S]) Appended(head string, page Page[S]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	page.contract = nil
	b.head, b.page = head, page
}

// Events returns every event of the ledger up to head, oldest first.
func (b *Book[S]) Events(ctx context.Context, head string) ([]loop.Event, error) {
	return Since(ctx, b.store, head, "")
}

// Since returns the events of the entries after the entry prev up to head, oldest first. It is an
// error where prev is none of head's predecessors.
func Since(ctx context.Context, s *store.Store, head, prev string) ([]loop.Event, error) {
	commits, err := s.LedgerHistory(ctx, head, EventsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	at := slices.IndexFunc(commits, func(c store.LedgerCommit) bool { return c.Commit == prev })
	if at < 0 && prev != "" {
		return nil, fmt.Errorf("the ledger at %s does not follow %s", head, prev)
	}
	var out []loop.Event
	for _, c := range commits[at+1:] {
		events, err := decodeEvents(c.Files[EventsFile])
		if err != nil {
			return nil, fmt.Errorf("reading the ledger's events at %s: %w", c.Commit, err)
		}
		out = append(out, events...)
	}
	return out, nil
}

func decodeEvents(lines []byte) ([]loop.Event, error) {
	var out []loop.Event
	d := json.NewDecoder(bytes.NewReader(lines))
	for d.More() {
		var e loop.Event
		if err := d.Decode(&e); err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func indent(v any) []byte {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err) // only plain values are given here
	}
	return append(b, '\n')
}
