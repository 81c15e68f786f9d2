package workspace_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/telemetry"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestParkedTreesAreMadeAgainWhenSomethingRuns(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "not recorded\n")
	out, err := l.Record(t.Context(), api.Record{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: "x"}), Park: true})
	require.NoError(t, err)
	l.Ledger = out.Ledger
	require.NoDirExists(t, l.Opened.Desk)
	l.Restore(0, l.Head)
	require.Equal(t, "a\n", gittest.Read(t, l.Opened.Desk+"/work/a"))
}

// A loop is terminated, and another loop with its ID may have begun. Only the trees of the first are removed, and no
// gauge counts it any more.
func TestTheTreesOfALoopThatIsOverAreRemovedOnce(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	r, err := hostrecord.Read(l.Home, l.Opened.Ref)
	require.NoError(t, err)
	other := r
	other.FirstRun = "another"
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, at.Close())
	l.Telemetry, err = telemetry.Start(t.Context(), telemetry.Settings{Listen: at.Addr().String()}, "pawl@test", l.Logger)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Telemetry.Shutdown(context.Background()) })
	l.Telemetry.Met(telemetry.Seen{ID: r.Loop, Kind: "improve", Status: loop.Running})
	active := func(n int) {
		t.Helper()
		page, err := http.Get("http://" + at.Addr().String() + "/metrics")
		require.NoError(t, err)
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), fmt.Sprintf("\npawl_loops_active{status=\"running\"} %d\n", n))
	}
	require.NoError(t, l.RemoveTrees(t.Context(), other, false))
	require.DirExists(t, l.Opened.Desk)
	active(1)
	require.NoError(t, l.RemoveTrees(t.Context(), r, false))
	require.NoDirExists(t, l.Opened.Desk)
	active(0)
	r, err = hostrecord.Read(l.Home, l.Opened.Ref)
	require.NoError(t, err)
	require.True(t, r.Closed)
	require.Equal(t, l.Ledger, gittest.Git(t, l.User, "rev-parse", "refs/pawl-ledger/x"), "the ledger stays")
	require.NoError(t, l.RemoveTrees(t.Context(), r, false))
}
