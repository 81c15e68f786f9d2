package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/phase"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/internal/telemetry"
)

var noon = time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)

// receiver is an OpenTelemetry receiver that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unzipped
		}
		b, err := io.ReadAll(body)
		var in collector.ExportTraceServiceRequest
		if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(b, &in) != nil {
			http.Error(w, "no traces", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range in.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

// names returns the names of the received spans, in order.
func (r *receiver) names() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		out = append(out, s.GetName())
	}
	return out
}

var silent = slog.New(slog.DiscardHandler)

func start(t *testing.T, s telemetry.Settings) *telemetry.Telemetry {
	t.Helper()
	shown, err := telemetry.Start(t.Context(), s, "pawl@test", silent)
	require.NoError(t, err)
	t.Cleanup(func() { _ = shown.Shutdown(context.Background()) })
	return shown
}

// free returns an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	out, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer out.Body.Close()
	require.Equal(t, http.StatusOK, out.StatusCode)
	b, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	return string(b)
}

// pages returns the entries of a loop's ledger: up to the contract gate, one iteration, the end.
func pages() [][]loop.Event {
	gate := &loop.Gate{ID: "contract-3", Kind: loop.GateContract, OpenedAt: noon}
	usage := &loop.Usage{ActiveMs: 1500, AgentCalls: 1, ToolCalls: 4, InputTokens: 100, OutputTokens: 20, CostUSD: metric.MustDecimal("0.25")}
	pages := [][]loop.Event{
		{
			{Type: loop.PhaseEntered, Phase: phase.Precheck},
			{Type: loop.LoopOpened, Phase: phase.Precheck, Opened: &loop.Opened{Kind: "improve"}},
			{Type: loop.GateOpened, Phase: phase.Precheck, Gate: gate},
		},
		{
			{Type: loop.GateClosed, Phase: phase.Precheck, Gate: gate, Answer: &loop.Answer{Message: "approve"}},
			{Type: loop.IterationStarted, Iteration: 1},
			{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Modify},
		},
		{
			{Type: loop.StepEnded, Iteration: 1, Phase: phase.Modify, Step: "modify", Role: "writer", Reason: "ok", Usage: usage},
			{Type: loop.IterationFailed, Iteration: 1, Phase: phase.Log, FailureReason: "error: of every kind\nand shape", Record: &loop.Iteration{N: 1, DurationMs: 2000}},
		},
		{
			{Type: loop.AutonomyHalted, Iteration: 1, Phase: phase.Complete, Status: loop.Halted, ErrorCode: "BUDGET_EXHAUSTED"},
		},
	}
	n := 0
	for _, page := range pages {
		for i := range page {
			n++
			page[i].Seq, page[i].Loop, page[i].Time = int64(n), "climb", noon.Add(time.Duration(n)*time.Second)
		}
	}
	return pages
}

// ledger reports pages as a worker that appends them does.
type ledger struct {
	state  loop.State
	events []loop.Event
}

func (l *ledger) append(t *testing.T, shown *telemetry.Telemetry, page []loop.Event) {
	l.state = loop.Fold(l.state, page)
	before := l.events
	shown.Appended(t.Context(), telemetry.Loop(l.state), page, func(context.Context) ([]loop.Event, error) { return before, nil })
	l.events = append(l.events, page...)
}

func TestOffByDefault(t *testing.T) {
	r := newReceiver(t) // OpenTelemetry's own variables switch nothing on
	shown := start(t, telemetry.Settings{})
	require.Nil(t, shown)
	var l ledger
	for _, page := range pages() {
		l.append(t, shown, page)
	}
	shown.Met(telemetry.Loop(l.state))
	shown.PushRefused(t.Context())
	var o client.Options
	shown.Equip(&o)
	require.Equal(t, client.Options{}, o)
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Empty(t, r.names())
}

