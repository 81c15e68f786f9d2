package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

// TestE6_OnlyARenewedSignInStays checks what opencode and pi write to their sign-in files, and what an agent could
// plant there for the user's next session.
func TestE6_OnlyARenewedSignInStays(t *testing.T) {
	const before = `{"anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}, "mine": {"type": "api", "key": "!pass mine"}, "https://here": {"type": "wellknown", "key": "K", "token": "t"}}`
	for name, c := range map[string]struct {
		after string
		want  bool
	}{
		"nothing":              {before, true},
		"a renewed one":        {`{"anthropic": {"type": "oauth", "access": "b", "refresh": "s", "expires": 2, "accountId": "x"}, "mine": {"type": "api", "key": "!pass mine"}, "https://here": {"type": "wellknown", "key": "K", "token": "t"}}`, true},
		"a command":            {`{"mine": {"type": "api", "key": "!touch /tmp/x"}}`, false},
		"a command for a key":  {`{"anthropic": {"type": "oauth", "access": "!touch /tmp/x"}}`, false},
		"another one":          {`{"openai": {"type": "api", "key": "k"}}`, false},
		"settings from afar":   {`{"https://evil": {"type": "wellknown", "key": "K", "token": "t"}}`, false},
		"another kind":         {`{"anthropic": {"type": "wellknown", "key": "K", "token": "t"}}`, false},
		"another token afar":   {`{"https://here": {"type": "wellknown", "key": "PATH", "token": "t"}}`, false},
		"no JSON":              {`#!/bin/sh`, false},
		"nothing is left":      {``, false},
		"one is signed out":    {`{"mine": {"type": "api", "key": "!pass mine"}}`, false},
		"something else there": {`{"anthropic": "oauth"}`, false},
	} {
		require.Equal(t, c.want, agents.Renewed([]byte(before), []byte(c.after)), name)
	}
	require.True(t, agents.Renewed(nil, nil))
	require.False(t, agents.Renewed(nil, []byte(`{"anthropic": {"type": "api", "key": "k"}}`)))
	require.True(t, agents.Renewed([]byte("no JSON"), []byte("no JSON")))
}
