package api

import (
	"fmt"
	"time"

	"pawl/internal/loop"
)

// Review is a person's answer about the proposal of a loop that has ended. It is valid for exactly that hash.
type Review struct {
	Loop   string    `json:"loop"`
	Hash   string    `json:"hash"`
	Answer string    `json:"answer"` // approve or reject
	By     string    `json:"by,omitempty"`
	Note   string    `json:"note,omitempty"`
	Time   time.Time `json:"time"`
}

// Reviewed is the proposal after the review.
type Reviewed struct {
	Loop     string        `json:"loop"`
	Proposal loop.Proposal `json:"proposal"`
	Already  bool          `json:"already,omitempty"` // it was so before, and nothing was recorded
}

// Ways of applying a proposal.
const (
	FastForward = "ff"
	Merge       = "merge"
	Squash      = "squash"
	Patch       = "patch"
)

// Ways are the ways of applying a proposal.
var Ways = []string{FastForward, Merge, Squash, Patch}

// Apply brings an approved proposal onto the user's branch. A retry has the same Time, and makes the same commits.
type Apply struct {
	Loop string    `json:"loop"`
	Hash string    `json:"hash"`
	How  string    `json:"how"`
	By   string    `json:"by,omitempty"`
	Time time.Time `json:"time"`
	// Running is set by a loop that has not ended; that loop records the result itself. After a loop's end the ledger
	// has the proposal, and the activity records the result.
	Running *Running `json:"running,omitempty"`
}

// Running is the state of a loop that applies its proposal before its end.
type Running struct {
	Proposal loop.Proposal `json:"proposal"` // as the loop has it
	Ledger   string        `json:"ledger"`
}

// Applied is the result. If the branch had moved, nothing was applied, and Moved is the proposal that replaces the
// old one. It has its own hash, and nobody has reviewed it yet.
type Applied struct {
	Loop        string         `json:"loop"`
	Hash        string         `json:"hash"`
	How         string         `json:"how"`
	Branch      string         `json:"branch,omitempty"`
	Commit      string         `json:"commit,omitempty"`
	Already     bool           `json:"already,omitempty"` // the branch already had it
	Patch       string         `json:"patch,omitempty"`   // the file, on the loop's host
	Proposal    *loop.Proposal `json:"proposal,omitempty"`
	Moved       *loop.Proposal `json:"moved,omitempty"`
	Rewritten   *Rewritten     `json:"rewritten,omitempty"` // beside Moved, if the branch no longer has the old base
	PushRefused string         `json:"pushRefused,omitempty"`
}

// Rewritten says what of pawl still has the old base.
type Rewritten = loop.Rewritten

// MovedReason says why there is another proposal.
func (a Applied) MovedReason(hash string) string {
	if a.Rewritten == nil {
		return fmt.Sprintf("%s has moved since the proposal %s was made", a.Branch, hash)
	}
	return fmt.Sprintf("%s was rewritten since the proposal %s was made: it no longer has %s. %s", a.Branch, hash, a.Rewritten.Base[:min(10, len(a.Rewritten.Base))], a.Rewritten)
}
