package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	protocol "github.com/coder/acp-go-sdk"

	"pawl/internal/agent/adapter"
	"pawl/internal/lib/loosejson"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
)

const (
	// cancelled is how long an agent may take to report its usage after its turn was cancelled. Pawl's grace period
	// for a program that it interrupts is longer.
	cancelled = 4 * time.Second
	// ending is how long an agent may take to end when there is nothing more to ask.
	ending = 2 * time.Second
	// maxShown is how many bytes of one tool call are reported, maxSaid how many bytes of a message are kept.
	maxShown = 8 << 10
	maxSaid  = 64 << 10
)

// run lets the agent take one turn, and prints what it does.
func run(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	c := exec.Command(o.Argv[0], o.Argv[1:]...)
	c.Dir, c.Stderr = o.Dir, stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("the agent can't be started: %w", err)
	}
	talk(ctx, o, in, out, stdout)
	_ = in.Close()
	late := time.AfterFunc(ending, func() { _ = c.Process.Kill() })
	defer late.Stop()
	_ = c.Wait() // the result was already reported
	return nil
}

// Heard is the output of the other side. A read waits until From is closed, because the library begins to read before
// its connection is complete.
type Heard struct {
	io.Reader
	From <-chan struct{}
}

// Read waits, and reads.
func (h Heard) Read(p []byte) (int, error) {
	<-h.From
	return h.Reader.Read(p)
}

