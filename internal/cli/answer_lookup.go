package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/shell"
	"pawl/internal/ui"
)

// lookUp shows what waits and asks; the answer carries the hash of what was shown.
func (a *app) lookUp(ctx context.Context, s *session, id, question string, m loop.Message) (loop.Message, error) {
	if s.SDK == nil {
		return m, client.NoEngine()
	}
	if err := s.Alive(ctx, id); err != nil {
		return m, err
	}
	g, err := s.Gate(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return m, context.Cause(ctx)
	case err != nil:
		return m, fault.New(fault.EngineUnreachable, "no worker answers, so what waits can't be shown").
			Advise("Start one (" + s.AWorker() + "), or approve by --hash.")
	case g == nil:
		return m, fault.New(fault.GateClosed, "no gate is open: there is nothing to approve")
	}
	a.showGate(ctx, s, id, *g)
	m.Hash, m.Gate = g.Hash, g.ID
	return m, a.ask(ctx, question, "not answered; the loop still waits")
}

// ask wants a yes.
func (a *app) ask(ctx context.Context, question, otherwise string) error {
	answers := make(chan string, 1)
	go func() { answers <- readLine(a.in) }()
	a.screen.Ask(question + " [y/N] ")
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-answers:
		if !yes(line) {
			return &leaving{code: exitInterrupted, why: otherwise}
		}
	}
	return nil
}

// showGate shows what waits, whole where it is a contract.
func (a *app) showGate(ctx context.Context, s *session, id string, g loop.Gate) {
	style := a.screen.Style()
	if g.Kind == loop.GateContract {
		if c, err := s.contract(ctx, id); err == nil {
			a.screen.Print("\n" + style.Contract(c) + "\n")
			return
		} else if !errors.Is(err, context.Canceled) {
			a.say("the contract can't be shown: %v", err)
		}
	}
	if g.Kind == loop.GateDiff {
		a.showProposal(ctx, s, id)
	}
	state, _ := s.State(ctx, id) // without it only an example's number is missing
	a.screen.Print("\n" + style.Gate(id, g, state.Budget, a.deps.Now()) + "\n")
}

func yes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

// readLine reads one line; the empty one at the end of the input.
func readLine(in io.Reader) string {
	line, _ := bufio.NewReader(in).ReadString('\n')
	return line
}

// showProposal lists what a proposal of this host changes.
func (a *app) showProposal(ctx context.Context, s *session, id string) {
	if state, err := s.State(ctx, id); err == nil && state.Proposal != nil {
		a.summarise(ctx, s, id, *state.Proposal)
	}
}

// lookAtProposal shows the proposal of a loop that has ended and asks.
func (a *app) lookAtProposal(ctx context.Context, s *session, id string, p loop.Proposal) error {
	a.screen.Print("\nProposal of " + ui.Clean(id) + ": " + ui.Proposal(p) + "\nhash " + p.Hash + "\nThe whole of it: pawl diff " + shell.Quote(id) + "\n")
	a.summarise(ctx, s, id, p)
	return a.ask(ctx, "Approve?", "not approved")
}

// summarise lists the files of a proposal, where this host has it.
func (a *app) summarise(ctx context.Context, s *session, id string, p loop.Proposal) {
	files, err := s.Changes(ctx, id, p.Base, p.Head)
	if err != nil {
		return
	}
	a.screen.Print("")
	for i, f := range files {
		if i == 20 {
			a.screen.Print(fmt.Sprintf("  and %d more", len(files)-i))
			return
		}
		a.screen.Print(fmt.Sprintf("  %c  +%d -%d  %s", f.Status, f.Insertions, f.Deletions, git.Quote(f.Path)))
	}
}

// contract asks a loop for its contract, with what a person wants to know before approving it.
func (s *session) contract(ctx context.Context, id string) (ui.Contract, error) {
	v, err := s.Contract(ctx, id)
	if err != nil {
		return ui.Contract{}, err
	}
	k, err := kind.Of(v.Spec.Kind)
	if err != nil {
		return ui.Contract{}, err
	}
	c := ui.Contract{
		Loop: id, Kind: k, Contract: *v.Contract, Spec: v.Spec, Baseline: v.Baseline, InScope: v.InScope, Protections: v.Protections,
		Environment: v.Environment,
	}
	if state, err := s.State(ctx, id); err == nil {
		c.Repo, c.Branch, c.Plan = state.Repo, state.Branch, state.Plan
	}
	return c, nil
}
