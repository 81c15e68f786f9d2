package cli_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/telemetry"
	hostworker "pawl/internal/worker"
)

// watched is the telemetry that a command line's client and worker got.
type watched struct{ client, worker *telemetry.Telemetry }

func watch(b *bench) *watched {
	w := &watched{}
	dial, work := b.deps.Dial, b.deps.Worker
	b.deps.Dial = func(ctx context.Context, t config.Temporal, identity string, logger *slog.Logger) (client.Client, error) {
		w.client = t.Telemetry
		return dial(ctx, t, identity, logger)
	}
	b.deps.Worker = func(ctx context.Context, o hostworker.Options) error {
		w.worker = o.Telemetry
		return work(ctx, o)
	}
	return w
}

func TestTelemetryIsOffByDefaultAndChangesNoOutput(t *testing.T) {
	t.Setenv("PAWL_METRICS_LISTEN", "")
	t.Setenv("PAWL_TRACES", "")
	b := newBench(t, improving())
	w := watch(b)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--set", "limits.iterations=2"), b.stderr.String())
	require.Nil(t, w.client)
	require.Nil(t, w.worker)
	out, err := b.stdout.String(), b.stderr.String()

	t.Setenv("PAWL_METRICS_LISTEN", "0")
	t.Setenv("PAWL_TRACES", filepath.Join(t.TempDir(), "traces.jsonl"))
	b = newBench(t, improving())
	w = watch(b)
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes", "--set", "limits.iterations=2"), b.stderr.String())
	require.NotNil(t, w.client)
	require.Same(t, w.client, w.worker)
	log, problem := os.ReadFile(filepath.Join(b.dir, "home", "logs", "pawl.log"))
	require.NoError(t, problem)
	require.Contains(t, string(log), "metrics are served")
	require.Equal(t, out, b.stdout.String())
	require.Equal(t, err, b.stderr.String())
}

func TestACommandThatOnlyLooksHasNoEndpoint(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	t.Setenv("PAWL_METRICS_LISTEN", taken.Addr().String()) // a process that tried to use it would fail
	t.Setenv("PAWL_TRACES", filepath.Join(t.TempDir(), "traces.jsonl"))
	f := improving()
	f.id = "loop-1"
	f.begin()
	b := newBench(t, f)
	w := watch(b)
	require.Equal(t, 0, b.run(nil, "show", "loop-1"), b.stderr.String())
	require.NotNil(t, w.client)
}

func TestTelemetrySettingsThatMeanNothingAreMisuse(t *testing.T) {
	for _, name := range []string{"PAWL_METRICS_LISTEN", "PAWL_TRACES", "PAWL_LOG", "PAWL_LOG_FORMAT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "loud")
			b := newBench(t, newFake())
			require.Equal(t, 2, b.run(nil, "run", b.spec()))
			require.Contains(t, b.stderr.String(), name+` is "loud"`)
		})
	}
}
