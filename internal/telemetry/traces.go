package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	"pawl/internal/telemetry/span"
)

// tracers are the two sources of spans, which share one exporter. The sampler of the standard may leave out spans of
// the SDK. Spans of loops are all exported, with IDs of their own.
type tracers struct {
	interceptor interceptor.Interceptor
	sdk, loops  *sdktrace.TracerProvider
	file        *os.File // the file of the spans, nil if they are sent
}

func newTracers(ctx context.Context, to string, about *resource.Resource, logger *slog.Logger) (*tracers, error) {
	t := &tracers{}
	out, err := t.exporter(ctx, to)
	if err != nil {
		return nil, err
	}
	// The processor exports in the background. It drops spans if it has too many of them.
	batch := sdktrace.NewBatchSpanProcessor(&patient{SpanExporter: out, logger: logger})
	t.sdk = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(batch))
	t.loops = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(batch),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(given{}))
	t.interceptor, err = opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: t.sdk.Tracer("temporal-sdk-go"),
		// Following a loop asks for its state again and again.
		DisableQueryTracing: true,
		// A wrong header from another client must not fail a loop.
		AllowInvalidParentSpans: true,
	})
	return t, err
}

func (t *tracers) exporter(ctx context.Context, to string) (sdktrace.SpanExporter, error) {
	if to == OTLP {
		return otlptracehttp.New(ctx)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	var err error
	if t.file, err = os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	return stdouttrace.New(stdouttrace.WithWriter(t.file))
}

// patient is an exporter that only logs failures: the first one at once, later ones once in complainEvery, because the
// receiver may be away for days.
type patient struct {
	sdktrace.SpanExporter
	logger *slog.Logger
	lost   int // spans lost since the last log line
	told   time.Time
}

// complainEvery is the shortest time between two log lines about failures.
const complainEvery = time.Minute

// ExportSpans exports spans or drops them. The batch processor makes one call after the other.
func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	p.lost += len(spans)
	if p.told.IsZero() || time.Since(p.told) > complainEvery {
		p.logger.Warn("traces can't be delivered", "lost", p.lost, "error", err)
		p.lost, p.told = 0, time.Now()
	}
	return nil
}

func (t *tracers) shutdown(ctx context.Context) error {
	err := errors.Join(t.sdk.Shutdown(ctx), t.loops.Shutdown(ctx))
	_ = t.file.Close() // which does nothing without a file
	return err
}

// export exports a span. The span has a link to the SDK's span in which it was recorded, because that span is in
// another trace.
func (t *tracers) export(ctx context.Context, s span.Span) {
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Start), trace.WithAttributes(s.Attributes...)}
	if recorded := trace.SpanContextFromContext(ctx); recorded.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: recorded}))
	}
	as := context.WithValue(context.Background(), givenKey{}, s)
	if s.Parent != [8]byte{} {
		as = trace.ContextWithRemoteSpanContext(as, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: s.Trace, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	_, out := t.loops.Tracer("pawl").Start(as, s.Name, options...)
	for _, p := range s.Points {
		out.AddEvent(p.Name, trace.WithTimestamp(p.Time), trace.WithAttributes(p.Attributes...))
	}
	if s.Failed != "" {
		out.SetStatus(codes.Error, s.Failed)
	}
	out.End(trace.WithTimestamp(s.End))
}

// given is a generator that uses the IDs that spans already have.
type given struct{}

type givenKey struct{}

func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s, _ := ctx.Value(givenKey{}).(span.Span)
	return s.Trace, s.ID
}

func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, _ := ctx.Value(givenKey{}).(span.Span)
	return s.ID
}
