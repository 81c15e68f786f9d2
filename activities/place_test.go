package activities_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// TestWhereAnotherHostCanGoOn: from all that the host which is gone has recorded, also what it could not
// say any more, and from nothing less.
func TestWhereAnotherHostCanGoOn(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "project.git")
	l := begunAt(t, spec.Deny, func(user string) (string, string) {
		git(t, user, "clone", "-q", "--bare", user, bare)
		return "url", "file://" + bare
	})
	h, err := home.Open()
	require.NoError(t, err)
	h.Dir = filepath.Join(t.TempDir(), "home2")
	other := activities.New(h, "host2", "pawl", "default", false)
	t.Cleanup(other.Stop)

	ask := func(ledger string, sent ...loop.Event) (act.Placed, error) {
		t.Helper()
		return other.Reachable(ctx, act.Place{Loop: "x", Host: "host", URL: "file://" + bare, Branch: l.o.Branch, Ledger: ledger, Sent: sent})
	}
	first := l.ledger
	p, err := ask(first, loop.Event{Seq: 99})
	require.NoError(t, err)
	require.True(t, p.Gone)
	require.Equal(t, first, p.Ledger)
	require.Empty(t, p.Since, "it has recorded nothing of what it was sent")

	events := l.numbered([]loop.Event{{Type: loop.IterationStarted, Iteration: 1}, {Type: loop.Warned, Reason: "x"}})
	out, err := l.a.Record(ctx, act.Record{Entry: act.Entry{Ref: l.o.Ref, Ledger: first, Events: events}})
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
		"another time":  {events[0], {Seq: events[1].Seq, Type: loop.Warned, Time: when}},
	} {
		_, err = ask(first, sent...)
		require.ErrorContains(t, err, string(fault.LedgerAhead), name)
	}

	p, err = ask("") // as a loop that has begun there and knows of no entry
	require.ErrorContains(t, err, string(fault.LedgerAhead))
	require.False(t, p.Gone)

	git(t, bare, "update-ref", "refs/pawl-ledger/x", first) // as where the last push found nobody
	p, err = ask(out.Ledger)
	require.NoError(t, err)
	require.False(t, p.Gone)
	require.Contains(t, p.Why, "is not in file://")
	git(t, bare, "update-ref", "-d", "refs/pawl-ledger/x")
	p, err = ask(out.Ledger)
	require.NoError(t, err)
	require.False(t, p.Gone)

	p, err = ask("")
	require.NoError(t, err)
	require.True(t, p.Gone, "nothing was recorded: any host can begin")
}

// TestAMovedLoopNeedNotHaveItsAmendmentInTheLedger: a person has amended the spec, and the host died
// before it had recorded that.
func TestAMovedLoopNeedNotHaveItsAmendmentInTheLedger(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "project.git")
	l := begunAt(t, spec.Deny, func(user string) (string, string) {
		git(t, user, "clone", "-q", "--bare", user, bare)
		return "url", "file://" + bare
	})
	amended, err := l.spec.Amend([]byte(`{"limits": {"iterations": 9}}`), spec.Extendable)
	require.NoError(t, err)
	h, err := home.Open()
	require.NoError(t, err)
	h.Dir = filepath.Join(t.TempDir(), "home2")
	other := activities.New(h, "host2", "pawl@host2", "default", false)
	t.Cleanup(other.Stop)
	in := act.Open{Loop: "x", FirstRun: "first", Spec: amended, Ledger: l.ledger}
	_, err = other.Open(ctx, in)
	require.ErrorContains(t, err, "not the one of the contract")
	in.Moved = true
	o, err := other.Open(ctx, in)
	require.NoError(t, err)
	require.Equal(t, []string{"host2", "pawl@host2", l.ledger, l.o.Contract}, []string{o.Host, o.Queue, o.State.Ledger, o.Contract})
}
