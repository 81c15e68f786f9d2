package crash_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/test/harness/world"
)

// spans is an OpenTelemetry receiver. It keeps the spans of loops by their ID, and the names of the SDK's spans.
type spans struct {
	mu    sync.Mutex
	loops map[string]*tracepb.Span
	sdk   map[string]bool
}

func (r *spans) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, err := io.ReadAll(req.Body)
	var in collector.ExportTraceServiceRequest
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(b, &in) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range in.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				if scope.GetScope().GetName() == "pawl" {
					r.loops[string(s.GetSpanId())] = s
				} else {
					r.sdk[s.GetName()] = true
				}
			}
		}
	}
}

// came reports whether a span with that name has arrived.
func (r *spans) came(name string) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.loops {
			if s.GetName() == name {
				return true
			}
		}
		return false
	}
}

// seq returns the event of the loop that made a span.
func seq(s *tracepb.Span) int64 {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == "pawl.seq" {
			return a.GetValue().GetIntValue()
		}
	}
	return 0
}

// tree renders the spans of loops by their names, as a tree from the loop down, in the order in which they began.
func (r *spans) tree() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	var show func(parent string, depth int)
	show = func(parent string, depth int) {
		var inside []*tracepb.Span
		for _, s := range r.loops {
			if string(s.GetParentSpanId()) == parent {
				inside = append(inside, s)
			}
		}
		slices.SortFunc(inside, func(a, b *tracepb.Span) int {
			return cmp.Or(cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()), cmp.Compare(seq(a), seq(b)))
		})
		for _, s := range inside {
			fmt.Fprintln(&b, strings.Repeat("  ", depth)+s.GetName())
			show(string(s.GetSpanId()), depth+1)
		}
	}
	show("", 0)
	return b.String()
}

// TestL12ALoopIsOneTraceThoughItsWorkerIsKilled kills a loop's only process in the middle of an iteration: the next one
// continues in the same trace and shows the same loop.
func TestL12ALoopIsOneTraceThoughItsWorkerIsKilled(t *testing.T) {
	world.Slow(t, "internal/telemetry/span has the trace")
	t.Parallel()
	w := newWaiting(t, waiting)
	received := &spans{loops: map[string]*tracepb.Span{}, sdk: map[string]bool{}}
	server := httptest.NewServer(received)
	t.Cleanup(server.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := l.Addr().String()
	require.NoError(t, l.Close())
	env := []string{
		"PAWL_TRACES=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_BSP_SCHEDULE_DELAY=20", "PAWL_METRICS_LISTEN=" + endpoint,
	}
	shows := func(metric string) func() bool {
		return func() bool {
			out, err := http.Get("http://" + endpoint + "/metrics")
			if err != nil {
				return false
			}
			defer out.Body.Close()
			b, err := io.ReadAll(out.Body)
			return err == nil && strings.Contains(string(b), "\n"+metric+"\n")
		}
	}
	n := w.start(bothRoles, env...)
	require.NoError(t, w.begin(w.spec(nil)))
	w.agentBegins(1)
	w.until("the endpoint shows the loop", shows(`pawl_loops_active{status="running"} 1`))
	w.until("the baseline's span comes", received.came("phase baseline"))
	n.kill()

	n = w.start(bothRoles, env...)
	n.polls(t)
	w.until("the new worker shows the loop", shows(`pawl_loops_active{status="running"} 1`))
	w.agentBegins(2)
	w.letGo()
	r, err := w.end()
	require.NoError(t, err)
	require.Equal(t, 1, r.KeptCount)
	w.until("the iteration is counted", shows(`pawl_iterations_total{kind="improve",outcome="kept",reason=""} 1`))
	w.until("the loop is no longer active", shows(`pawl_loops_active{status="running"} 0`))
	n.stop(t)

	require.Equal(t, `loop
  phase precheck
  phase baseline
    step verify
    step guard
    step verify
    step verify
  iteration
    phase review
    phase modify
      step modify
    phase commit
    phase verify
      step verify
    phase guard
      step guard
    phase decide
    phase log
  phase complete
`, received.tree())
	trace := ""
	for _, s := range received.loops {
		if trace == "" {
			trace = string(s.GetTraceId())
		}
		require.Equal(t, trace, string(s.GetTraceId()), s.GetName())
		require.NotEmpty(t, s.GetLinks(), "the %s says which activity recorded it", s.GetName())
	}
	require.True(t, received.sdk["RunActivity:"+api.VerifyName], "the SDK's own spans come too")

	var told bool
	for _, line := range w.lines(n.name + ".log") {
		told = told || strings.Contains(line, "msg="+string(loop.IterationSucceeded)) &&
			strings.Contains(line, "loop=climb iteration=1 phase=log")
	}
	require.True(t, told, "the log says which loop, iteration and phase")
}
