package metric_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pawl/internal/metric"
)

func TestP2_AnIdeaIsTheSameHoweverItIsWorded(t *testing.T) {
	for _, pair := range [][2]string{
		{"Cache the tokens in the lexer", "caching tokens in lexer"},
		{"Cache tokens in the lexer", "In the lexer, cache the tokens."},
		{"perf(lexer): inline the hot loop", "Inlining the hot loop"},
		{"Idea: drop the second copy", "remove second copy"},
		{"We should delete unused imports", "Delete unused import"},
		{"Let's try to preallocate the buffer", "preallocating a buffer"},
		{"lower the buffer size to 64", "Reduce buffer sizes to 64"},
		{"initialise the map once", "Initialize the map once"},
		{"Skipping empty entries", "skip empty entry"},
		{"raise the batch size within the writer", "increase batch size in writer"},
		{"hash the keys", "hashes keys"},
		{"call memchr", "calling memchr"},
	} {
		assert.Equal(t, metric.Idea(pair[0]), metric.Idea(pair[1]), "%s / %s", pair[0], pair[1])
	}
}

func TestP2_TwoIdeasAreNeverTakenForOne(t *testing.T) {
	for _, pair := range [][2]string{
		{"cache token", "token cache"},
		{"use a map instead of a slice", "use a slice instead of a map"},
		{"move the check before the loop", "move the loop before the check"},
		{"call f in g", "call g in f"},
		{"convert the list to a map", "convert the map to a list"},
		{"add a cache", "remove the cache"},
		{"increase the buffer to 64", "reduce the buffer to 64"},
		{"set the size to 8", "set the size to 16"},
		{"parse lazily", "parser lazily"},
		{"do not copy the slice", "copy the slice"},
		{"copy without locks", "copy with locks"},
		{"inline readByte", "inline readBytes2"},
		{"cache tokens", "cache tokens and lines"},
		{"use string", "use str"},
		{"use the bus", "use the bu"},
		{"sort by name then size", "sort by size then name"},
		{"fix: handle nil", "handle nil in fix"},
		{"speed up parse", "speed parse up front"},
	} {
		assert.NotEqual(t, metric.Idea(pair[0]), metric.Idea(pair[1]), "%s / %s", pair[0], pair[1])
	}
	assert.Empty(t, metric.Idea("the … !"))
}
