// Package detect notices when a task goes in circles (S8, S9, S10). A Window is a fold over the
// actions and the states of one task. It is bounded, however many actions the task has, and it is all
// that the rules need. Check compares it with the limits of the charter. The package decides nothing
// else and knows no clock: that a task waits too long for a person is the gatekeeper's to notice.
// Start at Window, then Rules.
package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"

	"pawl/internal/evidence"
	"pawl/internal/task"
)

// Bounds of a window. What was longest without a repetition is forgotten first.
const (
	keepStreaks = 256
	keepStates  = 16
)

// Window is what the rules know of a task: a fold over what was done and which states were entered.
// The zero value is that of a task that has just come. It is plain data, and its methods return a new
// one.
type Window struct {
	Actions       int      `json:"actions"`                 // in all
	Granted       int      `json:"granted,omitempty"`       // of these, before a person last let it go on
	SinceProgress int      `json:"sinceProgress,omitempty"` // actions since the last progress
	Results       []Streak `json:"results,omitempty"`       // by action, the most recent last
	Errors        []Streak `json:"errors,omitempty"`        // by error since the last progress, the most recent last
	ExecutingMs   int64    `json:"executingMs,omitempty"`   // since the last milestone
	Replans       int      `json:"replans,omitempty"`       // EXECUTING→PLANNING since the last progress
	// Path are the states that were entered since the last progress, or since a person changed the
	// direction. WAITING_FOR_HUMAN is not among them: waiting is never a repetition.
	Path       []task.State `json:"path,omitempty"`
	At         task.State   `json:"at,omitempty"`         // the state that was entered last, apart from waiting
	Waiting    bool         `json:"waiting,omitempty"`    // for a person, in that state
	Progressed bool         `json:"progressed,omitempty"` // since EXECUTING was last entered
	Warned     []string     `json:"warned,omitempty"`     // the rules that have warned since they last began to count
}

// Streak counts how often something came again: one action with the same result, or one error.
type Streak struct {
	Key    string `json:"key"`              // a digest of the action or the error
	Name   string `json:"name"`             // the same, as people are shown it
	Result string `json:"result,omitempty"` // a digest of the action's last result
	Count  int    `json:"count"`            // 1 is the first time
	Warned bool   `json:"warned,omitempty"`
}

// Add returns the window after one more action.
func (w Window) Add(a task.Action) Window {
	w.Actions++
	w.SinceProgress++
	w.ExecutingMs += max(a.ActiveMs, 0)
	w.Results = again(w.Results, a.Name, result(a))
	if a.Error != "" {
		w.Errors = again(w.Errors, a.Error, "")
	}
	if a.Progress {
		w.SinceProgress, w.Errors, w.Progressed = 0, nil, true
		w.Replans, w.Path = 0, nil
	}
	if a.Milestone {
		w = w.restartExecuting()
	}
	return w
}

// Entered returns the window after the task has entered a state. To wait for a person and to go on in
// the same state changes nothing. Where the person sent the task on to another state, the course is
// new, and what went before is no part of a cycle.
func (w Window) Entered(s task.State) Window {
	if s == task.Waiting {
		w.Waiting = true
		return w
	}
	chosen := w.Waiting
	w.Waiting = false
	if s == w.At {
		return w
	}
	switch {
	case chosen:
		w.Replans, w.Path = 0, nil
	case w.At == task.Executing && s == task.Planning && !w.Progressed:
		w.Replans++
	}
	if s == task.Executing {
		w.Progressed = false
	}
	w.At, w.Path = s, append(slices.Clone(w.Path), s)
	w.Path = w.Path[max(0, len(w.Path)-keepStates):]
	return w
}

// Continue returns the window after a person has let the task go on though the rule of that name had
// tripped (S9): that rule counts from the beginning again, and no other. Replanning and state cycles
// are one matter and begin again together.
func (w Window) Continue(rule string) Window {
	switch rule {
	case NoProgress:
		w.SinceProgress = 0
	case TooManyActions:
		w.Granted = w.Actions
		w.Warned = without(w.Warned, TooManyActions)
	case SameResult:
		w.Results = nil
	case SameError:
		w.Errors = nil
	case Cycle, Replan:
		w.Replans, w.Path = 0, nil
	case Executing:
		w = w.restartExecuting()
	}
	return w
}

// Told returns the window after a warning was given, so that it is given once: not again before its
// rule counts from the beginning. A finding that stops the task is no warning and changes nothing.
func (w Window) Told(f task.Finding) Window {
	switch {
	case f.Stop:
	case f.Rule == SameResult:
		w.Results = slices.Clone(w.Results)
		for i := range w.Results {
			if w.Results[i].Name == f.Action {
				w.Results[i].Warned = true
			}
		}
	case !slices.Contains(w.Warned, f.Rule):
		w.Warned = append(slices.Clone(w.Warned), f.Rule)
	}
	return w
}

// Repeats returns the longest streak of one action with one result (S13).
func (w Window) Repeats() (longest int) {
	for _, s := range w.Results {
		longest = max(longest, s.Count)
	}
	return longest
}

func (w Window) restartExecuting() Window {
	w.ExecutingMs = 0
	w.Warned = without(w.Warned, Executing)
	return w
}

// cycles returns how often the states that were entered last came in the same order without a break: 1
// is once. What is counted is the shortest sequence that has come more than once.
func (w Window) cycles() (times int, sequence []task.State) {
	for n := 2; 2*n <= len(w.Path); n++ {
		last := w.Path[len(w.Path)-n:]
		times = 1
		for end := len(w.Path) - n; end >= n && slices.Equal(w.Path[end-n:end], last); end -= n {
			times++
		}
		if times > 1 {
			return times, last
		}
	}
	return 1, nil
}

// again counts one more time of what has that name. Another result than the last one is a first time.
func again(streaks []Streak, name, result string) []Streak {
	s := Streak{Key: digest(name), Name: evidence.Description(name), Result: result}
	streaks = slices.Clone(streaks)
	if i := slices.IndexFunc(streaks, func(known Streak) bool { return known.Key == s.Key }); i >= 0 {
		if streaks[i].Result == result {
			s = streaks[i]
		}
		streaks = slices.Delete(streaks, i, i+1)
	}
	s.Count++
	streaks = append(streaks, s)
	return streaks[max(0, len(streaks)-keepStreaks):]
}

// result is what makes two results the same: outcome, reason, metric by its value, and tree.
func result(a task.Action) string {
	metric := ""
	if a.Metric != nil {
		if value, ok := new(big.Rat).SetString(a.Metric.String()); ok {
			metric = value.RatString()
		}
	}
	return digest(a.Outcome, a.Reason, metric, a.Tree)
}

func digest(parts ...string) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts can always be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func without(rules []string, rule string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(known string) bool { return known == rule })
}
