package loop

import (
	"encoding/json"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/phase"
	"pawl/internal/task"
)

// Type names what happened.
type Type string

// The events that requirement A4 names.
const (
	AutonomyStarted    Type = "autonomy_started"
	CheckpointCreated  Type = "checkpoint_created"
	IterationStarted   Type = "iteration_started"
	IterationSucceeded Type = "iteration_succeeded"
	IterationFailed    Type = "iteration_failed"
	RepairAttempted    Type = "repair_attempted"
	BudgetExhausted    Type = "budget_exhausted"
	AutonomyPaused     Type = "autonomy_paused"
	AutonomyResumed    Type = "autonomy_resumed"
	AutonomyHalted     Type = "autonomy_halted"
	AutonomyCompleted  Type = "autonomy_completed"
)

// The other events. No state changes without an event.
const (
	LoopOpened        Type = "loop_opened"
	LoopResumed       Type = "loop_resumed"
	LoopMoved         Type = "loop_moved"
	LoopFailed        Type = "loop_failed"
	PhaseEntered      Type = "phase_entered"
	StepEnded         Type = "step_ended"
	AgentReplaced     Type = "agent_replaced"
	BaselineMeasured  Type = "baseline_measured"
	TestsKnown        Type = "tests_known"
	PlanMade          Type = "plan_made"
	TestsSkipped      Type = "tests_skipped"
	ChangeAccepted    Type = "change_accepted"
	ContractDrawn     Type = "contract_drawn"
	ContractAmended   Type = "contract_amended"
	IdeaQueued        Type = "idea_queued"
	IdeaTaken         Type = "idea_taken"
	ChangeCommitted   Type = "change_committed"
	ChangeReverted    Type = "change_reverted"
	ChangeJudged      Type = "change_judged"
	StrategyShifted   Type = "strategy_shifted"
	GateOpened        Type = "gate_opened"
	GateClosed        Type = "gate_closed"
	GateEscalated     Type = "gate_escalated"
	MessageReceived   Type = "message_received"
	MessageRefused    Type = "message_refused"
	ProposalMade      Type = "proposal_made"
	ProposalReviewed  Type = "proposal_reviewed"
	ProposalApproved  Type = "proposal_approved"
	ProposalRejected  Type = "proposal_rejected"
	ProposalApplied   Type = "proposal_applied"
	PushRefused       Type = "push_refused"
	PermissionDenied  Type = "permission_denied"
	PermissionGranted Type = "permission_granted"
	SampleTaken       Type = "sample_taken"
	ClaimMade         Type = "claim_made"
	JudgedFromScratch Type = "judged_from_scratch"
	Warned            Type = "warned"
	SleepBegun        Type = "sleep_begun"
	SleepEnded        Type = "sleep_ended"

	CandidateBegun      Type = "candidate_begun"
	CandidateMade       Type = "candidate_made"
	CandidateJudged     Type = "candidate_judged"
	CandidateTaken      Type = "candidate_taken"
	CandidateConflicted Type = "candidate_conflicted"
	CandidateDropped    Type = "candidate_dropped"

	BranchBegun    Type = "branch_begun"
	BranchCompared Type = "branch_compared"
	BranchKept     Type = "branch_kept"
	BranchGivenUp  Type = "branch_given_up"
)

// The events of stewards (requirements S).
const (
	StewardOpened    Type = "steward_opened"
	StewardValidated Type = "steward_validated"
	StewardEnded     Type = "steward_ended"
	TaskSubmitted    Type = "task_submitted"
	TaskStateChanged Type = "task_state_changed"
	TaskPrioritized  Type = "task_prioritized"
	TaskInterrupted  Type = "task_interrupted"
	TaskEnded        Type = "task_ended"
	TierSet          Type = "tier_set"
	StepBegun        Type = "step_begun"
	ActionTaken      Type = "action_taken"
	MilestoneReached Type = "milestone_reached"
	ChildReported    Type = "child_reported"
	ChildTold        Type = "child_told"
	LoopWarned       Type = "loop_warned"
	LoopDetected     Type = "loop_detected"
	DriftFound       Type = "drift_found"
	TriggerReceived  Type = "trigger_received"
	RateLimited      Type = "rate_limited"
	RateLimitOver    Type = "rate_limit_over"
)

