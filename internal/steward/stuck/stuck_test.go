package stuck_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// limits are those of the source.
var limits = charter.Limits{Actions: 100, NoProgress: 10, SameResult: 3, SameError: 5, Executing: spec.Duration(time.Hour), Retries: 3, Waiting: spec.Duration(24 * time.Hour), Parallel: 1}

// other returns an action that differs from those of other n, without progress.
func other(n int) task.Action {
	return task.Action{What: task.Iterated, Name: fmt.Sprintf("iteration of step %d", n), Outcome: "discarded", Tree: fmt.Sprintf("tree %d", n)}
}

func kept(n int) task.Action {
	a := other(n)
	a.Outcome, a.Progress = "kept", true
	return a
}

func add(w stuck.Window, actions ...task.Action) stuck.Window {
	for _, a := range actions {
		w = w.Add(a)
	}
	return w
}

// found lists the findings: the name of a rule that stops, or "?" and the name of a rule that warns.
func found(w stuck.Window) string {
	var all []string
	for _, f := range stuck.Check(w, limits, task.Executing) {
		mark := "?"
		if f.Stop {
			mark = ""
		}
		all = append(all, fmt.Sprintf("%s%s %d of %d", mark, f.Rule, f.Count, f.Limit))
	}
	return strings.Join(all, ", ")
}

// TestS8_EveryLimitAtNAndAtOneMore tries each limit of the source: a count at the limit is allowed, one more is not.
func TestS8_EveryLimitAtNAndAtOneMore(t *testing.T) {
	same := func(a task.Action, between ...task.Action) func(n int) stuck.Window {
		return func(n int) (w stuck.Window) {
			for range n {
				w = add(w.Add(a), between...)
			}
			return w
		}
	}
	again := task.Action{What: task.Commanded, Name: "make", Outcome: "ok"}
	for _, c := range []struct {
		name string
		make func(n int) stuck.Window
		n    int
		at   string // the findings at n
		more string // and at n+1
	}{
		{"more than 10 actions without progress", func(n int) (w stuck.Window) {
			w = add(w, other(-2), kept(-1))
			for i := range n {
				w = w.Add(other(i))
			}
			return w
		}, 10, "", "noProgress 11 of 10"},
		{"more than 100 actions", func(n int) (w stuck.Window) {
			for i := range n {
				w = w.Add(kept(i))
			}
			return w
		}, 100, "?actions 100 of 100", "actions 101 of 100"},
		{"a warning above 50 actions", func(n int) (w stuck.Window) {
			for i := range n {
				w = w.Add(kept(i))
			}
			return w
		}, 50, "", "?actions 51 of 100"},
		{"the same action with the same result more than 3 times", same(again), 3, "?sameResult 3 of 3", "sameResult 4 of 3"},
		{"whatever is done in between", same(again, kept(1), kept(2)), 3, "?sameResult 3 of 3, ?sameResult 3 of 3, ?sameResult 3 of 3", "sameResult 4 of 3, sameResult 4 of 3, sameResult 4 of 3"},
		{"a warning above 2 repeats", same(again), 2, "", "?sameResult 3 of 3"},
		{"the same error more than 5 times", func(n int) (w stuck.Window) {
			for i := range n {
				a := other(i)
				a.Error = "the agent has no key"
				w = w.Add(a)
			}
			return w
		}, 5, "", "sameError 6 of 5"},
		{"60 minutes of executing without a milestone", func(n int) stuck.Window {
			a := kept(0)
			a.ActiveMs = (60*time.Minute - 60*time.Millisecond).Milliseconds() + int64(n)
			return stuck.Window{}.Add(a)
		}, 60, "?executing 3600000 of 3600000", "executing 3600001 of 3600000"},
		{"a warning above 45 minutes", func(n int) stuck.Window {
			a := kept(0)
			a.ActiveMs = (45*time.Minute - 45*time.Millisecond).Milliseconds() + int64(n)
			return stuck.Window{}.Add(a)
		}, 45, "", "?executing 2700001 of 3600000"},
		{"EXECUTING→PLANNING without progress", func(n int) stuck.Window {
			w := stuck.Window{}.Entered(task.Planning).Entered(task.Executing).Add(other(1))
			for range n {
				w = w.Entered(task.Planning)
			}
			return w
		}, 0, "", "replan 1 of 0"},
		{"the same sequence of states again", func(n int) (w stuck.Window) {
			for range n {
				w = w.Entered(task.Idle).Entered(task.Planning)
			}
			return w
		}, 1, "", "cycle 2 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.at, found(c.make(c.n)))
			require.Equal(t, c.more, found(c.make(c.n+1)))
		})
	}
}