// talk speaks the protocol with an agent until its turn has ended.
func talk(ctx context.Context, o Options, in io.Writer, out io.Reader, stdout io.Writer) {
	s := &session{Options: o, print: json.NewEncoder(stdout), tools: map[protocol.ToolCallId]*tool{}}
	s.allowed, s.stop = context.WithCancel(ctx)
	defer s.stop()
	ready := make(chan struct{})
	conn := protocol.NewClientSideConnection(s, in, Heard{Reader: out, From: ready})
	conn.SetLogger(slog.New(slog.DiscardHandler)) // agents also send messages that are not in the protocol
	close(ready)
	end := s.turn(ctx, conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say()
	for _, l := range s.held {
		_ = s.print.Encode(l)
	}
	end.Type, end.Exhausted = adapter.ACPEnded, s.exhausted
	if end.Exhausted != "" {
		end.Failure = "it reached its budget"
	}
	_ = s.print.Encode(end)
}

// own makes claude-agent-acp read no settings, because their hooks would run. Other agents ignore it.
var own = map[string]any{"claudeCode": map[string]any{"options": map[string]any{"settingSources": []string{}}}}

// session is one turn of an agent, as its client sees it.
type session struct {
	Options
	mu        sync.Mutex
	print     *json.Encoder
	tools     map[protocol.ToolCallId]*tool
	text      strings.Builder
	spent     adapter.ACPLine
	exhausted loop.Resource
	allowed   context.Context // ends when a budget is used up, and when pawl interrupts the agent
	stop      context.CancelFunc
	held      []adapter.ACPLine // the lines that are printed after the agent has reported its usage
}

type tool struct {
	kind  protocol.ToolKind
	title string
	input any
	ended bool
}

// turn lets the agent take its turn, and returns how it ended.
func (s *session) turn(ctx context.Context, conn *protocol.ClientSideConnection) adapter.ACPLine {
	hello, err := conn.Initialize(ctx, protocol.InitializeRequest{ProtocolVersion: protocol.ProtocolVersionNumber})
	if err != nil {
		return failed("initialize", err)
	}
	ask := protocol.NewSessionRequest{Cwd: s.Dir, McpServers: []protocol.McpServer{}, Meta: own}
	opened, err := conn.NewSession(ctx, ask)
	if wants(err) {
		if key := byKey(hello.AuthMethods); key != "" {
			if _, failure := conn.Authenticate(ctx, protocol.AuthenticateRequest{MethodId: key}); failure == nil {
				opened, err = conn.NewSession(ctx, ask)
			}
		}
	}
	if err != nil {
		return failed("session/new", err)
	}
	started := adapter.ACPLine{Type: adapter.ACPStarted, Session: string(opened.SessionId)}
	if hello.AgentInfo != nil {
		started.Agent, started.Version = hello.AgentInfo.Name, hello.AgentInfo.Version
	}
	s.mu.Lock()
	s.put(started)
	s.mu.Unlock()
	if mode := s.mode(opened.Modes); mode != "" && mode != opened.Modes.CurrentModeId {
		if _, err := conn.SetSessionMode(ctx, protocol.SetSessionModeRequest{SessionId: opened.SessionId, ModeId: mode}); err != nil {
			return failed("session/set_mode", err)
		}
	}
	if s.Model != "" {
		if _, err := conn.UnstableSetSessionModel(ctx, protocol.UnstableSetSessionModelRequest{SessionId: opened.SessionId, ModelId: protocol.UnstableModelId(s.Model)}); err != nil {
			return failed("session/set_model", err)
		}
	}
	return s.prompt(conn, opened.SessionId)
}

// prompt sends the agent its prompt. It cancels the turn if a budget is used up or pawl interrupts it.
func (s *session) prompt(conn *protocol.ClientSideConnection, id protocol.SessionId) adapter.ACPLine {
	asking, abandon := context.WithCancel(context.Background()) // an agent reports its usage after it was cancelled
	defer abandon()
	defer context.AfterFunc(s.allowed, func() {
		_ = conn.Cancel(asking, protocol.CancelNotification{SessionId: id})
		time.AfterFunc(cancelled, abandon)
	})()
	r, err := conn.Prompt(asking, protocol.PromptRequest{SessionId: id, Prompt: []protocol.ContentBlock{protocol.TextBlock(s.Prompt)}})
	switch {
	case asking.Err() != nil:
		return adapter.ACPLine{Failure: "it did not end its turn after pawl cancelled it"}
	case err != nil:
		return failed("session/prompt", err)
	}
	s.count(r)
	if r.StopReason != protocol.StopReasonEndTurn {
		return adapter.ACPLine{Failure: "it ended with " + string(r.StopReason)}
	}
	return adapter.ACPLine{}
}

// mode returns the mode in which the agent asks pawl before it does what is not approved, "" if it has none. In the
// first mode of Codex and Qwen Code, a model answers these questions instead of the contract, and its usage is in no
// count.
func (s *session) mode(modes *protocol.SessionModeState) protocol.SessionModeId {
	if modes == nil {
		return ""
	}
	codex := protocol.SessionModeId("read-only")
	if s.All {
		codex = "workspace-write"
	}
	for _, want := range []protocol.SessionModeId{codex, "default"} { // Codex's mode, then that of the other agents
		if slices.ContainsFunc(modes.AvailableModes, func(m protocol.SessionMode) bool { return m.Id == want }) {
			return want
		}
	}
	return ""
}

// count reports what a turn has used. Agents differ in which numbers they report, and where. Tokens of their thoughts
// may only be in the total.
func (s *session) count(r protocol.PromptResponse) {
	var in, out int64
	if u := r.Usage; u != nil {
		in = int64(u.InputTokens + given(u.CachedReadTokens) + given(u.CachedWriteTokens))
		out = max(int64(u.OutputTokens), int64(u.TotalTokens)-in)
	} else if b, err := json.Marshal(r.Meta); err == nil {
		used := loosejson.Decode[loosejson.Object](b).At("quota").At("token_count")
		in, out = used.Count("input_tokens"), used.Count("output_tokens")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent.Type, s.spent.Input, s.spent.Output = adapter.ACPUsage, in, out
	_ = s.print.Encode(s.spent) // before the held lines, because the reader stops at a used-up budget
}

// put prints a line, or keeps it until the agent has reported its usage.
func (s *session) put(l adapter.ACPLine) {
	if s.exhausted != "" {
		s.held = append(s.held, l)
		return
	}
	_ = s.print.Encode(l)
}

// exhaust ends the turn because a budget is used up.
func (s *session) exhaust(r loop.Resource) {
	s.exhausted = cmp.Or(s.exhausted, r)
	s.stop()
}

// say prints a message that came in pieces.
func (s *session) say() {
	if s.text.Len() > 0 {
		s.put(adapter.ACPLine{Type: adapter.ACPText, Text: s.text.String()})
		s.text.Reset()
	}
}

// call records a tool call. Some agents only report one by asking for permission.
func (s *session) call(id protocol.ToolCallId, kind protocol.ToolKind, title string, input any) *tool {
	t := s.tools[id]
	fresh := t == nil
	if fresh {
		t = &tool{}
		s.tools[id] = t
	}
	t.kind, t.title = cmp.Or(kind, t.kind), cmp.Or(title, t.title)
	if input != nil {
		t.input = input
	}
	if fresh {
		s.say()
		if s.Tools >= 0 && int64(len(s.tools)) > s.Tools {
			s.exhaust(loop.ToolCalls)
		}
		s.put(adapter.ACPLine{Type: adapter.ACPTool, ID: string(id), Tool: t.name(), Text: shown(t.title, t.input)})
	}
	return t
}

// name returns the kind of a tool as its name, because the protocol has no names, and titles are sentences.
func (t *tool) name() string { return string(cmp.Or(t.kind, protocol.ToolKindOther)) }

// given returns what an agent may leave out.
func given[T any](value *T) (is T) {
	if value != nil {
		is = *value
	}
	return is
}

func shown(title string, input any) string {
	if b, err := json.Marshal(input); err == nil && input != nil {
		title = strings.TrimSpace(title + " " + string(b))
	}
	return loop.Clip(title, maxShown)
}

// end records that a tool call has ended.
func (s *session) end(id protocol.ToolCallId, t *tool, status protocol.ToolCallStatus, output any, content []protocol.ToolCallContent) {
	if t.ended || status != protocol.ToolCallStatusCompleted && status != protocol.ToolCallStatusFailed {
		return
	}
	t.ended = true
	var said string
	for _, c := range content {
		if c.Content != nil && c.Content.Content.Text != nil {
			said += c.Content.Content.Text.Text
		}
	}
	s.put(adapter.ACPLine{Type: adapter.ACPToolEnded, ID: string(id), Text: shown(said, output), Failed: status == protocol.ToolCallStatusFailed})
}

// SessionUpdate receives what the agent reports about its turn.
func (s *session) SessionUpdate(_ context.Context, n protocol.SessionNotification) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		if text := u.AgentMessageChunk.Content.Text; text != nil && s.text.Len() < maxSaid {
			s.text.WriteString(loop.Clip(text.Text, maxSaid))
		}
	case u.ToolCall != nil:
		t := s.call(u.ToolCall.ToolCallId, u.ToolCall.Kind, u.ToolCall.Title, u.ToolCall.RawInput)
		s.end(u.ToolCall.ToolCallId, t, u.ToolCall.Status, u.ToolCall.RawOutput, u.ToolCall.Content)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		t := s.call(c.ToolCallId, given(c.Kind), given(c.Title), c.RawInput)
		s.end(c.ToolCallId, t, given(c.Status), c.RawOutput, c.Content)
	case u.UsageUpdate != nil && u.UsageUpdate.Cost != nil && u.UsageUpdate.Cost.Currency == "USD":
		s.cost(u.UsageUpdate.Cost.Amount)
	}
	return nil
}

