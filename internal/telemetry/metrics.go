package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"pawl/internal/lib/must"
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
	"pawl/internal/telemetry/span"
)

// seconds are the bounds of every histogram in seconds. OpenTelemetry's default is meant for milliseconds and would put
// everything under five seconds into one bucket. Agents take minutes, people hours.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}

// meters are the metrics of a process, and the endpoint that serves them.
type meters struct {
	handler  client.MetricsHandler // the SDK's metrics
	provider *sdkmetric.MeterProvider
	server   *http.Server
	stop     context.CancelFunc

	iterations, ended, refused              metric.Int64Counter
	calls, toolCalls, tokens                metric.Int64Counter
	cost                                    metric.Float64Counter
	transitions, actions, milestones, over  metric.Int64Counter
	findings                                metric.Int64Counter
	executing                               metric.Float64Counter
	taskActions, taskSeconds                metric.Float64Histogram
	iterationSeconds, stepSeconds, gateWait metric.Float64Histogram
}

type census func() (loops map[loop.Status]int64, gates map[loop.GateKind]int64, repeats int64)

func newMeters(address string, about *resource.Resource, count census, logger *slog.Logger) (*meters, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	m := &meters{provider: sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(reader), sdkmetric.WithView(sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: seconds}},
	)))}
	m.handler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: m.provider.Meter("temporal-sdk-go"), UseMonotonicCounters: true,
		OnError: func(err error) { logger.Warn("a metric of the Temporal SDK can't be recorded", "error", err) }, // without this it panics
	})
	if err := m.instruments(m.provider.Meter("pawl"), count); err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	m.server = &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	return m, m.listen(address, logger)
}

// instruments creates pawl's own metrics. Their labels have few values: never a loop, a commit or a text.
// Making one fails only if its name is invalid, and a test makes all of them.
func (m *meters) instruments(meter metric.Meter, count census) error {
	about, inSeconds := metric.WithDescription, metric.WithUnit("s")
	m.iterations = must.Have(meter.Int64Counter("pawl.iterations", about("Finished iterations, by outcome and reason")))
	m.ended = must.Have(meter.Int64Counter("pawl.loops.ended", about("Loops that ended, by status and error code")))
	m.refused = must.Have(meter.Int64Counter("pawl.pushes.refused", about("Pushes that the user's repository did not take")))
	m.calls = must.Have(meter.Int64Counter("pawl.agent.calls", about("Agent calls, by role")))
	m.toolCalls = must.Have(meter.Int64Counter("pawl.agent.tool_calls", about("Tool calls that agents reported, by role")))
	m.tokens = must.Have(meter.Int64Counter("pawl.agent.tokens", about("Tokens that agents reported, by role and direction")))
	m.cost = must.Have(meter.Float64Counter("pawl.agent.cost.usd", about("What agents reported to have cost, in USD, by role")))
	m.iterationSeconds = must.Have(meter.Float64Histogram("pawl.iteration.duration", about("Wall clock time of an iteration"), inSeconds))
	m.stepSeconds = must.Have(meter.Float64Histogram("pawl.step.duration", about("Active time of a step, by step and outcome"), inSeconds))
	m.gateWait = must.Have(meter.Float64Histogram("pawl.gate.wait", about("Time until a gate was answered, by kind and answer"), inSeconds))
	m.transitions = must.Have(meter.Int64Counter("pawl.steward.transitions", about("Transitions of a steward's tasks, by state")))
	m.actions = must.Have(meter.Int64Counter("pawl.steward.actions", about("Actions for a steward's tasks, by kind and result")))
	m.milestones = must.Have(meter.Int64Counter("pawl.steward.milestones", about("Finished steps and approved proposals")))
	m.findings = must.Have(meter.Int64Counter("pawl.steward.findings", about("What loop detection has found, by rule")))
	m.over = must.Have(meter.Int64Counter("pawl.steward.tasks.ended", about("Tasks that ended, by outcome")))
	m.executing = must.Have(meter.Float64Counter("pawl.steward.executing.seconds", about("Executing time of a steward's tasks")))
	m.taskSeconds = must.Have(meter.Float64Histogram("pawl.steward.task.executing", about("Executing time of a task that is over"), inSeconds))
	m.taskActions = must.Have(meter.Float64Histogram("pawl.steward.task.actions", about("Actions of a task that is over"),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500)))
	active := must.Have(meter.Int64ObservableGauge("pawl.loops.active", about("Loops of this host that have not ended, by status")))
	gates := must.Have(meter.Int64ObservableGauge("pawl.gates.open", about("Open gates of this host's loops, by kind")))
	repeats := must.Have(meter.Int64ObservableGauge("pawl.steward.repeats",
		about("The longest streak of one action with one result now, of all tasks")))
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		loops, open, longest := count()
		o.ObserveInt64(repeats, longest)
		for status, n := range loops {
			o.ObserveInt64(active, n, with("status", string(status)))
		}
		for kind, n := range open {
			o.ObserveInt64(gates, n, with("gate", string(kind)))
		}
		return nil
	}, active, gates, repeats)
	return err
}

