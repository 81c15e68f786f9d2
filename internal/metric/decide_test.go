package metric_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestP6_DecisionMatrix(t *testing.T) {
	for _, test := range []struct {
		direction, reference, value, minDelta string
		keep                                  bool
		delta                                 string
	}{
		{"higher", "84.7", "84.8", "0.1", true, "0.1"}, // exactly the threshold, which floats get wrong
		{"higher", "84.7", "84.79", "0.1", false, "0.09"},
		{"higher", "84.7", "84.7", "0", false, "0.0"}, // the source's "+0.0 no"
		{"higher", "84.7", "84.70", "0", false, "0.00"},
		{"higher", "84.7", "84.6", "0", false, "-0.1"},
		{"higher", "84.7", "90", "0", true, "5.3"},
		{"higher", "-5", "-4", "1", true, "1"},
		{"higher", "1e3", "1001", "0.5", true, "1"},
		{"lower", "84.7", "84.6", "0.1", true, "-0.1"},
		{"lower", "84.7", "84.61", "0.1", false, "-0.09"},
		{"lower", "84.7", "84.7", "0", false, "0.0"},
		{"lower", "84.7", "84.8", "0", false, "0.1"},
		{"lower", "0.3", "0.1", "0.2", true, "-0.2"},
	} {
		d := metric.MustDecimal
		keep, delta := metric.Decide(test.direction, d(test.reference), d(test.value), d(test.minDelta))
		assert.Equal(t, test.keep, keep, "%+v", test)
		assert.Equal(t, test.delta, delta.String(), "%+v", test)
	}
}

func TestP6_KeepIsAlwaysAStrictImprovement(t *testing.T) {
	property := func(reference, value int32, minDelta uint16, lower bool) bool {
		d := func(n int64) metric.Decimal { return metric.MustDecimal(fmt.Sprintf("%de-2", n)) }
		direction, gain := metric.Higher, int64(value)-int64(reference)
		if lower {
			direction, gain = metric.Lower, -gain
		}
		keep, delta := metric.Decide(direction, d(int64(reference)), d(int64(value)), d(int64(minDelta)))
		back, _ := metric.Decide(direction, d(int64(value)), d(int64(reference)), d(int64(minDelta)))
		return keep == (gain > 0 && gain >= int64(minDelta)) && !(keep && back) && delta.Cmp(d(int64(value)-int64(reference))) == 0
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 2000}))
	near := func(reference, step int8, minDelta uint8, lower bool) bool {
		return property(int32(reference), int32(reference)+int32(step), uint16(minDelta), lower)
	}
	require.NoError(t, quick.Check(near, &quick.Config{MaxCount: 2000}))
}

// The formulas are those of bench/floor.sh.
func TestP6_DecidesAsTheFloorDoes(t *testing.T) {
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("no awk")
	}
	const program = `{
		delta = sprintf("%.12g", $1 - $2); d = delta + 0; if ($4 == "lower") d = -d
		print delta, (d > 0 && d >= $3) ? "yes" : "no"
	}`
	rng := rand.New(rand.NewPCG(5, 6))
	var in strings.Builder
	var tests [][4]string
	for range 3000 {
		decimals := rng.IntN(4)
		number := func(n int) string { return fmt.Sprintf("%.*f", decimals, float64(rng.IntN(n))/10) }
		test := [4]string{number(1000), number(1000), number(20), []string{"higher", "lower"}[rng.IntN(2)]}
		if rng.IntN(3) == 0 { // right at the threshold
			test[0] = metric.MustDecimal(test[1]).Add(metric.MustDecimal(test[2])).String()
		}
		tests = append(tests, test)
		fmt.Fprintln(&in, strings.Join(test[:], " "))
	}
	awk := exec.Command("awk", program)
	awk.Stdin = strings.NewReader(in.String())
	out, err := awk.Output()
	require.NoError(t, err)
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		wantDelta, wantKeep, _ := strings.Cut(line, " ")
		d := metric.MustDecimal
		keep, delta := metric.Decide(tests[i][3], d(tests[i][1]), d(tests[i][0]), d(tests[i][2]))
		require.Equal(t, wantKeep == "yes", keep, "%v", tests[i])
		require.Zero(t, d(wantDelta).Cmp(delta), "%v: %s, not %s", tests[i], delta, wantDelta)
	}
}

func TestP8_TargetIsMetInTheMetricsDirection(t *testing.T) {
	d := metric.MustDecimal
	assert.True(t, metric.TargetMet("higher", d("90.0"), d("90")))
	assert.True(t, metric.TargetMet("higher", d("91"), d("90")))
	assert.False(t, metric.TargetMet("higher", d("89.99"), d("90")))
	assert.True(t, metric.TargetMet("lower", d("90.0"), d("90")))
	assert.True(t, metric.TargetMet("lower", d("89"), d("90")))
	assert.False(t, metric.TargetMet("lower", d("90.01"), d("90")))
}
