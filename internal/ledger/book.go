package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"pawl/internal/git/store"
	"pawl/internal/lib/must"
	"pawl/internal/loop"
)

// The files that every entry has.
const (
	StateFile  = "state.json"
	EventsFile = "events.jsonl"
)

// State is the result of folding events.
type State[S any] interface {
	// Apply returns the state after the event.
	Apply(loop.Event) S
	// At returns the state with the ledger commit of the entry before.
	At(ledger string) S
	// Last returns the number of the last event that was applied.
	Last() int64
	// Code returns the commit that an entry stands for: a loop's head, the head of a steward's project.
	Code() string
}

// Page is the content of one entry.
type Page[S any] struct {
	State   S
	Results []byte // the results file of a loop; nil for a steward

	contract *Contract // the contract if the entry amends it, else nil
}

// Book reads the entries of one ledger and prepares new ones. It keeps the last page for the next append.
type Book[S State[S]] struct {
	store *store.Store
	begin func(loop string) S // the state before the first event
	check func(S) error       // returns an error if the state is not one of this kind
	// write returns the files that differ between two states, always with StateFile. A file that is removed has the
	// value nil.
	write func(before, after S) map[string][]byte
	// read returns the state from StateFile and from the files that more returns.
	read func(file []byte, more func(names []string) (map[string][]byte, error)) (S, error)

	mu   sync.Mutex
	head string // the entry of page
	page Page[S]
}

// Read returns the page at head, the empty page if head is "".
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
	p.State, err = b.read(files[StateFile], func(names []string) (map[string][]byte, error) {
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

// Entry returns the files of the entry that follows prev with these events, and the page of that entry. Call Appended
// once the entry is a commit.
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
	files := b.write(before, page.State)
	files[EventsFile] = lines.Bytes()
	return files, page, nil
}

// Appended tells the ledger that the entry at head has this page.
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

// Since returns the events of the entries after prev, which must be a predecessor, up to head, oldest first.
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
	return append(must.Have(json.MarshalIndent(v, "", " ")), '\n') // callers pass only plain values
}
