package metric_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestP6_DecimalsKeepHowTheyWereWritten(t *testing.T) {
	for in, want := range map[string]string{
		"84.70": "84.70", "0": "0", "0.00": "0.00", "-3": "-3", "+5": "5", ".5": "0.5", "-.50": "-0.50",
		"5.": "5", "007": "7", "-007.10": "-7.10", "1e5": "1e5", "1.50E-3": "1.50e-3", "2e+07": "2e+07",
		" 12 ": "12", "123456789012345678901234567890.123456789": "123456789012345678901234567890.123456789",
	} {
		d, err := metric.ParseDecimal(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, d.String(), in)
		data, err := json.Marshal(d)
		require.NoError(t, err)
		assert.Equal(t, want, string(data), "JSON is a bare number")
		assert.True(t, json.Valid(data))
		var back metric.Decimal
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, d, back)
	}
}

func TestDecimalRefusesWhatIsNoNumberOrOutOfBounds(t *testing.T) {
	for _, in := range []string{
		"", " ", "+", ".", "e5", "1e", "1e+", "--1", "1 2", "NaN", "Inf", "-inf", "0x1f", "1_000", "1,5", "12%", "1.2.3", "٣",
		"1e309", "1e-401", "1e999999999", "-1e999999999999999999999", "0." + strings.Repeat("0", 500), strings.Repeat("9", 309), strings.Repeat("9", 1<<20),
	} {
		_, err := metric.ParseDecimal(in)
		assert.Error(t, err, "%.40q", in)
		if err != nil {
			assert.Less(t, len(err.Error()), 400)
		}
	}
	assert.Panics(t, func() { metric.MustDecimal("x") })
}

func TestDecimalZeroValueIsZero(t *testing.T) {
	var d metric.Decimal
	assert.Equal(t, "0", d.String())
	assert.True(t, d.IsZero())
	assert.Equal(t, 0, d.Sign())
	assert.Equal(t, metric.MustDecimal("0"), d)
	assert.Equal(t, "5", metric.MustDecimal("5").Add(d).String())
	assert.Equal(t, d, d.Neg())
	data, err := json.Marshal(struct {
		A metric.Decimal
		B metric.Decimal  `json:",omitzero"`
		C *metric.Decimal `json:",omitempty"`
	}{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"A":0}`, string(data))
}

func TestDecimalReadsJSONNumbersAndStrings(t *testing.T) {
	var d metric.Decimal
	require.NoError(t, json.Unmarshal([]byte(`"0.10"`), &d))
	assert.Equal(t, "0.10", d.String())
	require.NoError(t, json.Unmarshal([]byte(`null`), &d))
	assert.Equal(t, "0.10", d.String(), "null changes nothing, as encoding/json has it")
	for _, bad := range []string{`"x"`, `true`, `{}`, `[]`, `""`, `1e400`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &d), bad)
	}
}

func TestP6_DecimalArithmeticIsExact(t *testing.T) {
	d := metric.MustDecimal
	assert.Equal(t, "0.1", d("84.8").Sub(d("84.7")).String())
	assert.Equal(t, "0.00", d("84.70").Sub(d("84.7")).String(), "as many decimals as bc prints")
	assert.Equal(t, "-50000", d("1e5").Sub(d("1.5e5")).String())
	assert.Equal(t, 0, d("84.7").Cmp(d("84.70")))
	assert.Equal(t, "-1.50", d("1.50").Neg().String())
	assert.Equal(t, "0.3", d("0.1").Add(d("0.2")).String())
}

func TestDecimalFloatIsFinite(t *testing.T) {
	big := metric.MustDecimal(strings.Repeat("9", 308))
	assert.False(t, math.IsInf(big.Float(), 0))
	assert.False(t, math.IsInf(big.Sub(big.Neg()).Float(), 0), "the difference of two may exceed the range of float64")
	assert.Equal(t, -math.MaxFloat64, big.Neg().Sub(big).Sub(big).Float())
	assert.Equal(t, 0.1, metric.MustDecimal("0.1").Float())

	back := metric.Decimal{}
	sum := big.Sub(big.Neg())
	data, err := json.Marshal(sum)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back), "what was computed comes back")
	assert.Equal(t, sum, back)
}

func TestP7_DeltaHasASignAndTwoDecimals(t *testing.T) {
	for in, want := range map[string]string{
		"0": "+0.00", "2.3": "+2.30", "-0.1": "-0.10", "0.004": "+0.00", "-0.004": "-0.00", "1e3": "+1000.00", "0.125": "+0.12", "0.375": "+0.38",
		"123456789.999": "+123456790.00",
	} {
		assert.Equal(t, want, metric.FormatDelta(metric.MustDecimal(in)), in)
	}
}

// bench/floor.sh writes deltas with the shell's printf.
func TestP7_DeltaEqualsTheShellsPrintf(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	if out, _ := exec.Command(bash, "-c", "uname -m").Output(); strings.TrimSpace(string(out)) != "x86_64" {
		t.Skip("long double is another format here")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var numbers []string
	for range 3000 {
		numbers = append(numbers, strconv.FormatFloat(float64(rng.IntN(2_000_000)-1_000_000)/1000, 'f', 3, 64))
	}
	out, err := exec.Command(bash, append([]string{"-c", `printf '%+.2f\n' "$@"`, "-"}, numbers...)...).Output()
	require.NoError(t, err)
	for i, want := range strings.Fields(string(out)) {
		require.Equal(t, want, metric.FormatDelta(metric.MustDecimal(numbers[i])), numbers[i])
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"84.70", "+5", ".5", "5.", "007", "1e5", "1E-300", "1e999999999", "-0", "NaN", "0e0", "1e+0000000005", "00000e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := metric.ParseDecimal(s)
		if err != nil {
			return
		}
		text := d.String()
		if len(text) > len(s)+2 {
			t.Fatalf("%q grew to %q", s, text)
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is not JSON", text)
		}
		again, err := metric.ParseDecimal(text)
		if err != nil || again != d {
			t.Fatalf("%q reads back as %q, %v", text, again, err)
		}
		if math.IsInf(d.Float(), 0) || math.IsNaN(d.Float()) {
			t.Fatalf("%q is %v", text, d.Float())
		}
		if d.Sub(d).Sign() != 0 || d.Cmp(d.Neg().Neg()) != 0 || d.Neg().Sign() != -d.Sign() {
			t.Fatalf("arithmetic of %q", text)
		}
		data, err := json.Marshal(d.Sub(metric.MustDecimal("-1.5")))
		if err != nil || json.Unmarshal(data, &again) != nil || again.Sub(d).Cmp(metric.MustDecimal("1.5")) != 0 {
			t.Fatalf("%q + 1.5 is %s, %v", text, data, err)
		}
		if want, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil && want != d.Float() {
			t.Fatalf("%q is %v, not %v", s, d.Float(), want)
		}
		metric.FormatDelta(d)
	})
}
