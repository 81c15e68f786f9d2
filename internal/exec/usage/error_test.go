package usage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/usage"
)

// The errors of the APIs, with the end of a limit if the answer has one.
func TestA2_WhatAProviderAnswersInsteadOfWork(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		said    string
		until   time.Duration
	}{
		"Anthropic's, of a subscription": {429, map[string]string{"Anthropic-Ratelimit-Unified-Reset": "1795397400", "Retry-After": "7"}, `{"type":"error","error":{"type":"rate_limit_error","message":"This would exceed your limit."}}`, "rate_limit_error: This would exceed your limit.", 30 * time.Minute},
		"Codex's":                        {429, nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1795397400}}`, "usage_limit_reached: The usage limit has been reached", 30 * time.Minute},
		"Gemini's":                       {429, nil, `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"34.2s"}]}}]`, "RESOURCE_EXHAUSTED: quota", 35 * time.Second},
		"Gemini's, with other details":   {429, nil, `[{"error":{"message":"quota","status":"RESOURCE_EXHAUSTED","details":"none"}}]`, "RESOURCE_EXHAUSTED: quota", 0},
		"seconds":                        {429, map[string]string{"Retry-After": "90"}, "", "it gave no reason", 90 * time.Second},
		"a date":                         {429, map[string]string{"Retry-After": "Mon, 23 Nov 2026 01:02:00 GMT"}, `{"message":"slow down"}`, "slow down", 2 * time.Minute},
		"no end":                         {429, nil, `{"error":{"message":"slow down","code":429}}`, "slow down", 0},
		"a key that nobody knows":        {401, map[string]string{"Retry-After": "90"}, `{"error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "authentication_error: invalid x-api-key", 0},
		"no JSON":                        {502, nil, "<html>", "it gave no reason", 0},
		"work":                           {200, nil, `{"error":{"message":"x"}}`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := usage.Call{Status: c.status}.WithError(func(name string) string { return c.headers[name] }, []byte(c.body), now)
			require.Equal(t, c.said, got.Error)
			if c.until == 0 {
				require.Zero(t, got.Until)
				return
			}
			require.Equal(t, now.Add(c.until), time.Unix(got.Until, 0).UTC())
		})
	}
}

// Answers come one after the other.
func TestATotalKnowsWhetherTheProviderWorks(t *testing.T) {
	var all usage.Total
	all.Read(usage.Call{Begun: true}.Line())
	require.Equal(t, usage.Total{Open: 1}, all)
	for _, c := range []struct {
		call    usage.Call
		failing int
		worked  bool
	}{
		{usage.Call{Status: 500}, 500, false}, {usage.Call{Status: 429, Until: 9}, 429, false},
		{usage.Call{}, 429, false}, // the program has gone away
		{usage.Call{Status: 200}, 0, true}, {usage.Call{Refused: "tokens"}, 0, true}, {usage.Call{Status: 401}, 401, true},
	} {
		all.Read(c.call.Line())
		require.Equal(t, c.worked, all.Worked)
		require.Zero(t, all.Open)
		if c.failing == 0 {
			require.Nil(t, all.Failing)
			continue
		}
		require.Equal(t, c.failing, all.Failing.Status)
	}
}