// TestS10_LimitsAreThoseOfTheCharter uses other limits than the source: the rules must follow the charter alone.
func TestS10_LimitsAreThoseOfTheCharter(t *testing.T) {
	var w stuck.Window
	for i := range 6 {
		a := other(i % 2)
		a.Error, a.ActiveMs = "no key", 400
		w = w.Add(a)
	}
	require.Equal(t, "?sameResult 3 of 3, ?sameResult 3 of 3, sameError 6 of 5", found(w))
	tight := charter.Limits{Actions: 5, NoProgress: 5, SameResult: 2, SameError: 6, Executing: spec.Duration(2 * time.Second)}
	var names []string
	for _, f := range stuck.Check(w, tight, task.Executing) {
		require.True(t, f.Stop)
		names = append(names, f.Rule)
	}
	require.Equal(t, []string{"noProgress", "actions", "sameResult", "sameResult", "executing"}, names)
}

func TestS8_WhatResetsACount(t *testing.T) {
	metric := func(m string) *metric.Decimal { d := metric.MustDecimal(m); return &d }
	a := task.Action{Name: "iteration of build", Outcome: "discarded", Reason: "guard-failed", Metric: metric("84.70"), Tree: "t"}
	three := add(stuck.Window{}, a, a, a)
	t.Run("another outcome, reason, metric or tree is no repetition", func(t *testing.T) {
		for _, change := range []func(*task.Action){
			func(a *task.Action) { a.Outcome = "blocked" }, func(a *task.Action) { a.Reason = "policy:secrets" },
			func(a *task.Action) { a.Metric = metric("84.71") }, func(a *task.Action) { a.Metric = nil }, func(a *task.Action) { a.Tree = "u" },
		} {
			b := a
			change(&b)
			require.Empty(t, found(three.Add(b)))
			require.Empty(t, found(add(three, b, a, a)), "the streak begins again")
		}
	})
	t.Run("a metric is the same however it is written", func(t *testing.T) {
		b := a
		b.Metric = metric("84.7")
		require.Equal(t, "sameResult 4 of 3", found(three.Add(b)))
	})
	t.Run("what else is in an action does not make it another one", func(t *testing.T) {
		b := a
		b.Loop, b.Step, b.ActiveMs, b.Progress = "loop", "step", 5, true
		require.Equal(t, "sameResult 4 of 3", found(three.Add(b)))
	})
	t.Run("fields do not run into each other", func(t *testing.T) {
		b, c := a, a
		b.Outcome, b.Reason, c.Outcome, c.Reason = "x", "yz", "xy", "z"
		require.Equal(t, 1, add(stuck.Window{}, b, c).Repeats())
	})
	t.Run("progress resets actions without progress and errors", func(t *testing.T) {
		var w stuck.Window
		for i := range 11 {
			e := other(i)
			e.Error = "no key"
			w = w.Add(e)
		}
		require.Equal(t, "noProgress 11 of 10, sameError 11 of 5", found(w))
		require.Empty(t, found(w.Add(kept(99))))
	})
	t.Run("a milestone resets the executing time and progress alone does not", func(t *testing.T) {
		long := kept(1)
		long.ActiveMs = time.Hour.Milliseconds() + 1
		w := stuck.Window{}.Add(long)
		require.Equal(t, "executing 3600001 of 3600000", found(w.Add(kept(2))))
		done := kept(3)
		done.Milestone = true
		require.Empty(t, found(w.Add(done)))
	})
	t.Run("two errors are counted apart", func(t *testing.T) {
		var w stuck.Window
		for i := range 10 {
			e := other(i)
			e.Error = fmt.Sprint("error ", i%2)
			w = w.Add(e)
		}
		require.Empty(t, found(w))
	})
}

