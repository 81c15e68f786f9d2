// Acpagent is an agent for tests that speaks the Agent Client Protocol. It raises the number in work/n by one, if it is
// allowed to edit. With the argument "endless" it calls tools until its turn is cancelled.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	protocol "github.com/coder/acp-go-sdk"

	"pawl/internal/agent/acp"
)

func main() {
	a := &agent{cancelled: make(chan struct{})}
	ready := make(chan struct{})
	a.conn = protocol.NewAgentSideConnection(a, os.Stdout, acp.Heard{Reader: os.Stdin, From: ready})
	a.conn.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	close(ready)
	<-a.conn.Done()
}

type agent struct {
	protocol.Agent
	conn      *protocol.AgentSideConnection
	cancelled chan struct{}
}

func (a *agent) Initialize(context.Context, protocol.InitializeRequest) (protocol.InitializeResponse, error) {
	return protocol.InitializeResponse{ProtocolVersion: protocol.ProtocolVersionNumber, AgentInfo: &protocol.Implementation{Name: "acpagent", Version: "1"}}, nil
}

func (a *agent) NewSession(context.Context, protocol.NewSessionRequest) (protocol.NewSessionResponse, error) {
	return protocol.NewSessionResponse{SessionId: "s1"}, nil
}

func (a *agent) Cancel(context.Context, protocol.CancelNotification) error {
	close(a.cancelled)
	return nil
}

func (a *agent) Prompt(ctx context.Context, r protocol.PromptRequest) (protocol.PromptResponse, error) {
	spent := &protocol.Usage{InputTokens: 100, OutputTokens: 20, TotalTokens: 120}
	if len(os.Args) > 1 && os.Args[1] == "endless" {
		for n := range 4 {
			// The cancellation ends ctx, perhaps before the last call.
			if err := a.tell(context.WithoutCancel(ctx), protocol.StartToolCall(protocol.ToolCallId(fmt.Sprint(n)), "runs", protocol.WithStartKind(protocol.ToolKindExecute))); err != nil {
				return protocol.PromptResponse{}, err
			}
		}
		<-a.cancelled
		return protocol.PromptResponse{StopReason: protocol.StopReasonCancelled, Usage: spent}, nil
	}
	said := "nothing to do"
	if may, err := a.may(ctx); err != nil {
		return protocol.PromptResponse{}, err
	} else if may {
		if said, err = raise(); err != nil {
			return protocol.PromptResponse{}, err
		}
	}
	if err := a.tell(ctx, protocol.UpdateAgentMessageText(said)); err != nil {
		return protocol.PromptResponse{}, err
	}
	return protocol.PromptResponse{StopReason: protocol.StopReasonEndTurn, Usage: spent}, nil
}

func (a *agent) tell(ctx context.Context, u protocol.SessionUpdate) error {
	return a.conn.SessionUpdate(ctx, protocol.SessionNotification{SessionId: "s1", Update: u})
}

// may asks whether it may edit.
func (a *agent) may(ctx context.Context) (bool, error) {
	kind, title := protocol.ToolKindEdit, "Edit work/n"
	r, err := a.conn.RequestPermission(ctx, protocol.RequestPermissionRequest{
		SessionId: "s1", ToolCall: protocol.ToolCallUpdate{ToolCallId: "edit", Kind: &kind, Title: &title},
		Options: []protocol.PermissionOption{{OptionId: "yes", Kind: protocol.PermissionOptionKindAllowOnce, Name: "Yes"}, {OptionId: "no", Kind: protocol.PermissionOptionKindRejectOnce, Name: "No"}},
	})
	return err == nil && r.Outcome.Selected != nil && r.Outcome.Selected.OptionId == "yes", err
}

func raise() (string, error) {
	text, err := os.ReadFile("work/n")
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return "", err
	}
	return "raise the number by one", os.WriteFile("work/n", []byte(strconv.Itoa(n+1)+"\n"), 0o644)
}
