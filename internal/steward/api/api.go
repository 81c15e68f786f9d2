// Package api is the contract between a steward's workflow and its activities: what each gets, and what it returns. What
// loops and stewards share (steps, entries, outcomes) is in internal/loop/api. It is pure.
package api

import (
	"strings"

	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// The activities of stewards.
const (
	OpenStewardName = "OpenSteward" // store, desk and ledger of a steward
	RecordTasksName = "RecordTasks" // append to a steward's ledger, write its artifacts
	PlanTaskName    = "PlanTask"    // plan a task and assess it: tier, cost, blockers
	JoinName        = "Join"        // make one commit from the heads of several steps
	ReadChildName   = "ReadChild"   // read the state of a child loop
	ValidateName    = "Validate"    // check that everything is as the steward has recorded it
)

// OpenSteward asks for a steward's store, desk and ledger.
type OpenSteward struct {
	Steward  string          `json:"steward"`
	FirstRun string          `json:"firstRun"`
	Charter  charter.Charter `json:"charter"`
	Ledger   string          `json:"ledger,omitempty"` // resume from this ledger head
}

// StewardOpened says where the steward is from now on. S is the type of its state.
type StewardOpened[S any] struct {
	api.Site
	Repo     string   `json:"repo"`
	Base     string   `json:"base"`             // the commit of the project's branch
	Onto     string   `json:"onto,omitempty"`   // that branch, as people name it
	Charter  string   `json:"charter"`          // the SHA-256 of the charter
	Export   string   `json:"export,omitempty"` // the project's .pawl folder, "" for none
	Warnings []string `json:"warnings,omitempty"`
	State    *S       `json:"state,omitempty"` // the state at the ledger head to resume from
	// Known are the tasks that earlier stewards of this name have done.
	Known []task.Known `json:"known,omitempty"`
}

// RecordTasks appends to a steward's ledger and writes STATUS_LEDGER.md (with Milestone also LAST_KNOWN_STATE.md)
// into the ledger and the project's .pawl folder (S7).
type RecordTasks struct {
	api.Entry
	Milestone bool `json:"milestone,omitempty"`
	Close     bool `json:"close,omitempty"` // the steward ends: only its store, ledger and logs stay
}

// TasksRecorded is the result. An artifact that somebody changed by hand is drift, and was not overwritten.
type TasksRecorded struct {
	api.Appended
	Drift []task.Drift `json:"drift,omitempty"`
	Well  []task.Drift `json:"well,omitempty"` // artifacts that are as written again: name, what, text
	// Governance is the SHA-256 of the governance files. It is read if a step may begin next; else it is "".
	Governance string `json:"governance,omitempty"`
}

// PlanTask reads a task, the governance files and the base. It asks the planner on the steward's desk, unless the
// task came with a plan or has one already, and assesses the plan (S3).
type PlanTask struct {
	api.Step
	Steward string          `json:"steward"`
	Ledger  string          `json:"ledger"` // the entry at which the task is read
	Charter charter.Charter `json:"charter"`
	Task    string          `json:"task"`
	Note    string          `json:"note,omitempty"` // what a person said about it, or why it is planned again
	Tier    task.Tier       `json:"tier,omitempty"` // if a person has set it
	// CostUSD is what the planner may cost, nil for no limit.
	CostUSD *metric.Decimal `json:"costUSD,omitempty"`
	Claims  []Claim         `json:"claims,omitempty"` // the files that other tasks at work may change
	// Again is the hash of the task's plan, which is only assessed once more: nobody makes a new one.
	Again string `json:"again,omitempty"`
}

// Claim says which files a task at work may change.
type Claim struct {
	Task  string   `json:"task"`
	Scope []string `json:"scope"`
}

// TaskPlanned is the result of planning. A plan with problems, or without an assessment, does not begin.
type TaskPlanned struct {
	api.Outcome
	Plan       *task.Plan `json:"plan,omitempty"` // its text is on disk under its hash until it is recorded
	Base       string     `json:"base"`           // the project's head when it was read
	Governance string     `json:"governance"`     // SHA-256 of the governance files that were read
	Tier       task.Tier  `json:"tier"`
	TierBy     string     `json:"tierBy,omitempty"` // rules, planner or a person
	// TierReasons are the rules that decided the tier.
	TierReasons []task.TierReason `json:"tierReasons,omitempty"`
	Estimate    task.Cost         `json:"estimate"`
	// Approval depends on these (S4), and on tier and cost.
	Governs    bool       `json:"governs,omitempty"`    // it changes governance files
	Production bool       `json:"production,omitempty"` // it touches production
	Blockers   []string   `json:"blockers,omitempty"`   // why it can't begin
	Meets      []Meeting  `json:"meets,omitempty"`      // other tasks at work that may change the same files
	Unclear    []string   `json:"unclear,omitempty"`    // what the planner asks
	Problems   []string   `json:"problems,omitempty"`   // why the plan is not valid
	Usage      task.Usage `json:"usage"`
}

// Meeting is a task at work that may change the same files, with those files in words.
type Meeting struct {
	Task string `json:"task"`
	On   string `json:"on"`
}

// Join asks for one commit with the work of several steps.
type Join struct {
	Ref   string   `json:"ref"`
	Task  string   `json:"task"`
	Step  string   `json:"step"`
	Heads []string `json:"heads"`
}

// Joined is that commit, on a branch of pawl's. Conflicts are the files that can't be merged.
type Joined struct {
	Branch    string   `json:"branch"`
	Head      string   `json:"head"`
	Conflicts []string `json:"conflicts,omitempty"`
}

// ReadChild asks for the state of a child loop.
type ReadChild struct {
	Loop string `json:"loop"`
}

// ChildRead is the answer. Found is false if neither Temporal nor the ledger knows the loop.
type ChildRead struct {
	Found bool            `json:"found"`
	Event task.ChildEvent `json:"event"`
}

// Of reports whether that steward started the loop for a plan with that hash.
func (c ChildRead) Of(steward, plan string) bool {
	r := c.Event.Result
	return r != nil && r.Steward == steward && (r.Approved == "" || strings.Contains(r.Approved, plan))
}

// Another reports whether a loop that has begun was not started by that steward. A loop has a base once it has begun.
func (c ChildRead) Another(steward string) bool {
	r := c.Event.Result
	return r != nil && r.Base != "" && r.Steward != steward
}

// Validate compares a steward's record with the world (S11, S12).
type Validate struct {
	Ref      string          `json:"ref"`
	Ledger   string          `json:"ledger"`
	Charter  charter.Charter `json:"charter"`
	Children []Child         `json:"children,omitempty"`
	// Missed and Slots are what is known about the slots of schedules (S5).
	Missed map[string]int        `json:"missed,omitempty"`
	Slots  map[string]task.Slots `json:"slots,omitempty"`
}

// Child is a child loop as the steward has recorded it.
type Child struct {
	Loop   string `json:"loop"`
	Status string `json:"status"`
	Head   string `json:"head,omitempty"`
}

// Validated is the differences that were found, none if everything is as recorded.
type Validated struct {
	Drift      []task.Drift `json:"drift,omitempty"`
	Well       []task.Drift `json:"well,omitempty"`       // what was found before and does not differ any more: name, what and text
	Remote     string       `json:"remote,omitempty"`     // the remote's open work and CI status, in a few words
	Base       string       `json:"base,omitempty"`       // the project's head, if it can be read
	Governance string       `json:"governance,omitempty"` // SHA-256 of the governance files there
	// Missed is how many slots each schedule has missed in all (S5). Slots says up to which slot that is known.
	Missed map[string]int        `json:"missed,omitempty"`
	Slots  map[string]task.Slots `json:"slots,omitempty"`
	Health []Health              `json:"health,omitempty"`
}

// Health is the result of a health check (S5).
type Health struct {
	Name string `json:"name"`
	Ill  string `json:"ill,omitempty"` // what is wrong, "" for nothing
}
