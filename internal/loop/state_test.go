package loop_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
)

// Programs find the fields of the contract in the JSON even if they have no value.
func TestWhatTheContractNamesIsAlwaysThere(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		keys  string
	}{
		{"state", loop.New("x", "improve"), "loop kind status phase iteration gate pauseReason budget baseline best discardsInARow fixAttempts lastGuard lastTest lastVerify " +
			"changedFiles branch head ledger desk host contract proposal exitStatus errorCode recovery iterations"},
		{"gate", loop.Gate{}, "id kind summary hash openedAt answers"},
		{"budget", loop.NewBudget(nil), "iterations activeTime toolCalls tokens costUSD wallClock"},
		{"amount", loop.Amount{}, "limit used remaining"},
		{"contract", loop.Contract{}, "hash approvedBy approvedAt"},
		{"proposal", loop.Proposal{}, "hash base head files insertions deletions state"},
		{"iteration", loop.Iteration{}, "n description metric delta kept reason commit durationMs"},
		{"result", loop.Result{}, "exitStatus errorCode iterations kept discarded baseline best delta branch head proposal usage recommendation"},
		{"event", loop.Event{}, "seq time loop type iteration phase"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := json.Marshal(c.value)
			require.NoError(t, err)
			var got map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(b, &got))
			for key := range strings.FieldsSeq(c.keys) {
				require.Contains(t, got, key)
			}
		})
	}
	b, err := json.Marshal(loop.New("x", "improve"))
	require.NoError(t, err)
	for _, list := range []string{"changedFiles", "iterations", "kept"} {
		require.Contains(t, string(b), `"`+list+`":[]`, "no list is null")
	}
}
