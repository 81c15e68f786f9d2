package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// lookUp shows what waits and asks. The answer carries the hash of what was shown.
func (a *app) lookUp(ctx context.Context, s *session, id, question string, m loop.Message) (loop.Message, error) {
	if s.SDK == nil {
		return m, s.NoEngine()
	}
	if err := s.Alive(ctx, id); err != nil {
		return m, err
	}
	state, err := s.State(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return m, context.Cause(ctx)
	case err != nil:
		return m, fault.New(fault.NoWorker, "no worker answers, so what waits can't be shown").
			Advise("Start one (" + s.AWorker() + "), or approve by --hash.")
	case state.Gate == nil:
		return m, client.Loop.About(id, fault.New(fault.GateClosed, "no gate is open: there is nothing to approve"))
	}
	a.showGate(ctx, s, state, true)
	m.Hash, m.Gate = state.Gate.Hash, state.Gate.ID
	var seen *patch
	if state.Gate.OffersDiff() {
		seen = new(patchOf(state))
	}
	return m, a.askAbout(ctx, s, id, seen, question, "not answered; the loop still waits")
}

// askAbout asks for a yes; otherwise is the text of the error for a no. Any other answer is asked about again. If the question is about a change,
// it shows the change to a person who types d.
func (a *app) askAbout(ctx context.Context, s *session, id string, about *patch, question, otherwise string) error {
	a.listen()
	choices := " [y/N] "
	switch {
	case about != nil:
		choices = " [y/N; d: show the change] "
	case a.contract != "":
		question = "v shows all of it. " + question
	}
	a.askNow(question + choices)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line := <-a.typed:
			if about != nil && a.readsChange(ctx, s, id, *about, line) {
				if a.reading == nil {
					a.askNow(question + choices)
				}
				continue
			}
			if a.readsContract(line) {
				if a.reading == nil {
					a.askNow(question + choices)
				}
				continue
			}
			switch typed := answered(line); {
			case yes(typed):
				return nil
			case typed == "" || no(typed):
				return &leaving{code: exitInterrupted, why: otherwise}
			default:
				a.say("%q is no answer to this", render.Clean(typed))
				a.askNow(question + choices)
			}
		}
	}
}

// askNow asks a question. What was typed before it, when the person had not seen it, is no answer to it.
func (a *app) askNow(question string) {
	if render.DropTyped(a.in) {
		a.drain()
	}
	a.screen.Ask(question)
}

// drain drops the lines that were read before anything was asked.
func (a *app) drain() {
	for {
		select {
		case _, open := <-a.typed:
			if !open {
				return
			}
		default:
			return
		}
	}
}

// listen starts to read what is typed.
func (a *app) listen() {
	if a.typed == nil {
		a.typed = a.lines(a.in)
	}
}

// showGate shows what waits, and the contract at a contract's gate. It says how to answer, unless it is asked here.
func (a *app) showGate(ctx context.Context, s *session, state loop.State, asked bool) {
	style, g := a.screen.Style(), *state.Gate
	if g.Kind == loop.GateContract {
		if c, notes, err := s.contract(ctx, state.Loop); err == nil {
			a.contract, a.notes = style.Contract(c), notes
			whole := "all of it: pawl validate --full"
			if asked {
				whole = "" // the question says it
			}
			a.screen.Print("\n" + style.ContractSummary(c, whole))
			if len(notes) > 0 {
				a.screen.Print(style.Notes(notes))
			}
			return
		} else if !errors.Is(err, context.Canceled) {
			a.say("the contract can't be shown: %v", err)
		}
	}
	if g.OffersDiff() {
		a.summarise(ctx, s, state.Loop, patchOf(state))
	}
	if asked {
		a.screen.Print("\n" + style.Asked(state.Loop, g))
		return
	}
	now := a.deps.Now()
	a.screen.Print("\n" + style.Gate(state.Loop, g, state.Ticking(now).Budget, now) + "\n")
}

// answered returns a typed line as answers are compared.
func answered(line string) string { return strings.ToLower(strings.TrimSpace(line)) }

func yes(line string) bool { return slices.Contains([]string{"y", "yes"}, answered(line)) }

