package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.temporal.io/sdk/client"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	"pawl/internal/telemetry/span"
)

// Settings say what is shown, and where. The zero value shows nothing.
type Settings struct {
	Listen string // the address of the Prometheus endpoint, "" for none
	Traces string // OTLP, or the path of a file, "" for none
}

// OTLP sends traces by OTLP over HTTP to the address in OTEL_EXPORTER_OTLP_*.
const OTLP = "otlp"

// Telemetry is a process's metrics and traces. The methods of a nil Telemetry do nothing.
type Telemetry struct {
	logger  *slog.Logger
	metrics *meters
	traces  *tracers

	mu    sync.Mutex
	loops map[string]followed // the loops and stewards that are not over, by ID
}

// followed is a loop or a steward: its last known state, and its trace.
type followed struct {
	Seen
	course *course
}

// course is a loop's trace. It has a lock because an abandoned attempt of an activity may still append while the next
// one does.
type course struct {
	sync.Mutex
	span.Trace
	met bool // the trace includes what the ledger had before this process began
}

// Start begins to show what the settings ask for. It returns nil if they ask for nothing. instance distinguishes this
// process from others. If another process of this machine has the endpoint's address, the endpoint opens when that
// process ends. Errors name the variable that is wrong.
func Start(ctx context.Context, s Settings, instance string, logger *slog.Logger) (*Telemetry, error) {
	if s == (Settings{}) {
		return nil, nil
	}
	// On stderr the errors of OpenTelemetry's libraries would break a progress line. An embedded engine does the same,
	// with the same log.
	otel.SetLogger(logr.FromSlogHandler(logger.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("telemetry", "error", err) }))
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "pawl"), attribute.String("service.instance.id", fmt.Sprintf("%s/%d", instance, os.Getpid())),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES can't be used: %w", err)
	}
	t := &Telemetry{logger: logger, loops: map[string]followed{}}
	if s.Traces != "" {
		if t.traces, err = newTracers(ctx, s.Traces, about, logger); err != nil {
			return nil, fmt.Errorf("PAWL_TRACES is %q: %w", s.Traces, err)
		}
	}
	if s.Listen != "" {
		if t.metrics, err = newMeters(s.Listen, about, t.census, logger); err != nil {
			_ = t.Shutdown(ctx)
			return nil, fmt.Errorf("PAWL_METRICS_LISTEN is %q: %w", s.Listen, err)
		}
	}
	return t, nil
}

// Equip makes a client, and every worker that uses it, report to this telemetry.
func (t *Telemetry) Equip(o *client.Options) {
	if t == nil {
		return
	}
	if t.metrics != nil {
		o.MetricsHandler = t.metrics.handler
	}
	if t.traces != nil {
		o.Interceptors = append(o.Interceptors, t.traces.interceptor)
	}
}

// Shutdown delivers what is left, as long as ctx allows, and ends.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.shutdown(ctx))
	}
	if t.metrics != nil {
		errs = append(errs, t.metrics.shutdown(ctx))
	}
	return errors.Join(errs...)
}

// Appended counts the events that were appended to a loop's ledger, and notes the state after them. It counts nothing
// twice if the append is retried. before returns the events that the ledger had already. Appended calls it for a loop
// that is new to this process, because a trace begins with the loop.
func (t *Telemetry) Appended(ctx context.Context, after Seen, events []loop.Event, before func(context.Context) ([]loop.Event, error)) {
	if t == nil {
		return
	}
	counted, course := t.replace(after)
	if t.metrics != nil {
		for _, e := range events {
			if e.Seq > counted {
				t.metrics.count(ctx, after.Kind, e)
			}
		}
	}
	if t.traces != nil {
		t.trace(ctx, course, after.ID, events, before)
	}
	if after.Status.Ended() {
		t.Forget(after.ID)
	}
}

// Seen is the state of a loop or a steward, as far as telemetry shows it.
type Seen struct {
	ID, Kind  string
	Status    loop.Status
	Seq       int64 // the sequence number of its last event
	StartedAt time.Time
	Gates     []loop.GateKind
	Repeats   int64 // only for a steward: the longest row of one action with the same result
}

// Loop returns what telemetry shows of a loop's state.
func Loop(s loop.State) Seen {
	seen := Seen{ID: s.Loop, Kind: s.Kind, Status: s.Status, Seq: s.Seq, StartedAt: s.StartedAt}
	if s.Gate != nil {
		seen.Gates = []loop.GateKind{s.Gate.Kind}
	}
	return seen
}

// Steward returns what telemetry shows of a steward's state.
func Steward(s steward.State) Seen {
	seen := Seen{ID: s.Steward, Kind: kind.Steward.Name, Status: s.Status, Seq: s.Seq, StartedAt: s.StartedAt, Repeats: s.Indicators.Repeats}
	seen.Gates = list.Map(s.Gates, func(g loop.Gate) loop.GateKind { return g.Kind })
	return seen
}

// replace stores the state of a loop. It returns the number of the last event before, 0 for a new loop, and the trace.
func (t *Telemetry) replace(after Seen) (seq int64, c *course) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, met := t.loops[after.ID]
	if !met || !known.StartedAt.Equal(after.StartedAt) { // a new loop, or another one with the same ID
		known = followed{course: &course{}}
	}
	t.loops[after.ID] = followed{after, known.course}
	return known.Seq, known.course
}

// trace exports the spans that have ended.
func (t *Telemetry) trace(ctx context.Context, c *course, id string, events []loop.Event, before func(context.Context) ([]loop.Event, error)) {
	c.Lock()
	defer c.Unlock()
	if !c.met {
		earlier, err := before(ctx)
		if err != nil {
			t.logger.Warn("the loop's trace can't be continued", "loop", id, "error", err)
			return
		}
		c.met = true
		for _, e := range earlier {
			c.Add(e) // spans that end here were exported earlier
		}
	}
	for _, e := range events {
		for _, s := range c.Add(e) {
			t.traces.export(ctx, s)
		}
	}
}

// Met notes the state of a loop for which this process has counted nothing yet.
func (t *Telemetry) Met(s Seen) {
	if t == nil || s.Status.Ended() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, met := t.loops[s.ID]; !met {
		t.loops[s.ID] = followed{s, &course{}}
	}
}

// Forget notes that a loop is over, or has moved to another host.
func (t *Telemetry) Forget(id string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.loops, id)
}

// PushRefused counts a push that the user's repository refused.
func (t *Telemetry) PushRefused(ctx context.Context) {
	if t != nil && t.metrics != nil {
		t.metrics.refused.Add(ctx, 1)
	}
}

// census counts loops by status and open gates by kind, and finds the longest repetition.
func (t *Telemetry) census() (loops map[loop.Status]int64, gates map[loop.GateKind]int64, repeats int64) {
	loops = map[loop.Status]int64{loop.Running: 0, loop.Paused: 0, loop.Waiting: 0, loop.Sleeping: 0, loop.Blocked: 0}
	gates = map[loop.GateKind]int64{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.loops {
		loops[s.Status]++
		repeats = max(repeats, s.Repeats)
		for _, gate := range s.Gates {
			gates[gate]++
		}
	}
	return loops, gates, repeats
}
