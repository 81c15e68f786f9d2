package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/client"
)

func (a *app) inboxCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inbox", Short: "Show everything that waits for a person, the oldest first", Args: noArguments,
		Long: `Show everything that waits for a person, over all loops and stewards, the oldest first,
each with the exact command that answers it, a single one with all of its answers. The
others are in "pawl show ID" and "pawl steward show NAME TASK". If no engine answers, or no worker
answers, it shows what the ledgers of this host last recorded.`,
		RunE: a.visiting(func(ctx context.Context, s *session, _ []string) error { return a.runInbox(ctx, s) }),
	}
}

func (a *app) runInbox(ctx context.Context, s *session) error {
	waiting, unknown, err := s.Inbox(ctx)
	if err != nil {
		return err
	}
	s.sayRecorded()
	var elsewhere []string
	for _, u := range unknown {
		if u.What == "" {
			elsewhere = append(elsewhere, u.Loop)
			continue
		}
		a.say("%s may wait too, but no worker answers for it: %s (start a worker with %s)", render.Clean(u.Loop), render.Clean(u.What), s.AWorker())
	}
	if len(elsewhere) > 0 {
		them := "them; they"
		if len(elsewhere) == 1 {
			them = "it; it"
		}
		a.say("no worker answers for %s, and this host has no ledger of %s may wait too", render.Clean(strings.Join(elsewhere, ", ")), them)
	}
	if a.json {
		return a.printJSON(append([]client.Waiting{}, waiting...))
	}
	if len(waiting) == 0 {
		a.say("nothing waits for you")
		return nil
	}
	style := a.style()
	var parts []string
	if len(waiting) > 1 {
		return a.print(style.Inbox(waiting, a.deps.Now()))
	}
	for _, w := range waiting {
		if w.Loop == "" {
			parts = append(parts, style.Bold("steward "+render.Clean(w.Steward))+"\n"+style.StewardGate(w.Steward, w.Gate, a.deps.Now()))
			continue
		}
		owner := render.Around(", for task "+render.Clean(w.Task)+" of steward ", render.Clean(w.Steward), "")
		parts = append(parts, style.Bold("loop "+render.Clean(w.Loop))+owner+"\n"+style.Gate(w.Loop, w.Gate, w.Budget, a.deps.Now()))
	}
	return a.print(strings.Join(parts, "\n\n"))
}
