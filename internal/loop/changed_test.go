package loop_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
)

// The list is capped, but its count is not. The event has the number that the list can't tell.
func TestL5_ChangedFilesAreAccumulated(t *testing.T) {
	s := loop.State{}
	for i := range loop.KeepFiles {
		s = s.Apply(loop.Event{Type: loop.ChangeCommitted, Files: []string{"again", fmt.Sprint(i)}})
	}
	require.Len(t, s.ChangedFiles, loop.KeepFiles)
	require.Equal(t, loop.KeepFiles+1, s.ChangedFilesCount)
	for range 3 {
		s = s.Apply(loop.Event{Type: loop.ChangeCommitted, Files: []string{"99"}, TotalFiles: loop.KeepFiles + 1})
	}
	require.Equal(t, loop.KeepFiles+1, s.ChangedFilesCount, "a file that is beyond the list counts once")
	s = s.Apply(loop.Event{Type: loop.ChangeCommitted, Files: []string{"new"}, TotalFiles: loop.KeepFiles + 2})
	require.Equal(t, loop.KeepFiles+2, s.ChangedFilesCount)
}
