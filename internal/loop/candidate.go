package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/outcome"
)

// Candidate is a change that is made beside others, all from one head (limits.parallel). It is made on a desk of its
// own, tried at its own commit, and then taken by an iteration.
type Candidate struct {
	N    int    `json:"n"`              // names it for good within its loop
	Desk int    `json:"desk"`           // the number of its desk, from 1
	Of   int    `json:"of,omitempty"`   // how many are made at once
	Base string `json:"base,omitempty"` // the head that it is made from
	Idea string `json:"idea,omitempty"`

	// What was made, once it was.
	Made        bool             `json:"made,omitempty"`
	Description string           `json:"description,omitempty"`
	Failed      string           `json:"failed,omitempty"` // how the agent failed, "" where it did not
	Called      outcome.Class    `json:"called,omitempty"` // of the agent's last call
	Withheld    []string         `json:"withheld,omitempty"`
	Agents      []string         `json:"agents,omitempty"` // that wrote it, where that is told
	Commit      string           `json:"commit,omitempty"` // that no branch has and the ledger keeps, "" for none
	Tree        string           `json:"tree,omitempty"`
	Lies        bool             `json:"lies,omitempty"` // the change is on its desk and nowhere else: policies or a person come first
	Steps       int              `json:"steps,omitempty"`
	PhaseMs     map[string]int64 `json:"phaseMs,omitempty"` // active time by phase (L10)
	Evidence    []string         `json:"evidence,omitempty"`

	Again int    `json:"again,omitempty"` // how often its trial has started again
	Trial *Trial `json:"trial,omitempty"` // nil before it was tried, and where nothing can be
}

// Trial is what judged a candidate at its own commit, against a head.
type Trial struct {
	Base     string              `json:"base"`             // that head
	Passed   bool                `json:"passed,omitempty"` // it would be kept there
	Reason   string              `json:"reason,omitempty"` // why not
	Metric   *evidence.Decimal   `json:"metric,omitempty"`
	Metrics  evidence.Averages   `json:"metrics,omitempty"` // the further ones
	Samples  *sampling.Judgement `json:"samples,omitempty"` // where several evaluations decide
	Verify   *Judgement          `json:"verify,omitempty"`
	Guard    *Judgement          `json:"guard,omitempty"` // nil where it did not run
	Evidence []string            `json:"evidence,omitempty"`
}

// Triable reports whether there is something to be tried, and that was not done.
func (c Candidate) Triable() bool { return c.Made && c.Commit != "" && c.Trial == nil }

// Stage is what the loop is at, in a word: its phase, or "candidates" where these are made or tried between two
// iterations.
func (s State) Stage() string {
	ready := func(c Candidate) bool { return c.Made && !c.Triable() }
	if s.Underway() || !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return !ready(c) }) {
		return string(s.Phase)
	}
	return "candidates"
}

// Doing is the stage with how far its candidates are.
func (s State) Doing() string {
	stage, n, made, tried := s.Stage(), len(s.Candidates), 0, 0
	if stage == string(s.Phase) {
		return stage
	}
	for _, c := range s.Candidates {
		if c.Made {
			made++
		}
		if c.Trial != nil {
			tried++
		}
	}
	if made < n {
		return fmt.Sprintf("%s, %d of %d made", stage, made, n)
	}
	return fmt.Sprintf("%s, %d of %d judged", stage, tried, n)
}

// Aside returns the commits that no branch has and that events tell of: the ledger keeps them.
func Aside(events []Event) (commits []string) {
	for _, e := range events {
		if c := e.Candidate; e.Type == CandidateMade && c.Commit != "" && !slices.Contains(commits, c.Commit) {
			commits = append(commits, c.Commit)
		}
	}
	return commits
}

// Root is the commit that the head is to candidates: the one that they were made from, as long as all that came since was
// undone. While a change is under way it is that of what the change stands on.
func (s State) Root() string {
	if c := s.Unjudged(); c != nil {
		return cmp.Or(s.Alike, c.Parent)
	}
	return cmp.Or(s.Alike, s.Head)
}

// undone notes that the head has the tree that it had before a change.
func (s *State) undone(commit string) {
	if c := s.LastChange; s.Alike == "" && c != nil && c.Commit == commit && (s.Taken != nil || len(s.Candidates) > 0) {
		s.Alike = c.Parent
	}
}

// candidate writes down what is known of one by now.
func (s *State) candidate(c Candidate) {
	s.Candidates = slices.Clone(s.Candidates)
	if i := slices.IndexFunc(s.Candidates, func(known Candidate) bool { return known.N == c.N }); i >= 0 {
		s.Candidates[i] = c
		return
	}
	s.Candidates = append(s.Candidates, c)
}

// drop forgets a candidate.
func (s *State) drop(n int) {
	s.Candidates = slices.DeleteFunc(slices.Clone(s.Candidates), func(of Candidate) bool { return of.N == n })
}

// take hands a candidate to the iteration under way.
func (s *State) take(c Candidate) {
	s.drop(c.N)
	s.Taken = &c
	s.IterationSteps += c.Steps
}

// retry has candidates tried anew where more than budgets was amended: by commands that are other ones now.
func (s *State) retry(amendment json.RawMessage) {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(amendment, &keys) // it is a fragment of a spec, else nobody could have approved it
	if delete(keys, "limits"); len(keys) == 0 || len(s.Candidates) == 0 {
		return
	}
	s.Candidates = slices.Clone(s.Candidates)
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Trial != nil {
			c.Trial, c.Again = nil, c.Again+1
		}
	}
}

// lostDesks forgets what lay on the desks of candidates alone: it is made again. A trial that was cut off begins anew.
func (s *State) lostDesks(cutOff bool) {
	if len(s.Candidates) == 0 {
		return
	}
	s.Candidates = slices.Clone(s.Candidates)
	for i, c := range s.Candidates {
		if c.Lies {
			s.Candidates[i] = Candidate{N: c.N, Desk: c.Desk, Of: c.Of, Base: c.Base, Idea: c.Idea}
		} else if cutOff && c.Triable() {
			s.Candidates[i].Again++
		}
	}
	if cutOff && !s.Underway() {
		s.sample((*sampling.Sampler).Settle)
	}
}
