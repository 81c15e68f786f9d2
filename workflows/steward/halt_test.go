package steward

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// A steward whose repository or disk is gone must not live for ever.
func TestS6_AHaltEndsAStewardThatCanDoNothing(t *testing.T) {
	const halt = time.Minute // after the beginning
	for name, c := range map[string]struct {
		activity    string
		from, until time.Duration // when it fails
		unsaid      bool          // the ledger doesn't have the end
	}{
		"its repository can't be opened":            {stewardapi.OpenStewardName, 0, time.Hour, false},
		"its ledger can't be written":               {stewardapi.RecordTasksName, 30 * time.Second, time.Hour, true},
		"its ledger can't be written for some time": {stewardapi.RecordTasksName, 30 * time.Second, halt + 5*time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := setUp(t)
			began := w.env.Now()
			w.trouble = func(activity string) error {
				if since := w.env.Now().Sub(began); activity == c.activity && since >= c.from && since < c.until {
					return errors.New("read-only file system")
				}
				return nil
			}
			var told []string
			w.course["crew-a-one"] = func(ctx workflow.Context, _ string) task.ChildResult {
				var raw json.RawMessage
				workflow.GetSignalChannel(ctx, loop.MessageHalt).Receive(ctx, &raw)
				told = append(told, "halt")
				return task.ChildResult{Status: "halted"}
			}
			w.submit(time.Second, `{"id":"a","body":"x"}`)
			var halted time.Time
			w.env.RegisterDelayedCallback(func() {
				halted = w.env.Now()
				w.env.SignalWorkflow(loop.MessageHalt, json.RawMessage(`{"by":"ann"}`))
			}, halt)
			w.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
			require.NoError(t, w.env.GetWorkflowError())
			var r Result
			require.NoError(t, w.env.GetWorkflowResult(&r))
			require.Equal(t, loop.Halted, r.Status)
			want := "halted by ann"
			if c.unsaid {
				want += "; its ledger doesn't have the end: read-only file system"
			}
			require.Equal(t, want, r.Reason)
			require.LessOrEqual(t, w.env.Now().Sub(halted), 20*time.Second)
			if c.activity == stewardapi.RecordTasksName {
				require.Equal(t, []string{"halt"}, told, "its loops end too")
			}
		})
	}
}
