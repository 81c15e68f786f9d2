package spec

// What a steward says of itself in the session of a loop that it starts. A session is what whoever
// starts a loop says: pawl does not check it, and shows it as said.
const (
	SessionSteward    = "steward"    // the steward's workflow ID: the loop tells it where it stands
	SessionTask       = "task"       // the task that the loop is a step of
	SessionPlan       = "plan"       // the SHA-256 of the task's PLAN.md
	SessionApprovedBy = "approvedBy" // who approved that plan
	SessionBase       = "base"       // the commit at which the task began: its proposal covers all steps since
	SessionOnto       = "onto"       // the branch that the task's work is applied to
)
