package render_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
)

func TestALongWaitIsToldTheMoreSeldomTheLongerItTakes(t *testing.T) {
	var p render.Pace
	var told []time.Duration
	for took := time.Second; took <= 10*time.Minute; took += time.Second {
		if p.Due(took) {
			told = append(told, took)
		}
	}
	require.Equal(t, []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute}, told)
	require.True(t, p.Due(time.Hour), "a machine that slept")
	require.False(t, p.Due(time.Hour+time.Minute))
}
