package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
	"pawl/workflows/display"
)

// show keeps the current details in step with the state, for the Temporal UI and the CLI.
func (r *run) show(ctx workflow.Context) {
	s, diff := r.State(), ""
	if g := s.Gate; g != nil && g.OffersDiff() {
		diff = r.diffs(r.host.Opened.Ref, g.Hash, shell.Join("pawl", "diff", s.Loop))
	}
	workflow.SetCurrentDetails(ctx, Details(s, diff))
}

// Details renders a state as Markdown: what the loop waits for and how to answer, then the state as a table. diff is
// the beginning of the diff that its gate asks about, as Markdown, "" if there is none here.
func Details(s loop.State, diff string) string {
	var w strings.Builder
	if s.Gate != nil {
		w.WriteString(gateDetails(s, diff))
	}
	w.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&w, "| %s | %s |\n", name, markdown.Text(value))
		}
	}
	row("status", string(s.Status))
	if l := s.Sleep; l != nil {
		row("asleep until", l.Until.UTC().Format(time.RFC3339)+", "+l.String())
	}
	row("phase", s.Doing())
	row("iteration", fmt.Sprint(s.Iteration))
	if s.Baseline != nil {
		row("metric", fmt.Sprintf("best %s, baseline %s", s.Shown(), s.Baseline))
	}
	switch k, err := kind.Of(s.Kind); {
	case err != nil:
	case slices.Contains(k.Figures, kind.Fixes):
		row("fixes", fmt.Sprintf("%d in this iteration", s.FixAttempts))
	case slices.Contains(k.Figures, kind.Keeps):
		row("kept / discarded", fmt.Sprintf("%d / %d, %s in a row", s.KeptCount, s.Discarded, metric.Counted(s.DiscardsInARow, "discard")))
	}
	row("budget", budgetLine(s.Budget))
	row("branch", s.Branch)
	row("head", s.Head)
	if !s.Status.Ended() { // then its trees are gone
		row("desk", s.Desk)
	}
	row("host", s.Host)
	if p := s.Proposal; p != nil {
		fmt.Fprintf(&w, "| proposal | %s, %s: %s says whether it is approved and applied, and how to do so |\n",
			markdown.Code(p.Hash[:min(len(p.Hash), 16)]), metric.Counted(p.Files, "file"), markdown.CodeCell(shell.Join("pawl", "show", s.Loop)))
	}
	if s.Status.Ended() {
		row("ended", strings.TrimSpace(fmt.Sprintf("%s: %s %s", s.ExitStatus, s.Reason, s.ErrorCode)))
	}
	if len(s.Iterations) > 0 {
		w.WriteString("\n| iteration | metric | kept | what |\n|---|---|---|---|\n")
		for _, iter := range slices.Backward(list.Last(s.Iterations, 8)) {
			kept, metric, description := "no", "–", iter.Description
			if iter.Kept {
				kept = "**yes**"
			}
			if iter.Reason != "" {
				description = iter.Reason + ": " + description
			}
			if iter.Measured() {
				metric = iter.Metric.String()
			}
			fmt.Fprintf(&w, "| %d | %s | %s | %s |\n", iter.N, metric, kept, markdown.Text(loop.Clip(description, 120)))
		}
	}
	return w.String()
}

// gateDetails shows what waits and how to answer it, from the UI and from a shell.
func gateDetails(s loop.State, diff string) string {
	var w strings.Builder
	g := s.Gate
	fmt.Fprintf(&w, "### Waiting: %s\n\n%s (gate %s, since %s)\n\n", g.Kind, markdown.Text(g.Summary), markdown.Code(g.ID), g.OpenedAt.Format(time.RFC3339))
	if g.OffersDiff() && diff == "" {
		fmt.Fprintf(&w, "%s shows all of it: every file, and the diff that the hash covers.\n\n", markdown.Code(shell.Join("pawl", "diff", s.Loop)))
	}
	if g.Kind == loop.GateContract {
		w.WriteString(contractDetails(s))
	}
	w.WriteString(display.Ways(rules.Ways(s.Loop, *g, s.Budget)))
	w.WriteString("\n" + diff)
	return w.String()
}

// maxSealed is how many sealed files the details name.
const maxSealed = 20

