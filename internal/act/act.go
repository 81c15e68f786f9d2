// Package act is the contract between workflows and activities: their names, what goes in and
// what comes out. Workflows call activities by these names and link none of the code behind them.
// The values enter history, so they are small: paths, digests and short tails, never prompts,
// diffs or transcripts. It does nothing by itself. Start at step.go: what every step is given and
// what comes of it.
package act

// What runs in a loop's trees, a step each (step.go, call.go). An iteration costs four activities:
// an agent call, the commit, verify and the settlement; a check and a guard are one more each.
const (
	CallName     = "CallAgent" // ask an agent, on the desk
	CheckName    = "Check"     // run check.command, on the desk
	VerifyName   = "Verify"    // run verify.command and read the metric, in the judge
	GuardName    = "Guard"     // run guard.command, in the judge
	CanaryName   = "Canary"    // break the code in scope, in the judge, and run what guards it
	TestName     = "Test"      // run test.command and read which tests failed, in the judge
	ProgressName = "Progress"  // how much active time a running step has spent
)

// What is recorded (commit.go, ledger.go).
const (
	CommitName  = "Commit"  // commit the change that is on the desk, judged by the policies first
	TakeName    = "Take"    // bring a candidate onto the desk
	SettleName  = "Settle"  // keep or revert a change, append to the ledger
	RecordName  = "Record"  // append what happens between iterations
	ProposeName = "Propose" // make the proposal and append it
	CloseName   = "Close"   // make the proposal, append the end, push, give the trees up
)

// Where a loop lives (host.go), what becomes of its proposal (proposal.go), whom to tell (notice.go).
const (
	OpenName   = "Open"   // store, desk and judge; the repository's preconditions (P0)
	AmendName  = "Amend"  // the sealed files and the hash of an amended contract
	PlaceName  = "Place"  // whether a loop's host is gone, and where its ledger is then
	FindName   = "Find"   // on which host's queue a loop's store is
	ReviewName = "Review" // record a person's word on the proposal of a loop that has ended
	ApplyName  = "Apply"  // bring an approved proposal onto the user's branch
	NotifyName = "Notify" // tell one of spec.notify
)

// Concern is an input that says which iteration it is about, and what of it: "step", "verify".
type Concern interface {
	Concerns() (iteration int, what, name string)
}

// TaskQueue is where workflows and everything that is not bound to a host run.
const TaskQueue = "pawl"

// HostMemo is the memo that names the host of a loop that has moved.
const HostMemo = "host"

// CarriedMemo is the memo of a loop that was started again from its ledger, since the engine had lost it: the first run of
// the one that it is.
const CarriedMemo = "carriedOver"

// HostQueue is where work on a host's trees runs.
func HostQueue(host string) string { return TaskQueue + "@" + host }

// AgentQueue is where a host's agents run where they have slots of their own.
func AgentQueue(host string) string { return HostQueue(host) + "/agents" }
