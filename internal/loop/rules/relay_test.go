package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func TestWhoMakesACall(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	chain := []spec.Agent{{Use: "claude"}, {Use: "codex"}, {Use: "gemini"}}
	all := []int{0, 1, 2}
	until := func(names ...string) map[string]time.Time {
		m := map[string]time.Time{"gemini": now.Add(-time.Minute)}
		for _, name := range names {
			m[name] = now.Add(time.Hour)
		}
		return m
	}
	for name, c := range map[string]struct {
		eligible, refused []int
		refusing          map[string]time.Time
		want              int
		none              bool
	}{
		"the first":                        {all, nil, nil, 0, false},
		"the first has been refused":       {all, []int{0}, nil, 1, false},
		"the first is known to be refused": {all, nil, until("claude"), 1, false},
		"two are known to be":              {all, nil, until("claude", "codex"), 2, false},
		"all are known to be":              {all, nil, until("claude", "codex", "gemini"), 0, false},
		"the rest is known to be":          {all, []int{0}, until("claude", "codex", "gemini"), 1, false},
		"all have been refused":            {all, all, nil, 0, true},
		"the first may not":                {[]int{1, 2}, nil, nil, 1, false},
		"those that may have been refused": {[]int{1}, []int{1}, nil, 0, true},
	} {
		got, ok := rules.NextAgent(chain, c.eligible, c.refused, c.refusing, now)
		require.Equal(t, !c.none, ok, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestAShortLimitIsWaitedFor(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		class result.Class
		until time.Duration
		want  bool
	}{
		"soon over":              {result.RateLimited, 5 * time.Minute, false},
		"later":                  {result.RateLimited, 5*time.Minute + 1, true},
		"nobody knows":           {result.RateLimited, 0, true},
		"down, but not for long": {result.ProviderDown, time.Minute, true},
		"down":                   {result.ProviderDown, 0, true},
		"a sign-in is missing":   {result.AuthMissing, 0, true},
	} {
		r := api.Refused{}
		if c.until != 0 {
			r.Until = now.Add(c.until)
		}
		require.Equal(t, c.want, rules.PassesOn(c.class, r, now), name)
	}
	require.Equal(t, now.Add(time.Hour), rules.RestsUntil(api.Refused{Until: now.Add(time.Hour)}, now))
	require.Equal(t, now.Add(15*time.Minute), rules.RestsUntil(api.Refused{}, now))
}

func TestOfAllRefusalsTheGentlestCounts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	refusal := func(class result.Class, until time.Duration) api.Outcome {
		r := api.Refused{}
		if until != 0 {
			r.Until = now.Add(until)
		}
		return api.Outcome{Class: class, Refused: &r}
	}
	auth, down, unknown := refusal(result.AuthMissing, 0), refusal(result.ProviderDown, 0), refusal(result.RateLimited, 0)
	long, short := refusal(result.RateLimited, 3*time.Hour), refusal(result.RateLimited, time.Hour)
	for name, c := range map[string]struct {
		all  []api.Outcome
		want int
	}{
		"the one that ends first":        {[]api.Outcome{auth, long, short, down}, 2},
		"the first that ends":            {[]api.Outcome{short, long, down, auth}, 0},
		"the one that ends":              {[]api.Outcome{unknown, down, long}, 2},
		"a known end stays":              {[]api.Outcome{long, unknown}, 0},
		"one that ends before a sign-in": {[]api.Outcome{auth, long}, 1},
		"one that may end":               {[]api.Outcome{auth, down, unknown}, 1},
		"sign-ins alone":                 {[]api.Outcome{auth, auth}, 0},
		"the first of two":               {[]api.Outcome{unknown, down}, 0},
	} {
		require.Equal(t, c.want, rules.Gentlest(c.all), name)
	}
}

func TestWhoMayReview(t *testing.T) {
	s := spec.Spec{Agent: spec.Agent{Use: "claude", Roles: map[string]spec.Override{"reviewer": {Use: "codex", Fallback: []spec.Substitute{{Use: "gemini"}}}}}}
	require.Equal(t, []int{0, 1}, rules.Eligible(s, "reviewer", []string{"openai"}), "nobody has asked for another")
	s.Reviewer.OtherVendor = true
	require.Equal(t, []int{0, 1}, rules.Eligible(s, "reviewer", []string{"anthropic"}))
	require.Equal(t, []int{1}, rules.Eligible(s, "reviewer", []string{"anthropic", "openai"}))
	require.Empty(t, rules.Eligible(s, "reviewer", []string{"google", "openai"}))
	require.Equal(t, []int{0}, rules.Eligible(s, "writer", []string{"anthropic"}), "writers may be those who have written")
}