// contractDetails shows of a contract what the workflow's own details lack: those were written when the loop was started.
func contractDetails(s loop.State) string {
	var w strings.Builder
	if s.Plan != nil {
		w.WriteString("The plan, which stays fixed:\n\n" + markdown.Block(s.Plan.Text) + "\n\n")
	}
	if c := s.Contract; c != nil {
		w.WriteString(sealed("Sealed, so the agent can't change them", c.Sealed, func(f loop.Seal) bool { return f.OfFiles() || f.Names == loop.SealOutside }))
		w.WriteString(sealed("No new file may have such a name", c.Sealed, loop.Seal.OfNewFiles))
		w.WriteString(sealed("Some lines of these files must not change", c.Sealed, func(f loop.Seal) bool { return len(f.Lines) > 0 }))
	}
	fmt.Fprintf(&w, "%s prints the whole contract, with every command, limit and protection. In this UI, run the query %s (tab *Queries*).\n\n",
		markdown.Code(shell.Join("pawl", "show", s.Loop)), markdown.Code("contract"))
	return w.String()
}

// sealed names the first seals of a sort, "" if there are none.
func sealed(title string, seals []loop.Seal, matches func(loop.Seal) bool) string {
	names := list.Map(list.Filter(seals, matches), func(f loop.Seal) string { return markdown.Code(f.Path) })
	if len(names) == 0 {
		return ""
	}
	if hidden := len(names) - maxSealed; hidden > 0 {
		names = append(names[:maxSealed], fmt.Sprintf("%d more", hidden))
	}
	return title + ": " + strings.Join(names, ", ") + ".\n\n"
}

func budgetLine(b loop.Budget) string {
	var parts []string
	for _, r := range loop.Resources {
		if a, ok := b[r]; ok && a.Limit != nil {
			parts = append(parts, string(r)+" "+b.Spent(r))
		}
	}
	return strings.Join(parts, ", ")
}

// remember completes the memo of a loop that was just opened. Whoever starts a loop can't know its branch if an earlier
// loop has the name, and another client of Temporal's need not set a memo.
func (r *run) remember(ctx workflow.Context) {
	lacking := map[string]any{}
	given := workflow.GetInfo(ctx).Memo.GetFields()
	for _, m := range []struct {
		key, value string
		ours       bool // the loop knows better than who started it
	}{
		{launch.MemoGoal, loop.Clip(r.spec.Goal, 500), false}, {launch.MemoBranch, r.State().Branch, true}, {launch.MemoStartedBy, r.spec.Session["user"], false},
	} {
		var value string
		if payload, ok := given[m.key]; ok {
			_ = converter.GetDefaultDataConverter().FromPayload(payload, &value)
		}
		if m.value != "" && value != m.value && (value == "" || m.ours) {
			lacking[m.key] = m.value
		}
	}
	if len(lacking) == 0 {
		return
	}
	if err := workflow.UpsertMemo(ctx, lacking); err != nil {
		workflow.GetLogger(ctx).Warn("the memo was not completed", "error", err)
	}
}

// publishSoon updates the search attributes while a loop runs.
func (r *run) publishSoon(ctx workflow.Context) {
	if r.host.Opened.Attributes {
		r.attributes.PublishSoon(ctx, launch.Published(r.State()))
	}
}

// publish updates the search attributes if something changed.
func (r *run) publish(ctx workflow.Context) {
	if r.host.Opened.Attributes {
		r.attributes.Publish(ctx, launch.Published(r.State()))
	}
}

// checkMessage decodes a message and checks what it would do. It changes nothing.
func (r *run) checkMessage(name string, payload []byte, now time.Time) (rules.Reply, error) {
	m, err := loop.DecodeMessage(payload)
	if err != nil {
		return rules.Reply{}, err
	}
	reply, err := rules.Answer(r.State().Ticking(now), r.spec, name, m)
	if err != nil || name != loop.MessageSteer {
		return reply, err
	}
	return rules.Heard(r.State(), int(r.rules), reply)
}

func (r *run) handleQueries(ctx workflow.Context) error {
	return errors.Join(
		display.Answer(ctx, "state", "The loop's state", func() (loop.State, error) { return r.State(), nil }),
		display.Answer(ctx, "iterations", "The last iterations", func() (launch.IterationsView, error) {
			s := r.State()
			return launch.IterationsView{Iterations: s.Iterations, Count: s.KeptCount + s.Discarded, Ledger: s.Ledger}, nil
		}),
		display.AnswerEvents(ctx, r.Journal),
		display.Answer(ctx, "gate", "What the loop waits for, if anything", func() (*loop.Gate, error) { return r.State().Gate, nil }),
		display.Answer(ctx, "contract", "What was or is to be approved", func() (launch.ContractView, error) {
			return launch.ContractView{
				Contract: r.State().Contract, Spec: r.spec, Baseline: r.State().Baseline,
				InScope: r.host.Opened.InScope, Protections: rules.Protected(r.host.Opened.Protections), Environment: r.host.Opened.Environment,
				Claims: r.host.Opened.Claims, Lacks: r.host.Opened.Lacks, Notes: slices.Concat(rules.SpecNotes(r.spec), r.notes),
			}, nil
		}),
	)
}
