package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/cli"
	"pawl/internal/cli/render"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/spec"
	hostworker "pawl/internal/worker"
)

// noWorkerHere makes a test fail if its command starts a worker.
func (b *bench) noWorkerHere() {
	b.deps.Worker = func(context.Context, hostworker.Options) error {
		b.t.Error("a worker was started")
		return errors.New("no")
	}
}

func TestStartStartsAsRunDoesAndLeaves(t *testing.T) {
	started := newFake()
	b := newBench(t, started)
	b.noWorkerHere()
	require.Equal(t, 0, b.run(nil, "start", b.spec(), "--id", "loop-1-b", "--set", "limits.iterations=7", "--json"), b.stderr.String())
	var v render.Started
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.Equal(t, render.Started{
		Loop: "loop-1-b", Run: "run-1", Address: "127.0.0.1:7233", Namespace: "default", Worker: true,
		UI: "http://127.0.0.1:8233/namespaces/default/workflows/loop-1-b",
	}, v)
	require.Empty(t, b.stderr.String())

	run := improving()
	again := newBench(t, run)
	require.Equal(t, 0, again.run(nil, "run", b.spec(), "--yes", "--id", "loop-1-b", "--set", "limits.iterations=7"))
	require.Equal(t, run.options, started.options, "one place says how loops are started")
	require.Equal(t, run.spec, started.spec)
	require.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, started.options.WorkflowIDConflictPolicy)
	require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, started.options.WorkflowIDReusePolicy)
}

// L12: in Temporal people see who started a loop and from where.
func TestL12_WhatIsStartedSaysByWhomAndFromWhere(t *testing.T) {
	f := newFake()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "start", b.spec()), b.stderr.String())
	cwd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, config.User(), f.spec.Session["user"])
	require.Equal(t, cwd, f.spec.Session["cwd"])
	require.Equal(t, map[string]any{"goal": "Make it better", "branch": "pawl/loop-1", "startedBy": config.User(), "repo": b.dir}, f.options.Memo)
	require.Contains(t, f.options.StaticDetails, "| started by | "+config.User()+" |")
	require.Contains(t, f.options.StaticDetails, ":"+markdown.Text(cwd)+" |")
	require.Contains(t, f.options.StaticDetails, "pawl log -f loop-1")
	require.Contains(t, b.stdout.String(), "pawl log -f loop-1")
	require.Contains(t, b.stdout.String(), "pawl show loop-1  its contract, and the command that approves it")
	require.NotContains(t, b.stdout.String(), "pawl approve loop-1", "it needs a hash that there isn't yet")
}

func TestStartWithYesHasTheContractApprovedAsItIsDrawn(t *testing.T) {
	f := newFake()
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "start", b.spec(), "--yes"))
	require.Equal(t, spec.Auto, f.spec.Approvals.Plan)
	require.NotContains(t, b.stdout.String(), "approve")
}

func TestTheKindCanBeSaidOnTheCommandLine(t *testing.T) {
	b := newBench(t, newFake())
	require.Equal(t, 2, b.run(nil, "start", b.spec(), "--kind", "deliver"))
	require.Contains(t, b.stderr.String(), "test.command", "a deliver loop needs tests")
	require.Equal(t, 2, b.run(nil, "run", b.spec(), "--kind", "other"))
	require.Contains(t, b.stderr.String(), `--kind: kind: is "other"; want: improve or deliver`)
	require.NotContains(t, b.stderr.String(), "--set", "nobody typed that")
	require.Equal(t, 2, b.run(nil, "validate", b.spec(), "--kind", "deliver"))
	require.Contains(t, b.stderr.String(), "test.command", "validate knows it too")
	require.Equal(t, 2, b.run(nil, "validate", b.spec(), "--goal-file", "no-such-issue.md"))
	require.Contains(t, b.stderr.String(), "no-such-issue.md")
}

// TestACredentialStartsNothing: Temporal's record of a loop has its spec, and is no place for one either.
func TestACredentialStartsNothing(t *testing.T) {
	token := "ghp_" + strings.Repeat("q7Zp2X", 6)
	for _, command := range []string{"start", "run"} {
		f := newFake()
		b := newBench(t, f)
		b.noWorkerHere()
		require.Equal(t, 2, b.run(nil, command, b.spec(), "--set", "goal=push with "+token))
		require.Contains(t, b.stderr.String(), "goal contains a GitHub token")
		require.NotContains(t, b.stderr.String(), token)
		require.Empty(t, f.id, "nothing was started")
	}
}

func TestStartWithoutAWorkerSaysThatTheLoopWaitsForOne(t *testing.T) {
	f := newFake()
	f.noWorker = true
	b := newBench(t, f)
	require.Equal(t, 0, b.run(nil, "start", b.spec()))
	require.Contains(t, b.stderr.String(), "`pawl up`")
	require.Equal(t, "loop-1", f.id)
}

func TestStartOfALoopThatRunsIsRefused(t *testing.T) {
	f := running()
	f.id = "loop-1"
	b := newBench(t, f)
	require.Equal(t, 2, b.run(nil, "start", b.spec()))
	require.Contains(t, b.stderr.String(), "("+string(fault.LoopAlreadyRunning)+")")
	require.Empty(t, b.stdout.String())
}

