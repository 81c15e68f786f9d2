package agentcall

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

// TestE6_WhatIsPlantedInASignInDoesNotStay has pi's file, in which a key can be a command that the user's next
// session runs.
func TestE6_WhatIsPlantedInASignInDoesNotStay(t *testing.T) {
	t.Parallel()
	home, step := t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".pi/agent/auth.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	read := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	const mine, renewed, planted = `{"a": {"type": "oauth", "access": "1"}}`, `{"a": {"type": "oauth", "access": "2"}}`, `{"a": {"type": "oauth", "access": "!x"}}`
	pi, _ := agents.Lookup(agents.Pi)
	before := func() signIns {
		s, err := signedIn([]agents.Program{pi}, home, filepath.Join(step, "stdout"))
		require.NoError(t, err)
		return s
	}
	check := func(s signIns) []string {
		w, err := s.check()
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(step, "signins.json"))
		return w
	}
	write(mine)
	s := before()
	write(renewed)
	require.Empty(t, check(s))
	require.Equal(t, renewed, read())

	s = before()
	write(planted)
	require.Contains(t, check(s)[0], file+"; pawl has restored the file")
	require.Equal(t, renewed, read())

	before() // and the worker dies
	write(planted)
	require.Len(t, check(before()), 1)
	require.Equal(t, renewed, read())

	require.NoError(t, os.Remove(file))
	s = before()
	write(mine)
	require.Len(t, check(s), 1)
	require.NoFileExists(t, file)
	codex, _ := agents.Lookup(agents.Codex)
	s, err := signedIn([]agents.Program{codex}, home, filepath.Join(step, "stdout"))
	require.NoError(t, err)
	require.Empty(t, s.before, "its file has credentials alone")
}
