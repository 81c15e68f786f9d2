package preflight

import (
	"context"
	"time"

	"pawl/activities/command"
	"pawl/activities/workspace"
	"pawl/internal/judge/canary"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// tryCanary breaks the code for the commands that pass on it. A command that already fails shows nothing. In a
// Deliver loop, which may be there to write the first tests, a guard that notices nothing is only a note.
func tryCanary(ctx context.Context, ws *workspace.Workspace, s spec.Spec, k kind.Kind, measured api.Measured, out *Findings, work func(string, int, time.Duration) *command.Work, tell func(string)) error {
	in := rules.Measuring(rules.CanaryOf(s, out.Guard, out.Test), measured)
	if in.LimitMs == 0 {
		return nil
	}
	w := work(command.CanaryStep, 0, 2*time.Duration(in.LimitMs)*time.Millisecond)
	in.Step, in.Hollow = w.In, true
	r, err := w.Canary(ctx, in)
	if err := unlessInterrupted(ctx, r.Outcome, err); err != nil {
		return err
	}
	out.ran(w, &r)
	for _, ran := range []*api.Outcome{out.Guard, out.Test} {
		if ran != nil && ran.Tested != nil {
			ran.Tested.Unbreakable = r.Files == 0
			break // one line says it
		}
	}
	if r.Unmoved {
		out.Notes = append(out.Notes, rules.Unmoved(r, *in.Metric))
	}
	switch {
	case !in.Guards():
	case r.Blind():
		what, do := rules.Blind(r, in.Guard, in.Test)
		if k.Mends { // the loop may be there to write the first tests
			out.Notes = append(out.Notes, what+". "+do)
			break
		}
		out.problem("guard", what, do)
	case r.Hollow:
		out.Notes = append(out.Notes, rules.Hollow(in.Guard, in.Test))
	}
	if !r.Seen {
		return nil
	}
	return out.tryParts(ctx, ws, in, work, tell)
}

// tryParts breaks the parts of the code one by one: a command that notices one part may ignore the others.
func (f *Findings) tryParts(ctx context.Context, ws *workspace.Workspace, in api.Canary, work func(string, int, time.Duration) *command.Work, tell func(string)) error {
	files, names, err := command.Code(ctx, ws, in.Spec, in.Head)
	if err != nil {
		return err
	}
	parts := canary.Parts(files, names)
	if len(parts) < 2 {
		return nil
	}
	var unseen []string
	var took time.Duration
	for _, ran := range []*api.Outcome{f.Guard, f.Test} {
		if ran != nil {
			took += time.Duration(ran.ElapsedMs) * time.Millisecond
		}
	}
	spent := time.Duration(0)
	for i, part := range parts {
		if !rules.TriesPart(i, spent, took) {
			f.Notes = append(f.Notes, rules.PartsLeft(parts[i:], in.Guard, in.Test))
			break
		}
		tell("canary: " + part.Name)
		w := work(command.CanaryStep, i+1, time.Duration(in.LimitMs)*time.Millisecond)
		in.Step = w.In
		seen, r, err := w.Sees(ctx, in, part.Files)
		if err := unlessInterrupted(ctx, r, err); err != nil {
			return err
		}
		last := time.Duration(r.ElapsedMs) * time.Millisecond
		spent, took = spent+last, max(took, last)
		if !seen {
			unseen = append(unseen, rules.Part(part))
		}
	}
	if len(unseen) > 0 {
		f.Notes = append(f.Notes, rules.Unseen(unseen, in.Guard, in.Test))
	}
	return nil
}
