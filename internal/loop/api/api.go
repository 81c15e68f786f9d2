// Package api is the contract between workflows and activities: the activities' names, their inputs and their
// results. Workflows call activities by these names and link none of the code behind them. The values enter history,
// so they are small: paths, digests and short tails, never prompts, diffs or transcripts. The package does nothing by
// itself. Start at step.go: the input of every step and its result.
package api

// Activities that run something in a loop's trees, one step each (step.go, call.go). An iteration needs four
// activities: an agent call, the commit, verify and the settlement. A check and a guard are one more each.
const (
	CallName     = "CallAgent" // ask an agent, on the desk
	CheckName    = "Check"     // run check.command, on the desk
	VerifyName   = "Verify"    // run verify.command and read the metric, in the judge
	GuardName    = "Guard"     // run guard.command, in the judge
	CanaryName   = "Canary"    // break the code in scope, in the judge, and run the commands that guard it
	TestName     = "Test"      // run test.command and read which tests failed, in the judge
	ProgressName = "Progress"  // how much active time a running step has used
)

// Activities that record something (commit.go, ledger.go).
const (
	CommitName  = "Commit"  // judge the change on the desk by the policies, and commit it
	TakeName    = "Take"    // bring a candidate onto the desk
	SettleName  = "Settle"  // keep or revert a change, append to the ledger
	RecordName  = "Record"  // append what happened between iterations
	ProposeName = "Propose" // make the proposal and append it
	CloseName   = "Close"   // make the proposal, append the end, push, remove the trees
)

// Activities about a loop's host (host.go), its proposal (proposal.go) and notices to people (notice.go).
const (
	OpenName   = "Open"   // store, desk and judge; the repository's preconditions (P0)
	AmendName  = "Amend"  // find the sealed files and the hash of an amended contract
	PlaceName  = "Place"  // find out whether a loop's host is gone, and where its ledger is then
	FindName   = "Find"   // find the queue of the host that has a loop's store
	ReviewName = "Review" // record a person's answer about the proposal of a loop that has ended
	ApplyName  = "Apply"  // bring an approved proposal onto the user's branch
	NotifyName = "Notify" // notify one receiver of spec.notify
)

// Concern is an input that says which iteration it is about, and which part of it: "step", "verify".
type Concern interface {
	Concerns() (iteration int, subject, name string)
}

// Needing is an input that says which commits the store must have for it: heads of the branch and of the ledger, "" for none.
type Needing interface {
	Needs() []string
}

// TaskQueue is the queue of workflows and of everything that needs no particular host.
const TaskQueue = "pawl"

// HostMemo is the key of the memo that names the host of a loop that has moved.
const HostMemo = "host"

// CarriedMemo is the key of the memo of a loop that was started again from its ledger because the engine had lost it.
// Its value is the first run of the original loop.
const CarriedMemo = "carriedOver"

// HostQueue returns the queue for work on a host's trees.
func HostQueue(host string) string { return TaskQueue + "@" + host }

// AgentQueue returns the queue of a host's agents, if they have slots of their own.
func AgentQueue(host string) string { return HostQueue(host) + "/agents" }

// Attributes are what the code around activities has to know about one of them.
type Attributes struct {
	// Urgency says in which order activities start when more of them wait than a worker has slots: 1 is first, and 3
	// is Temporal's default for an activity without one. Running loops go before a new loop, work of milliseconds
	// before work of minutes, and agents are last.
	Urgency int

	Step     bool // runs one command or agent, under a limit that its supervisor measures
	OwnLimit bool // a step that keeps its own limit if the loop has less time left, so the last change is judged
	Agent    bool // a step that asks an agent: it spends all budgets, appends pending events, may have its own slots

	MakesDesk bool // brings the desk to the head before it begins, unless its input says to leave it as it is
	NeedsDesk bool // needs what is on the desk: it is impossible if the desk is lost

	AnyHost bool // any host can do it, unless the spec names one
	Brief   bool // a short question to a host: a host that does not answer soon is down or asleep
}

var attributes = map[string]Attributes{
	CallName:     {Urgency: 4, Step: true, Agent: true, MakesDesk: true},
	CheckName:    {Urgency: 3, Step: true, MakesDesk: true},
	VerifyName:   {Urgency: 3, Step: true, OwnLimit: true},
	GuardName:    {Urgency: 3, Step: true},
	TestName:     {Urgency: 3, Step: true},
	CanaryName:   {Urgency: 3, Step: true},
	ProgressName: {Urgency: 1, Brief: true},

	CommitName:  {Urgency: 2, NeedsDesk: true},
	TakeName:    {Urgency: 2},
	SettleName:  {Urgency: 2},
	RecordName:  {Urgency: 2},
	ProposeName: {Urgency: 2},
	CloseName:   {Urgency: 2},

	OpenName:  {Urgency: 4, AnyHost: true},
	PlaceName: {Urgency: 1, AnyHost: true},
}

// Of returns the attributes of an activity, the zero value for a name without any.
func Of(name string) Attributes { return attributes[name] }
