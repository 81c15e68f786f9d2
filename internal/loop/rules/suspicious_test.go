package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
)

func TestP6_WhatIsSuspicious(t *testing.T) {
	for name, c := range map[string]struct {
		direction, from, to string
		want                bool
	}{
		"lower to 0":                    {metric.Lower, "4118", "0", true},
		"lower to 0 from 1":             {metric.Lower, "1", "0", true},
		"lower to 0 from next to 0":     {metric.Lower, "0.0000001", "0", true},
		"lower by 95 %":                 {metric.Lower, "100", "5", true},
		"lower by 90 %":                 {metric.Lower, "100", "10", true},
		"lower by less":                 {metric.Lower, "100", "10.01", false},
		"lower through 0":               {metric.Lower, "100", "-3", true},
		"lower to ten times the amount": {metric.Lower, "-3", "-30", true},
		"lower to less than that":       {metric.Lower, "-3", "-29", false},
		"lower, but worse":              {metric.Lower, "-30", "0", false},
		"higher to ten times":           {metric.Higher, "3", "30", true},
		"higher to less":                {metric.Higher, "3", "29", false},
		"higher to 0":                   {metric.Higher, "-12", "0", true},
		"higher by 90 %":                {metric.Higher, "-10", "-1", true},
		"higher by less than that":      {metric.Higher, "-10", "-1.1", false},
		"higher through 0":              {metric.Higher, "-10", "1", true},
		"higher, but worse":             {metric.Higher, "10", "0", false},
		"from 0 there is no percentage": {metric.Higher, "0", "7", false},
		"from 0, lower":                 {metric.Lower, "0", "-7", false},
		"the same":                      {metric.Lower, "0", "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := rules.Suspicious(c.direction, metric.MustDecimal(c.from), metric.MustDecimal(c.to))
			require.Equal(t, c.want, got)
		})
	}
}

func TestP6_WhatHappensToASuspiciousImprovement(t *testing.T) {
	kept := rules.Move{Do: rules.Finish, Kept: true, Measured: true, Judged: true}
	from, to := metric.MustDecimal("120"), metric.MustDecimal("0")
	for name, c := range map[string]struct {
		says   string
		proven bool
		kept   bool
		reason string
		asks   bool
	}{
		"auto, nothing proves the guard": {says: spec.Auto, reason: reason.Suspicious},
		"auto, a guard that runs it":     {says: spec.Auto, proven: true, kept: true},
		"mark":                           {says: spec.Mark, kept: true},
		"ask":                            {says: spec.Ask, proven: true, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules.Improve{Version: 6, Direction: metric.Lower, Suspicious: c.says}
			require.True(t, r.Doubts(kept, from, to))
			require.False(t, rules.Improve{Version: 5, Direction: metric.Lower}.Doubts(kept, from, to), "rules of running loops")
			m := r.AfterDoubt(kept, c.proven)
			if c.asks {
				require.Equal(t, []string{"keep", "discard", "halt"}, m.Choices)
				return
			}
			require.Equal(t, c.kept, m.Kept)
			require.Equal(t, c.reason, m.Reason)
			require.True(t, m.Suspicious)
		})
	}
	r := rules.Improve{Version: 6, Direction: metric.Lower}
	require.False(t, r.Doubts(rules.Move{Do: rules.Finish}, from, to), "it is discarded anyway")
	require.True(t, r.Agrees(from, to, rules.Measurement{Number: true}))
	require.False(t, r.Agrees(from, metric.MustDecimal("118"), rules.Measurement{Number: true}))
	require.Equal(t, reason.Rejected, r.AfterSuspect(kept, rules.DiscardChange, "Ada").Reason)
	require.True(t, r.AfterSuspect(kept, rules.KeepChange, "Ada").Suspicious)
	require.Equal(t, rules.Stop, r.AfterSuspect(kept, rules.HaltLoop, "Ada").Do)
}

func TestA7_NoReviewerAloneApprovesASuspiciousChange(t *testing.T) {
	a := rules.Approval{Diff: spec.Auto, Reviewer: true, Marked: true}
	require.Equal(t, rules.AskPerson, a.AfterOpinion(1, rules.Opinion{Decision: rules.SaysApproved}).Do)
	require.Equal(t, rules.Finish, a.AfterOpinion(1, rules.Opinion{Decision: rules.SaysRejected}).Do)
}

func TestP6_TheGateNamesWhatIsSuspicious(t *testing.T) {
	zero := metric.MustDecimal("0")
	s := loop.State{
		Kept:     []loop.Kept{{Iteration: 1, Description: "a"}, {Iteration: 2, Description: "b", Suspicious: true}},
		SetAside: []loop.SetAside{{Iteration: 3, Commit: "0123456789abcdef", Description: "c", Metric: &zero}},
	}
	require.Equal(t, []string{
		"iteration 2 is kept and suspicious: b", "iteration 3 is set aside, it measured 0: c (git show 0123456789)",
	}, rules.SuspicionPoints(s))
	s.Kept[0].Vanished, s.Kept[1].Vanished = "gone: a", "gone: a, b"
	points := rules.MarkedPoints(s)
	require.Equal(t, "gone: a, b", points[len(points)-1], "the last kept change is the head")
	require.NotContains(t, points, "gone: a")
	s.Kept = append(s.Kept, loop.Kept{Iteration: 4})
	require.NotContains(t, rules.MarkedPoints(s), "gone: a, b", "the head has them again")
}
