package loop

import (
	"encoding/json"
	"time"

	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/phase"
	"pawl/internal/steward/task"
)

// Type names what happened.
type Type string

// The events of loops, in the order of a loop's life. No state changes without an event. The comments are the meanings
// in docs/reference/events.md. Requirement A4 names the events of autonomy and of iterations, CheckpointCreated,
// RepairAttempted and BudgetExhausted.
const (
	LoopOpened          Type = "loop_opened"          // store, desk and judge are ready; budgets are initialised
	LoopResumed         Type = "loop_resumed"         // another run continues the loop from its ledger
	LoopMoved           Type = "loop_moved"           // the loop's host is gone, and another host continues; `head` is what was not lost. With a `failure_reason` the iteration was lost and is given up
	ContractDrawn       Type = "contract_drawn"       // the contract and its hash are known
	ContractAmended     Type = "contract_amended"     // a person approved `amendment`, a fragment of the spec: a raised budget, a corrected command or an approved tool
	BaselineMeasured    Type = "baseline_measured"    // the metric of the unchanged code (iteration 0). If verify was amended, also the metric of the kept code at that time
	TestsKnown          Type = "tests_known"          // the tests ran on the unchanged code; the tests that failed are known, and do not count later
	GuardKnown          Type = "guard_known"          // the guard ran on the unchanged code of a delivery whose tests are not required: what it tests is known
	PlanMade            Type = "plan_made"            // the planner made its plan; the approved contract has its hash. Of a steward: the plan of a task, as `task_plan`
	TestsSkipped        Type = "tests_skipped"        // the loop skips the test phase; `reason`
	ChangeAccepted      Type = "change_accepted"      // the change passed the guard: it stays on the branch
	AutonomyStarted     Type = "autonomy_started"     // the contract is approved and the loop begins
	CheckpointCreated   Type = "checkpoint_created"   // the head that an iteration starts from is recorded
	IterationStarted    Type = "iteration_started"    // an iteration begins; `budgets_remaining` says what is left
	PhaseEntered        Type = "phase_entered"        // the machine moved to `phase`
	PermissionGranted   Type = "permission_granted"   // a role has the permission that its phase needs: `reason` names it
	PermissionDenied    Type = "permission_denied"    // a role lacked a permission, and nothing was run; or a role exceeded its permissions, and nothing of its work is kept
	StepEnded           Type = "step_ended"           // one command or agent call ended; `usage` says what it cost. For an agent's call `outcome` is its class
	AgentReplaced       Type = "agent_replaced"       // the provider of `agent` refuses work (`outcome`, `reason`), and the next agent of `agent.fallback` (`note`) makes the call. Until `until`, pawl does not call the refused agent first
	SleepBegun          Type = "sleep_begun"          // the agent's provider refuses work, or `setup.command` failed that has passed before: the loop sleeps until the time in `sleep`, then tries again. That costs no iteration, no attempt and no active time
	SleepEnded          Type = "sleep_ended"          // the time has come, or a person has woken the loop earlier (`continue`)
	IdeaQueued          Type = "idea_queued"          // an idea with several changes was split; the rest is queued
	IdeaTaken           Type = "idea_taken"           // this iteration takes a queued idea
	CandidateBegun      Type = "candidate_begun"      // an agent begins one of several candidates on its own desk, from the head; recorded again once its idea is known
	CandidateMade       Type = "candidate_made"       // the agent finished a candidate; `candidate` has the commit, which is on no branch
	CandidateJudged     Type = "candidate_judged"     // a candidate was judged at its own commit, against the head; it becomes an iteration when it is taken
	CandidateTaken      Type = "candidate_taken"      // this iteration takes a candidate as its change
	CandidateConflicted Type = "candidate_conflicted" // a candidate conflicts with changes that were kept after it was made; its idea goes back to the queue
	CandidateDropped    Type = "candidate_dropped"    // a candidate is not made, because a budget is used up; `reason`
	BranchBegun         Type = "branch_begun"         // on a plateau the loop continues from an earlier kept commit, which `branch` names; `head` has the files of that commit
	BranchCompared      Type = "branch_compared"      // the branch and the head that it may replace were measured in turn; `judgement` has the result
	BranchKept          Type = "branch_kept"          // the branch is better than the earlier head, and replaces it
	BranchGivenUp       Type = "branch_given_up"      // the loop returns to its earlier head: `head` has the files of that; `reason`
	ChangeCommitted     Type = "change_committed"     // the change is committed, before it is judged
	ChangeJudged        Type = "change_judged"        // verify, guard or a policy judged the change
	SampleTaken         Type = "sample_taken"         // one of several evaluations: `metric`, `of` the reference or the candidate; at the end of the baseline or the head, for the claim; of branch or trunk, when a branch is compared with the earlier head
	ClaimMade           Type = "claim_made"           // baseline and head were measured again: `claim` says how much better the head is
	JudgedFromScratch   Type = "judged_from_scratch"  // the head was judged once more, in caches that no change of the loop has written: `scratch` has the result
	ChangeReverted      Type = "change_reverted"      // a commit with the parent's tree undid the change
	RepairAttempted     Type = "repair_attempted"     // the change was undone and the agent gets another attempt; `failure_reason`, and the `reason` why a command that exits 0 did not pass
	IterationSucceeded  Type = "iteration_succeeded"  // the change is kept; `evidence_ids` name the evidence
	IterationFailed     Type = "iteration_failed"     // the change is not kept; `failure_reason`
	StrategyShifted     Type = "strategy_shifted"     // after several discards in a row the agent is told to try another area or technique
	GateOpened          Type = "gate_opened"          // the loop waits for a person
	GateEscalated       Type = "gate_escalated"       // nobody answered in time; pawl notified people again
	GateClosed          Type = "gate_closed"          // a person answered; or the steward closed a gate that nobody has to answer any more, and the `note` says why
	AutonomyPaused      Type = "autonomy_paused"      // the loop is paused
	AutonomyResumed     Type = "autonomy_resumed"     // the loop continues
	MessageReceived     Type = "message_received"     // a message was accepted
	MessageRefused      Type = "message_refused"      // a message was refused and changed nothing
	PushRefused         Type = "push_refused"         // the user's repository refused a push; pawl tries again
	Warned              Type = "warned"               // something that a person should know
	BudgetExhausted     Type = "budget_exhausted"     // a budget is used up; `exhausted_budget` names it
	ProposalMade        Type = "proposal_made"        // the diff from base to head, with its hash; a second one if the base has moved
	ProposalReviewed    Type = "proposal_reviewed"    // the reviewer role judged exactly this proposal
	ProposalApproved    Type = "proposal_approved"    // a person approved exactly this proposal, by its hash
	ProposalRejected    Type = "proposal_rejected"    // a person rejected the proposal
	ProposalApplied     Type = "proposal_applied"     // the proposal is on one of the user's branches, or in a patch file (`how`)
	AutonomyCompleted   Type = "autonomy_completed"   // the loop ended by its own rules; `usage`
	AutonomyHalted      Type = "autonomy_halted"      // somebody or something ended the loop; `reason`
	LoopFailed          Type = "loop_failed"          // the loop could not continue; `error_code`
)

