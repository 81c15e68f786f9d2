// Package stuck finds out whether a task goes in circles (S8, S9, S10). A Window is a fold over the actions and
// states of one task. Its size is limited, and the rules need nothing else. Check compares it with the limits of the
// charter. The package has no clock: the gatekeeper notices that a task has waited too long for a person. Start at
// Window, then Rules.
package stuck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"

	"pawl/internal/lib/must"
	"pawl/internal/metric"
	"pawl/internal/steward/task"
)

// Limits of a window. It forgets first what occurred longest ago.
const (
	keepStreaks = 256
	keepStates  = 16
)

// Window is what the rules know about a task: a fold over its actions and the states that it entered. The zero value
// is the window of a new task. It is plain data; its methods return a new window.
type Window struct {
	Actions       int      `json:"actions"`                 // all actions of the task
	Granted       int      `json:"granted,omitempty"`       // the value of Actions when a person last let the task continue after the rule "actions"
	SinceProgress int      `json:"sinceProgress,omitempty"` // actions since the last progress
	Results       []Streak `json:"results,omitempty"`       // one for each action, the most recent last
	Errors        []Streak `json:"errors,omitempty"`        // one for each error since the last progress, the most recent last
	ExecutingMs   int64    `json:"executingMs,omitempty"`   // executing time since the last milestone
	Replans       int      `json:"replans,omitempty"`       // transitions from EXECUTING to PLANNING since the last progress
	// Path is the list of states entered since the last progress, or since a person moved the task to another state.
	// It leaves out WAITING_FOR_HUMAN: waiting is never a repetition.
	Path       []task.State `json:"path,omitempty"`
	At         task.State   `json:"at,omitempty"`         // the last state entered, apart from WAITING_FOR_HUMAN
	Waiting    bool         `json:"waiting,omitempty"`    // the task waits for a person; At is the state before that
	Progressed bool         `json:"progressed,omitempty"` // there was progress since the task last entered EXECUTING
	Warned     []string     `json:"warned,omitempty"`     // the rules that have warned since their count was last reset
}

// Streak counts repetitions in a row: of one action with the same result, or of one error.
type Streak struct {
	Key    string `json:"key"`              // a digest of the action or the error
	Name   string `json:"name"`             // the action or the error, as people see it
	Result string `json:"result,omitempty"` // a digest of the action's last result
	Count  int    `json:"count"`            // 1 after the first time
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

// Entered returns the window after the task has entered a state. Waiting for a person and then going back to the same
// state changes nothing. If the person moved the task to another state, the path starts again, because what came
// before is not part of a cycle.
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

// Continue returns the window after a person has let the task continue although the named rule had stopped it (S9).
// The count of that rule starts again; the other counts stay. Replan and Cycle are reset together, because they count
// the same path.
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

// Told returns the window after a warning was given, so that it is not given again until its rule counts from the
// beginning. A finding that stops the task is not a warning and changes nothing.
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

// cycles returns the shortest sequence of states that the end of the path repeats without a break, and how often it
// comes there. It returns 1 and nil if nothing is repeated.
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

// again returns the streaks with one more occurrence of name. With another result than last time it is the first.
func again(streaks []Streak, name, result string) []Streak {
	s := Streak{Key: digest(name), Name: metric.Description(name), Result: result}
	streaks = slices.Clone(streaks)
	if i := slices.IndexFunc(streaks, func(streak Streak) bool { return streak.Key == s.Key }); i >= 0 {
		if streaks[i].Result == result {
			s = streaks[i]
		}
		streaks = slices.Delete(streaks, i, i+1)
	}
	s.Count++
	streaks = append(streaks, s)
	return streaks[max(0, len(streaks)-keepStreaks):]
}

// result returns a digest of what makes two results equal: outcome, reason, the value of the metric, and the tree.
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
	sum := sha256.Sum256(must.Have(json.Marshal(parts))) // strings can always be encoded
	return hex.EncodeToString(sum[:8])
}

func without(rules []string, rule string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(name string) bool { return name == rule })
}
