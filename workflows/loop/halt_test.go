package loop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	loopworkflow "pawl/workflows/loop"
)

// In each of these states something is tried again and again, or does not answer. Nothing but the halt ends the loop.
func TestA6_AHaltEndsALoopInEveryState(t *testing.T) {
	noDisk := errors.New("no disk")
	for state, c := range map[string]struct {
		fails  string // the activity that fails each time
		opens  error
		script map[int][]try
		change map[string]any
		say    map[string]any // signals before the halt
		saved  bool           // the ledger has the end
	}{
		"opening":                      {opens: noDisk},
		"the baseline fails":           {fails: api.VerifyName, saved: true},
		"the agent works":              {script: map[int][]try{1: {{Says: "x", Hang: true}}}, saved: true},
		"the agent can't be started":   {fails: api.CallName, saved: true},
		"the change can't be taken":    {fails: api.CommitName, saved: true},
		"a judgement can't be written": {fails: api.SettleName},
		"a gate can't be recorded":     {fails: api.RecordName, change: map[string]any{"approvals": map[string]any{"plan": "required"}}, saved: true},
		"a gate waits":                 {change: map[string]any{"approvals": map[string]any{"plan": "required"}}, saved: true},
		"paused":                       {script: map[int][]try{1: {{Says: "x", Hang: true}}}, say: map[string]any{"pause": nil}, saved: true},
		"the proposal can't be made":   {fails: api.ProposeName, script: map[int][]try{1: {{Says: "better", Metric: "12"}}}, change: map[string]any{"approvals": map[string]any{"diff": "required"}}, saved: true},
		"nothing can be recorded":      {fails: api.CloseName, change: map[string]any{"approvals": map[string]any{"plan": "required"}}},
	} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(t, c.script)
			w.openErr = c.opens
			w.host = func(name string, do func() error) error {
				if name == c.fails {
					return noDisk
				}
				return do()
			}
			change := map[string]any{"limits": map[string]any{"iterations": 1}}
			for key, value := range c.change {
				change[key] = value
			}
			halted := time.Minute
			if c.script != nil { // while an activity runs, the test's clock is the machine's
				halted = 2 * time.Second
			}
			input, err := converter.GetDefaultDataConverter().ToPayload(specOf(change))
			require.NoError(t, err)
			var began time.Time
			env := runOnce(t, w, converter.NewRawValue(input), loopworkflow.Resume{}, func(env *testsuite.TestWorkflowEnvironment) {
				began = env.Now()
				if c.opens != nil { // it has no attributes that would say how it ended
					env.OnUpsertMemo(map[string]any{launch.MemoStatus: "halted"}).Return(nil).Once()
				}
				for name, body := range c.say {
					env.RegisterDelayedCallback(func() { env.SignalWorkflow(name, body) }, time.Second)
				}
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(loop.MessageHalt, map[string]string{"note": "enough"}) }, halted)
			})
			env.AssertExpectations(t)
			var result loop.Result
			require.NoError(t, env.GetWorkflowResult(&result), "halted, not failed")
			require.Equal(t, loop.Halted, query(t, env).Status)
			require.Contains(t, result.Reason, "enough")
			require.Equal(t, string(fault.Cancelled), result.ErrorCode)
			require.Less(t, env.Now().Sub(began), halted+10*time.Second)
			require.Equal(t, c.saved, w.state.Status.Ended(), "in the ledger")
		})
	}
}

// The activity that wrote a judgement does not answer, for example because the repository of the loop does not take the
// push. The halt cancels it, and what it has written counts.
func TestA6_AHaltKeepsWhatACancelledAppendHasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "12"}}})
	var say func()
	settled := 0
	w.host = func(name string, do func() error) error {
		err := do()
		if name != api.SettleName {
			return err
		}
		if settled++; settled > 1 {
			return err
		}
		say()
		return temporal.NewCanceledError()
	}
	input, err := converter.GetDefaultDataConverter().ToPayload(specOf(map[string]any{"limits": map[string]any{"iterations": 9}}))
	require.NoError(t, err)
	env := runOnce(t, w, converter.NewRawValue(input), loopworkflow.Resume{}, func(env *testsuite.TestWorkflowEnvironment) {
		say = func() { env.SignalWorkflow(loop.MessageHalt, map[string]string{"note": "enough"}) }
	})
	var result loop.Result
	require.NoError(t, env.GetWorkflowResult(&result), "halted, not failed")
	require.Equal(t, loop.Halted, w.state.Status, "in the ledger")
	require.Equal(t, 1, w.state.KeptCount)
	require.Equal(t, 1, query(t, env).KeptCount)
	require.Equal(t, 2, settled)
}

// Temporal's own Cancel is a halt too: no push holds up the end.
func TestA6_CancelRecordsTheEndAsHastilyAsAHalt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	input, err := converter.GetDefaultDataConverter().ToPayload(specOf(map[string]any{"approvals": map[string]any{"plan": "required"}}))
	require.NoError(t, err)
	env := runOnce(t, w, converter.NewRawValue(input), loopworkflow.Resume{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	})
	var result loop.Result
	require.NoError(t, env.GetWorkflowResult(&result), "halted, not failed")
	require.Equal(t, loop.Halted, w.state.Status, "in the ledger")
	require.True(t, w.hasty)
}
