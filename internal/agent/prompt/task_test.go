package prompt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/prompt"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// TestEveryTaskOfEveryKindIsSaid fills in each template of each kind, for a loop that has just begun and one with
// results, and for an agent that writes a file and one that answers by its output.
func TestEveryTaskOfEveryKindIsSaid(t *testing.T) {
	target := metric.MustDecimal("9")
	number, err := metric.ParseDecimal("10.50")
	require.NoError(t, err)
	for _, k := range kind.All {
		for at := range k.Tasks {
			for _, streams := range []bool{false, true} {
				b := prompt.Brief{
					Call: api.Call{Phase: string(at), Role: k.Machine(1, true).Row(at).Role}, Kind: k, Streams: streams,
					Spec: spec.Spec{Goal: "the goal", Test: spec.Test{Command: "make test"}, Verify: spec.Verify{Command: "make bench", Direction: "lower"}},
				}
				begun := b
				begun.Idea, begun.Repair = "an idea", "it failed"
				begun.Spec.Verify.Target = &target
				begun.State = loop.State{Iteration: 3, Baseline: &number, Best: &number}
				for _, text := range []string{b.Text(), begun.Text()} {
					require.Contains(t, text, "## Your task now\n\n", at)
					require.NotContains(t, text, "<no value>", at)
				}
				if k.Reference {
					require.Contains(t, begun.Text(), "- Baseline 10.50, best so far 10.50.\n- Target: 9.\n- Changes kept: 0")
				}
			}
		}
	}
}