func TestL12TheTraceIsSentOnceAndWhole(t *testing.T) {
	r := newReceiver(t)
	shown := start(t, telemetry.Settings{Traces: telemetry.OTLP})
	var l ledger
	for _, page := range pages()[:2] {
		l.append(t, shown, page)
		shown.Appended(t.Context(), telemetry.Loop(l.state), page, nil) // a retry of the append
	}
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Equal(t, []string{"gate contract", "phase precheck"}, r.names())

	// Another worker continues.
	shown = start(t, telemetry.Settings{Traces: telemetry.OTLP})
	for _, page := range pages()[2:] {
		l.append(t, shown, page)
	}
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Equal(t, []string{"gate contract", "phase precheck", "step modify", "phase modify", "iteration", "loop"}, r.names())

	spans := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		spans[s.GetName()] = s
		require.Equal(t, r.spans[0].GetTraceId(), s.GetTraceId())
	}
	for child, parent := range map[string]string{
		"gate contract": "phase precheck", "phase precheck": "loop", "step modify": "phase modify", "phase modify": "iteration", "iteration": "loop",
	} {
		require.Equal(t, spans[parent].GetSpanId(), spans[child].GetParentSpanId(), child)
	}
	require.Empty(t, spans["loop"].GetParentSpanId())
	require.EqualValues(t, noon.Add(time.Second).UnixNano(), spans["loop"].GetStartTimeUnixNano())
	require.EqualValues(t, noon.Add(9*time.Second).UnixNano(), spans["loop"].GetEndTimeUnixNano())
}

func TestTracesMayGoToAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "traces.jsonl")
	shown := start(t, telemetry.Settings{Traces: path})
	var l ledger
	for _, page := range pages() {
		l.append(t, shown, page)
	}
	require.NoError(t, shown.Shutdown(t.Context()))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 6, bytes.Count(b, []byte("\n")))
}

func TestAReceiverThatIsGoneHoldsNothingUp(t *testing.T) {
	newReceiver(t).Close()
	var log bytes.Buffer
	shown, err := telemetry.Start(t.Context(), telemetry.Settings{Traces: telemetry.OTLP}, "test", slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	for n := range 3000 { // more than the queue holds, and more than one delivery takes
		var l ledger
		for _, page := range pages()[:2] {
			for i := range page {
				page[i].Time = page[i].Time.Add(time.Duration(n) * time.Hour) // another loop with the same name
			}
			l.append(t, shown, page)
		}
	}
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), "traces can't be delivered"), log.String())
}

func TestALedgerThatCannotBeReadCostsTheTraceOnly(t *testing.T) {
	r := newReceiver(t)
	at := free(t)
	shown := start(t, telemetry.Settings{Traces: telemetry.OTLP, Listen: at})
	var l ledger
	l.append(t, nil, pages()[0])
	l.state = loop.Fold(l.state, pages()[1])
	shown.Appended(t.Context(), telemetry.Loop(l.state), pages()[1], func(context.Context) ([]loop.Event, error) { return nil, errors.New("gone") })
	require.Contains(t, scrape(t, at), "pawl_gate_wait_seconds_count")
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Empty(t, r.names())
}

// metrics are the names of the metrics in docs/reference/settings.md, with their values after pages.
var metrics = map[string]string{
	"pawl_loops_ended_total":               `{code="BUDGET_EXHAUSTED",kind="improve",status="halted"} 1`,
	"pawl_iterations_total":                `{kind="improve",outcome="discarded",reason="other"} 1`,
	"pawl_iteration_duration_seconds_sum":  `{kind="improve",outcome="discarded"} 2`,
	"pawl_step_duration_seconds_sum":       `{outcome="ok",step="modify"} 1.5`,
	"pawl_gate_wait_seconds_sum":           `{answer="approve",gate="contract"} 4`,
	"pawl_agent_calls_total":               `{role="writer"} 1`,
	"pawl_agent_tool_calls_total":          `{role="writer"} 4`,
	"pawl_agent_tokens_total":              `{direction="input",role="writer"} 100`,
	"pawl_agent_cost_usd_total":            `{role="writer"} 0.25`,
	"pawl_pushes_refused_total":            ` 1`,
	"pawl_loops_active":                    `{status="running"} 0`,
	"temporal_request_total":               `{operation="Test"} 3`,
	"temporal_request_latency_seconds_sum": `{operation="Test"} 0.5`,
}

