package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// messageFlags adds the flags of all commands that carry a message to a loop.
func messageFlags(cmd *cobra.Command, m *loop.Message) {
	cmd.Flags().StringVar(&m.By, "by", config.User(), "who does this, for the record")
	if rules.AnswersGates(cmd.Name()) {
		cmd.Flags().StringVar(&m.Gate, "gate", "", "the gate to answer (default: the open one)")
	}
	cmd.Flags().StringVar(&m.Note, "note", "", "why, for the record")
}

// sendMessage sends a message to the loop that args names, or else to the one of this folder.
func (a *app) sendMessage(ctx context.Context, args []string, u unnamed, name string, m loop.Message) error {
	send := a.naming(u, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return a.deliver(ctx, s, args[0], name, m) })
	})
	return send(ctx, args)
}

// deliver sends a message and reports the result.
func (a *app) deliver(ctx context.Context, s *session, id, name string, m loop.Message) error {
	sent, err := s.Send(ctx, id, name, m)
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

func (a *app) reportSent(s *session, sent client.Sent) error {
	if sent.Proposal != nil {
		sent.Reply = "proposal " + render.Proposal(*sent.Proposal)
	}
	if sent.Already {
		sent.Reply += "; it had this answer before, so nothing changes"
	}
	if sent.Via == "signal" {
		a.say("no worker answered, so %s was sent as a signal; it takes effect when a worker runs (%s)", sent.Message, s.AWorker())
	}
	if a.json {
		return a.printJSON(sent)
	}
	if sent.Reply != "" {
		return a.print(sent.Loop + ": " + render.Clean(sent.Reply))
	}
	return nil
}

// showLine is the command that shows what waits.
func showLine(args []string) string { return strings.Join(append([]string{"pawl show"}, args...), " ") }
