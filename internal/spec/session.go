package spec

// The keys that a steward sets in the session of a loop that it starts. A session contains what the starter of a loop
// says; pawl shows it, but does not check it.
const (
	SessionSteward    = "steward"    // the steward's workflow ID; the loop reports its state to it
	SessionTask       = "task"       // the task that the loop is a step of
	SessionPlan       = "plan"       // the SHA-256 of the task's PLAN.md
	SessionApprovedBy = "approvedBy" // who approved that plan
	SessionBase       = "base"       // the commit at which the task began: its proposal covers all steps since
	SessionOnto       = "onto"       // the branch that the task's work is applied to
)
