package rules

import "pawl/internal/spec"

// Approval holds the rules by which a proposal is approved (A7, E3). They are the same for every kind of loop; the kind
// decides what an approval or a rejection leads to.
type Approval struct {
	Diff     string // approvals.diff: spec.Required or spec.Auto
	Reviewer bool   // there is a reviewer role
	Marked   bool   // a suspicious change was kept: no reviewer alone approves it
	Reworks  int    // how often the reviewer is asked again after an answer that is no decision
}

// ApprovalOf returns the rules of a loop with that spec.
func ApprovalOf(s spec.Spec) Approval {
	_, reviewer := s.Agent.Roles[spec.RoleReviewer]
	return Approval{Diff: s.Approvals.Diff, Reviewer: reviewer, Reworks: s.Limits.Reworks}
}

// AfterProposal decides who is asked about a proposal: the reviewer, a person, or nobody; then the proposal stays open.
func (a Approval) AfterProposal() Move {
	switch {
	case a.Reviewer:
		return Move{Do: AskReviewer}
	case a.Diff == spec.Auto:
		return Move{Do: Finish, Reason: "there is no reviewer: the proposal is still to be approved"}
	}
	return Move{Do: AskPerson}
}

// AfterOpinion decides what follows the reviewer's answer. A rejection always counts, even if a person would have been
// asked next. An approval is enough only if the spec leaves the decision to the reviewer. An answer that is no decision
// never approves; the reviewer is asked again. The count in asked includes this answer.
func (a Approval) AfterOpinion(asked int, o Opinion) Move {
	switch {
	case o.Decision == SaysRejected:
		return Move{Do: Finish, Reason: "the reviewer rejected the proposal" + because(o.Note)}
	case o.Decision == Undecided && !o.TimedOut && asked <= a.Reworks:
		return Move{Do: AskReviewer, Reason: o.Why}
	case a.Diff != spec.Auto, a.Marked && o.Decision == SaysApproved:
		return Move{Do: AskPerson}
	case o.Decision == SaysApproved:
		return Move{Do: Finish, Approved: true, Reason: "approved by the reviewer" + because(o.Note)}
	}
	return Move{Do: Finish, Reason: "the reviewer did not decide: the proposal is still to be approved"}
}

// AfterHalt returns how a loop ends when it is halted while a change is blocked.
func (Approval) AfterHalt(reason string) End { return BlockedGivenUp.Because(reason) }