// The events of stewards (requirements S).
const (
	StewardOpened    Type = "steward_opened"     // the steward's store, desk and ledger are ready
	TaskSubmitted    Type = "task_submitted"     // a task was submitted: `submitted`
	TriggerReceived  Type = "trigger_received"   // a request for work came from outside: `trigger`
	TaskPrioritized  Type = "task_prioritized"   // the `priority` of a task was changed
	TaskStateChanged Type = "task_state_changed" // a task went `from` one state `to` another; `evidence` says why it may
	TierSet          Type = "tier_set"           // the risk `tier` of a task was set, `by` rules, the planner, the charter or a person. With a `task_plan` its plan was assessed once more; with a `gate` that gate now asks for its approval
	StepBegun        Type = "step_begun"         // the child loop `loop_id` began a `step` of a task; with a `reason` the loop is ended again
	ActionTaken      Type = "action_taken"       // the steward did something for a task: `action`, with its result
	MilestoneReached Type = "milestone_reached"  // a step of a task is finished, or its proposal is approved
	ChildReported    Type = "child_reported"     // a child loop reported its state: `child`
	ChildTold        Type = "child_told"         // the steward sent `message` to the child loop `loop_id`; with a `reason` that failed
	TaskInterrupted  Type = "task_interrupted"   // a task gives way to one of higher priority, which `reason` names. Its work is kept. Without a `reason` it works again. With a `usage` its planner was stopped (for any reason) after it had spent that
	RateLimited      Type = "rate_limited"       // a provider refuses an agent of a task work until a known time, in `rate_limit`: the task sleeps until then
	RateLimitOver    Type = "rate_limit_over"    // the time has come, or a person has woken the task earlier
	LoopWarned       Type = "loop_warned"        // a task is near a limit: `finding`
	LoopDetected     Type = "loop_detected"      // a task goes in circles, or has used up a limit: `finding`. It stops and asks a person
	DriftFound       Type = "drift_found"        // the project differs from the steward's record: `drift`. With `drift.well` it no longer differs: the gate says so, or, without a gate, an earlier `keep` no longer counts
	StewardValidated Type = "steward_validated"  // the steward checked state, artifacts, children and remote; `reason` has the result
	TaskEnded        Type = "task_ended"         // a task is over: `outcome`, with `reason`; `usage` is what it took, without `agentCalls`, which stewards do not count
	StewardEnded     Type = "steward_ended"      // somebody or something ended the steward; `reason`
)

