package journal_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/testflow"
	"pawl/workflows/journal"
)

// count is the smallest state: the number of events, and the last one.
type count struct {
	Seq    int64
	Reason string
	Ledger string
}

func (c count) Apply(e loop.Event) count      { c.Seq, c.Reason = e.Seq, e.Reason; return c }
func (c count) At(ledger string) count        { c.Ledger = ledger; return c }
func (c count) Stamp(e loop.Event) loop.Event { e.Loop = "count"; return e }
func (c count) Last() int64                   { return c.Seq }

// in runs f as a workflow.
func in(t *testing.T, f func(ctx workflow.Context, j *journal.Journal[count]) error) {
	t.Helper()
	env := testflow.Environment(nil)
	main := func(ctx workflow.Context) error { return f(ctx, journal.New(ctx, journal.Saved[count]{})) }
	env.RegisterWorkflow(main)
	env.ExecuteWorkflow(main)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

func seqs(events []loop.Event) (n []int64) {
	for _, e := range events {
		n = append(n, e.Seq)
	}
	return n
}

func TestWhatAnEntryBringsHasHappenedOnlyWhenItIsWritten(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		j.Emit(ctx, loop.Event{Reason: "one"})
		failed := errors.New("no disk")
		_, err := j.Append(ctx, []loop.Event{{Reason: "two"}}, func(entry func() api.Entry) (api.Appended, bool, error) {
			require.Equal(t, []int64{1, 2}, seqs(entry().Events))
			require.Equal(t, int64(1), j.State().Seq)
			require.False(t, j.Quiet())
			return api.Appended{}, false, failed
		})
		require.ErrorIs(t, err, failed)
		require.Equal(t, count{Seq: 1, Reason: "one"}, j.State())
		require.Equal(t, []int64{1}, seqs(j.Pending()))

		_, err = j.Append(ctx, []loop.Event{{Reason: "two"}}, func(entry func() api.Entry) (api.Appended, bool, error) {
			entry()
			return api.Appended{Ledger: "a"}, false, nil
		})
		require.NoError(t, err)
		require.Equal(t, count{Seq: 2, Reason: "two", Ledger: "a"}, j.State())
		require.Empty(t, j.Pending())
		require.Equal(t, []int64{2}, seqs(j.Since(1)))
		require.True(t, j.Quiet())
		return nil
	})
}

func TestAnEntryAskedForAgainIsTheSameUntilSomethingHappens(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		_, err := j.Append(ctx, []loop.Event{{Reason: "kept"}}, func(entry func() api.Entry) (api.Appended, bool, error) {
			first := slices.Clone(entry().Events)
			require.NoError(t, workflow.Sleep(ctx, time.Hour))
			require.Equal(t, first, entry().Events, "with its times")
			j.Emit(ctx, loop.Event{Reason: "the loop has moved"})
			require.Equal(t, []int64{1, 2}, seqs(entry().Events))
			require.Equal(t, "the loop has moved", entry().Events[0].Reason)
			return api.Appended{Ledger: "a"}, false, nil
		})
		require.NoError(t, err)
		require.Equal(t, count{Seq: 2, Reason: "kept", Ledger: "a"}, j.State())
		return nil
	})
}

// TestAnEntryIsNoLargerThanAnActivitysInput: what does not fit remains for the next one.
func TestAnEntryIsNoLargerThanAnActivitysInput(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		size := func(kb int) loop.Event { return loop.Event{Note: strings.Repeat("x", kb<<10)} }
		write := func(more []loop.Event, want ...int64) {
			_, err := j.Append(ctx, more, func(entry func() api.Entry) (api.Appended, bool, error) {
				require.Equal(t, want, seqs(entry().Events))
				return api.Appended{Ledger: "a"}, false, nil
			})
			require.NoError(t, err)
		}
		for _, e := range []loop.Event{size(1), size(600), size(600), size(1100), size(1)} {
			j.Emit(ctx, e)
		}
		require.False(t, j.Light())
		write(nil, 1, 2)
		write(nil, 3)
		write(nil, 4) // it is too large, but there must be an end
		require.True(t, j.Light())
		j.Emit(ctx, size(1100))
		write([]loop.Event{{Reason: "one"}, {Reason: "two"}}, 5, 6, 7, 8) // more belongs to what came before
		require.Empty(t, j.Pending())
		require.Equal(t, "two", j.State().Reason)
		for _, e := range j.Since(6) {
			require.Equal(t, "count", e.Loop)
		}
		require.Empty(t, j.Unrecorded())
		return nil
	})
}

