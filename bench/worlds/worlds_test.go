package worlds_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/bench/worlds"
	"pawl/test/harness/tier"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/numbers.md anew")

const (
	runs = 200
	page = "../../docs/reference/numbers.md"
)

// This checks the targets of issue 14, and that the tables of docs/reference/numbers.md are what `go run ./bench -only evidence`
// prints. -update writes the tables again. It simulates pawl's own rule in the first two worlds, and with
// -tags nightly in all. Those of the other tools would take a minute.
func TestTheClaimIsTrueInEveryWorld(t *testing.T) {
	const begin, end = "<!-- Simulated: go test ./bench/worlds -update -->\n\n", "\n<!-- end -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	all := worlds.All()
	if !*update && !tier.Nightly {
		all = all[:2]
	}
	summaries := worlds.In(all, worlds.Rules()[0], runs)
	for i, w := range all {
		s := summaries[i]
		require.InDelta(t, 0, s.Bias, .5, "%s: percentage points that the claim is off, on average", w.Name)
		require.LessOrEqual(t, s.Most, worlds.Budget, "%s: evaluations", w.Name)
		require.Greater(t, s.Covered, .9, w.Name)
		if i == 0 {
			require.GreaterOrEqual(t, s.True, 7., "percent gained")
			require.LessOrEqual(t, s.False, 1.)
		}
		if w.Real == 0 {
			require.LessOrEqual(t, 100*s.False/s.Offered, 3., "of 100 changes that do nothing")
		}
	}
	own := worlds.Own(all, summaries)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+own+"\n"+worlds.Beside(runs)+end+after), 0o644))
		return
	}
	require.True(t, strings.HasPrefix(rest, own), "docs/reference/numbers.md is out of step: go test ./bench/worlds -update\n%s", own)
}

func TestOneSampleClaimsWhatIsNotThere(t *testing.T) {
	s := worlds.Simulate(worlds.All()[1], worlds.Rules()[1], runs)
	require.Greater(t, s.Claimed, 6., "percent, after 100 changes that do nothing")
	require.Zero(t, s.True)
}
