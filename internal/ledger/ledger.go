package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"pawl/internal/git/store"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// The files that only a loop's entries have.
const (
	IterationFile = "iteration.json"
	ContractFile  = "contract.json"
	ResultsFile   = "loop-results.tsv"
	PlanFile      = "plan.md"
)

// loopFiles lists the files that an entry of a loop may have.
var loopFiles = []string{StateFile, EventsFile, IterationFile, ContractFile, ResultsFile, PlanFile}

// Contract is the content of ContractFile.
type Contract = rules.Contract

// Ledger is the ledger of a loop.
type Ledger struct {
	*Book[loop.State]

	contract atomic.Pointer[Contract]
}

// Open returns the ledger of a loop in store. It reads nothing yet.
func Open(store *store.Store) *Ledger {
	check := func(s loop.State) error {
		_, err := kind.Of(s.Kind)
		return err
	}
	return &Ledger{Book: &Book[loop.State]{
		store: store, check: check,
		begin: func(string) loop.State { return loop.State{} },
		write: func(_, after loop.State) map[string][]byte { return map[string][]byte{StateFile: indent(after)} },
		read: func(file []byte, _ func([]string) (map[string][]byte, error)) (state loop.State, err error) {
			return state, json.Unmarshal(file, &state)
		},
	}}
}

// Contract returns the contract at head.
func (l *Ledger) Contract(ctx context.Context, head string) (Contract, error) {
	if known := l.contract.Load(); known != nil {
		return *known, nil
	}
	files, err := l.store.ReadLedger(ctx, head, ContractFile)
	if err != nil {
		return Contract{}, fmt.Errorf("reading the contract: %w", err)
	}
	var c Contract
	if err := json.Unmarshal(files[ContractFile], &c); err != nil {
		return Contract{}, fmt.Errorf("reading the contract at %s: %w", head, err)
	}
	l.contract.CompareAndSwap(nil, &c) // unless another one was bound meanwhile
	return c, nil
}

// Bind sets the contract that the first entry will have.
func (l *Ledger) Bind(c Contract) { l.contract.Store(&c) }

// Entry returns the files of the entry that follows prev with these events, and the page of that entry. Call Appended
// once the entry is a commit.
func (l *Ledger) Entry(ctx context.Context, prev string, events []loop.Event) (map[string][]byte, Page[loop.State], error) {
	files, page, err := l.Book.Entry(ctx, prev, events)
	if err != nil {
		return nil, page, err
	}
	if c := l.contract.Load(); prev == "" && c != nil {
		files[ContractFile] = indent(*c)
	}
	for _, e := range events {
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
				return nil, page, err
			}
			page.contract, files[ContractFile] = &c, indent(c)
		}
	}
	return files, page, nil
}

// amends reports whether an event changes the contract.
func amends(e loop.Event) bool { return e.Type == loop.ContractAmended || e.Type == loop.PlanMade }

// amended returns the contract with an event's amendment or plan, which must have the approved hash.
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
		return c, fmt.Errorf("the amended contract has the hash %s, but %s was approved", got, e.Contract.Hash)
	}
	return c, nil
}

// Appended tells the ledger that the entry at head has this page.
func (l *Ledger) Appended(head string, page Page[loop.State]) {
	if page.contract != nil {
		l.Bind(*page.contract)
	}
	l.Book.Appended(head, page)
}

// Row returns the row of the results file that an event adds (P7); ok is false if it adds none. The baseline is
// iteration 0, and every finished iteration has a row.
func Row(e loop.Event) (metric.Row, bool) {
	switch {
	case e.Type == loop.BaselineMeasured:
		row := metric.Row{Time: e.Time, Metric: e.Metric, Kept: true, Description: "baseline", Metrics: e.Metrics}
		if e.Sampler != nil {
			row.Samples = len(e.Sampler.Reference.Values)
		}
		return row, true
	case e.Record != nil:
		r := e.Record
		return metric.Row{
			Iter: r.N, Time: e.Time, Metric: r.Metric, Delta: r.Delta, Kept: r.Kept, Reason: r.Reason, Description: r.Description,
			Samples: r.Samples, Spread: r.Spread, LLR: r.LLR, Metrics: r.Metrics, Unmeasured: r.Unmeasured,
		}, true
	}
	return metric.Row{}, false
}
