package open_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestWhereAnotherHostCanGoOn: another host continues from everything that the lost host recorded, including what it
// could not report any more, and never from less.
func TestWhereAnotherHostCanGoOn(t *testing.T) {
	t.Parallel()
	bare := filepath.Join(t.TempDir(), "project.git")
	l := actest.BeginWith(t, spec.Deny, func(user string, doc map[string]any) {
		gittest.Git(t, user, "clone", "-q", "--bare", user, bare)
		doc["repo"] = map[string]any{"url": "file://" + bare}
	})
	h, err := home.At(filepath.Join(t.TempDir(), "home2"))
	require.NoError(t, err)
	other := activities.New(h, "host2", "pawl", "default", false)
	t.Cleanup(other.Stop)

	ask := func(ledger string, sent ...loop.Event) (api.Placed, error) {
		t.Helper()
		return other.Reachable(t.Context(), api.Place{Loop: "x", Host: "host", URL: "file://" + bare, Branch: l.Opened.Branch, Ledger: ledger, Sent: sent})
	}
	first := l.Ledger
	p, err := ask(first, loop.Event{Seq: 99})
	require.NoError(t, err)
	require.True(t, p.Gone)
	require.Equal(t, first, p.Ledger)
	require.Empty(t, p.Since, "it has recorded nothing of what it was sent")

	events := l.Entry(loop.Event{Type: loop.IterationStarted, Iteration: 1}, loop.Event{Type: loop.Warned, Reason: "x"}).Events
	out, err := l.Record(t.Context(), api.Record{Entry: api.Entry{Ref: l.Opened.Ref, Ledger: first, Events: events}})
	require.NoError(t, err)
	later := loop.Event{Seq: events[1].Seq + 1, Type: loop.MessageReceived, Time: events[1].Time}
	p, err = ask(first, append(events, later)...)
	require.NoError(t, err)
	require.True(t, p.Gone)
	require.Equal(t, out.Ledger, p.Ledger)
	require.Equal(t, events, p.Since)

	for name, sent := range map[string][]loop.Event{
		"less":          events[:1],
		"nothing":       nil,
		"another event": {events[0], later},
		"another time":  {events[0], {Seq: events[1].Seq, Type: loop.Warned, Time: actest.When}},
	} {
		_, err = ask(first, sent...)
		require.ErrorContains(t, err, string(fault.LedgerAhead), name)
	}

	p, err = ask("") // like a loop that has begun there and knows of no entry
	require.ErrorContains(t, err, string(fault.LedgerAhead))
	require.False(t, p.Gone)

	gittest.Git(t, bare, "update-ref", "refs/pawl-ledger/x", first) // as if the last push had not arrived
	p, err = ask(out.Ledger)
	require.NoError(t, err)
	require.False(t, p.Gone)
	require.Contains(t, p.Why, "is not in file://")
	gittest.Git(t, bare, "update-ref", "-d", "refs/pawl-ledger/x")
	p, err = ask(out.Ledger)
	require.NoError(t, err)
	require.False(t, p.Gone)

	p, err = ask("")
	require.NoError(t, err)
	require.True(t, p.Gone, "nothing was recorded: any host can begin")
}

// TestAMovedLoopNeedNotHaveItsAmendmentInTheLedger: a person amends the spec, and the host dies before it has
// recorded that.
func TestAMovedLoopNeedNotHaveItsAmendmentInTheLedger(t *testing.T) {
	t.Parallel()
	bare := filepath.Join(t.TempDir(), "project.git")
	l := actest.BeginWith(t, spec.Deny, func(user string, doc map[string]any) {
		gittest.Git(t, user, "clone", "-q", "--bare", user, bare)
		doc["repo"] = map[string]any{"url": "file://" + bare}
	})
	amended, err := l.Spec.Amend([]byte(`{"limits": {"iterations": 9}}`), spec.Extendable)
	require.NoError(t, err)
	h, err := home.At(filepath.Join(t.TempDir(), "home2"))
	require.NoError(t, err)
	other := activities.New(h, "host2", "pawl@host2", "default", false)
	t.Cleanup(other.Stop)
	in := api.Open{Loop: "x", FirstRun: "first", Spec: amended, Ledger: l.Ledger}
	_, err = other.Open(t.Context(), in)
	require.ErrorContains(t, err, "not the one of the contract")
	in.Moved = true
	o, err := other.Open(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, []string{"host2", "pawl@host2", l.Ledger, l.Opened.Contract}, []string{o.Host, o.Queue, o.State.Ledger, o.Contract})
}
