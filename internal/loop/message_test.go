package loop_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
)

func TestDecodeMessage(t *testing.T) {
	for _, c := range []struct {
		payload string
		ok      bool
	}{
		{``, true}, {`null`, true}, {`{}`, true}, {`{"by":"ann","hash":"x"}`, true},
		{`"ok"`, false}, {`[]`, false}, {`{"hash":1}`, false}, {`{"hsah":"x"}`, false}, {`{} {}`, false}, {`{`, false},
		{`{"note":"` + strings.Repeat("x", 5000) + `"}`, false},
	} {
		_, err := loop.DecodeMessage([]byte(c.payload))
		if c.ok {
			require.NoError(t, err, c.payload)
		} else {
			require.Equal(t, fault.InvalidMessage, fault.CodeOf(err), c.payload)
			require.NotContains(t, err.Error(), "Go ", "no Go types are shown")
		}
	}
	for payload, says := range map[string]string{`[]`: "it must be an object, and not of type array", `{"hash":1}`: "hash must be a text, and not of type number"} {
		_, err := loop.DecodeMessage([]byte(payload))
		require.ErrorContains(t, err, says)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, s := range []string{``, `{"by":"x"}`, `"ok"`, `{"note":null}`, "\xff", `{"gate":"a","gate":"b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := loop.DecodeMessage(payload)
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidMessage {
				t.Fatalf("%q: %v", payload, err)
			}
			return
		}
		if _, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		}
	})
}

func TestClipCutsAtRunes(t *testing.T) {
	for n := range 20 {
		s := loop.Clip("äöüäöüäöüäöü", n)
		require.True(t, utf8.ValidString(s))
		require.LessOrEqual(t, len(s), n)
	}
	require.Equal(t, "short", loop.Clip("short", 10))
}

func TestA8_BudgetsFallAndNeverBelowNothing(t *testing.T) {
	b := loop.NewBudget(nil)
	require.Empty(t, b.Exhausted())
	require.Len(t, b, len(loop.Resources), "resources without a limit are listed too")
	require.Nil(t, b[loop.Tokens].Limit)
}

// Apply returns values: an older state never changes when a newer one does.
func TestStatesDoNotShare(t *testing.T) {
	s := loop.State{}.Apply(loop.Event{Seq: 1, Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve"}})
	for i := range 30 {
		before, err := json.Marshal(s)
		require.NoError(t, err)
		old := s
		s = s.Apply(loop.Event{Type: loop.IterationFailed, FailureReason: "x", Tree: "t", Record: &loop.Iteration{N: i, Files: []string{"a"}}})
		s = s.Apply(loop.Event{Type: loop.IterationSucceeded, Record: &loop.Iteration{N: i, Files: []string{"b"}}})
		s = s.Apply(loop.Event{Type: loop.ChangeCommitted, Files: []string{"b"}, Head: "h"})
		s = s.Apply(loop.Event{Type: loop.StepEnded, Usage: &loop.Usage{ToolCalls: 1}})
		after, err := json.Marshal(old)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
	}
	require.Len(t, s.Iterations, loop.KeepIterations)
}

// Another run continues: nothing of what this one waited for is left.
func TestALoopThatIsResumedWaitsForNothing(t *testing.T) {
	begun := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	s := loop.Fold(loop.New("x", "improve"), []loop.Event{
		{Type: loop.LoopOpened, Time: begun, Opened: &loop.Opened{Kind: "improve"}},
		{Type: loop.SleepBegun, Time: begun, Sleep: &loop.Sleep{Class: result.RateLimited, Since: begun, Until: begun.Add(time.Hour)}},
		{Type: loop.MessageReceived, Message: loop.MessagePause, By: "ann", How: loop.PauseStep},
		{Type: loop.GateOpened, Gate: &loop.Gate{ID: "pause-4", Kind: loop.GatePause, Summary: "paused"}},
		{Type: loop.MessageReceived, Message: loop.MessageHalt},
	})
	require.Equal(t, loop.Paused, s.Status)
	woken := s.Apply(loop.Event{Type: loop.MessageReceived, Message: loop.MessageContinue, Time: begun.Add(time.Minute)})
	require.Equal(t, begun.Add(time.Minute), woken.Sleep.Until)
	require.Equal(t, begun.Add(time.Hour), s.Sleep.Until, "that is another state")
	r := s.Apply(loop.Event{Type: loop.LoopResumed, Phase: "modify", Opened: &loop.Opened{}})
	require.Equal(t, loop.Running, r.Status)
	require.Nil(t, r.Sleep)
	require.Nil(t, r.RateLimit)
	require.Nil(t, r.Gate)
	require.Equal(t, []any{"", "", "", false}, []any{r.HaltRequested, r.PauseReason, r.PausedBy, r.PauseRequested})
}

func TestAUnionHasEachFileOnce(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, loop.Union([]string{"a"}, []string{"a", "b", "b"}))
}