// cost records the cost of the session that the agent reports.
func (s *session) cost(usd float64) {
	text := strconv.FormatFloat(usd, 'f', 9, 64)
	now, err := metric.ParseDecimal(text)
	if err != nil {
		return
	}
	s.spent.Type, s.spent.Cost = adapter.ACPUsage, json.Number(text)
	if s.Cost != nil && now.Cmp(*s.Cost) > 0 {
		s.exhaust(loop.CostUSD)
	}
	s.put(s.spent)
}

// RequestPermission answers whether the agent may use a tool, by what the contract approves.
func (s *session) RequestPermission(_ context.Context, r protocol.RequestPermissionRequest) (protocol.RequestPermissionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.call(r.ToolCall.ToolCallId, given(r.ToolCall.Kind), given(r.ToolCall.Title), r.ToolCall.RawInput)
	var option protocol.PermissionOptionId
	if s.exhausted == "" {
		if option = s.approving(r.Options, t.kind, t.input); option == "" {
			s.put(adapter.ACPLine{Type: adapter.ACPDenied, Tool: t.name()})
			s.end(r.ToolCall.ToolCallId, t, protocol.ToolCallStatusFailed, nil, nil) // not every agent reports that
			option = choose(r.Options, protocol.PermissionOptionKindRejectOnce, protocol.PermissionOptionKindRejectAlways)
		}
	}
	if option == "" {
		return protocol.RequestPermissionResponse{Outcome: protocol.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return protocol.RequestPermissionResponse{Outcome: protocol.NewRequestPermissionOutcomeSelected(option)}, nil
}

// failed returns the end of a turn that the agent, or its provider, refused.
func failed(what string, err error) adapter.ACPLine {
	l := adapter.ACPLine{Failure: what + ": " + err.Error()}
	if refused, ok := errors.AsType[*protocol.RequestError](err); ok {
		l.Failure, l.Status = refused.Message, refused.Code
		if refused.Data != nil {
			if b, err := json.Marshal(refused.Data); err == nil {
				l.Failure += " " + string(b)
			}
		}
		if result.ByStatus(l.Status) == "" && !wants(err) {
			l.Status = 0
		}
	}
	return l
}

// wants reports whether an agent wants a sign-in.
func wants(err error) bool {
	refused, ok := errors.AsType[*protocol.RequestError](err)
	return ok && refused.Code == adapter.ACPSignIn
}

// byKey returns the method by which an agent signs in with a key from its environment, "" if there is none.
func byKey(methods []protocol.AuthMethod) string {
	for _, m := range methods {
		if a := m.Agent; a != nil && (strings.Contains(a.Id, "key") || a.Id == "openai") {
			return a.Id
		}
	}
	return ""
}

var errNotOffered = protocol.NewMethodNotFound("pawl does not offer this")

// The agent works on the desk itself, so pawl offers neither files nor terminals. Some agents ask for them anyway.

func (s *session) ReadTextFile(context.Context, protocol.ReadTextFileRequest) (r protocol.ReadTextFileResponse, err error) {
	return r, errNotOffered
}

func (s *session) WriteTextFile(context.Context, protocol.WriteTextFileRequest) (r protocol.WriteTextFileResponse, err error) {
	return r, errNotOffered
}

func (s *session) CreateTerminal(context.Context, protocol.CreateTerminalRequest) (r protocol.CreateTerminalResponse, err error) {
	return r, errNotOffered
}

func (s *session) KillTerminal(context.Context, protocol.KillTerminalRequest) (r protocol.KillTerminalResponse, err error) {
	return r, errNotOffered
}

func (s *session) TerminalOutput(context.Context, protocol.TerminalOutputRequest) (r protocol.TerminalOutputResponse, err error) {
	return r, errNotOffered
}

func (s *session) ReleaseTerminal(context.Context, protocol.ReleaseTerminalRequest) (r protocol.ReleaseTerminalResponse, err error) {
	return r, errNotOffered
}

func (s *session) WaitForTerminalExit(context.Context, protocol.WaitForTerminalExitRequest) (r protocol.WaitForTerminalExitResponse, err error) {
	return r, errNotOffered
}
