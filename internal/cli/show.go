package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Show what a loop is doing, what it waits for and how to answer", Args: atMost(1),
		Long: `Show what a loop is doing, what it waits for and how to answer. For a steward, show the same as
` + "`pawl steward show`" + `. --json prints the complete state. If no engine answers, it shows what the ledger last recorded.`,
		RunE: a.visitingLoop(looksAtAny, func(ctx context.Context, s *session, args []string) error { return a.runShow(ctx, s, args[0]) }),
	}
}

func (a *app) runShow(ctx context.Context, s *session, id string) error {
	if s.FamilyOf(ctx, id) == client.Steward {
		return a.showSteward(ctx, s, id, nil)
	}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	a.fromLedger(r.Source, r.State.Status)
	if !r.Ledger {
		r.State = s.Live(ctx, id, r.State)
	}
	if a.json {
		return a.printJSON(struct {
			loop.State
			Trouble string   `json:"trouble,omitempty"`
			Mended  []string `json:"mended,omitempty"`
		}{r.State, r.Trouble, r.Mended})
	}
	k, err := kind.Of(r.State.Kind)
	if err != nil {
		return err
	}
	now := a.deps.Now()
	text := a.style().State(k, r.State.Ticking(now), now)
	if g := r.State.Gate; g != nil && g.Kind == loop.GateContract {
		if c, notes, err := s.contract(ctx, id); err == nil {
			text += "\n\n" + a.style().Contract(c) + render.Around("\n\n", a.style().Notes(notes), "")
		}
	} else if !r.Ledger && !r.State.Status.Ended() {
		// Only the loop knows its protections. Before the contract is drawn there are none.
		if v, err := s.Contract(ctx, id); err == nil {
			text += "\n\n" + a.style().Protections(v.Protections)
		}
	}
	return a.printAbout(r.State.Loop, r.Source, text)
}

// printAbout prints a text about a loop or a steward. What fails is above it, and what was mended is below it.
func (a *app) printAbout(id string, source client.Source, text string) error {
	if source.Trouble != "" {
		text = a.style().Trouble(id, source.Trouble) + "\n\n" + text
	}
	return a.print(text + render.Around("\n\n", a.style().Mended(source.Mended), ""))
}

// fromLedger says that what is shown may be outdated.
func (a *app) fromLedger(r client.Source, status loop.Status) {
	switch {
	case !r.Ledger:
	case status.Ended():
		a.say("%s; this is from the ledger", r.Why)
	case r.Ill:
		a.say("%s; this is what the ledger last recorded", r.Why)
	default:
		a.say("%s; this is what the ledger last recorded, and `pawl up` resumes from there", r.Why)
	}
}