// lookAtProposal shows the proposal of a loop that has ended and asks.
func (a *app) lookAtProposal(ctx context.Context, s *session, id string, p loop.Proposal) error {
	a.screen.Print("\nProposal of " + render.Clean(id) + ": " + render.Proposal(p) + "\nhash " + p.Hash + "\nThe whole of it: pawl diff " + shell.Quote(id) + "\n")
	seen := proposed(p)
	a.summarise(ctx, s, id, seen)
	return a.askAbout(ctx, s, id, &seen, "Approve?", "not approved")
}

// How many files a gate lists, and up to which size, in bytes, it shows the first line of a new file.
const (
	maxListed = 100
	maxBegins = 1 << 20
)

// summarise lists the files of a change, if this host has it, with the first lines of new files.
func (a *app) summarise(ctx context.Context, s *session, id string, p patch) {
	store, err := s.Store(ctx, id)
	if err != nil {
		return
	}
	files, err := store.Changes(ctx, p.base, p.head)
	if err != nil {
		return
	}
	a.screen.Print("")
	for i, f := range files {
		if i == maxListed {
			a.screen.Print(fmt.Sprintf("  and %d more; all of them: pawl diff %s --stat", len(files)-i, shell.Quote(id)))
			return
		}
		line := fmt.Sprintf("  %c  %-12s  %s", f.Status, amount(f), render.Clean(git.Quote(f.Path)))
		if f.Status == 'A' && f.HasContent() {
			begins := fmt.Sprintf("more than %d bytes", maxBegins)
			if content, err := store.BlobByID(ctx, f.NewBlob, maxBegins); err == nil {
				if begins = fmt.Sprintf("%d bytes", len(content)); !f.Binary {
					begins += "  " + firstLine(content)
				}
			}
			line += a.screen.Style().Dim("  " + begins)
		}
		a.screen.Print(a.screen.Style().Hang(line, 5))
	}
}

// contract asks a loop for its contract, and for what a person wants to know before approving it. If the loop does not
// answer, it returns what this host's ledger has.
func (s *session) contract(ctx context.Context, id string) (render.Contract, []string, error) {
	v, err := s.Contract(ctx, id)
	state, _ := s.State(ctx, id)
	if err != nil {
		var keptErr error
		if v, state, keptErr = s.kept(ctx, id); keptErr != nil {
			return render.Contract{}, nil, err
		}
	}
	k, err := kind.Of(v.Spec.Kind)
	return render.Contract{
		Loop: id, Kind: k, Contract: *v.Contract, Spec: v.Spec, Baseline: v.Baseline, InScope: v.InScope, Protections: v.Protections,
		Environment: v.Environment, Repo: state.Repo, Branch: state.Branch, Plan: state.Plan, Noise: state.Noise, Spread: spread(state, v.Spec),
		Age: render.Ago(state.MeasuredAt, s.app.deps.Now()), Claims: v.Claims, Lacks: v.Lacks, Tested: state.Tested.String(), TestsRun: testsRun(state.KnownTests),
	}, v.Notes, err
}

// spread returns how far evaluations of a loop's unchanged code differ, "" if they do not, or if that is not known.
func spread(state loop.State, sp spec.Spec) string {
	if state.Sampler == nil || state.Noise == "" {
		return ""
	}
	return rules.Spread(*state.Sampler, sp)
}

// testsRun returns what the tests have tested on the unchanged code, "" if that is not known.
func testsRun(judgement *loop.Judgement) string {
	if judgement == nil {
		return ""
	}
	return judgement.Tested.String()
}

// kept returns the contract as this host's ledger has it, with the loop's state. Only a worker knows what protects the
// machine, and how many files are in scope.
func (s *session) kept(ctx context.Context, id string) (v launch.ContractView, state loop.State, err error) {
	l, head, err := s.Ledger(ctx, id)
	if err != nil {
		return v, state, err
	}
	c, err := l.Contract(ctx, head)
	if err != nil {
		return v, state, err
	}
	state, err = l.State(ctx, head)
	if err == nil && state.Contract == nil {
		err = errors.New("the contract is not drawn yet")
	}
	return launch.ContractView{
		Contract: state.Contract, Spec: c.Spec, Baseline: state.Baseline, InScope: -1, Protections: []string{"a worker knows it; none answers now"},
	}, state, err
}
