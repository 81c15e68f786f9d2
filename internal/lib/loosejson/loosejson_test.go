package loosejson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/loosejson"
)

func TestWhatIsMissingOrOfAnotherTypeIsEmpty(t *testing.T) {
	o := loosejson.Decode[loosejson.Object]([]byte(`{"a": "x", "b": "", "n": 3, "huge": 9e15, "less": -1, "is": true, "null": null, "in": {"a": "y", "n": "no"}, "of": [{"a": "z"}, 7, {"n": 1}]}`))
	require.Equal(t, []string{"x", "x", "", "", ""}, []string{o.Text("a"), o.Text("b", "n", "a"), o.Text("b"), o.Text("n"), o.Text("gone")})
	require.Equal(t, "y", o.At("in").Text("a"))
	require.Zero(t, o.At("in").Int("n"))
	require.Empty(t, o.At("a").At("b").Text("c"))
	require.Equal(t, 3, o.Int("n"))
	require.Equal(t, []int64{3, 0, 0, 0}, []int64{o.Count("n"), o.Count("huge"), o.Count("less"), o.Count("a")})
	require.Equal(t, []bool{true, false, true, false, false}, []bool{o.Is("is"), o.Is("a"), o.Has("b"), o.Has("null"), o.Has("gone")})
	require.Equal(t, `{"a": "y", "n": "no"}`, o.Raw("in"))
	require.Len(t, o.List("of"), 3, "one of another type is empty, too")
	require.Equal(t, 1, o.List("of")[2].Int("n"))
	require.Empty(t, o.List("a"))
}

func TestTextThatIsNoJSONIsNothing(t *testing.T) {
	require.Nil(t, loosejson.Decode[loosejson.Object]([]byte(`{"a": "x"`)))
	require.Nil(t, loosejson.Decode[loosejson.Object](nil))
	require.Equal(t, []string{"a", "", "b"}, loosejson.Decode[[]string]([]byte(`["a", 7, "b"]`)))
}

func TestANumberThatNobodyCanHaveSpentIsLimited(t *testing.T) {
	require.Equal(t, []int64{0, 5, 1e12}, []int64{loosejson.Count(-5), loosejson.Count(5), loosejson.Count(1 << 60)})
}
