package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func TestANoteBeyondThoseThatTheNextCallIsToldIsRefused(t *testing.T) {
	s := loop.State{Status: loop.Running}
	for range loop.KeepNotes {
		reply, err := rules.Answer(s, spec.Spec{}, loop.MessageSteer, loop.Message{Note: "mind the gap"})
		require.NoError(t, err)
		for _, e := range reply.Events {
			e.Seq = s.Seq + 1
			s = s.Apply(e)
		}
	}
	require.Len(t, s.Guidance, loop.KeepNotes)
	_, err := rules.Answer(s, spec.Spec{}, loop.MessageSteer, loop.Message{Note: "one more"})
	require.ErrorIs(t, err, fault.New(fault.TooManyNotes, ""))
}
