package act

import "pawl/internal/loop"

// Entry is what every activity that appends to the ledger is given: where the ledger stands
// and the events to append. Events whose outcome only the activity knows (the head after a
// revert, the proposal) are filled in by it; Appended has what it takes to fill them in too.
type Entry struct {
	Ref    string       `json:"ref"`
	Ledger string       `json:"ledger"`
	Events []loop.Event `json:"events"`
}

// Concerns is the iteration and the phase of the last event.
func (e Entry) Concerns() (iteration int, what, name string) {
	if len(e.Events) == 0 {
		return 0, "phase", ""
	}
	last := e.Events[len(e.Events)-1]
	return last.Iteration, "phase", string(last.Phase)
}

// Workspace is the name of the loop on its host.
func (e Entry) Workspace() string { return e.Ref }

// Appended is the ledger's new head and what else came of it.
type Appended struct {
	Ledger      string         `json:"ledger"`
	Head        string         `json:"head,omitempty"`        // after a revert
	Proposal    *loop.Proposal `json:"proposal,omitempty"`    // nil where nothing has changed since the base
	Stop        string         `json:"stop,omitempty"`        // a loop-stop file is there
	PushRefused string         `json:"pushRefused,omitempty"` // why the last push was refused
	Mended      []string       `json:"mended,omitempty"`      // what was damaged on the host and is mended, and the ledger does not have
}

// Fill completes an event with what only the activity that recorded it could know: the head
// after a revert, the proposal. Activity and workflow both apply the event filled in.
func Fill(e loop.Event, out Appended) loop.Event {
	switch {
	case Reverts(e.Type):
		e.Head = out.Head
	case e.Type == loop.ProposalMade:
		e.Proposal = out.Proposal
	}
	return e
}

// Reverts reports whether an event of that type comes of a Revert, which its head is known by.
func Reverts(t loop.Type) bool {
	return t == loop.ChangeReverted || t == loop.BranchBegun || t == loop.BranchGivenUp
}

// Settle keeps a change, or reverts it, and appends to the ledger in one.
type Settle struct {
	Entry
	Revert *Revert `json:"revert,omitempty"`
	Push   bool    `json:"push,omitempty"` // the branch is pushed while the loop goes on
}

// Revert takes the branch's tip back: by a commit on top of it with the files of Parent.
type Revert struct {
	Commit string `json:"commit"`
	Parent string `json:"parent"`
	// GoOn says that Parent is any earlier commit, whose files the branch goes on from.
	GoOn bool `json:"goOn,omitempty"`
	// KeepDesk leaves the desk as it is: a person is to mend what is on it.
	KeepDesk bool `json:"keepDesk,omitempty"`
}

// Record appends what happened between iterations, and pushes. The loop waits, or has only begun: its
// processes are given up, with Park, where it waits long, its trees too.
type Record struct {
	Entry
	Park bool `json:"park,omitempty"`
	// Working leaves the processes: agents are at work on candidates.
	Working bool `json:"working,omitempty"`
}

// Propose makes the diff from Base to Head the proposal that the event asks for; else it is a Record.
type Propose struct {
	Entry
	Base string `json:"base"`
	Head string `json:"head"`
	Anew bool   `json:"anew,omitempty"` // the base has moved since the loop started
}

// Close ends the loop: like Propose, and nothing of it stays but store, ledger and logs.
type Close struct {
	Entry
	Base string `json:"base"`
	Head string `json:"head"`
	Anew bool   `json:"anew,omitempty"` // the base has moved since the loop started
}
