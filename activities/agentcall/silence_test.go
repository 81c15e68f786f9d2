package agentcall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/supervisor"
)

// TestWorkExtendsSilence plays calls that print nothing, minute by minute, with limits.silence of five minutes.
func TestWorkExtendsSilence(t *testing.T) {
	minute := supervisor.Effort{CPU: time.Minute}
	for name, c := range map[string]struct {
		works func(minute int) supervisor.Effort // what the processes use in each minute
		ends  int
	}{
		"it waits":                   {func(int) supervisor.Effort { return supervisor.Effort{} }, 6},
		"it draws a spinner":         {func(int) supervisor.Effort { return supervisor.Effort{CPU: 3 * time.Second, Bytes: 20 << 10} }, 6},
		"it computes for ever":       {func(int) supervisor.Effort { return minute }, 16},
		"it loads for ever":          {func(int) supervisor.Effort { return supervisor.Effort{Bytes: 1 << 20} }, 16},
		"it computes in the first 4": {func(m int) supervisor.Effort { return supervisor.Effort{CPU: max(0, 4-time.Duration(m)) * time.Minute} }, 10},
		"it computes in the eighth":  {func(m int) supervisor.Effort { return supervisor.Effort{CPU: time.Duration(m/8) * time.Minute} }, 6},
		"a process of it ends":       {func(m int) supervisor.Effort { return supervisor.Effort{CPU: -time.Minute} }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			used := supervisor.Effort{CPU: time.Hour, Bytes: 1 << 30}
			quiet := silence{limit: 5 * time.Minute, heard: now}
			quiet.works.effort = func() supervisor.Effort { return used }
			minutes := 0
			for quiet.look(now); !quiet.tooLong; quiet.look(now) {
				more := c.works(minutes)
				used.CPU, used.Bytes = used.CPU+more.CPU, used.Bytes+more.Bytes
				minutes++
				now = now.Add(time.Minute)
			}
			require.Equal(t, c.ends, minutes)
		})
	}
	unlimited := silence{}
	unlimited.look(time.Now())
	require.False(t, unlimited.tooLong)
}
