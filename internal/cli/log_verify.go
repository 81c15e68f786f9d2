package cli

import (
	"context"
	"fmt"
	"strings"

	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/metric"
)

// verifyLedger proves that the ledger of a loop or a steward is whole, or reports its faults.
func (a *app) verifyLedger(ctx context.Context, s *session, id string) error {
	record, ok := s.Record(id)
	if !ok {
		family := s.FamilyOf(ctx, id)
		if s.SDK != nil && family == client.Loop {
			if err := s.Alive(ctx, id); fault.CodeOf(err) == fault.LoopNotFound {
				return err
			}
		}
		return s.Torn(id, fault.New(fault.LoopNotFound, "this host has no ledger of the %s %s", family.Word, id).Advise("Run this on the "+family.Word+"'s host. If its start was refused, there is none."))
	}
	v, err := s.Verify(ctx, id, record)
	if err != nil {
		return err
	}
	err = a.output(v, proofText(v))
	if err == nil && !v.Whole {
		err = &leaving{code: exitInternal}
	}
	return err
}

// proofText renders the proof of a ledger for people.
func proofText(v client.Verified) string {
	var b strings.Builder
	if v.Whole {
		fmt.Fprintf(&b, "%s: the ledger is whole: %s, %s", v.Loop, metric.Counted(v.Entries, "entry"), metric.Counted(v.Events, "event"))
		if v.Rows > 0 { // a steward has none
			fmt.Fprintf(&b, ", %s", metric.Counted(v.Rows, "result"))
		}
		fmt.Fprintf(&b, ", up to %s", v.Ledger)
	} else {
		fmt.Fprintf(&b, "%s: the ledger is NOT whole", v.Loop)
	}
	for _, f := range v.Faults {
		place := "the ledger"
		if f.Entry > 0 {
			place = fmt.Sprintf("entry %d (%s)", f.Entry, render.Short(f.Commit))
		} else if f.Commit != "" {
			place = "entry " + render.Short(f.Commit)
		}
		fmt.Fprintf(&b, "\n  %s: %s", place, render.Clean(f.What))
	}
	b.WriteString(render.Around("\n  ", v.CutOff, ""))
	for _, counterpart := range []struct{ name, says, unknown string }{
		{"workflow", v.Workflow, "could not be asked"},
		{"copy in the repository", v.Copy, "was not read, or there is none"},
	} {
		if counterpart.says == client.Unknown {
			counterpart.says = counterpart.unknown
		}
		fmt.Fprintf(&b, "\n  the %s %s", counterpart.name, counterpart.says)
	}
	return b.String()
}