func TestS8_WaitingIsNoRepetition(t *testing.T) {
	w := stuck.Window{}.Entered(task.Planning).Entered(task.Executing)
	for range 50 {
		w = w.Entered(task.Waiting).Entered(task.Executing)
	}
	require.Empty(t, found(w), "a task may ask as often as it has to")
	require.Len(t, w.Path, 2)
	w = stuck.Window{}
	for range 20 {
		w = w.Entered(task.Planning).Entered(task.Waiting).Entered(task.Executing).Entered(task.Waiting)
	}
	require.Empty(t, found(w), "where a person changes the direction each time, it is no circle of the task's")
}

func TestS8_ReplanningAfterProgressIsNoCircle(t *testing.T) {
	w := stuck.Window{}
	for i := range 20 {
		w = w.Entered(task.Planning).Entered(task.Executing).Add(kept(i)).Add(other(1000 + i))
	}
	require.Empty(t, found(w))
	require.Equal(t, "replan 1 of 0", found(w.Entered(task.Planning).Entered(task.Executing).Add(other(1)).Entered(task.Planning)), "progress before the last plan is not that of this one")
}

func TestS8_TheTimeOfAnIterationCountsAtItsEnd(t *testing.T) {
	a := kept(1)
	a.ActiveMs = (40 * time.Minute).Milliseconds()
	b := kept(1)
	b.ActiveMs = (21 * time.Minute).Milliseconds()
	w := stuck.Window{}.Add(a)
	require.Empty(t, stuck.Check(w, limits, task.Executing))
	findings := stuck.Check(w.Add(b), limits, task.Executing)
	require.Len(t, findings, 1)
	require.Equal(t, task.Finding{Rule: stuck.Executing, Stop: true, Count: 3660000, Limit: 3600000, State: task.Executing, Action: "iteration of step 1", Text: "executing for 1h1m without a milestone; the limit is 1h"}, findings[0])
	b.ActiveMs = -b.ActiveMs
	require.Empty(t, stuck.Check(w.Add(b), limits, task.Executing), "time never runs back")
}

func TestS9_AFindingSaysRuleStateActionAndCounts(t *testing.T) {
	a := task.Action{Name: "make\x1b[31m test\nrm -rf /", Outcome: "failed", Error: "exit 1"}
	w := add(stuck.Window{}, a, a, a, a)
	require.Equal(t, []task.Finding{{
		Rule: "sameResult", Stop: true, Count: 4, Limit: 3, State: task.Planning, Action: "make test",
		Text: `"make test" had the same result 4 times in a row; the limit is 3`,
	}}, stuck.Check(w, limits, task.Planning))
	texts := map[string]string{}
	w = add(w, a, a)
	for i := range 101 {
		w = w.Add(other(i))
	}
	w.ExecutingMs = 3_600_001
	w = w.Entered(task.Planning).Entered(task.Executing).Entered(task.Planning).Entered(task.Executing)
	for _, f := range stuck.Check(w, limits, task.Executing) {
		texts[f.Rule] = f.Text
	}
	require.Equal(t, map[string]string{
		"noProgress": "107 actions without progress; the limit is 10",
		"actions":    "107 actions; the limit is 100",
		"sameResult": `"make test" had the same result 6 times in a row; the limit is 3`,
		"sameError":  `the error "exit 1" occurred 6 times without progress; the limit is 5`,
		"cycle":      "the task went through the states PLANNING → EXECUTING 2 times without progress",
		"replan":     "the task went back from EXECUTING to PLANNING once without progress",
		"executing":  "executing for 1h0m1s without a milestone; the limit is 1h",
	}, texts)
	require.Len(t, texts, len(stuck.Rules), "every rule has its words here")
}