func TestMetricsAreShownToWhoeverScrapes(t *testing.T) {
	at := free(t)
	shown := start(t, telemetry.Settings{Listen: at})
	var l ledger
	l.append(t, shown, pages()[0])
	require.Contains(t, scrape(t, at), "\npawl_loops_active{status=\"waiting\"} 1\n")
	require.Contains(t, scrape(t, at), "\npawl_gates_open{gate=\"contract\"} 1\n")
	for _, page := range pages()[1:] {
		l.append(t, shown, page)
	}
	shown.PushRefused(t.Context())
	var o client.Options
	shown.Equip(&o)
	require.Empty(t, o.Interceptors, "nobody asked for traces")
	sdk := o.MetricsHandler.WithTags(map[string]string{"operation": "Test"})
	sdk.Counter("temporal_request").Inc(3)
	sdk.Timer("temporal_request_latency").Record(500 * time.Millisecond)

	text := scrape(t, at)
	docs, err := os.ReadFile("../../docs/reference/settings.md")
	require.NoError(t, err)
	for name, value := range metrics {
		require.Contains(t, text, "\n"+name+value+"\n")
		if name = strings.TrimSuffix(name, "_sum"); strings.HasPrefix(name, "pawl_") {
			require.Contains(t, string(docs), "`"+name+"`")
		}
	}
	require.Contains(t, string(docs), "`pawl_gates_open`")
	require.NotContains(t, text, "pawl_gates_open{")
	require.NotContains(t, text, "climb", "a loop is no label")
	require.Contains(t, text, `temporal_request_latency_seconds_bucket{operation="Test",le="0.5"} 1`, "seconds have buckets for seconds")
	require.Contains(t, text, `temporal_request_latency_seconds_bucket{operation="Test",le="0.25"} 0`)
}

func TestARetryCountsNothingTwice(t *testing.T) {
	at := free(t)
	shown := start(t, telemetry.Settings{Listen: at})
	var l ledger
	for _, page := range pages()[:3] {
		l.append(t, shown, page)
		shown.Appended(t.Context(), telemetry.Loop(l.state), page, nil)
	}
	require.Contains(t, scrape(t, at), "\npawl_agent_tool_calls_total{role=\"writer\"} 4\n")
}

func TestAWorkerThatStartsKnowsTheLoopsThatWait(t *testing.T) {
	at := free(t)
	shown := start(t, telemetry.Settings{Listen: at})
	shown.Met(telemetry.Loop(loop.Fold(loop.State{}, pages()[0])))
	shown.Met(telemetry.Seen{ID: "over", Status: loop.Completed})
	require.Contains(t, scrape(t, at), "\npawl_loops_active{status=\"waiting\"} 1\n")
}

func TestAnotherLoopOfTheSameNameIsAnotherLoop(t *testing.T) {
	at := free(t)
	shown := start(t, telemetry.Settings{Listen: at})
	var l ledger
	for _, page := range pages()[:3] { // terminated: nobody recorded its end
		l.append(t, shown, page)
	}
	l = ledger{}
	for _, page := range pages()[:3] {
		for i := range page {
			page[i].Time = page[i].Time.Add(time.Hour)
		}
		l.append(t, shown, page)
	}
	require.Contains(t, scrape(t, at), "\npawl_agent_tool_calls_total{role=\"writer\"} 8\n")
}

func TestTheEndpointGoesOverToTheNextProcess(t *testing.T) {
	at := free(t)
	first := start(t, telemetry.Settings{Listen: at})
	second := start(t, telemetry.Settings{Listen: at})
	second.Met(telemetry.Seen{ID: "second", Status: loop.Running})
	require.NotContains(t, scrape(t, at), `{status="running"} 1`)
	require.NoError(t, first.Shutdown(t.Context()))
	require.Eventually(t, func() bool {
		out, err := http.Get("http://" + at + "/metrics")
		return err == nil && out.Body.Close() == nil
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, scrape(t, at), `{status="running"} 1`)
}

func TestSettingsThatCannotBeUsedAreNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, c := range []struct {
		settings telemetry.Settings
		variable string
	}{
		{telemetry.Settings{Listen: "203.0.113.1:0"}, "PAWL_METRICS_LISTEN"}, // this machine does not have that address
		{telemetry.Settings{Traces: "/dev/null/traces"}, "PAWL_TRACES"},
	} {
		_, err := telemetry.Start(t.Context(), c.settings, "test", silent)
		require.ErrorContains(t, err, c.variable)
	}
}

// BenchmarkAppended measures what telemetry costs an iteration of a loop, at the four appends of pages.
func BenchmarkAppended(b *testing.B) {
	for name, s := range map[string]telemetry.Settings{
		"off": {}, "metrics": {Listen: "127.0.0.1:0"}, "traces": {Traces: filepath.Join(b.TempDir(), "traces")},
	} {
		b.Run(name, func(b *testing.B) {
			shown, err := telemetry.Start(b.Context(), s, "bench", silent)
			require.NoError(b, err)
			defer shown.Shutdown(context.Background())
			var states []loop.State
			state := loop.State{}
			for _, page := range pages() {
				state = loop.Fold(state, page)
				states = append(states, state)
			}
			all := pages()
			none := func(context.Context) ([]loop.Event, error) { return nil, nil }
			for b.Loop() {
				for i, page := range all {
					shown.Appended(b.Context(), telemetry.Loop(states[i]), page, none)
				}
			}
		})
	}
}