// Event is one thing that happened. Seq, Time, Loop, Type, Iteration and Phase are always set; the other fields
// depend on the type.
type Event struct {
	Seq       int64       `json:"seq"`
	Time      time.Time   `json:"time"`
	Loop      string      `json:"loop"`
	Type      Type        `json:"type"`
	Iteration int         `json:"iteration"`
	Phase     phase.Phase `json:"phase"`

	Attempt int    `json:"attempt,omitempty"`
	Step    string `json:"step,omitempty"`
	Role    string `json:"role,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`

	FailureReason    string                      `json:"failure_reason,omitempty"`
	EvidenceIDs      []string                    `json:"evidence_ids,omitempty"`
	ExhaustedBudget  Resource                    `json:"exhausted_budget,omitempty"`
	BudgetsRemaining map[Resource]metric.Decimal `json:"budgets_remaining,omitempty"`
	Usage            *Usage                      `json:"usage,omitempty"`
	Told             int64                       `json:"told,omitempty"` // the last event whose guidance an agent has

	Opened    *Opened                     `json:"opened,omitempty"`
	Contract  *Contract                   `json:"contract,omitempty"`
	Amendment json.RawMessage             `json:"amendment,omitempty"`
	Limits    map[Resource]metric.Decimal `json:"limits,omitempty"` // all budgets, after an amendment
	Judgement *Judgement                  `json:"judgement,omitempty"`
	Sleep     *Sleep                      `json:"sleep,omitempty"`
	Rewritten *Rewritten                  `json:"rewritten,omitempty"` // beside a proposal on a base that was rewritten
	Agent     string                      `json:"agent,omitempty"`     // which agent, if a role has several
	Vendor    string                      `json:"vendor,omitempty"`    // whose models it calls, if reviews depend on it
	Until     time.Time                   `json:"until,omitzero"`
	Metric    *metric.Decimal             `json:"metric,omitempty"`
	Metrics   map[string]metric.Decimal   `json:"metrics,omitempty"` // the further metrics of the baseline
	Form      *metric.Form                `json:"form,omitempty"`    // how the baseline's output shows its numbers
	Of        string                      `json:"of,omitempty"`      // what was evaluated
	Judging   string                      `json:"judging,omitempty"` // how the metric is judged from now on
	Sampler   *stats.Sampler              `json:"sampler,omitempty"` // of a metric that is judged by samples
	Claim     *Claim                      `json:"claim,omitempty"`
	Scratch   *Scratch                    `json:"scratch,omitempty"`
	Commit    string                      `json:"commit,omitempty"`
	Tree      string                      `json:"tree,omitempty"`
	Head      string                      `json:"head,omitempty"` // the branch's head afterwards
	Files     []string                    `json:"files,omitempty"`
	// MeasuredAt is when `pawl validate` measured the unchanged code, zero if the loop did.
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// TotalFiles is how many files the loop has touched, if Files does not tell.
	TotalFiles int         `json:"total_files,omitempty"`
	Tests      int         `json:"tests,omitempty"`  // that pass in the guard on the unchanged code, if known
	Tested     *Tested     `json:"tested,omitempty"` // what the guard has tested on the unchanged code
	Runs       bool        `json:"runs,omitempty"`   // the guard noticed, on the unchanged code, that functions only fail
	Record     *Iteration  `json:"record,omitempty"`
	Area       string      `json:"area,omitempty"`
	Gate       *Gate       `json:"gate,omitempty"`
	Answer     *Answer     `json:"answer,omitempty"`
	Message    string      `json:"message,omitempty"`
	How        string      `json:"how,omitempty"`
	Idea       string      `json:"idea,omitempty"`
	Criteria   []Criterion `json:"criteria,omitempty"` // the acceptance criteria with the reviewer's findings
	Proposal   *Proposal   `json:"proposal,omitempty"`
	Plan       *Plan       `json:"plan,omitempty"`
	// Candidate is what is known about a candidate at that time; of a step, the candidate for which it ran.
	Candidate *Candidate `json:"candidate,omitempty"`
	Branch    *Branch    `json:"branch,omitempty"` // the new branch, with the head that it leaves

	Status     Status `json:"status,omitempty"`
	ExitStatus string `json:"exit_status,omitempty"`
	ErrorCode  string `json:"error_code,omitempty"`
	Cause      string `json:"cause,omitempty"` // the code of the rule that caused the end
	Recovery   string `json:"recovery,omitempty"`

	// The fields of a steward's tasks.
	Task      string         `json:"task,omitempty"` // its ID
	Submitted *task.Task     `json:"submitted,omitempty"`
	Trigger   *task.Trigger  `json:"trigger,omitempty"`
	From      task.State     `json:"from,omitempty"`
	To        task.State     `json:"to,omitempty"`
	Evidence  *task.Evidence `json:"evidence,omitempty"` // why a task may change its state (S2)
	TaskPlan  *task.Plan     `json:"task_plan,omitempty"`
	Tier      task.Tier      `json:"tier,omitempty"`
	// TierReasons are the rules that gave the tier, if no person did.
	TierReasons []task.TierReason `json:"tier_reasons,omitempty"`
	Priority    *int              `json:"priority,omitempty"`
	Action      *task.Action      `json:"action,omitempty"`
	Child       *task.ChildEvent  `json:"child,omitempty"`
	LoopID      string            `json:"loop_id,omitempty"` // a child loop's
	Finding     *task.Finding     `json:"finding,omitempty"`
	Drift       *task.Drift       `json:"drift,omitempty"`
	Outcome     string            `json:"outcome,omitempty"`
	Actions     int               `json:"actions,omitempty"` // that a finished task has taken
	// ExecutingMs is how long the loops of a finished task worked.
	ExecutingMs int64                 `json:"executing_ms,omitempty"`
	Missed      map[string]int        `json:"missed,omitempty"` // missed slots of schedules, in all
	Slots       map[string]task.Slots `json:"slots,omitempty"`  // up to which slot of each schedule that is known
	// Governance is the SHA-256 of the governance files.
	Governance string `json:"governance,omitempty"`
	Remote     string `json:"remote,omitempty"` // the remote's open work and CI status, in a few words
	// RateLimit is why an agent was refused work, and until when.
	RateLimit *task.RateLimit `json:"rate_limit,omitempty"`
}

// Opened is what a loop starts with.
type Opened struct {
	Kind    string                      `json:"kind"`
	Goal    string                      `json:"goal,omitempty"`
	Repo    string                      `json:"repo"`
	Branch  string                      `json:"branch"`
	Base    string                      `json:"base"`
	Begun   string                      `json:"begun,omitempty"`
	Desk    string                      `json:"desk"`
	Host    string                      `json:"host"`
	Steward string                      `json:"steward,omitempty"`
	Limits  map[Resource]metric.Decimal `json:"limits"`
	// Backtrack says that the loop may go on from an earlier commit than its head.
	Backtrack bool `json:"backtrack,omitempty"`
	// Known are the tasks that earlier stewards of the project have done: they do not run again by themselves.
	Known []task.Known `json:"known,omitempty"`
}
