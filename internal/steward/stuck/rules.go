package stuck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// The names of the rules, as used in findings, in events and by `continue`.
const (
	NoProgress     = "noProgress"
	TooManyActions = "actions"
	SameResult     = "sameResult"
	SameError      = "sameError"
	Cycle          = "cycle"
	Replan         = "replan"
	Executing      = "executing"
)

// Rule is one rule of loop detection (S8). A count beyond the limit stops the task until a person has answered.
type Rule struct {
	Name   string
	Counts string // what is counted
	Resets string // what resets the count, apart from a person's `continue`
	Source string // the rule in the words of the source
	Key    string // the charter key that sets the limit; "" if the limit can't be changed
	Warns  string // when it warns before it stops; "" if it never warns

	limit func(charter.Limits) int64 // the highest count that is allowed
	warn  func(limit int64) int64    // it warns above this count; nil if it never warns
	count func(Window) []counted
	words func(count int64) string // the count for people
	says  string                   // a format over the count in words, the limit, what is counted, and the limit in words
}

// counted is one count of a rule. Some rules count several things, for example one count for each action.
type counted struct {
	n    int64
	what string // the action or the error; "" for the whole task
	told bool   // the warning was given
}

// Rules is the table of loop detection, in the order of the source.
var Rules = []Rule{
	{
		Name: NoProgress, Key: "limits.noProgress",
		Counts: "actions since the last kept iteration or finished step", Resets: "progress",
		Source: "If executed > 10 actions without task progress → STOP",
		limit:  func(l charter.Limits) int64 { return int64(l.NoProgress) },
		count:  func(w Window) []counted { return []counted{{n: int64(w.SinceProgress)}} },
		words:  actions, says: "%[1]s without progress; the limit is %[2]d",
	},
	{
		Name: TooManyActions, Key: "limits.actions",
		Counts: "actions of the task", Resets: "nothing else",
		Source: "If executed > 100 actions total → STOP", Warns: "above half of the limit",
		limit: func(l charter.Limits) int64 { return int64(l.Actions) },
		warn:  func(limit int64) int64 { return limit / 2 },
		count: func(w Window) []counted {
			return []counted{{n: int64(w.Actions - w.Granted), told: w.told(TooManyActions)}}
		},
		words: actions, says: "%[1]s; the limit is %[2]d",
	},
	{
		Name: SameResult, Key: "limits.sameResult",
		Counts: "how often in a row one action had the same result, whatever happened in between", Resets: "another result of that action",
		Source: "If same action executed > 3 times with same result → STOP", Warns: "one time before the limit is exceeded",
		limit: func(l charter.Limits) int64 { return int64(l.SameResult) },
		warn:  func(limit int64) int64 { return max(limit-1, 1) }, // the first result is not a repetition
		count: func(w Window) []counted { return streaks(w.Results) },
		words: times, says: "%[3]q had the same result %[1]s in a row; the limit is %[2]d",
	},
	{
		Name: SameError, Key: "limits.sameError",
		Counts: "how often one error occurred", Resets: "progress",
		Source: "If same error occurs > 5 times → STOP",
		limit:  func(l charter.Limits) int64 { return int64(l.SameError) },
		count:  func(w Window) []counted { return streaks(w.Errors) },
		words:  times, says: "the error %[3]q occurred %[1]s without progress; the limit is %[2]d",
	},
	{
		Name:   Cycle,
		Counts: "how often the task went through the same sequence of states", Resets: "progress, or a person who moves the task to another state",
		Source: "If state machine cycles without advancement → STOP",
		limit:  func(charter.Limits) int64 { return 1 },
		count: func(w Window) []counted {
			times, sequence := w.cycles()
			names := list.Map(sequence, func(s task.State) string { return string(s) })
			return []counted{{n: int64(times), what: strings.Join(names, " → ")}}
		},
		words: times, says: "the task went through the states %[3]s %[1]s without progress",
	},
	{
		Name:   Replan,
		Counts: "transitions from EXECUTING to PLANNING without progress in between", Resets: "progress, or a person who moves the task to another state",
		Source: "If transition EXECUTING → PLANNING without progress → STOP",
		limit:  func(charter.Limits) int64 { return 0 },
		count:  func(w Window) []counted { return []counted{{n: int64(w.Replans)}} },
		words:  times, says: "the task went back from EXECUTING to PLANNING %[1]s without progress",
	},
	{
		Name: Executing, Key: "limits.executing",
		Counts: "executing time since the last finished step or approved proposal", Resets: "a milestone",
		Source: "If in EXECUTING > 60 minutes without milestone → CHECK", Warns: "above three quarters of the limit",
		limit: func(l charter.Limits) int64 { return l.Executing.D().Milliseconds() },
		warn:  func(limit int64) int64 { return limit / 4 * 3 },
		count: func(w Window) []counted { return []counted{{n: w.ExecutingMs, told: w.told(Executing)}} },
		words: length, says: "executing for %[1]s without a milestone; the limit is %[4]s",
	},
}

// Check returns what the rules find in a window, in the order of Rules. Findings with Stop are counts beyond their
// limit. The others are warnings, without those that the window was already Told of. state is that of the task. A
// stop by the rule Executing is a check-in. It comes at the end of an iteration, because the time of an iteration is
// only counted then.
func Check(w Window, limits charter.Limits, state task.State) (findings []task.Finding) {
	for _, r := range Rules {
		limit := r.limit(limits)
		for _, c := range r.count(w) {
			stop := c.n > limit
			if !stop && (r.warn == nil || c.told || c.n <= r.warn(limit)) {
				continue
			}
			text := fmt.Sprintf(r.says, r.words(c.n), limit, c.what, r.words(limit))
			f := task.Finding{Rule: r.Name, Stop: stop, Count: c.n, Limit: limit, State: state, Text: text}
			if r.Name == SameResult {
				f.Action = c.what
			} else if n := len(w.Results); n > 0 {
				f.Action = w.Results[n-1].Name // the last action
			}
			findings = append(findings, f)
		}
	}
	return findings
}

func (w Window) told(rule string) bool { return slices.Contains(w.Warned, rule) }

func streaks(all []Streak) []counted {
	return list.Map(all, func(s Streak) counted { return counted{int64(s.Count), s.Name, s.Warned} })
}

// length formats milliseconds as specs do. It rounds up, so that a time beyond a limit never looks equal to it.
func length(ms int64) string {
	const second = int64(time.Second / time.Millisecond)
	return spec.Duration(time.Duration((ms+second-1)/second) * time.Second).String()
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func actions(n int64) string { return metric.Counted(int(n), "action") }
