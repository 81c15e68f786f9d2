package api

import (
	"pawl/internal/loop"
	"pawl/internal/metric"
)

// Call asks an agent in a role, with what it is told beyond state and contract, which the activity reads itself.
type Call struct {
	Step
	Role string `json:"role"`
	// Substitute says which agent of the role's chain makes the call, 0 for the role's own.
	Substitute int            `json:"substitute,omitempty"`
	Phase      string         `json:"phase"`
	Attempt    int            `json:"attempt"` // counts reworks from 1
	Idea       string         `json:"idea,omitempty"`
	Repair     string         `json:"repair,omitempty"`   // why the previous attempt was undone
	Evidence   string         `json:"evidence,omitempty"` // the log of that attempt
	Guidance   []loop.Note    `json:"guidance,omitempty"`
	Proposal   *loop.Proposal `json:"proposal,omitempty"` // what a reviewer judges

	// Candidate says which of Of candidates the call makes, 0 for none; Beside are the ideas of the others.
	Candidate int      `json:"candidate,omitempty"`
	Of        int      `json:"of,omitempty"`
	Beside    []string `json:"beside,omitempty"`

	// Ledger is the head of the ledger. Events are appended to it before the agent starts, so the checkpoint for
	// undoing an agent's work is recorded before the work (A3).
	Ledger string       `json:"ledger"`
	Events []loop.Event `json:"events,omitempty"`

	// Budget is what is left of the budgets that are checked while the agent works.
	Budget map[loop.Resource]metric.Decimal `json:"budget,omitempty"`
	// SilenceMs is how long the agent may print nothing while none of its tools works, 0 for no limit.
	SilenceMs int64 `json:"silenceMs,omitempty"`
	// Doubt says that a refusal which the program prints counts also if it reports success and changed nothing.
	Doubt bool `json:"doubt,omitempty"`
}

// Asks returns the call itself.
func (c *Call) Asks() *Call { return c }

// Called is the result of an agent call.
type Called struct {
	Outcome
	Ledger string `json:"ledger,omitempty"` // the ledger's head after Events were appended
	Denied string `json:"denied,omitempty"` // what the role did without permission; nothing of its work is kept

	// Withheld are the tools that the agent was not allowed to use.
	Withheld []string `json:"withheld,omitempty"`

	Usage       loop.Usage `json:"usage,omitzero"`
	Session     string     `json:"session,omitempty"` // the agent's own ID of the call, by which a person can find it
	Description string     `json:"description,omitempty"`
	GiveUp      string     `json:"giveUp,omitempty"`     // why the agent gives up
	Idea        string     `json:"idea,omitempty"`       // the ideator's
	Regenerate  bool       `json:"regenerate,omitempty"` // the fixer asks for another approach
	Plan        *loop.Plan `json:"plan,omitempty"`       // the planner's
	Opinion     *Opinion   `json:"opinion,omitempty"`    // the reviewer's
}

// Said returns the result itself.
func (c *Called) Said() Called { return *c }

// Cut turns the result into that of a call that was interrupted after it had spent the given usage.
func (c *Called) Cut(spent loop.Usage) {
	*c = Called{Usage: spent}
	c.Outcome.Cut(spent)
}

// Opinion is a reviewer's answer as it counts. Decision is "" if the answer is no decision.
type Opinion struct {
	Decision string `json:"decision,omitempty"` // APPROVED, REJECTED
	Note     string `json:"note,omitempty"`
	Why      string `json:"why,omitempty"` // why it is no decision
	// Criteria are the acceptance criteria, each with what the reviewer found.
	Criteria []loop.Criterion `json:"criteria,omitempty"`
}

// Live is what a running step reports with its heartbeats: what it has spent so far.
type Live struct {
	Usage    loop.Usage `json:"usage,omitzero"`
	Tool     string     `json:"tool,omitempty"`     // the last tool that its agent called
	WaitsFor string     `json:"waitsFor,omitempty"` // what it waits for before its command starts, "" for nothing
}
