package workspace_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home/hostrecord"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// TestARecordIsReadWhileItsLoopIsClosed is for the race detector: the sweep and the repair of stores read records at any time.
func TestARecordIsReadWhileItsLoopIsClosed(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	closed := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-closed:
				return
			default:
				l.RecordOf(l.Opened.Ref)
			}
		}
	})
	require.NoError(t, l.CloseTrees(t.Context(), ws))
	close(closed)
	reading.Wait()
	r, err := hostrecord.Read(l.Home, l.Opened.Ref)
	require.NoError(t, err)
	require.True(t, r.Closed)
}
