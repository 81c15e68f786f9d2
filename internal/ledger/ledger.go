// Package ledger is a loop's record: one ref whose n-th commit has the n-1st and the code head
// as parents, and in its tree the state, this entry's events, the results and the contract. It
// maps events to files and back and folds them into the state; store makes the commits. The state in an entry is the fold of all events up to it (A9), which Verify proves.
// Start at Ledger.Entry.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/store"
)

// The files of an entry.
const (
	StateFile     = "state.json"
	EventsFile    = "events.jsonl"
	IterationFile = "iteration.json"
	ContractFile  = "contract.json"
	ResultsFile   = "loop-results.tsv"
	PlanFile      = "plan.md"
)

// Files are all of them; an entry has no others.
var Files = []string{StateFile, EventsFile, IterationFile, ContractFile, ResultsFile, PlanFile}

// Contract is what the ledger's contract file holds.
type Contract = govern.Contract

// Page is what stands at one entry.
type Page struct {
	State   loop.State
	Results []byte

	contract *Contract // amended by the entry, else nil
}

// Ledger reads and prepares the entries of one loop. It remembers the last page, so that an
// append needs no reading.
type Ledger struct {
	store *store.Store

	mu       sync.Mutex
	head     string // of the page
	page     Page
	contract *Contract
}

// Open returns the ledger in store. It reads nothing yet.
func Open(store *store.Store) *Ledger { return &Ledger{store: store} }

// Read returns the page at head; the empty page where head is "".
func (l *Ledger) Read(ctx context.Context, head string) (Page, error) {
	if head == "" {
		return Page{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if head == l.head {
		return l.page, nil
	}
	files, err := l.store.ReadLedger(ctx, head, StateFile, ResultsFile)
	if err != nil {
		return Page{}, fmt.Errorf("reading the ledger: %w", err)
	}
	var p Page
	err = json.Unmarshal(files[StateFile], &p.State)
	if err == nil {
		_, err = kind.Of(p.State.Kind)
	}
	if err != nil {
		return Page{}, fmt.Errorf("reading the ledger's state at %s: %w", head, err)
	}
	p.Results = files[ResultsFile]
	l.head, l.page = head, p
	return p, nil
}

// State returns the state at head, with head as its ledger position.
func (l *Ledger) State(ctx context.Context, head string) (loop.State, error) {
	p, err := l.Read(ctx, head)
	p.State.Ledger = head
	return p.State, err
}

// Contract returns the contract at head.
func (l *Ledger) Contract(ctx context.Context, head string) (Contract, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contract != nil {
		return *l.contract, nil
	}
	files, err := l.store.ReadLedger(ctx, head, ContractFile)
	if err != nil {
		return Contract{}, fmt.Errorf("reading the contract: %w", err)
	}
	var c Contract
	if err := json.Unmarshal(files[ContractFile], &c); err != nil {
		return Contract{}, fmt.Errorf("reading the contract at %s: %w", head, err)
	}
	l.contract = &c
	return c, nil
}

// Bind sets the contract that the first entry will carry.
func (l *Ledger) Bind(c Contract) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contract = &c
}

// Entry returns the files of the entry that follows prev with these events, and the page that
// they make. Once it is a commit, say so to Appended.
func (l *Ledger) Entry(ctx context.Context, prev string, events []loop.Event) (map[string][]byte, Page, error) {
	page, err := l.Read(ctx, prev)
	if err != nil {
		return nil, Page{}, err
	}
	files := map[string][]byte{}
	if prev == "" {
		l.mu.Lock()
		if l.contract != nil {
			files[ContractFile] = indent(*l.contract)
		}
		l.mu.Unlock()
	}
	page.State = loop.Fold(page.State, events)
	page.State.Ledger = prev
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return nil, Page{}, fmt.Errorf("encoding an event: %w", err)
		}
		if row, ok := Row(e); ok {
			page.Results = append(bytes.Clone(page.Results), row.String()+"\n"...)
			files[ResultsFile] = page.Results
		}
		if e.Record != nil {
			files[IterationFile] = indent(e.Record)
		}
		if amends(e) {
			c, err := l.Contract(ctx, prev)
			if err == nil {
				c, err = amended(c, e)
			}
			if err != nil {
				return nil, Page{}, err
			}
			page.contract, files[ContractFile] = &c, indent(c)
		}
	}
	files[EventsFile] = lines.Bytes()
	files[StateFile] = indent(page.State)
	return files, page, nil
}

// amends reports whether an event changes the contract.
func amends(e loop.Event) bool { return e.Type == loop.ContractAmended || e.Type == loop.PlanMade }

// amended returns the contract with the amendment or the plan that an event brings. It has to come
// to the hash that was approved.
func amended(c Contract, e loop.Event) (Contract, error) {
	switch {
	case e.Contract == nil:
		return c, fmt.Errorf("event %d (%s) has no contract", e.Seq, e.Type)
	case e.Plan != nil:
		c.Plan = e.Plan.Hash
	default:
		var err error
		if c, err = c.Amended(e.Amendment, e.Contract.Sealed); err != nil {
			return c, err
		}
	}
	if got := c.Hash(); got != e.Contract.Hash {
		return c, fmt.Errorf("the amended contract has the hash %s, and %s was approved", got, e.Contract.Hash)
	}
	return c, nil
}

// Appended tells the ledger that the page now stands at head.
func (l *Ledger) Appended(head string, page Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if page.contract != nil {
		l.contract, page.contract = page.contract, nil
	}
	l.head, l.page = head, page
}

// Row returns the line of the results file that an event makes (P7): the baseline is iteration
// 0, every finished iteration has one.
func Row(e loop.Event) (evidence.Row, bool) {
	switch {
	case e.Type == loop.BaselineMeasured:
		return evidence.Row{Time: e.Time, Metric: e.Metric, Kept: true, Description: "baseline"}, true
	case e.Record != nil:
		r := e.Record
		return evidence.Row{
			Iter: r.N, Time: e.Time, Metric: r.Metric, Delta: r.Delta, Kept: r.Kept, Reason: r.Reason, Description: r.Description,
		}, true
	}
	return evidence.Row{}, false
}

// Events returns every event of the ledger up to head, oldest first.
func (l *Ledger) Events(ctx context.Context, head string) ([]loop.Event, error) {
	return l.Since(ctx, head, "")
}

// Since returns the events of the entries after the entry prev up to head, oldest first. It is an
// error where prev is none of head's predecessors.
func (l *Ledger) Since(ctx context.Context, head, prev string) ([]loop.Event, error) {
	commits, err := l.store.LedgerHistory(ctx, head, EventsFile)
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
