package act

import (
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Open asks for a loop's store and trees. FirstRun identifies the chain of runs, so that a
// retry finds what an earlier attempt made and a new loop of an old name gets a suffix.
type Open struct {
	Loop     string    `json:"loop"`
	FirstRun string    `json:"firstRun"`
	Spec     spec.Spec `json:"spec"`
	Ledger   string    `json:"ledger,omitempty"` // resume from this ledger head
	// Moved says that the run goes on, on another host: what it has amended need not be in the
	// ledger yet.
	Moved bool `json:"moved,omitempty"`
}

// Opened is where the loop lives from now on, what it starts from and what a person is to approve.
type Opened struct {
	Site
	Terms
	Repo     string   `json:"repo"`
	Branch   string   `json:"branch"`
	Base     string   `json:"base"`
	Begun    string   `json:"begun,omitempty"` // the commit before Base at which the steward's task began
	Onto     string   `json:"onto,omitempty"`  // the branch that the work is to be applied to
	InScope  int      `json:"inScope"`         // how many files the scope matches now
	Warnings []string `json:"warnings,omitempty"`
	// Environment says what of the worker's environment agent and commands get, for the contract.
	Environment []string    `json:"environment,omitempty"`
	Stop        string      `json:"stop,omitempty"`  // a loop-stop file is there
	State       *loop.State `json:"state,omitempty"` // of the ledger head to resume from
	// Since are the events of the iteration that was under way there, Unjudged how its last commit is described, "" where
	// there is none that nobody has judged.
	Since    []loop.Event `json:"since,omitempty"`
	Unjudged string       `json:"unjudged,omitempty"`
}

// Site is a loop's place on its host.
type Site struct {
	Ref    string `json:"ref"` // the loop's name in refs and folders
	Host   string `json:"host"`
	Queue  string `json:"queue"`
	Agents string `json:"agents,omitempty"` // the queue of the agents, where it is another
	Desk   string `json:"desk"`
	// Protections are what holds on this host whatever the agent does, and what does not, for the
	// contract.
	Protections []string `json:"protections,omitempty"`
	// MoveAfterMs is how long this host may leave something untaken until the loop asks whether it
	// is gone; 0: the loop stays.
	MoveAfterMs int64 `json:"moveAfterMs,omitempty"`
	// Attributes says that the namespace knows the search attributes.
	Attributes bool `json:"attributes,omitempty"`
}

// Terms are what the activity adds to a spec to make it a contract.
type Terms struct {
	Contract string      `json:"contract"` // the contract's hash
	Sealed   []loop.Seal `json:"sealed,omitempty"`
}

// Amend asks for the terms that the loop would have with another spec. Nothing changes yet.
type Amend struct {
	Ref  string    `json:"ref"`
	Base string    `json:"base"`
	Spec spec.Spec `json:"spec"`
}

// Place asks for a loop with a repo.url whose host did not take what was to be done there.
type Place struct {
	Loop   string `json:"loop"`
	Host   string `json:"host"`
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Ledger is where the ledger is as far as the loop knows, Sent what its host may have recorded
	// after that without being able to say so.
	Ledger string       `json:"ledger,omitempty"`
	Sent   []loop.Event `json:"sent,omitempty"`
}

// Placed says whether another host can go on: the loop's own is gone, and the repository has all that
// it recorded.
type Placed struct {
	Gone   bool         `json:"gone"`
	Why    string       `json:"why"`
	Ledger string       `json:"ledger,omitempty"` // its head in the repository
	Since  []loop.Event `json:"since,omitempty"`  // what it has of Sent, as it was recorded
}

// Find asks for the host of a loop; the answer is Found.
type Find struct {
	Loop string `json:"loop"`
}

// Found is the queue of the host that has a loop's store.
type Found struct {
	Queue string `json:"queue"`
}
