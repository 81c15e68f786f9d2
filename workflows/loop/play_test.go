package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/test/harness/testflow"
	loopworkflow "pawl/workflows/loop"
)

func newRandom(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 1)) }

// specOf returns a spec with a test's changes. It decides as the source does: by one measurement.
func specOf(change map[string]any) json.RawMessage {
	doc := map[string]any{
		"goal": "make it better", "repo": map[string]any{"path": "/repo"}, "scope": []string{"**"},
		"verify":    map[string]any{"command": "measure", "evidence": "single"},
		"agent":     map[string]any{"command": "agent"},
		"limits":    map[string]any{"iterations": 5, "toolCalls": 1000, "activeTime": "10h"},
		"approvals": map[string]any{"plan": "auto", "diff": "auto", "tools": []string{"*"}},
		"validate":  map[string]any{"canary": false},
	}
	for k, v := range change {
		if inner, ok := v.(map[string]any); ok {
			merged := map[string]any{}
			if old, ok := doc[k].(map[string]any); ok {
				for ik, iv := range old {
					merged[ik] = iv
				}
			}
			for ik, iv := range inner {
				merged[ik] = iv
			}
			v = merged
		}
		doc[k] = v
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

// played is a finished run of Improve in the test environment.
type played struct {
	*world
	env    *testsuite.TestWorkflowEnvironment
	result loop.Result
	err    *temporal.ApplicationError
	final  loop.State
}

// play runs Improve against the world until it ends, and checks what must always be true: the state is the fold of
// the ledger, and no unjudged change stays on the branch.
func play(t *testing.T, w *world, doc json.RawMessage, prepare func(*testsuite.TestWorkflowEnvironment)) played {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(doc)
	require.NoError(t, err)
	env := runOnce(t, w, converter.NewRawValue(payload), loopworkflow.Resume{}, prepare)
	for runs := 1; ; runs++ {
		var again *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &again) {
			break
		}
		require.Less(t, runs, 100)
		w.runs = runs + 1
		var spec json.RawMessage
		var resume loopworkflow.Resume
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &spec, &resume))
		require.Nil(t, resume.Carry.Opened.State, "it has the state once")
		require.Empty(t, resume.Carry.Opened.Since)
		payload, err := converter.GetDefaultDataConverter().ToPayload(spec)
		require.NoError(t, err)
		env = runOnce(t, w, converter.NewRawValue(payload), resume, prepare)
	}
	p := played{world: w, env: env}
	if err := env.GetWorkflowError(); err != nil {
		require.ErrorAs(t, err, &p.err)
		_ = p.err.Details(&p.result)
	} else {
		require.NoError(t, env.GetWorkflowResult(&p.result))
	}
	p.final = query(t, env)
	if p.final.Ledger != "" && (p.err == nil || p.err.Type() != string(fault.LedgerAhead)) {
		folded := w.state
		folded.Ledger = p.final.Ledger
		require.Equal(t, toJSON(t, folded), toJSON(t, p.final), "the state must be the fold of the ledger")
	}
	lawful(t, w.ledger)
	return p
}

// runOnce executes one run of the workflow.
func runOnce(t *testing.T, w *world, input converter.RawValue, resume loopworkflow.Resume, prepare func(*testsuite.TestWorkflowEnvironment)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := testflow.Environment(nil)
	env.SetOnActivityCanceledListener(func(*activity.Info) { w.cancelled <- struct{}{} })
	kind := w.kind
	if kind == nil {
		kind = loopworkflow.Improve
	}
	env.RegisterWorkflow(kind)
	w.register(env)
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(kind, input, resume)
	require.True(t, env.IsWorkflowCompleted())
	return env
}

func query(t *testing.T, env *testsuite.TestWorkflowEnvironment) loop.State {
	t.Helper()
	v, err := env.QueryWorkflow("state")
	require.NoError(t, err)
	var s loop.State
	require.NoError(t, v.Get(&s))
	return s
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(b)
}

func (p played) types() []loop.Type {
	var out []loop.Type
	for _, e := range p.ledger {
		out = append(out, e.Type)
	}
	return out
}

// course returns the sequence of iterations as "n kept|discarded reason".
func (p played) course() []string {
	var out []string
	for _, e := range p.ledger {
		if e.Record != nil {
			word := "no"
			if e.Record.Kept {
				word = "yes"
			}
			metric := "-"
			if e.Record.Metric != nil {
				metric = e.Record.Metric.String()
			}
			line := fmt.Sprintf("%d %s %s", e.Record.N, word, metric)
			if e.Record.Reason != "" {
				line += " " + e.Record.Reason
			}
			out = append(out, line)
		}
	}
	return out
}
