package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"pawl/internal/lib/list"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// Candidate is a change that is made at the same time as others, all from one head (limits.parallel). An agent makes
// it on its own desk, it is tried at its own commit, and then an iteration takes it.
type Candidate struct {
	N    int    `json:"n"`              // its number, unique within its loop
	Desk int    `json:"desk"`           // the number of its desk, from 1
	Of   int    `json:"of,omitempty"`   // how many are made at the same time
	Base string `json:"base,omitempty"` // the head from which it is made
	Idea string `json:"idea,omitempty"`

	// The result, once the agent has finished.
	Made        bool             `json:"made,omitempty"`
	Description string           `json:"description,omitempty"`
	Failed      string           `json:"failed,omitempty"` // how the agent failed, "" if it did not
	Called      result.Class     `json:"called,omitempty"` // the class of the agent's last call
	Withheld    []string         `json:"withheld,omitempty"`
	Agents      []string         `json:"agents,omitempty"` // the agents that wrote it, if that is recorded
	Commit      string           `json:"commit,omitempty"` // on no branch, kept by the ledger; "" for none
	Tree        string           `json:"tree,omitempty"`
	Lies        bool             `json:"lies,omitempty"` // the change is on its desk only: policies or a person come first
	Steps       int              `json:"steps,omitempty"`
	PhaseMs     map[string]int64 `json:"phaseMs,omitempty"` // active time by phase (L10)
	Evidence    []string         `json:"evidence,omitempty"`

	Again int    `json:"again,omitempty"` // how often its trial was started again
	Trial *Trial `json:"trial,omitempty"` // nil before it was tried, and if there is nothing to try
}

// Trial is the judgement of a candidate at its own commit, against a head.
type Trial struct {
	Base     string           `json:"base"`             // the head
	Passed   bool             `json:"passed,omitempty"` // the change would be kept on this head
	Reason   string           `json:"reason,omitempty"` // why not
	Note     string           `json:"note,omitempty"`   // the same in words, "" if there are none
	Metric   *metric.Decimal  `json:"metric,omitempty"`
	Metrics  metric.Averages  `json:"metrics,omitempty"` // the further metrics
	Samples  *stats.Judgement `json:"samples,omitempty"` // if several evaluations decide
	Verify   *Judgement       `json:"verify,omitempty"`
	Guard    *Judgement       `json:"guard,omitempty"` // nil if it did not run
	Evidence []string         `json:"evidence,omitempty"`
}

// Triable reports whether there is a change to try that was not tried.
func (c Candidate) Triable() bool { return c.Made && c.Commit != "" && c.Trial == nil }

// Stage returns the phase, or "candidates" if the loop makes or tries candidates between two iterations.
func (s State) Stage() string {
	ready := func(c Candidate) bool { return c.Made && !c.Triable() }
	if s.Underway() || !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return !ready(c) }) {
		return string(s.Phase)
	}
	return "candidates"
}

// Doing returns the stage, with the progress of candidates and what the running step waits for.
func (s State) Doing() string {
	if s.WaitsFor != "" {
		return s.doing() + ", waits for " + s.WaitsFor
	}
	return s.doing()
}

func (s State) doing() string {
	stage, n := s.Stage(), len(s.Candidates)
	if stage == string(s.Phase) {
		return stage
	}
	made := list.Filter(s.Candidates, func(c Candidate) bool { return c.Made })
	if len(made) < n {
		return fmt.Sprintf("%s, %d of %d made", stage, len(made), n)
	}
	tried := list.Filter(made, func(c Candidate) bool { return c.Trial != nil })
	return fmt.Sprintf("%s, %d of %d judged", stage, len(tried), n)
}

// Aside returns the commits in the events that are on no branch. The ledger keeps them.
func Aside(events []Event) (commits []string) {
	for _, e := range events {
		if c := e.Candidate; e.Type == CandidateMade && c.Commit != "" && !slices.Contains(commits, c.Commit) {
			commits = append(commits, c.Commit)
		}
	}
	return commits
}

// Root returns the commit that stands for the head in candidates: the one from which they were made, if every change
// since was undone. While a change is under way, it is that of the commit below the change.
func (s State) Root() string {
	if c := s.Unjudged(); c != nil {
		return cmp.Or(s.Alike, c.Parent)
	}
	return cmp.Or(s.Alike, s.Head)
}

// undone records that the head has the tree again that it had before a change.
func (s *State) undone(commit string) {
	if c := s.LastChange; s.Alike == "" && c != nil && c.Commit == commit && (s.Taken != nil || len(s.Candidates) > 0) {
		s.Alike = c.Parent
	}
}

// candidate records what is known about a candidate now.
func candidate(s *State, e Event) {
	c := *e.Candidate
	s.Candidates = slices.Clone(s.Candidates)
	if i := slices.IndexFunc(s.Candidates, func(earlier Candidate) bool { return earlier.N == c.N }); i >= 0 {
		s.Candidates[i] = c
		return
	}
	s.Candidates = append(s.Candidates, c)
}

func (s *State) drop(n int) {
	s.Candidates = slices.DeleteFunc(slices.Clone(s.Candidates), func(dropped Candidate) bool { return dropped.N == n })
}

// take gives a candidate to the iteration under way.
func (s *State) take(c Candidate) {
	s.drop(c.N)
	s.Taken = &c
	s.IterationSteps += c.Steps
}

// retry resets the trials of candidates after an amendment of more than budgets: other commands may judge now.
func (s *State) retry(amendment json.RawMessage) {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(amendment, &keys) // an approved amendment is always a fragment of a spec
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

// lostDesks resets candidates whose change was on their desk only: they are made again. A trial that was cut off
// begins again.
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
		s.sample((*stats.Sampler).Settle)
	}
}