func TestAWorkflowIsQuietWhenNothingIsWrittenAndNobodyWaits(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		var order []string
		done := false
		_, err := j.Append(ctx, nil, func(entry func() api.Entry) (api.Appended, bool, error) {
			workflow.Go(ctx, func(ctx workflow.Context) {
				require.NoError(t, j.Turn(ctx, func() { order = append(order, "a message") }))
				done = true
			})
			require.NoError(t, workflow.Sleep(ctx, time.Hour))
			order = append(order, "the entry")
			return api.Appended{Ledger: "a"}, false, nil
		})
		require.NoError(t, err)
		require.False(t, j.Quiet(), "a message waits for its turn")
		require.NoError(t, workflow.Await(ctx, func() bool { return done }))
		require.True(t, j.Quiet())
		require.Equal(t, []string{"the entry", "a message"}, order)
		j.Emit(ctx, loop.Event{Reason: "pending"})
		j.Resume(count{Seq: 40}, "b")
		require.Equal(t, count{Seq: 40, Ledger: "b"}, j.State())
		require.Equal(t, "b", j.Ledger())
		require.Empty(t, j.Pending())
		return nil
	})
}

func TestWhatTheLedgerHasAlreadyIsTakenOver(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		j.Emit(ctx, loop.Event{Reason: "pending"})
		_, err := j.Append(ctx, []loop.Event{{Reason: "brought"}}, func(entry func() api.Entry) (api.Appended, bool, error) {
			sent := entry().Events
			require.Equal(t, sent, j.Unrecorded())
			require.True(t, j.Adopt(sent, "b"), "the entry had more than what was pending")
			return api.Appended{}, true, nil
		})
		require.NoError(t, err)
		require.Equal(t, count{Seq: 2, Reason: "brought", Ledger: "b"}, j.State())
		require.Empty(t, j.Pending())

		j.Emit(ctx, loop.Event{Reason: "later"})
		require.False(t, j.Adopt(j.Pending(), "c"))
		require.Equal(t, count{Seq: 3, Reason: "later", Ledger: "c"}, j.State())
		return nil
	})
}

func TestARunGoesOnFromWhatAnotherSaved(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		for range journal.Recent + 5 {
			j.Emit(ctx, loop.Event{Reason: "x"})
		}
		j.Recorded(100, "a")
		next := journal.New(ctx, j.Save())
		require.Equal(t, j.State(), next.State())
		require.Equal(t, []int64{101, 102, 103, 104, 105}, seqs(next.Pending()))
		require.Len(t, next.Since(0), journal.Recent, "what can be shown is bounded")
		return nil
	})
}

func TestWhatAnotherRunIsGivenIsBounded(t *testing.T) {
	in(t, func(ctx workflow.Context, j *journal.Journal[count]) error {
		for range 3 * journal.Recent {
			j.Emit(ctx, loop.Event{Note: strings.Repeat("long ", 10_000)})
		}
		size := func(events []loop.Event) int {
			doc, err := json.Marshal(events)
			require.NoError(t, err)
			return len(doc)
		}
		saved := j.Save()
		require.NotEmpty(t, saved.Recent)
		require.Equal(t, int64(3*journal.Recent), saved.Recent[len(saved.Recent)-1].Seq, "it is the newest that are kept")
		for _, events := range [][]loop.Event{saved.Recent, j.Since(0)} {
			require.LessOrEqual(t, size(events), journal.MostRecent)
			require.Greater(t, size(events), journal.MostRecent-size(events[:1]), "no more was left out than necessary")
		}
		require.False(t, j.Light(), "15 MB are no input of a run")
		require.Len(t, saved.Pending, 3*journal.Recent, "and nothing of it is dropped")
		return nil
	})
}
