package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/ledger"
	"pawl/internal/loop"
)

func TestP7_ARowSaysWhatWasPrintedInsteadOfANumber(t *testing.T) {
	it := loop.Iteration{N: 1, Description: "skip it", Reason: "error:no-number", Note: `instead: "core dumped"`}
	row, ok := ledger.Row(loop.Event{Type: loop.IterationFailed, Record: &it})
	require.True(t, ok)
	require.Contains(t, row.String(), `error:no-number: skip it (instead: "core dumped")`)
}
