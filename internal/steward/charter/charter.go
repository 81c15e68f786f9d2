// Package charter has the spec of a steward: types, defaults and validation of the spec of kind steward. It uses the
// reader of internal/spec and is as strict. It is pure. Start at Charter.
package charter

import (
	"encoding/json"
	"time"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/task"
)

// Charter is one steward as its spec file describes it, with all defaults. Its JSON has the keys of the file, and
// parsing it returns the same Charter. It is the input of the workflow.
type Charter struct {
	Name string    `json:"name"`
	Kind string    `json:"kind"`
	Repo spec.Repo `json:"repo"`
	// Governance has globs of files that are read before planning. A task that changes them is T1.
	Governance []string `json:"governance,omitempty"`
	Tiers      []Rule   `json:"tiers,omitempty"`
	// Production has globs of paths and words of a task's text that stand for production.
	Production []string `json:"production,omitempty"`
	// Allow has the commands that plans may use, as the words with which a command begins.
	Allow []string `json:"allow,omitempty"`
	// Defaults is a fragment of a loop's spec. All loops of the steward have its values, unless plan or task change
	// them.
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

// Rule gives a tier to every task that matches one of its fields. If several rules match, the strictest counts.
type Rule struct {
	Tier    task.Tier       `json:"tier"`
	Paths   []string        `json:"paths,omitempty"`   // globs of files that may change
	Words   []string        `json:"words,omitempty"`   // words in the task's title or body
	Files   *int            `json:"files,omitempty"`   // at least that many files in scope
	CostUSD *metric.Decimal `json:"costUSD,omitempty"` // an estimate (its 90th percentile) of at least that
}

// Limits are the steward's limits (S8, S10), for each task unless the comment says otherwise.
type Limits struct {
	Actions    int             `json:"actions"`    // actions of a task
	NoProgress int             `json:"noProgress"` // actions without progress
	SameResult int             `json:"sameResult"` // times that one action may have the same result
	SameError  int             `json:"sameError"`  // times that one error may occur
	Executing  spec.Duration   `json:"executing"`  // executing time without a milestone
	Retries    int             `json:"retries"`    // how often a failed step is tried again
	Waiting    spec.Duration   `json:"waiting"`    // how long a task waits for a person before somebody is notified again
	CostUSD    *metric.Decimal `json:"costUSD,omitempty"`
	Parallel   int             `json:"parallel"` // loops that run at the same time, of all tasks
	Queue      int             `json:"queue"`    // tasks that may wait to start
}

// Schedule submits tasks at regular times. Exactly one of Cron and Every is given.
type Schedule struct {
	Name     string        `json:"name"`
	Cron     string        `json:"cron,omitempty"`
	Every    spec.Duration `json:"every,omitzero"`
	TimeZone string        `json:"timeZone,omitempty"` // IANA name; "" is UTC
	Overlap  string        `json:"overlap,omitempty"`  // skip, buffer or allow: what happens at a slot while the task of the last slot is not over
	CatchUp  spec.Duration `json:"catchUp,omitzero"`   // how late the task of a slot may still be submitted
	Task     task.Task     `json:"task"`
}

// Trigger submits a task when a delivery arrives over HTTP, or when a health check of the steward fails (S5).
type Trigger struct {
	Name       string    `json:"name"`
	From       string    `json:"from"` // github, alertmanager, standard, json; health
	SecretFile string    `json:"secretFile,omitempty"`
	Command    string    `json:"command,omitempty"` // for a health check: a command that exits with 0 if all is well
	URL        string    `json:"url,omitempty"`     // for a health check: an address that answers with a status below 400 if all is well
	Task       task.Task `json:"task"`              // a template; the delivery fills it
}

// Remote is where the steward reads the project's open work and CI status, if it is set (S11).
type Remote struct {
	API       string `json:"api,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
}

// Defaults returns a charter with only the defaults, with the limits of the source (S10). Required keys are empty.
func Defaults() Charter {
	return Charter{
		Kind:  kind.Steward.Name,
		Repo:  spec.Repo{Path: "."},
		Agent: spec.Agent{Use: spec.UseCommand},
		Limits: Limits{
			Actions:    100,
			NoProgress: 10,
			SameResult: 3,
			SameError:  5,
			Executing:  spec.Duration(time.Hour),
			Retries:    3,
			Waiting:    spec.Duration(24 * time.Hour),
			Parallel:   1,
			Queue:      1000,
		},
		ValidateEvery: spec.Duration(30 * time.Minute),
		Mode:          spec.ModeMission,
	}
}

// Parse reads a charter from one JSON object, the form of a workflow's input. It is spec.Parse for a steward.
func Parse(doc []byte) (Charter, error) {
	return spec.Fill(doc, Defaults(), (*Charter).check)
}

// FromMap reads a charter from a document that is already parsed. It is spec.FromMap for a steward. If there are
// problems it also returns what it could read, so that the caller can check more.
func FromMap(doc map[string]any) (Charter, error) {
	c, problems := spec.FillMap(doc, Defaults(), nil, (*Charter).check)
	if len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// Keys returns all keys of the contract, dotted, in the order of its table.
func Keys() []string { return spec.KeysOf(Charter{}) }

// Fragment returns the defaults of a spec with the charter's defaults over them. It is not a whole spec.
func (c Charter) Fragment() spec.Spec {
	s := spec.Defaults()
	if len(c.Defaults) > 0 && json.Unmarshal(c.Defaults, &s) != nil {
		s = spec.Defaults() // Parse refuses such defaults
		s.Sandbox.Use = spec.Required
	}
	return s
}

// Sandbox returns the sandbox of the planner, which is that of its loops unless they change it.
func (c Charter) Sandbox() spec.Sandbox { return c.Fragment().Sandbox }
