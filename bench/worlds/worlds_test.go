package worlds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/bench/worlds"
)

// The simulation of docs/evidence.md with fewer runs and the same seeds; `go run ./bench -only evidence` prints all of it.
func TestTheClaimIsTrueInEveryWorld(t *testing.T) {
	const runs = 100
	pawl := worlds.Rules()[0]
	for _, w := range worlds.All() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			s := worlds.Simulate(w, pawl, runs)
			t.Logf("%+v", s)
			require.InDelta(t, 0, s.Bias, .5, "percentage points that the claim is off, on average")
			require.LessOrEqual(t, s.Most, worlds.Budget)
			require.Greater(t, s.Covered, .9)
			if w == worlds.All()[0] {
				require.GreaterOrEqual(t, s.True, 7.)
				require.LessOrEqual(t, s.False, 1.)
			}
			if w.Real == 0 {
				require.LessOrEqual(t, 100*s.False/s.Offered, 3.)
			}
		})
	}
}

func TestOneSampleClaimsWhatIsNotThere(t *testing.T) {
	s := worlds.Simulate(worlds.All()[1], worlds.Rules()[1], 100)
	require.Greater(t, s.Claimed, 6., "percent, after 100 changes that do nothing")
	require.Zero(t, s.True)
}
