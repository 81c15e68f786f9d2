package rules

import (
	"strings"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

// The states of a proposal.
const (
	Open     = "open"
	Approved = "approved"
	Rejected = "rejected"
	Applied  = "applied"
)

// MayApply returns nil if a proposal may be applied, else why not. It may be applied only after an approval, and only
// with exactly the hash that was approved (E3). Every way of applying calls it, also a patch file.
func MayApply(p *loop.Proposal, hash string) error {
	if err := sameProposal(p, hash); err != nil {
		return err
	}
	switch p.State {
	case Approved, Applied:
		return nil
	case Rejected:
		return fault.New(fault.ReviewRejected, "the proposal %s was rejected%s", p.Hash[:minHash], by(p.By))
	}
	return fault.New(fault.ReviewMissing, "nobody has approved the proposal %s", p.Hash[:minHash])
}

// Review returns the new state of a proposal after a person's answer, or why the answer does not count. The same
// answer again changes nothing. An approval can be taken back until the proposal is applied. A rejection is final.
func Review(p *loop.Proposal, hash string, approve bool) (state string, err error) {
	if err := sameProposal(p, hash); err != nil {
		return "", err
	}
	state = Rejected
	if approve {
		state = Approved
	}
	switch p.State {
	case state, Open, Approved:
		return state, nil
	case Applied:
		if approve {
			return Applied, nil
		}
		return "", fault.New(fault.GateClosed, "the proposal %s is applied already", p.Hash[:minHash]).Advise("Revert it on the branch that it was applied to.")
	}
	return "", fault.New(fault.ReviewRejected, "the proposal %s was rejected%s", p.Hash[:minHash], by(p.By))
}

func sameProposal(p *loop.Proposal, hash string) error {
	switch {
	case p == nil:
		return fault.New(fault.PreconditionFailed, "the loop has made no proposal").Advise("It makes one when it ends with something kept.")
	case len(hash) < minHash:
		return fault.New(fault.HashMismatch, "the proposal must be named by its hash, at least its first %d digits", minHash).
			AdviseAbout("Look at it (`{diff}`) and name exactly that hash.")
	case !strings.HasPrefix(strings.ToLower(p.Hash), strings.ToLower(hash)):
		return fault.New(fault.HashMismatch, "the hash %s is not that of the proposal (%s)", clip(hash), p.Hash[:minHash]).
			AdviseAbout("Look at the proposal as it is now (`{diff}`) and name exactly that hash.")
	}
	return nil
}

func by(reviewer string) string {
	if reviewer == "" {
		return ""
	}
	return " by " + reviewer
}
