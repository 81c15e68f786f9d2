package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	"pawl/internal/span"
)

// tracers are the two sources of spans with the one way out that they share: the SDK's, which the
// standard's sampler may thin out, and the loops', which come whole and with IDs of their own.
type tracers struct {
	interceptor interceptor.Interceptor
	loops       trace.Tracer
	providers   []*sdktrace.TracerProvider
	file        *os.File // where the spans go, unless they are sent
}

func newTracers(ctx context.Context, to string, about *resource.Resource, logger *slog.Logger) (*tracers, error) {
	t := &tracers{}
	out, err := t.exporter(ctx, to)
	if err != nil {
		return nil, err
	}
	// It hands spans on in the background and drops them when nobody takes them.
	batch := sdktrace.NewBatchSpanProcessor(&patient{SpanExporter: out, logger: logger})
	sdk := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(batch))
	loops := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(batch),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(given{}))
	t.providers = []*sdktrace.TracerProvider{sdk, loops}
	t.loops = loops.Tracer("pawl")
	t.interceptor, err = opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: sdk.Tracer("temporal-sdk-go"),
		// Whoever follows a loop asks for its state again and again.
		DisableQueryTracing: true,
		// A header that somebody else's client wrote must not fail a loop.
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

// patient is an exporter whose failures reach nobody but the log: the first at once, later ones once in
// complainEvery, since the receiver may be away for days.
type patient struct {
	sdktrace.SpanExporter
	logger *slog.Logger
	lost   int // since the log was told
	told   time.Time
}

// complainEvery is how often failures are logged.
const complainEvery = time.Minute

// ExportSpans hands spans on or drops them. The batch processor calls it one call after the other.
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
	var first error
	for _, p := range t.providers {
		if err := p.Shutdown(ctx); err != nil && first == nil {
			first = err
		}
	}
	if t.file != nil {
		_ = t.file.Close()
	}
	return first
}

// export hands a span on. It is linked to the SDK's span in which it was recorded, since that is
// in a trace of its own.
func (t *tracers) export(ctx context.Context, s span.Span) {
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Start), trace.WithAttributes(attributes(s.Attributes)...)}
	if recorded := trace.SpanContextFromContext(ctx); recorded.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: recorded}))
	}
	as := context.WithValue(context.Background(), givenKey{}, s)
	if s.Parent != [8]byte{} {
		as = trace.ContextWithRemoteSpanContext(as, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: s.Trace, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	_, out := t.loops.Start(as, s.Name, options...)
	for _, p := range s.Points {
		out.AddEvent(p.Name, trace.WithTimestamp(p.Time), trace.WithAttributes(attributes(p.Attributes)...))
	}
	if s.Failed != "" {
		out.SetStatus(codes.Error, s.Failed)
	}
	out.End(trace.WithTimestamp(s.End))
}

// given hands on the IDs of spans that have theirs already.
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

func attributes(list []span.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(list))
	for i, a := range list {
		switch v := a.Value.(type) {
		case string:
			out[i] = attribute.String(a.Key, v)
		case int64:
			out[i] = attribute.Int64(a.Key, v)
		case float64:
			out[i] = attribute.Float64(a.Key, v)
		case bool:
			out[i] = attribute.Bool(a.Key, v)
		default:
			out[i] = attribute.String(a.Key, fmt.Sprint(v))
		}
	}
	return out
}