// Types lists every event type with its meaning; docs/events.md is generated from it.
var Types = []struct {
	Type    Type
	Meaning string
}{
	{LoopOpened, "store, desk and judge are ready; budgets are initialised"},
	{LoopResumed, "another run continues the loop from its ledger"},
	{LoopMoved, "the loop's host is gone, and another host continues; `head` is what was not lost. With a `failure_reason` the iteration was lost and is given up"},
	{ContractDrawn, "the contract and its hash are known"},
	{ContractAmended, "a person approved `amendment`, a fragment of the spec: a raised budget, a corrected command or an approved tool"},
	{BaselineMeasured, "the metric of the unchanged code (iteration 0). If verify was amended, also the metric of the kept code at that time"},
	{TestsKnown, "the tests ran on the unchanged code; the tests that failed are known, and do not count later"},
	{PlanMade, "the planner made its plan; the approved contract has its hash. Of a steward: the plan of a task, as `task_plan`"},
	{TestsSkipped, "the loop skips the test phase; `reason`"},
	{ChangeAccepted, "the change passed the guard: it stays on the branch"},
	{AutonomyStarted, "the contract is approved and the loop begins"},
	{CheckpointCreated, "the head that an iteration starts from is recorded"},
	{IterationStarted, "an iteration begins; `budgets_remaining` says what is left"},
	{PhaseEntered, "the machine moved to `phase`"},
	{PermissionGranted, "a role has the permission that its phase needs: `reason` names it"},
	{PermissionDenied, "a role lacked a permission, and nothing was run; or a role exceeded its permissions, and nothing of its work is kept"},
	{StepEnded, "one command or agent call ended; `usage` says what it cost. For an agent's call `outcome` is its class"},
	{AgentReplaced, "the provider of `agent` refuses work (`outcome`, `reason`), and the next agent of `agent.fallback` (`note`) makes the call. Until `until`, pawl does not call the refused agent first"},
	{SleepBegun, "the agent's provider refuses work: the loop sleeps until the time in `sleep`, then makes the call again. That costs no iteration, no attempt and no active time"},
	{SleepEnded, "the time has come, or a person has woken the loop earlier (`continue`)"},
	{IdeaQueued, "an idea with several changes was split; the rest is queued"},
	{IdeaTaken, "this iteration takes a queued idea"},
	{CandidateBegun, "an agent begins one of several candidates on its own desk, from the head; recorded again once its idea is known"},
	{CandidateMade, "the agent finished a candidate; `candidate` has the commit, which is on no branch"},
	{CandidateJudged, "a candidate was judged at its own commit, against the head; it becomes an iteration when it is taken"},
	{CandidateTaken, "this iteration takes a candidate as its change"},
	{CandidateConflicted, "a candidate conflicts with changes that were kept after it was made; its idea goes back to the queue"},
	{CandidateDropped, "a candidate is not made, because a budget is used up; `reason`"},
	{BranchBegun, "on a plateau the loop continues from an earlier kept commit, which `branch` names; `head` has the files of that commit"},
	{BranchCompared, "the branch and the head that it may replace were measured in turn; `judgement` has the result"},
	{BranchKept, "the branch is better than the earlier head, and replaces it"},
	{BranchGivenUp, "the loop returns to its earlier head: `head` has the files of that; `reason`"},
	{ChangeCommitted, "the change is committed, before it is judged"},
	{ChangeJudged, "verify, guard or a policy judged the change"},
	{SampleTaken, "one of several evaluations: `metric`, `of` the reference or the candidate; at the end of the baseline or the head, for the claim; of branch or trunk, when a branch is compared with the earlier head"},
	{ClaimMade, "baseline and head were measured again: `claim` says how much better the head is"},
	{JudgedFromScratch, "the head was judged once more, in caches that no change of the loop has written: `scratch` has the result"},
	{ChangeReverted, "a commit with the parent's tree undid the change"},
	{RepairAttempted, "the change was undone and the agent gets another attempt; `failure_reason`"},
	{IterationSucceeded, "the change is kept; `evidence_ids` name the evidence"},
	{IterationFailed, "the change is not kept; `failure_reason`"},
	{StrategyShifted, "after several discards in a row the agent is told to try another area or technique"},
	{GateOpened, "the loop waits for a person"},
	{GateEscalated, "nobody answered in time; pawl notified people again"},
	{GateClosed, "a person answered; or the steward closed a gate that nobody has to answer any more, and the `note` says why"},
	{AutonomyPaused, "the loop is paused"},
	{AutonomyResumed, "the loop continues"},
	{MessageReceived, "a message was accepted"},
	{MessageRefused, "a message was refused and changed nothing"},
	{PushRefused, "the user's repository refused a push; pawl tries again"},
	{Warned, "something that a person should know"},
	{BudgetExhausted, "a budget is used up; `exhausted_budget` names it"},
	{ProposalMade, "the diff from base to head, with its hash; a second one if the base has moved"},
	{ProposalReviewed, "the reviewer role judged exactly this proposal"},
	{ProposalApproved, "a person approved exactly this proposal, by its hash"},
	{ProposalRejected, "a person rejected the proposal"},
	{ProposalApplied, "the proposal is on one of the user's branches, or in a patch file (`how`)"},
	{AutonomyCompleted, "the loop ended by its own rules; `usage`"},
	{AutonomyHalted, "somebody or something ended the loop; `reason`"},
	{LoopFailed, "the loop could not continue; `error_code`"},
	{StewardOpened, "the steward's store, desk and ledger are ready"},
	{TaskSubmitted, "a task was submitted: `submitted`"},
	{TriggerReceived, "a request for work came from outside: `trigger`"},
	{TaskPrioritized, "the `priority` of a task was changed"},
	{TaskStateChanged, "a task went `from` one state `to` another; `evidence` says why it may"},
	{TierSet, "the risk `tier` of a task was set, `by` rules, the planner, the charter or a person. With a `task_plan` its plan was assessed once more; with a `gate` that gate now asks for its approval"},
	{StepBegun, "the child loop `loop_id` began a `step` of a task; with a `reason` the loop is ended again"},
	{ActionTaken, "the steward did something for a task: `action`, with its result"},
	{MilestoneReached, "a step of a task is finished, or its proposal is approved"},
	{ChildReported, "a child loop reported its state: `child`"},
	{ChildTold, "the steward sent `message` to the child loop `loop_id`; with a `reason` that failed"},
	{TaskInterrupted, "a task gives way to one of higher priority, which `reason` names. Its work is kept. Without a `reason` it works again. With a `usage` its planner was stopped (for any reason) after it had spent that"},
	{RateLimited, "a provider refuses an agent of a task work until a known time, in `rate_limit`: the task sleeps until then"},
	{RateLimitOver, "the time has come, or a person has woken the task earlier"},
	{LoopWarned, "a task is near a limit: `finding`"},
	{LoopDetected, "a task goes in circles, or has used up a limit: `finding`. It stops and asks a person"},
	{DriftFound, "the project differs from the steward's record: `drift`. With `drift.well` it no longer differs: the gate says so, or, without a gate, an earlier `keep` no longer counts"},
	{StewardValidated, "the steward checked state, artifacts, children and remote; `reason` has the result"},
	{TaskEnded, "a task is over: `outcome`, with `reason`; `usage` is what it took, without `agentCalls`, which stewards do not count"},
	{StewardEnded, "somebody or something ended the steward; `reason`"},
}

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

	FailureReason    string                        `json:"failure_reason,omitempty"`
	EvidenceIDs      []string                      `json:"evidence_ids,omitempty"`
	ExhaustedBudget  Resource                      `json:"exhausted_budget,omitempty"`
	BudgetsRemaining map[Resource]evidence.Decimal `json:"budgets_remaining,omitempty"`
	Usage            *Usage                        `json:"usage,omitempty"`
	Told             int64                         `json:"told,omitempty"` // the last event whose guidance an agent has

	Opened    *Opened                       `json:"opened,omitempty"`
	Contract  *Contract                     `json:"contract,omitempty"`
	Amendment json.RawMessage               `json:"amendment,omitempty"`
	Limits    map[Resource]evidence.Decimal `json:"limits,omitempty"` // all budgets, after an amendment
	Judgement *Judgement                    `json:"judgement,omitempty"`
	Sleep     *Sleep                        `json:"sleep,omitempty"`
	Agent     string                        `json:"agent,omitempty"`  // which agent, if a role has several
	Vendor    string                        `json:"vendor,omitempty"` // whose models it calls, if reviews depend on it
	Until     time.Time                     `json:"until,omitzero"`
	Metric    *evidence.Decimal             `json:"metric,omitempty"`
	Metrics   map[string]evidence.Decimal   `json:"metrics,omitempty"` // the further metrics of the baseline
	Of        string                        `json:"of,omitempty"`      // what was evaluated
	Judging   string                        `json:"judging,omitempty"` // how the metric is judged from now on
	Sampler   *sampling.Sampler             `json:"sampler,omitempty"` // of a metric that is judged by samples
	Claim     *Claim                        `json:"claim,omitempty"`
	Scratch   *Scratch                      `json:"scratch,omitempty"`
	Commit    string                        `json:"commit,omitempty"`
	Tree      string                        `json:"tree,omitempty"`
	Head      string                        `json:"head,omitempty"` // the branch's head afterwards
	Files     []string                      `json:"files,omitempty"`
	// TotalFiles is how many files the loop has touched, if Files does not tell.
	TotalFiles int         `json:"total_files,omitempty"`
	Tests      int         `json:"tests,omitempty"` // that pass in the guard on the unchanged code, if known
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
	Task      string           `json:"task,omitempty"` // its ID
	Submitted *task.Task       `json:"submitted,omitempty"`
	Trigger   *task.Trigger    `json:"trigger,omitempty"`
	From      task.State       `json:"from,omitempty"`
	To        task.State       `json:"to,omitempty"`
	Evidence  *task.Evidence   `json:"evidence,omitempty"` // why a task may change its state (S2)
	TaskPlan  *task.Plan       `json:"task_plan,omitempty"`
	Tier      task.Tier        `json:"tier,omitempty"`
	Priority  *int             `json:"priority,omitempty"`
	Action    *task.Action     `json:"action,omitempty"`
	Child     *task.ChildEvent `json:"child,omitempty"`
	LoopID    string           `json:"loop_id,omitempty"` // a child loop's
	Finding   *task.Finding    `json:"finding,omitempty"`
	Drift     *task.Drift      `json:"drift,omitempty"`
	Outcome   string           `json:"outcome,omitempty"`
	Actions   int              `json:"actions,omitempty"` // that a finished task has taken
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
	Kind    string                        `json:"kind"`
	Goal    string                        `json:"goal,omitempty"`
	Repo    string                        `json:"repo"`
	Branch  string                        `json:"branch"`
	Base    string                        `json:"base"`
	Begun   string                        `json:"begun,omitempty"`
	Desk    string                        `json:"desk"`
	Host    string                        `json:"host"`
	Steward string                        `json:"steward,omitempty"`
	Limits  map[Resource]evidence.Decimal `json:"limits"`
	// Backtrack says that the loop may go on from an earlier commit than its head.
	Backtrack bool `json:"backtrack,omitempty"`
}
