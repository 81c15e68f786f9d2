package api

import (
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Open asks for a loop's store and trees. FirstRun identifies the chain of runs: a retry finds what an earlier
// attempt made, and a new loop with an old name gets a suffix.
type Open struct {
	Loop     string    `json:"loop"`
	FirstRun string    `json:"firstRun"`
	Spec     spec.Spec `json:"spec"`
	Ledger   string    `json:"ledger,omitempty"` // resume from this ledger head
	// Moved says that the run continues on another host. Its amendments may be missing from the ledger.
	Moved bool `json:"moved,omitempty"`
}

// Opened says where the loop is from now on, what it starts from, and what a person has to approve.
type Opened struct {
	Site
	Terms
	Repo     string   `json:"repo"`
	Branch   string   `json:"branch"`
	Base     string   `json:"base"`
	Begun    string   `json:"begun,omitempty"` // the commit before Base at which the steward's task began
	Onto     string   `json:"onto,omitempty"`  // the branch to which the work will be applied
	InScope  int      `json:"inScope"`         // how many files match the scope now
	Warnings []string `json:"warnings,omitempty"`
	// Environment says what agent and commands get of the worker's environment, for the contract.
	Environment []string    `json:"environment,omitempty"`
	Stop        string      `json:"stop,omitempty"`  // which loop-stop file asks for the end, "" for none
	State       *loop.State `json:"state,omitempty"` // the state at the ledger head to resume from
	// Since are the events of the iteration that was under way at that head. Unjudged is the description of its last
	// commit if nobody has judged that commit, else "".
	Since    []loop.Event `json:"since,omitempty"`
	Unjudged string       `json:"unjudged,omitempty"`
}

// Site is where a loop is on its host.
type Site struct {
	Ref    string `json:"ref"` // the loop's name in refs and folders
	Host   string `json:"host"`
	Queue  string `json:"queue"`
	Agents string `json:"agents,omitempty"` // the queue of the agents, if they have their own
	Desk   string `json:"desk"`
	// Protections say what this host protects from the agent in any case, and what it does not, for the contract.
	Protections []string `json:"protections,omitempty"`
	// Claims is how many claims about the sandbox were tried, 0 if that is not known. Lacks say what it does not protect.
	Claims int      `json:"claims,omitempty"`
	Lacks  []string `json:"lacks,omitempty"`
	// MoveAfterMs is how long an activity may wait until the loop asks whether this host is gone; 0: the loop stays.
	MoveAfterMs int64 `json:"moveAfterMs,omitempty"`
	// Attributes says that the namespace knows the search attributes.
	Attributes bool `json:"attributes,omitempty"`
}

// Terms are what the activity adds to a spec to make a contract.
type Terms struct {
	Contract string      `json:"contract"` // the contract's hash
	Sealed   []loop.Seal `json:"sealed,omitempty"`
}

// Amend asks for the terms that the loop would have with another spec. It changes nothing.
type Amend struct {
	Ref  string    `json:"ref"`
	Base string    `json:"base"`
	Spec spec.Spec `json:"spec"`
}

// Place asks about a loop with a repo.url whose host did not start an activity.
type Place struct {
	Loop   string `json:"loop"`
	Host   string `json:"host"`
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Ledger is the head of the ledger as the loop knows it. Sent are events that its host may have recorded after
	// that without reporting it.
	Ledger string       `json:"ledger,omitempty"`
	Sent   []loop.Event `json:"sent,omitempty"`
}

// Placed says whether another host can continue: the host is gone, and the repository has all that it recorded.
type Placed struct {
	Gone   bool         `json:"gone"`
	Why    string       `json:"why"`
	Ledger string       `json:"ledger,omitempty"` // the head of the ledger in the repository
	Since  []loop.Event `json:"since,omitempty"`  // the events of Sent that it has, as they were recorded
}

// Find asks for the host of a loop; the result is Found.
type Find struct {
	Loop string `json:"loop"`
}

// Found is the queue of the host that has a loop's store.
type Found struct {
	Queue string `json:"queue"`
}
