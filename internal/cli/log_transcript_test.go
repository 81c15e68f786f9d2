package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// A candidate is made before the iteration that takes it, with a number of its own.
func TestTheTranscriptsOfAnIterationAreThoseOfTheCandidateThatItTook(t *testing.T) {
	called := func(iteration int, step string, candidate *loop.Candidate) loop.Event {
		file := "/steps/" + step + "/" + api.TranscriptFile + "@sha256:" + strings.Repeat("a", 64)
		return loop.Event{Type: loop.StepEnded, Iteration: iteration, Step: step, Role: "writer", EvidenceIDs: []string{file}, Candidate: candidate}
	}
	events := []loop.Event{
		called(0, "plan", nil),
		called(0, "modify-2", &loop.Candidate{N: 2}), called(0, "modify-1", &loop.Candidate{N: 1}),
		{Type: loop.CandidateTaken, Iteration: 1, Candidate: &loop.Candidate{N: 2}}, called(1, "rework", nil),
		{Type: loop.CandidateTaken, Iteration: 2, Candidate: &loop.Candidate{N: 1}},
	}
	for iteration, want := range [][]string{{"plan"}, {"modify-2", "rework"}, {"modify-1"}, nil} {
		var got []string
		for _, c := range transcribed(events, iteration) {
			got = append(got, c.Step)
		}
		require.Equal(t, want, got, "iteration %d", iteration)
	}
}
