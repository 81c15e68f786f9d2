package activities_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/telemetry"
	"pawl/internal/workspace"
)

func TestParkedTreesAreMadeAgainWhenSomethingRuns(t *testing.T) {
	l := begun(t, spec.Deny)
	l.begin()
	write(t, l.o.Desk+"/work/a", "not recorded\n")
	out, err := l.a.Record(ctx, act.Record{Entry: l.entry(loop.Event{Type: loop.Warned, Reason: "x"}), Park: true})
	require.NoError(t, err)
	l.ledger = out.Ledger
	require.NoDirExists(t, l.o.Desk)
	require.NoError(t, l.a.RestoreDesk(ctx, l.o.Ref, l.head))
	require.Equal(t, "a\n", string(must(os.ReadFile(l.o.Desk+"/work/a"))))
}

// A loop is terminated, and another of its ID may have begun: only the trees of the first are given up, and it is in no gauge any more.
func TestTheTreesOfALoopThatIsOverAreRemovedOnce(t *testing.T) {
	l := begun(t, spec.Deny)
	l.begin()
	r, err := workspace.Read(l.a.Home, l.o.Ref)
	require.NoError(t, err)
	other := r
	other.FirstRun = "another"
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, at.Close())
	l.a.Telemetry, err = telemetry.Start(ctx, telemetry.Settings{Listen: at.Addr().String()}, "pawl@test", l.a.Logger)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.a.Telemetry.Shutdown(context.Background()) })
	l.a.Telemetry.Met(telemetry.Seen{ID: r.Loop, Kind: "improve", Status: loop.Running})
	active := func(n int) {
		t.Helper()
		page, err := http.Get("http://" + at.Addr().String() + "/metrics")
		require.NoError(t, err)
		defer page.Body.Close()
		require.Contains(t, string(must(io.ReadAll(page.Body))), fmt.Sprintf("\npawl_loops_active{status=\"running\"} %d\n", n))
	}
	require.NoError(t, l.a.RemoveTrees(ctx, other, false))
	require.DirExists(t, l.o.Desk)
	active(1)
	require.NoError(t, l.a.RemoveTrees(ctx, r, false))
	require.NoDirExists(t, l.o.Desk)
	active(0)
	r, err = workspace.Read(l.a.Home, l.o.Ref)
	require.NoError(t, err)
	require.True(t, r.Closed)
	require.Equal(t, l.ledger, git(t, l.user, "rev-parse", "refs/pawl-ledger/x"), "the ledger stays")
	require.NoError(t, l.a.RemoveTrees(ctx, r, false))
}