func (m *meters) count(ctx context.Context, of string, e loop.Event) {
	switch e.Type {
	case loop.IterationSucceeded, loop.IterationFailed:
		outcome := "discarded"
		if e.Type == loop.IterationSucceeded {
			outcome = "kept"
		}
		m.iterations.Add(ctx, 1, with("kind", of, "outcome", outcome, "reason", bounded(e.FailureReason)))
		if e.Record != nil {
			m.iterationSeconds.Record(ctx, float64(e.Record.DurationMs)/1000, with("kind", of, "outcome", outcome))
		}
	case loop.StepEnded:
		if u := e.Usage; u != nil {
			m.stepSeconds.Record(ctx, float64(u.ActiveMs)/1000, with("step", e.Step, "outcome", span.Outcome(e)))
			if e.Role != "" {
				m.spent(ctx, e.Role, *u)
			}
		}
	case loop.GateClosed:
		if e.Gate != nil && e.Answer != nil {
			m.gateWait.Record(ctx, e.Time.Sub(e.Gate.OpenedAt).Seconds(), with("gate", string(e.Gate.Kind), "answer", e.Answer.Message))
		}
	case loop.TaskStateChanged:
		m.transitions.Add(ctx, 1, with("from", string(e.From), "to", string(e.To)))
	case loop.ActionTaken:
		result := "ok"
		if e.Action.Error != "" {
			result = "error"
		}
		m.actions.Add(ctx, 1, with("what", e.Action.What, "result", result))
		m.executing.Add(ctx, float64(e.Action.ActiveMs)/1000)
		m.planner(ctx, e.Usage)
	case loop.TaskInterrupted:
		m.planner(ctx, e.Usage)
	case loop.MilestoneReached:
		m.milestones.Add(ctx, 1)
	case loop.LoopWarned, loop.LoopDetected:
		m.findings.Add(ctx, 1, with("rule", e.Finding.Rule, "stop", strconv.FormatBool(e.Finding.Stop)))
	case loop.TaskEnded:
		m.over.Add(ctx, 1, with("outcome", e.Outcome))
		m.taskActions.Record(ctx, float64(e.Actions), with("outcome", e.Outcome))
		m.taskSeconds.Record(ctx, float64(e.ExecutingMs)/1000, with("outcome", e.Outcome))
	case loop.AutonomyCompleted, loop.AutonomyHalted, loop.LoopFailed:
		m.ended.Add(ctx, 1, with("kind", of, "status", string(e.Status), "code", e.ErrorCode))
	}
}

// planner counts a call of a steward's planner. If an action of the steward itself has a usage, it is the planner's. A
// task that brings its plan uses nothing.
func (m *meters) planner(ctx context.Context, u *loop.Usage) {
	if u == nil || *u == (loop.Usage{}) {
		return
	}
	called := *u
	called.AgentCalls = max(called.AgentCalls, 1) // a steward's ledger does not count calls
	m.spent(ctx, kind.Planner, called)
}

func (m *meters) spent(ctx context.Context, name string, u loop.Usage) {
	role := with("role", name)
	m.calls.Add(ctx, u.AgentCalls, role)
	m.toolCalls.Add(ctx, u.ToolCalls, role)
	m.tokens.Add(ctx, u.InputTokens, with("role", name, "direction", "input"))
	m.tokens.Add(ctx, u.OutputTokens, with("role", name, "direction", "output"))
	m.cost.Add(ctx, u.CostUSD.Float(), role)
}

// with makes labels from pairs of name and value.
func with(pairs ...string) metric.MeasurementOption {
	list := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributes(list...)
}

// word matches the reasons that the machines use.
var word = regexp.MustCompile(`^[a-zA-Z-]{0,24}(:[a-zA-Z-]{1,24})?$`)

// bounded replaces a reason that is no such word, so that no text becomes a label.
func bounded(reason string) string {
	if reason == "no improvement" || word.MatchString(reason) {
		return reason
	}
	return "other"
}

// retryEvery is the pause between two tries to use an address that another process has.
const retryEvery = time.Second

// listen opens the endpoint, now or when the process that has the address has ended. Several pawls on a machine have
// the same settings, so the next one takes over.
func (m *meters) listen(address string, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		m.serve(l, logger)
		return nil
	case !errors.Is(err, syscall.EADDRINUSE):
		stop()
		return err
	}
	logger.Info("another process uses the address of the metrics; this process serves them once that one has ended", "address", address)
	go func() {
		retry := time.NewTicker(retryEvery)
		defer retry.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-retry.C:
			}
			if l, err := net.Listen("tcp", address); err == nil {
				m.serve(l, logger)
				return
			}
		}
	}()
	return nil
}

func (m *meters) serve(l net.Listener, logger *slog.Logger) {
	logger.Info("metrics are served", "address", "http://"+l.Addr().String()+"/metrics")
	go func() { _ = m.server.Serve(l) }() // it ends with Shutdown
}

func (m *meters) shutdown(ctx context.Context) error {
	m.stop()
	return errors.Join(m.server.Shutdown(ctx), m.provider.Shutdown(ctx))
}
