package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/loop"
)

// Report is the result of Verify.
type Report struct {
	Entries int
	Events  int
	Rows    int    // the rows of a loop's results file
	Terms   string // SHA-256 of the contract, or of the charter
	Code    string // the commit that the last entry stands for
	Base    string // of a loop's proposal, if it has one
	Ended   bool
	Commits []string // the commits of the entries, in order
	Cut     bool     // the ledger can't be read beyond these entries
	Faults  []Fault
}

// Fault is an error in a ledger.
type Fault struct {
	Entry  int    `json:"entry,omitempty"` // counted from 1; 0 for the ledger as a whole
	Commit string `json:"commit,omitempty"`
	What   string `json:"what"`
}

// maxFaults is how many faults of entries are listed. One is enough to know that a ledger is wrong.
const maxFaults = 20

// chapter is one entry, as the checks of one kind of ledger see it.
type chapter[S any] struct {
	store.LedgerCommit
	N      int               // from 1
	before map[string][]byte // the files of the entry before
	events []loop.Event
	state  S
	wrong  func(format string, args ...any)
}

// verify checks a whole ledger up to head and returns its faults (L8, A9). For each entry it checks that
//
// - commit, tree and files have the content that their hashes say, and the commit follows the entry before;
// - its events continue the numbers of the events before;
// - its state is the fold of these events over the state before;
// - it keeps the commits that its events name, and its code head is that of the state.
//
// check does the checks of one kind. verify can't know whether head is the right head: the workflow and the copy in
// the user's repository know that.
func (b *Book[S]) verify(ctx context.Context, head string, check func(*Report, chapter[S])) (Report, error) {
	var r Report
	var before S
	var files map[string][]byte
	err := b.store.Chain(ctx, head, func(n int, e store.LedgerCommit) {
		r.Entries, r.Commits, r.Code = n, append(r.Commits, e.Commit), e.Code
		c := chapter[S]{LedgerCommit: e, N: n, before: files}
		c.wrong = func(format string, args ...any) {
			if len(r.Faults) < maxFaults {
				r.Faults = append(r.Faults, Fault{n, e.Commit, fmt.Sprintf(format, args...)})
			}
		}
		var err error
		if c.events, err = decodeEvents(e.Files[EventsFile]); err != nil {
			c.wrong("%s can't be read: %v", EventsFile, err)
		}
		if n == 1 && len(c.events) > 0 {
			before = b.begin(c.events[0].Loop)
		}
		for i, event := range c.events {
			if want := before.Last() + 1 + int64(i); event.Seq != want {
				c.wrong("event %d (%s) is in the place of event %d", event.Seq, event.Type, want)
				break
			}
		}
		r.Events += len(c.events)
		c.state, err = b.read(e.Files[StateFile], func([]string) (map[string][]byte, error) { return e.Files, nil })
		if err != nil {
			c.wrong("%s can't be read: %v", StateFile, err)
		}
		if what := differs(c.state, loop.Fold(before, c.events).At(e.Prev)); what != "" {
			c.wrong("its state does not follow from its events and the state before: %s", what)
		}
		if keeps := loop.Aside(c.events); !slices.Equal(e.Keeps, keeps) {
			c.wrong("it keeps the commits %v, but its events name %v", e.Keeps, keeps)
		}
		if e.Code != c.state.Code() {
			c.wrong("its code head is %s, but that of its state is %s", e.Code, c.state.Code())
		}
		check(&r, c)
		before, files = c.state, e.Files
	})
	if damage, ok := errors.AsType[*store.Damage](err); ok {
		r.Cut, r.Faults = true, append(r.Faults, Fault{damage.N, damage.Commit, damage.What})
		return r, nil
	}
	return r, err
}

// Verify checks the ledger of a loop. Besides the rules for every ledger: results and record are those of its events;
// the contract is that of the first entry with the amendments of later events, and has the hash that was drawn or
// approved; the plan has its approved hash.
func (l *Ledger) Verify(ctx context.Context, head string) (Report, error) {
	return l.verify(ctx, head, checkLoop)
}

