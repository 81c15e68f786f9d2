package engine_test

import (
	"context"
	"log/slog"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/engine"
	engineauth "pawl/internal/engine/auth"
)

const hostQueue = "engine-bench@host"

var phase = temporal.NewSearchAttributeKeyKeyword("PawlPhase")

func noop(context.Context) error { return nil }

// steps runs n activities one after the other. If phases is set, it sets a phase before each of them.
func steps(ctx workflow.Context, n int, queue string, phases bool) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, TaskQueue: queue})
	for i := range n {
		if phases {
			if err := workflow.UpsertTypedSearchAttributes(ctx, phase.ValueSet(strconv.Itoa(i))); err != nil {
				return err
			}
		}
		if err := workflow.ExecuteActivity(ctx, noop).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkDurableStep measures one activity that does nothing, with full fsync. Besides the time it reports
// processor time, which says more on a busy machine.
func BenchmarkDurableStep(b *testing.B) {
	b.Run("asking nobody", func(b *testing.B) { durableSteps(b, engineauth.AsBefore) })
	b.Run("asking who comes", func(b *testing.B) { durableSteps(b, engineauth.Wanted) })
}

func durableSteps(b *testing.B, asks engineauth.Wish) {
	e := benchEngine(b, b.TempDir(), asks)
	quiet := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	o := client.Options{
		HostPort: e.Endpoint().Address,
		Logger:   quiet,
		// On the loopback interface, compression costs more than it saves.
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	}
	if p := e.Endpoint().Pass(); p != nil {
		o.Credentials, o.ConnectionOptions.TLS = client.NewAPIKeyStaticCredentials(p.Token), p.Client()
	}
	c, err := client.Dial(o)
	require.NoError(b, err)
	defer c.Close()
	for _, queue := range []string{taskQueue, hostQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(steps)
		w.RegisterActivity(noop)
		require.NoError(b, w.Start())
		defer w.Stop()
	}
	run := func(n int, queue string, phases bool) {
		r, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{TaskQueue: taskQueue}, steps, n, queue, phases)
		require.NoError(b, err)
		require.NoError(b, r.Get(b.Context(), nil))
	}
	run(100, hostQueue, true)
	for name, args := range map[string]struct {
		queue  string
		phases bool
	}{
		"on the workflow's queue": {taskQueue, false}, // started with the workflow task's answer ("eager")
		"on the host's queue":     {hostQueue, false},
		"with a search attribute": {hostQueue, true},
	} {
		b.Run(name, func(b *testing.B) {
			before := processorTime()
			run(b.N, args.queue, args.phases)
			b.ReportMetric(float64(processorTime()-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkStart measures the time until the engine answers after Share, and Close.
func BenchmarkStart(b *testing.B) {
	for name, dir := range map[string]func() string{
		"with a database": func() func() string {
			dir := b.TempDir()
			return func() string { return dir }
		}(),
		"without": b.TempDir,
	} {
		b.Run(name, func(b *testing.B) {
			var share time.Duration
			for b.Loop() {
				began := time.Now()
				e, err := engine.Share(b.Context(), engine.Options{Dir: dir(), Port: 9233})
				share += time.Since(began)
				require.NoError(b, err)
				require.NoError(b, e.Close())
			}
			b.ReportMetric(share.Seconds()*1000/float64(b.N), "share-ms/op")
		})
	}
}

func benchEngine(b *testing.B, dir string, asks engineauth.Wish) *engine.Engine {
	e, err := engine.Share(b.Context(), engine.Options{Dir: dir, Port: 9233, Auth: asks,
		SearchAttributes: map[string]enumspb.IndexedValueType{phase.GetName(): enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	return e
}

func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