// external makes the command line use a service that is not embedded.
func (b *bench) external() {
	b.t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	b.deps.Embedded = &cli.Embedded{
		Share: func(context.Context, string, auth.Wish, *slog.Logger) (cli.Engine, error) {
			b.t.Error("an engine was started")
			return nil, errors.New("no")
		},
		Find: func(context.Context, string) (cli.Found, bool) {
			b.t.Error("an engine was looked for")
			return cli.Found{}, false
		},
	}
	dial := b.deps.Dial
	b.deps.Dial = func(ctx context.Context, c config.Temporal, identity string, l *slog.Logger) (client.Client, error) {
		require.Equal(b.t, "temporal.example:7233", c.Address)
		return dial(ctx, c, identity, l)
	}
}

func TestWithAnAddressNothingIsEmbeddedAndReadersAndAnswersStartNoWorker(t *testing.T) {
	for args, exit := range map[string]int{
		"start SPEC": 2, "list": 0, "show loop-1": 0, "log loop-1": 0, "halt loop-1": 0, "pause loop-1": 0, "steer loop-1 x": 0,
		"approve loop-1 --hash 0123456789abcdef": 0, "reject loop-1": 0, "continue loop-1": 2, "answer loop-1 x": 2,
	} {
		b := newBench(t, waiting())
		b.external()
		b.noWorkerHere()
		require.Equal(t, exit, b.run(nil, strings.Fields(strings.ReplaceAll(args, "SPEC", b.spec()))...), "%s: %s", args, b.stderr.String())
	}
}

func TestTheStarterFollowsALoopWithoutAWorkerOfItsOwn(t *testing.T) {
	f := improving()
	b := newBench(t, f)
	b.external()
	b.noWorkerHere()
	b.deps.Embedded, b.deps.Thin, b.deps.Program = nil, true, "starter"
	require.Equal(t, 0, b.run(nil, "run", b.spec(), "--yes"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "Loop complete: 2 iterations")
	for _, absent := range []string{"up", "demo"} {
		require.Equal(t, 2, b.run(nil, absent), absent)
	}
	require.Contains(t, b.stderr.String(), "`starter --help`")
}

func TestTheWorkerServesUntilInterruptedAndLogsToStderr(t *testing.T) {
	b := newBench(t, newFake())
	b.external()
	b.deps.Embedded, b.deps.Program = nil, "worker"
	serve := b.deps.Worker
	b.deps.Worker = func(ctx context.Context, o hostworker.Options) error {
		require.False(t, o.Embedded)
		o.Logger.Info("a line of the log")
		return serve(ctx, o)
	}
	go func() {
		b.awaitStderr("the worker is ready")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 0, cli.Serve(t.Context(), []string{"--json"}, nil, &b.stdout, &b.stderr, b.deps), b.stderr.String())
	var v render.Serving
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.Equal(t, "external", v.Engine)
	require.Regexp(t, "^pawl@[0-9a-f]{12}$", v.Worker)
	require.Contains(t, b.stderr.String(), "a line of the log")
}

func TestAJSONLogIsJSONAlone(t *testing.T) {
	t.Setenv("PAWL_LOG_FORMAT", "json")
	everyLine := func(b *bench) {
		t.Helper()
		require.Empty(t, b.stdout.String())
		for line := range strings.Lines(b.stderr.String()) {
			require.True(t, json.Valid([]byte(line)), line)
		}
	}
	b := newBench(t, newFake())
	b.external()
	b.deps.Embedded, b.deps.Program = nil, "worker"
	go func() {
		b.awaitStderr("the worker is ready")
		b.signals <- os.Interrupt
	}()
	require.Equal(t, 0, cli.Serve(t.Context(), nil, nil, &b.stdout, &b.stderr, b.deps), b.stderr.String())
	everyLine(b)
	require.Contains(t, b.stderr.String(), `"namespace":`)

	b = newBench(t, newFake())
	b.deps.Embedded, b.deps.Program = nil, "worker"
	require.Equal(t, 1, cli.Serve(t.Context(), nil, nil, &b.stdout, &b.stderr, b.deps), "there is no address")
	everyLine(b)
	require.Contains(t, b.stderr.String(), `"code":"ENGINE_UNREACHABLE"`)
	require.Contains(t, b.stderr.String(), "Set TEMPORAL_ADDRESS")
}

func TestTheWorkerNeedsAnAddressAndTakesNoArguments(t *testing.T) {
	b := newBench(t, newFake())
	b.deps.Embedded, b.deps.Program = nil, "worker"
	require.Equal(t, 1, cli.Serve(t.Context(), nil, nil, &b.stdout, &b.stderr, b.deps))
	require.Contains(t, b.stderr.String(), "TEMPORAL_ADDRESS")
	require.Equal(t, 2, cli.Serve(t.Context(), []string{"up"}, nil, &b.stdout, &b.stderr, b.deps))
}
