package repairlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home/repairlog"
)

func TestWhatIsMendedIsRememberedUntilALedgerHasIt(t *testing.T) {
	dir := t.TempDir()
	require.Empty(t, repairlog.Lines(dir))
	for _, what := range []string{"the store is gone;\nit is mended", "the record was damaged", "the record was damaged"} {
		repairlog.Note(dir, what)
	}
	require.Equal(t, []string{"the store is gone; it is mended", "the record was damaged", "the record was damaged"}, repairlog.Untold(dir))
	repairlog.Tell(dir, "the record was damaged")
	repairlog.Tell(dir, "something else")
	require.Equal(t, []string{"the store is gone; it is mended", "the record was damaged"}, repairlog.Untold(dir), "it happened twice, and is told twice")
	require.Len(t, repairlog.Lines(dir), 3, "what is told is still shown")
	require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: the store is gone; it is mended$`, repairlog.Lines(dir)[0])
}

func TestWhatIsRememberedIsBoundedAndItsOwnDamageIsNone(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		repairlog.Note(dir, fmt.Sprint(i, strings.Repeat("é", 999)))
	}
	require.Len(t, repairlog.Untold(dir), 20)
	require.True(t, strings.HasPrefix(repairlog.Untold(dir)[0], "10"), "the oldest go first")
	require.Less(t, len(repairlog.Untold(dir)[0]), 510)
	require.NoError(t, os.Truncate(filepath.Join(dir, "mended.json"), 7))
	require.Empty(t, repairlog.Lines(dir))
	repairlog.Note(dir, "more")
	require.Len(t, repairlog.Lines(dir), 1)
}
