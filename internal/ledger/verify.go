package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/loop"
	"pawl/internal/store"
)

// Report is what Verify found.
type Report struct {
	Head    string // of the ledger
	Entries int
	Events  int
	Rows    int // of the results
	State   loop.State
	Commits []string // of the entries, in their order
	Cut     bool     // it can't be read beyond that
	Faults  []Fault
}

// Fault is something in a ledger that is not as it must be.
type Fault struct {
	Entry  int    `json:"entry,omitempty"` // from 1; 0 for the ledger as a whole
	Commit string `json:"commit,omitempty"`
	What   string `json:"what"`
}

// maxFaults is how many are listed; one is enough.
const maxFaults = 20

// Verify proves the ledger up to head whole, or says where it is not (L8, A9). Each entry's commit,
// tree and files have the content that their hashes say, and stand on the entry before; its events
// follow on those before; its state is the fold of them over the state before; the code head that
// it stands for is the state's; results and record are those of its events; the contract is the
// first entry's with what its events have amended since, and has the hash that was drawn or
// approved; so has the plan. That head is the right one, only others can say: the workflow, and the
// copy in the user's repository.
func (l *Ledger) Verify(ctx context.Context, head string) (Report, error) {
	v := verification{report: Report{Head: head}}
	err := l.store.Chain(ctx, head, v.entry)
	var damage *store.Damage
	if errors.As(err, &damage) {
		v.report.Cut = true
		v.report.Faults = append(v.report.Faults, Fault{damage.N, damage.Commit, damage.What})
		err = nil
	}
	return v.report, err
}

// verification is Verify under way: what the entry before left.
type verification struct {
	report   Report
	state    loop.State
	results  []byte
	record   []byte
	contract []byte
}

func (v *verification) entry(e store.ChainLink) error {
	r := &v.report
	r.Entries, r.Commits = e.N, append(r.Commits, e.Commit)
	wrong := func(format string, args ...any) {
		if len(r.Faults) < maxFaults {
			r.Faults = append(r.Faults, Fault{e.N, e.Commit, fmt.Sprintf(format, args...)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if !slices.Contains(Files, name) {
			wrong("%s is no file of a ledger", git.Quote(name))
		}
	}
	events, err := decodeEvents(e.Files[EventsFile])
	if err != nil {
		wrong("%s can't be read: %v", EventsFile, err)
	}
	for i, event := range events {
		if want := v.state.Seq + 1 + int64(i); event.Seq != want {
			wrong("event %d (%s) stands where event %d should be", event.Seq, event.Type, want)
			break
		}
		if row, ok := Row(event); ok {
			v.results = append(bytes.Clone(v.results), row.String()+"\n"...)
			r.Rows++
		}
		if event.Record != nil {
			v.record = indent(event.Record)
		}
	}
	r.Events += len(events)

	var state loop.State
	if err := json.Unmarshal(e.Files[StateFile], &state); err != nil {
		wrong("%s can't be read: %v", StateFile, err)
	}
	folded := loop.Fold(v.state, events)
	folded.Ledger = e.Prev
	if what := differs(state, folded); what != "" {
		wrong("its state is not what its events make of the state before: %s", what)
	}
	if e.Code != state.Head {
		wrong("it stands for the commit %s, its state for %s", e.Code, state.Head)
	}
	if !bytes.Equal(e.Files[ResultsFile], v.results) {
		wrong("%s is not what the events make it", ResultsFile)
	}
	if !sameRecord(e.Files[IterationFile], v.record) {
		wrong("%s is not the last iteration's record", IterationFile)
	}
	v.checkContract(e, events, state, wrong)
	plan, given := e.Files[PlanFile]
	switch hash := fmt.Sprintf("%x", sha256.Sum256(plan)); {
	case state.Plan == nil && given:
		wrong("%s is there, and nobody has made a plan", PlanFile)
	case state.Plan != nil && hash != state.Plan.Hash:
		wrong("%s has the hash %s, and %s was approved", PlanFile, hash, state.Plan.Hash)
	}
	v.state, v.results, v.record, r.State = state, e.Files[ResultsFile], e.Files[IterationFile], state
	return nil
}

// sameRecord compares a record with what it is to be: what it says, not how a version writes it.
func sameRecord(is, want []byte) bool {
	if len(is) == 0 || len(want) == 0 {
		return len(is) == len(want)
	}
	var it loop.Iteration
	d := json.NewDecoder(bytes.NewReader(is))
	d.DisallowUnknownFields()
	return d.Decode(&it) == nil && !d.More() && bytes.Equal(indent(&it), want)
}

func (v *verification) checkContract(e store.ChainLink, events []loop.Event, state loop.State, wrong func(string, ...any)) {
	before, is := v.contract, e.Files[ContractFile]
	v.contract = is
	var c Contract
	if err := json.Unmarshal(is, &c); state.Contract != nil && err != nil {
		wrong("%s can't be read: %v", ContractFile, err)
		return
	}
	if e.N > 1 {
		want, err := after(before, events)
		switch {
		case err != nil:
			wrong("what it amends can't be read into the contract: %v", err)
		case !bytes.Equal(is, want):
			wrong("the contract is another than that of the entry before, and not what the events make of it")
		}
	}
	if state.Contract == nil {
		return
	}
	if hash := c.Hash(); hash != state.Contract.Hash {
		wrong("the contract has the hash %s, and %s was drawn or approved", hash, state.Contract.Hash)
	}
}

// after returns the contract's file with the amendments of an entry's events.
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

// differs names the first keys in which two states are not the same, "" where they are.
func differs(is, want loop.State) string {
	a, b := keys(is), keys(want)
	var names []string
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(a[name], b[name]) {
			names = append(names, name)
		}
	}
	if len(names) > 5 {
		names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
	}
	return strings.Join(names, ", ")
}

// keys are a state's as it is after it was written and read once more: an empty list and none are
// the same to who reads it.
func keys(s loop.State) map[string]json.RawMessage {
	var once loop.State
	out := map[string]json.RawMessage{}
	first, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(first, &once)
	}
	if err == nil {
		first, err = json.Marshal(once)
	}
	if err == nil {
		err = json.Unmarshal(first, &out)
	}
	if err != nil {
		panic(err) // only plain values are in it
	}
	return out
}
