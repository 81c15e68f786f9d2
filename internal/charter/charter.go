// Package charter holds what a person asks of a steward: types, defaults and validation of the spec of kind steward. It
// uses the reader of internal/spec and is as strict. Pure. Start at Charter.
package charter

import (
	"encoding/json"

	"pawl/internal/evidence"
	"pawl/internal/spec"
	"pawl/internal/task"
)

// Charter is one steward as its spec file describes it, with every default filled in. Its JSON has the
// keys of the file and parses back to the same Charter; it is the workflow's input.
type Charter struct {
	Name string    `json:"name"`
	Kind string    `json:"kind"`
	Repo spec.Repo `json:"repo"`
	// Governance are globs of files that are read before planning. A task that changes them is T1.
	Governance []string `json:"governance,omitempty"`
	Tiers      []Rule   `json:"tiers,omitempty"`
	// Production marks what runs for real: globs of paths, and words of a task's text.
	Production []string `json:"production,omitempty"`
	// Allow are the commands that plans may use, as the words that a command begins with.
	Allow []string `json:"allow,omitempty"`
	// Defaults is a fragment of a loop's spec that the steward's loops have, unless plan or task say
	// otherwise.
	Defaults      json.RawMessage `json:"defaults,omitempty"`
	Agent         spec.Agent      `json:"agent,omitzero"`
	Limits        Limits          `json:"limits"`
	ValidateEvery spec.Duration   `json:"validateEvery"`
	Schedules     []Schedule      `json:"schedules,omitempty"`
	Triggers      []Trigger       `json:"triggers,omitempty"`
	Remote        Remote          `json:"remote,omitzero"`
	Notify        []string        `json:"notify,omitempty"`
	Mode          string          `json:"mode"`
}

// Rule gives a tier to the tasks that match any of what it names. The strictest rule that matches
// counts.
type Rule struct {
	Tier    task.Tier         `json:"tier"`
	Paths   []string          `json:"paths,omitempty"`   // globs of files that may change
	Words   []string          `json:"words,omitempty"`   // in the task's title or body
	Files   *int              `json:"files,omitempty"`   // that many files in scope, or more
	CostUSD *evidence.Decimal `json:"costUSD,omitempty"` // an estimate (its 90th percentile) of that, or more
}

// Limits are the steward's bounds (S8, S10), for each task where nothing else is said.
type Limits struct {
	Actions    int               `json:"actions"`    // actions of a task
	NoProgress int               `json:"noProgress"` // actions without progress
	SameResult int               `json:"sameResult"` // times that one action may have the same result
	SameError  int               `json:"sameError"`  // times that one error may occur
	Executing  spec.Duration     `json:"executing"`  // executing time without a milestone
	Retries    int               `json:"retries"`    // of a step that failed
	Waiting    spec.Duration     `json:"waiting"`    // for a person, until somebody is told again
	CostUSD    *evidence.Decimal `json:"costUSD,omitempty"`
	Parallel   int               `json:"parallel"` // loops at once, of all tasks
	Queue      int               `json:"queue"`    // tasks that may wait to start
}

// Schedule submits a task again and again. Exactly one of Cron and Every is given.
type Schedule struct {
	Name     string        `json:"name"`
	Cron     string        `json:"cron,omitempty"`
	Every    spec.Duration `json:"every,omitzero"`
	TimeZone string        `json:"timeZone,omitempty"` // IANA name; UTC where it is not given
	Overlap  string        `json:"overlap,omitempty"`  // skip, buffer, allow: while the last slot's task is not over
	CatchUp  spec.Duration `json:"catchUp,omitzero"`   // how late a slot may still be taken
	Task     task.Task     `json:"task"`
}

// Trigger lets something outside submit tasks over HTTP, or a check of the steward's own that fails (S5).
type Trigger struct {
	Name       string    `json:"name"`
	From       string    `json:"from"` // github, alertmanager, standard, json; health
	SecretFile string    `json:"secretFile,omitempty"`
	Command    string    `json:"command,omitempty"` // of a health check: it has to exit 0
	URL        string    `json:"url,omitempty"`     // of a health check: it has to answer with a status below 400
	Task       task.Task `json:"task"`              // a template: what came in fills it
}

// Remote is where the project's open work and CI status are read, where one is configured (S11).
type Remote struct {
	API       string `json:"api,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
}
