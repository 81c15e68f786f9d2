package command_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// A step that reaches a limit reports it in words, and the contract says beforehand whether the limit holds.
func TestE6_AStepSaysWhichLimitItReached(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	s := l.Spec
	memory, processes := spec.Size(64<<20), 40
	s.Limits.Memory, s.Limits.Processes = &memory, &processes
	o, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
	require.NoError(t, err)
	said := strings.Join(o.Protections, "\n")
	if strings.Contains(said, "NOT BOUNDED") {
		t.Skip("this user can make no cgroup here: " + said)
	}
	require.Contains(t, said, "at most 64MiB of memory")
	require.Contains(t, said, "at most 40 processes")
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	guard := func(name, command string) (out api.Outcome) {
		t.Helper()
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: api.Step{Ref: o.Ref, Key: api.Key{Iteration: 1, Attempt: 1, Name: name}, Head: o.Base}, Command: command})
		require.NoError(t, err)
		require.NoError(t, value.Get(&out))
		return out
	}
	out := guard("memory", `exec perl -e '$x .= "x" x (1 << 20) for 1 .. 400'`)
	require.False(t, out.OK())
	require.Contains(t, out.Ending(), "limits.memory (64MiB) was used up: the kernel ended processes of the command")
	out = guard("processes", `for i in $(seq 200); do sleep 1000 & done; exit 0`)
	require.Contains(t, out.Ending()+out.Warning, "limits.processes (40) was reached")
	out = guard("after", `true`)
	require.True(t, out.OK())
	require.Empty(t, out.Warning)
}