func checkLoop(r *Report, e chapter[loop.State]) {
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if !slices.Contains(loopFiles, name) {
			e.wrong("%s does not belong in a ledger", git.Quote(name))
		}
	}
	results, record := bytes.Clone(e.before[ResultsFile]), e.before[IterationFile]
	for _, event := range e.events {
		if row, ok := Row(event); ok {
			results = append(results, row.String()+"\n"...)
			r.Rows++
		}
		if event.Record != nil {
			record = indent(event.Record)
		}
	}
	if !bytes.Equal(e.Files[ResultsFile], results) {
		e.wrong("%s does not follow from the events", ResultsFile)
	}
	if !sameRecord(e.Files[IterationFile], record) {
		e.wrong("%s is not the last iteration's record", IterationFile)
	}
	checkContract(e)
	plan, given := e.Files[PlanFile]
	switch hash := HashOf(plan); {
	case e.state.Plan == nil && given:
		e.wrong("%s exists, but nobody has made a plan", PlanFile)
	case e.state.Plan != nil && hash != e.state.Plan.Hash:
		e.wrong("%s has the hash %s, but %s was approved", PlanFile, hash, e.state.Plan.Hash)
	}
	r.Code, r.Ended = e.state.Head, e.state.Status.Ended()
	if p := e.state.Proposal; p != nil {
		r.Base = p.Base
	}
	if c := e.state.Contract; c != nil {
		r.Terms = c.Hash
	}
}

// sameRecord compares a record with the expected one by content, because versions of pawl may write it differently.
func sameRecord(is, want []byte) bool {
	if len(is) == 0 || len(want) == 0 {
		return len(is) == len(want)
	}
	var it loop.Iteration
	d := json.NewDecoder(bytes.NewReader(is))
	d.DisallowUnknownFields()
	return d.Decode(&it) == nil && !d.More() && bytes.Equal(indent(&it), want)
}

func checkContract(e chapter[loop.State]) {
	is := e.Files[ContractFile]
	var c Contract
	if err := json.Unmarshal(is, &c); e.state.Contract != nil && err != nil {
		e.wrong("%s can't be read: %v", ContractFile, err)
		return
	}
	if e.N > 1 {
		want, err := after(e.before[ContractFile], e.events)
		switch {
		case err != nil:
			e.wrong("its amendment of the contract can't be used: %v", err)
		case !bytes.Equal(is, want):
			e.wrong("the contract does not follow from the events and the contract before")
		}
	}
	if e.state.Contract == nil {
		return
	}
	if hash := c.Hash(); hash != e.state.Contract.Hash {
		e.wrong("the contract has the hash %s, but %s was drawn or approved", hash, e.state.Contract.Hash)
	}
}

// after returns the contract file with the amendments of an entry's events.
func after(file []byte, events []loop.Event) ([]byte, error) {
	for _, event := range events {
		if !amends(event) {
			continue
		}
		var c Contract
		err := json.Unmarshal(file, &c)
		if err == nil {
			c, err = amended(c, event)
		}
		if err != nil {
			return nil, err
		}
		file = indent(c)
	}
	return file, nil
}

// differs returns the first keys in which two states differ, "" if they are equal.
func differs[S any](is, want S) string {
	a, b := keys(is), keys(want)
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return bytes.Equal(a[name], b[name]) })
	names := slices.Sorted(maps.Keys(all))
	if len(names) > 5 {
		names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
	}
	return strings.Join(names, ", ")
}

// keys returns a state's fields as read from a file, so that an empty list equals a missing one.
func keys[S any](s S) map[string]json.RawMessage {
	var once S
	out := map[string]json.RawMessage{}
	err := json.Unmarshal(indent(s), &once)
	if err == nil {
		err = json.Unmarshal(indent(once), &out)
	}
	if err != nil {
		panic(err) // a state has only plain values
	}
	return out
}
