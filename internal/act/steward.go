package act

import (
	"strings"

	"pawl/internal/charter"
	"pawl/internal/evidence"
	"pawl/internal/task"
)

// What a steward has done for it.
const (
	OpenStewardName = "OpenSteward" // store, desk and ledger of a steward
	RecordTasksName = "RecordTasks" // append to a steward's ledger, write its artifacts
	PlanTaskName    = "PlanTask"    // plan a task and assess it: tier, cost, blockers
	JoinName        = "Join"        // one commit out of the heads of several steps
	ReadChildName   = "ReadChild"   // where a child loop stands
	ValidateName    = "Validate"    // whether all is as the steward has recorded it
)

// OpenSteward asks for a steward's store, desk and ledger.
type OpenSteward struct {
	Steward  string          `json:"steward"`
	FirstRun string          `json:"firstRun"`
	Charter  charter.Charter `json:"charter"`
	Ledger   string          `json:"ledger,omitempty"` // resume from this ledger head
}

// StewardOpened is where the steward lives from now on. S is its state.
type StewardOpened[S any] struct {
	Site
	Repo     string   `json:"repo"`
	Base     string   `json:"base"`             // the commit that the project's branch is at
	Onto     string   `json:"onto,omitempty"`   // that branch, as people name it
	Charter  string   `json:"charter"`          // the SHA-256 of the charter
	Export   string   `json:"export,omitempty"` // the project's .pawl folder, where there is one
	Warnings []string `json:"warnings,omitempty"`
	Stop     string   `json:"stop,omitempty"`
	State    *S       `json:"state,omitempty"` // of the ledger head to resume from
}

// RecordTasks appends to a steward's ledger and writes STATUS_LEDGER.md, with Milestone
// LAST_KNOWN_STATE.md too, into the ledger and the project's .pawl folder (S7).
type RecordTasks struct {
	Entry
	Milestone bool `json:"milestone,omitempty"`
	Close     bool `json:"close,omitempty"` // the steward ends: nothing of it stays but store, ledger and logs
}

// TasksRecorded is what came of it. An artifact that somebody has changed by hand is drift and was not
// written over.
type TasksRecorded struct {
	Appended
	Artifacts map[string]string `json:"artifacts,omitempty"` // file → SHA-256 as written
	Drift     []task.Drift      `json:"drift,omitempty"`
	Well      []task.Drift      `json:"well,omitempty"` // artifacts that were found changed and are as written again: name, what and text
	// Governance is the SHA-256 of the governance files, looked at where a step may begin next; else "".
	Governance string `json:"governance,omitempty"`
}

// PlanTask reads a task, the governance files and the base, asks the planner on the steward's desk
// unless the task brings its plan or has one, and assesses what came of it (S3).
type PlanTask struct {
	Step
	Steward string          `json:"steward"`
	Ledger  string          `json:"ledger"` // the entry at which the task is to be read
	Charter charter.Charter `json:"charter"`
	Task    string          `json:"task"`
	Note    string          `json:"note,omitempty"` // what a person said to it, or why it is planned again
	Tier    task.Tier       `json:"tier,omitempty"` // as a person has set it
	// CostUSD is what the planner may cost, nil for anything.
	CostUSD *evidence.Decimal `json:"costUSD,omitempty"`
	Claims  []Claim           `json:"claims,omitempty"` // the files that other tasks at work may change
	// Again is the hash of the plan that the task has, which is assessed once more: nobody makes another one.
	Again string `json:"again,omitempty"`
}

// Claim is what a task at work may change.
type Claim struct {
	Task  string   `json:"task"`
	Scope []string `json:"scope"`
}

// TaskPlanned is what came of planning. A plan with problems, or without an assessment, is not begun.
type TaskPlanned struct {
	Outcome
	Plan       *task.Plan `json:"plan,omitempty"` // its text is on disk by its hash until it is recorded
	Base       string     `json:"base"`           // the project's head as it was read
	Governance string     `json:"governance"`     // SHA-256 of the governance files that were read
	Tier       task.Tier  `json:"tier"`
	TierBy     string     `json:"tierBy,omitempty"` // rules, planner or a person
	Why        []string   `json:"why,omitempty"`    // the rules that gave it
	Estimate   task.Cost  `json:"estimate"`
	// What approval goes by (S4), beside tier and cost.
	Governs    bool       `json:"governs,omitempty"`    // it changes governance files
	Production bool       `json:"production,omitempty"` // it touches production
	Blockers   []string   `json:"blockers,omitempty"`   // what keeps it from being begun
	Overlaps   []string   `json:"overlaps,omitempty"`   // other tasks at work that may change the same files
	With       []string   `json:"with,omitempty"`       // the task of each overlap
	Unclear    []string   `json:"unclear,omitempty"`    // what the planner asks
	Problems   []string   `json:"problems,omitempty"`   // why the plan is not valid
	Usage      task.Usage `json:"usage"`
}

// Join asks for one commit that has the work of several steps.
type Join struct {
	Ref   string   `json:"ref"`
	Task  string   `json:"task"`
	Step  string   `json:"step"`
	Heads []string `json:"heads"`
}

// Joined is that commit on a branch of pawl's; Conflicts are the files on which they can't be joined.
type Joined struct {
	Branch    string   `json:"branch"`
	Head      string   `json:"head"`
	Conflicts []string `json:"conflicts,omitempty"`
}

// ReadChild asks where a child loop stands.
type ReadChild struct {
	Loop string `json:"loop"`
}

// ChildRead is the answer. Not Found: neither Temporal nor the ledger know it.
type ChildRead struct {
	Found bool            `json:"found"`
	Event task.ChildEvent `json:"event"`
	Gate  *task.ChildGate `json:"gate,omitempty"`
}

// Of reports whether the loop was started by that steward for a plan of that hash.
func (c ChildRead) Of(steward, plan string) bool {
	r := c.Event.Result
	return r != nil && r.Steward == steward && (r.Approved == "" || strings.Contains(r.Approved, plan))
}

// Validate compares what a steward has recorded with what there is (S11, S12).
type Validate struct {
	Ref      string          `json:"ref"`
	Ledger   string          `json:"ledger"`
	Charter  charter.Charter `json:"charter"`
	Children []Child         `json:"children,omitempty"`
	// Missed and Slots are what is known of the slots of schedules (S5).
	Missed map[string]int        `json:"missed,omitempty"`
	Slots  map[string]task.Slots `json:"slots,omitempty"`
}

// Child is a child loop as the steward has it.
type Child struct {
	Loop   string `json:"loop"`
	Status string `json:"status"`
	Head   string `json:"head,omitempty"`
}

// Validated is what was found: nothing where all is as recorded.
type Validated struct {
	Drift      []task.Drift `json:"drift,omitempty"`
	Well       []task.Drift `json:"well,omitempty"`       // what was looked at and does not differ: name, what and text
	Remote     string       `json:"remote,omitempty"`     // the remote's open work and CI status, in a few words
	Base       string       `json:"base,omitempty"`       // the project's head, where it can be read
	Governance string       `json:"governance,omitempty"` // SHA-256 of the governance files there
	// Missed is how many slots of each schedule were missed (S5), in all; Slots is up to where.
	Missed map[string]int        `json:"missed,omitempty"`
	Slots  map[string]task.Slots `json:"slots,omitempty"`
	Health []Health              `json:"health,omitempty"`
}

// Health is what came of a health check (S5).
type Health struct {
	Name string `json:"name"`
	Ill  string `json:"ill,omitempty"` // what is wrong, "" where nothing is
}