func TestS13_AStewardsMetricsAndSpansSayWhatItsLedgerSays(t *testing.T) {
	at := free(t)
	traces := newReceiver(t)
	shown := start(t, telemetry.Settings{Listen: at, Traces: telemetry.OTLP})
	begun := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	s := steward.New("crew")
	var events []loop.Event
	for i, e := range []loop.Event{
		{Type: loop.StewardOpened, Opened: &loop.Opened{Kind: "steward"}},
		{Type: loop.TaskSubmitted, Task: "a", Submitted: &task.Task{ID: "a"}},
		{Type: loop.TaskStateChanged, Task: "a", From: task.Idle, To: task.Planning},
		{Type: loop.GateOpened, Task: "a", Gate: &loop.Gate{ID: "tier-4", Kind: "tier", Task: "a"}},
		{Type: loop.ActionTaken, Task: "a", Action: &task.Action{What: task.StepStarted, Name: "step one", Outcome: "failed", Error: "x", ActiveMs: 2000}},
		{Type: loop.LoopDetected, Task: "a", Finding: &task.Finding{Rule: "sameResult", Stop: true}},
		{Type: loop.GateClosed, Task: "a", Gate: &loop.Gate{ID: "tier-4", Kind: "tier", Task: "a", OpenedAt: begun}, Answer: &loop.Answer{Gate: "tier-4", Message: "answer"}},
		{Type: loop.TaskEnded, Task: "a", Outcome: steward.Cancelled, Actions: 1, ExecutingMs: 2000, Usage: &loop.Usage{ActiveMs: 5000}},
		{Type: loop.TaskSubmitted, Task: "b", Submitted: &task.Task{ID: "b"}},
		{Type: loop.ActionTaken, Task: "b", Action: &task.Action{What: task.Commanded, Name: "plan", Outcome: "asked"}, Usage: &loop.Usage{ActiveMs: 9, ToolCalls: 3, InputTokens: 40, OutputTokens: 2, CostUSD: metric.MustDecimal("0.25")}},
		{Type: loop.ActionTaken, Task: "b", Action: &task.Action{What: task.Commanded, Name: "plan", Outcome: "asked"}, Usage: &loop.Usage{}}, // the task brought its plan
		{Type: loop.TaskInterrupted, Task: "b", Usage: &loop.Usage{ToolCalls: 1, CostUSD: metric.MustDecimal("0.5")}},
	} {
		e.Seq, e.Time, e.Loop = int64(i+1), begun.Add(time.Duration(i)*time.Second), "crew"
		s, events = s.Apply(e), append(events, e)
	}
	for range 2 { // a retry of the append counts nothing twice
		shown.Appended(t.Context(), telemetry.Steward(s), events, func(context.Context) ([]loop.Event, error) { return nil, nil })
	}
	text := scrape(t, at)
	docs, err := os.ReadFile("../../docs/reference/settings.md")
	require.NoError(t, err)
	for name, value := range map[string]string{
		"pawl_steward_transitions_total":       `{from="IDLE",to="PLANNING"} 1`,
		"pawl_steward_actions_total":           `{result="error",what="step"} 1`,
		"pawl_steward_findings_total":          `{rule="sameResult",stop="true"} 1`,
		"pawl_steward_tasks_ended_total":       `{outcome="cancelled"} 1`,
		"pawl_steward_task_actions_sum":        `{outcome="cancelled"} 1`,
		"pawl_steward_executing_seconds_total": ` 2`,

		"pawl_steward_task_executing_seconds_sum": `{outcome="cancelled"} 2`,
		"pawl_steward_repeats":                    ` 2`,

		"pawl_agent_calls_total":      `{role="planner"} 2`,
		"pawl_agent_tool_calls_total": `{role="planner"} 4`,
		"pawl_agent_tokens_total":     `{direction="input",role="planner"} 40`,
		"pawl_agent_cost_usd_total":   `{role="planner"} 0.75`,
	} {
		require.Contains(t, text, "\n"+name+value+"\n")
		require.Contains(t, string(docs), "`"+strings.TrimSuffix(name, "_sum")+"`")
	}
	require.NoError(t, shown.Shutdown(t.Context()))
	require.Equal(t, []string{"task IDLE", "action step", "gate tier", "task", "action command", "action command"}, traces.names())
}