// TestS9_ContinueRestartsTheWindowThatTripped lets every rule stop the task, then continues with one rule after
// another.
func TestS9_ContinueRestartsTheWindowThatTripped(t *testing.T) {
	tripped := func() (w stuck.Window) {
		w = w.Entered(task.Planning).Entered(task.Executing)
		for i := range 101 {
			a := other(i)
			a.Error = "no key"
			if i%20 == 0 {
				a = task.Action{Name: "make", Outcome: "ok"}
			}
			a.ActiveMs = time.Minute.Milliseconds()
			w = w.Add(a)
		}
		return w.Entered(task.Planning).Entered(task.Executing)
	}
	all := rules(tripped())
	require.Len(t, all, len(stuck.Rules))
	for _, r := range stuck.Rules {
		left := rules(tripped().Continue(r.Name))
		require.NotContains(t, left, r.Name)
		want := len(all) - 1
		if r.Name == stuck.Cycle || r.Name == stuck.Replan {
			want-- // both are reset together
		}
		require.Len(t, left, want, r.Name)
	}
	require.Equal(t, all, rules(tripped().Continue("no such rule")))
	w := tripped().Continue(stuck.TooManyActions)
	require.Equal(t, 101, w.Actions, "the count in all stays")
	for i := range 100 {
		w = w.Add(kept(i))
	}
	require.NotContains(t, rules(w), stuck.TooManyActions)
	require.Contains(t, rules(w.Add(kept(0))), stuck.TooManyActions, "as many again, and no more")
}

func rules(w stuck.Window) (names []string) {
	for _, f := range stuck.Check(w, limits, task.Executing) {
		if f.Stop && (len(names) == 0 || names[len(names)-1] != f.Rule) {
			names = append(names, f.Rule)
		}
	}
	return names
}

func TestS8_AWarningIsGivenOnce(t *testing.T) {
	w := stuck.Window{}
	for i := range 60 {
		w = w.Add(kept(i))
	}
	long := kept(60)
	long.ActiveMs = (50 * time.Minute).Milliseconds()
	built := task.Action{Name: "make", Outcome: "ok"}
	w = add(w, long, built, built, built)
	require.Equal(t, "?actions 64 of 100, ?sameResult 3 of 3, ?executing 3000000 of 3600000", found(w))
	before := w
	for _, f := range stuck.Check(w, limits, task.Executing) {
		w = w.Told(f).Told(f)
	}
	require.Empty(t, found(w))
	require.NotEmpty(t, found(before), "Told does not change the window that it was called on")
	require.Equal(t, "sameResult 4 of 3", found(w.Add(built)), "a stop comes in any case")

	done := kept(70)
	done.Milestone = true
	w = add(w, task.Action{Name: "make", Outcome: "failed"}, built, built, built, done, long)
	require.Equal(t, "?sameResult 3 of 3, ?executing 3000000 of 3600000", found(w), "what counts from the beginning warns again")
}

func TestAWindowIsPlainDataAndBounded(t *testing.T) {
	w := stuck.Window{}
	for i := range 1000 {
		a := other(i)
		a.Name = strings.Repeat("é\x00", 1000) + a.Name
		a.Error = a.Name
		w = w.Add(a).Entered(task.States[i*7%4])
	}
	require.Equal(t, 1000, w.Actions)
	text, err := json.Marshal(w)
	require.NoError(t, err)
	require.Less(t, len(text), 512<<10)
	require.LessOrEqual(t, len(w.Results), 256)
	require.LessOrEqual(t, len(w.Path), 16)
	var back stuck.Window
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, w, back)
}

// TestTheWindowThatAMethodIsCalledOnStays checks that the fold is pure: two windows made from one window do not
// affect each other.
func TestTheWindowThatAMethodIsCalledOnStays(t *testing.T) {
	w := add(stuck.Window{}.Entered(task.Planning).Entered(task.Executing), other(1), other(2), other(1))
	text, _ := json.Marshal(w)
	first := w.Add(other(3)).Entered(task.Planning)
	kept, _ := json.Marshal(first)
	w.Add(other(4)).Add(other(1)).Entered(task.Waiting).Entered(task.Idle).Continue(stuck.SameResult)
	now, _ := json.Marshal(w)
	require.JSONEq(t, string(text), string(now))
	now, _ = json.Marshal(first)
	require.JSONEq(t, string(kept), string(now))
}

// TestRulesHaveTheSourcesWords checks that the table has every text, because people read it.
func TestRulesHaveTheSourcesWords(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range stuck.Rules {
		require.False(t, seen[r.Name])
		seen[r.Name] = true
		for _, text := range []string{r.Name, r.Counts, r.Resets, r.Source} {
			require.NotEmpty(t, text, r.Name)
		}
		require.Regexp(t, "→ (STOP|CHECK)$", r.Source)
	}
}
