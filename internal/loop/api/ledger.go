package api

import "pawl/internal/loop"

// Entry is the common input of all activities that append to the ledger: the ledger's head and the events to append.
// If only the activity knows the outcome of an event (the head after a revert, the proposal), it fills the event in.
// Appended has what the workflow needs to do the same.
type Entry struct {
	Ref    string       `json:"ref"`
	Ledger string       `json:"ledger"`
	Events []loop.Event `json:"events"`
	// Hasty says that a person has halted the loop: no push may hold up its end.
	Hasty bool `json:"hasty,omitempty"`
}

// Concerns returns the iteration and the phase of the last event.
func (e Entry) Concerns() (iteration int, subject, name string) {
	if len(e.Events) == 0 {
		return 0, "phase", ""
	}
	last := e.Events[len(e.Events)-1]
	return last.Iteration, "phase", string(last.Phase)
}

// Workspace returns the name of the loop on its host.
func (e Entry) Workspace() string { return e.Ref }

// Needs returns the entry that this one follows.
func (e Entry) Needs() []string { return []string{e.Ledger} }

// Appended is the ledger's new head, with the activity's other results.
type Appended struct {
	Ledger      string         `json:"ledger"`
	Head        string         `json:"head,omitempty"`        // after a revert
	Proposal    *loop.Proposal `json:"proposal,omitempty"`    // nil if nothing has changed since the base
	Stop        string         `json:"stop,omitempty"`        // which loop-stop file asks for the end, "" for none
	PushRefused string         `json:"pushRefused,omitempty"` // why the last push was refused
	Mended      []string       `json:"mended,omitempty"`      // damage that was mended and is not in the ledger yet
}

// Fill returns an event with the values that only the activity that recorded it could know: the head after a revert,
// the proposal. Activity and workflow both apply the filled event.
func Fill(e loop.Event, out Appended) loop.Event {
	switch {
	case Reverts(e.Type):
		e.Head = out.Head
	case e.Type == loop.ProposalMade:
		e.Proposal = out.Proposal
	}
	return e
}

// Reverts reports whether events of that type follow from a Revert, which gives them their head.
func Reverts(t loop.Type) bool {
	return t == loop.ChangeReverted || t == loop.BranchBegun || t == loop.BranchGivenUp
}

// Settle keeps or reverts a change and appends to the ledger, in one activity.
type Settle struct {
	Entry
	Revert *Revert `json:"revert,omitempty"`
	Push   bool    `json:"push,omitempty"` // push the branch while the loop is still running
}

// Revert undoes commits by a new commit on top of the branch with the files of Parent.
type Revert struct {
	Commit string `json:"commit"`
	Parent string `json:"parent"`
	// GoOn says that Parent is any earlier commit: the branch continues from its files.
	GoOn bool `json:"goOn,omitempty"`
	// KeepDesk leaves the desk as it is, because a person will correct what is on it.
	KeepDesk bool `json:"keepDesk,omitempty"`
}

// Record appends what happened between iterations, and pushes. The loop waits, or has just begun, so the activity
// ends its processes. With Park it also removes the trees of a loop that waits for a long time.
type Record struct {
	Entry
	Park bool `json:"park,omitempty"`
	// Working leaves the processes running: agents work on candidates.
	Working bool `json:"working,omitempty"`
}

// Propose makes the proposal that the event asks for, from the diff between Base and Head. Otherwise it is like a
// Record.
type Propose struct {
	Entry
	Base string `json:"base"`
	Head string `json:"head"`
	Anew bool   `json:"anew,omitempty"` // the base has moved since the loop started
}

// Close ends the loop. It does what Propose does, and leaves only store, ledger and logs of the loop.
type Close Propose
