package preflight

import (
	"context"
	"time"

	"pawl/activities/command"
	"pawl/internal/judge/canary"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// canary breaks the code for the commands that pass on it. A command that already fails shows nothing. In a Deliver
// loop, which may be there to write the first tests, a guard that notices nothing is only a note.
func (d *dryRun) canary(ctx context.Context) error {
	if !d.spec.Canary() {
		return nil
	}
	d.tell("canary")
	out := d.out
	input := rules.Measuring(rules.CanaryOf(d.spec, out.Guard, out.Test), d.measured)
	if input.LimitMs == 0 {
		return nil
	}
	w := d.work(command.CanaryStep, 0, 2*time.Duration(input.LimitMs)*time.Millisecond)
	input.Step, input.Hollow = w.In, true
	r, err := w.Canary(ctx, input)
	if err := unlessInterrupted(ctx, r.Outcome, err); err != nil {
		return err
	}
	out.ran(w, &r)
	for _, ran := range []*api.Outcome{out.Guard, out.Test} {
		if ran != nil && ran.Tested != nil {
			ran.Tested.Unbreakable = r.Files == 0
			if d.kind.Mends && input.Guards() { // its loop tries no canary
				ran.Tested.Misses = rules.Missed(r)
			}
			break // one line says it
		}
	}
	if r.Unmoved {
		d.note(rules.Unmoved(r, *input.Metric))
	}
	switch {
	case !input.Guards():
	case r.Blind():
		problem, do := rules.Blind(r, input.Guard, input.Test)
		if d.kind.Mends { // the loop may be there to write the first tests
			d.note(problem + ". " + do)
			break
		}
		out.problem("guard", problem, do)
	case r.Hollow:
		d.note(rules.Hollow(input.Guard, input.Test))
	}
	if !r.Seen {
		return nil
	}
	return d.tryParts(ctx, input)
}

// tryParts breaks the parts of the code one by one: a command that notices one part may ignore the others.
func (d *dryRun) tryParts(ctx context.Context, input api.Canary) error {
	files, names, err := command.Code(ctx, d.ws, input.Spec, input.Head)
	if err != nil {
		return err
	}
	parts := canary.Parts(files, names)
	if len(parts) < 2 {
		return nil
	}
	var unseen []string
	var took time.Duration
	for _, ran := range []*api.Outcome{d.out.Guard, d.out.Test} {
		if ran != nil {
			took += time.Duration(ran.ElapsedMs) * time.Millisecond
		}
	}
	spent := time.Duration(0)
	for i, part := range parts {
		if !rules.TriesPart(i, spent, took) {
			d.note(rules.PartsLeft(parts[i:], input.Guard, input.Test))
			break
		}
		d.tell("canary: " + part.Name)
		w := d.work(command.CanaryStep, i+1, time.Duration(input.LimitMs)*time.Millisecond)
		input.Step = w.In
		seen, r, err := w.Sees(ctx, input, part.Files)
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
		d.note(rules.Unseen(unseen, input.Guard, input.Test))
	}
	return nil
}
