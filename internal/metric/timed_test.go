package metric

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMetricIsATimeByItsUnitOrItsName(t *testing.T) {
	for _, c := range []struct {
		unit, name string
		timed      bool
	}{
		{"ms", "", true}, {"h", "", true}, {"req/s", "", true}, {"", "ms", true}, {"", "p99_latency", true}, {"", "build.seconds", true},
		{"", "", false}, {"B", "", false}, {"", "size", false}, {"", "items", false}, {"%", "coverage", false}, {"", "errors", false},
	} {
		f := &Form{Units: map[string]string{"": c.unit}, Sources: map[string]Source{"": {Name: c.name}}}
		require.Equal(t, c.timed, f.Timed(), "%q %q", c.unit, c.name)
	}
	require.False(t, (*Form)(nil).Timed())
}
