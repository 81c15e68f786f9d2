package rules

import (
	"fmt"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// Child returns the report of a loop in that state to its steward after that event (S1). A steward that reads the
// loop gets the same report. Figures of an iteration are those of the last finished one. Once the loop has ended, the
// reason is that of its end.
func Child(s loop.State, event string) task.ChildEvent {
	r := &task.ChildResult{
		Status: string(s.Status), ExitStatus: s.ExitStatus, ErrorCode: s.ErrorCode,
		Head: s.Head, Base: s.Base, Branch: s.Branch, Usage: s.Usage.OfTask(),
	}
	r.Steward, r.RateLimit = s.Steward, s.RateLimit
	if s.Sleep != nil && s.Sleep.Step == "" {
		r.RateLimit = &task.RateLimit{Until: s.Sleep.Until, Said: s.Sleep.Reason}
	}
	if s.Contract != nil {
		r.Approved = s.Contract.ApprovedBy
	}
	if n := len(s.Iterations); n > 0 {
		last := s.Iterations[n-1]
		r.Iteration, r.Kept, r.Description, r.Metric, r.Tree, r.Reason = last.N, last.Kept, loop.Clip(last.Description, 200), last.Metric, last.Tree, loop.Clip(last.Reason, 200)
	}
	if s.Status.Ended() {
		r.Reason = loop.Clip(s.Reason, 500)
	}
	if p := s.Proposal; p != nil {
		r.Proposal = &task.ChildProposal{Hash: p.Hash, State: p.State, Marked: Marked(s)}
		if r.Proposal.Marked {
			r.Proposal.Why = loop.Clip(strings.Join(MarkedPoints(s), "; "), 500)
		}
	}
	e := task.ChildEvent{Loop: s.Loop, Event: event, Result: r, Seq: s.Seq}
	if g := s.Gate; g != nil {
		e.Gate = &task.ChildGate{ID: g.ID, Kind: string(g.Kind), Summary: g.Summary, Hash: g.Hash, Answers: g.Answers, OpenedAt: g.OpenedAt}
		if g.Kind == loop.GatePause {
			e.Gate.By = s.PausedBy
		}
	}
	return e
}

// Approver names who has approved a contract without asking a person (approvals.plan: auto): the spec itself, or the
// steward that carries out an approved plan. The steward is named by the loop's session; nobody has checked that.
func Approver(s spec.Spec) string {
	steward := s.Session[spec.SessionSteward]
	if steward == "" {
		return "spec (approvals.plan: auto)"
	}
	text := loop.StewardName(steward)
	for _, said := range []struct{ words, key string }{{"plan", spec.SessionPlan}, {"approved by", spec.SessionApprovedBy}} {
		if value := s.Session[said.key]; value != "" {
			text += fmt.Sprintf(", %s %s", said.words, loop.Clip(value, 200))
		}
	}
	return text
}
