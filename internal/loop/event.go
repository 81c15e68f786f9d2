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

// The events that A4 names.
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

// The other events: no state changes without one.
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

// The events of stewards (S).
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
	{LoopResumed, "another run took the loop up from its ledger"},
	{LoopMoved, "the host that had the loop is gone, another one goes on; `head` is what was not lost. With a `failure_reason`: the iteration was, and is given up"},
	{ContractDrawn, "the contract and its hash are known"},
	{ContractAmended, "`amendment`, a fragment of the spec, was approved: a raised budget, a corrected command or an approved tool"},
	{BaselineMeasured, "the metric of the unchanged code: iteration 0; again, of what is kept by then, where verify was amended"},
	{TestsKnown, "the tests ran on the unchanged code: what failed then is known, and does not count later"},
	{PlanMade, "the planner's plan; the contract that is approved has its hash. Of a steward: the plan of a task, as `task_plan`"},
	{TestsSkipped, "the test phase is left out; `reason`"},
	{ChangeAccepted, "the guard gate let the change pass: it stays on the branch"},
	{AutonomyStarted, "the contract is approved and the loop begins"},
	{CheckpointCreated, "the head that an iteration starts from is recorded"},
	{IterationStarted, "an iteration begins; `budgets_remaining` says what is left"},
	{PhaseEntered, "the machine moved to `phase`"},
	{PermissionGranted, "a role is permitted what its phase needs: `reason` names it"},
	{PermissionDenied, "a role was to do what it may not, and nothing was run; or has done it, and nothing of it is kept"},
	{StepEnded, "one command or agent call ended; `usage` says what it cost. Of an agent's call `outcome` is its class"},
	{AgentReplaced, "the provider of `agent` refuses work (`outcome`, `reason`), and the next one of `agent.fallback`, in `note`, makes the call. Until `until` it is not asked first"},
	{SleepBegun, "the agent's provider refuses work: the loop sleeps until the time that `sleep` has, and then makes the call again. That costs no iteration, no attempt and no active time"},
	{SleepEnded, "that time has come, or a person has sent the loop on before (`continue`)"},
	{IdeaQueued, "an idea that named several changes was split, the rest queued"},
	{IdeaTaken, "a queued idea is this iteration's change"},
	{CandidateBegun, "one of several candidates is made on a desk of its own, from the head; again, once its idea is known"},
	{CandidateMade, "what the agent made of a candidate; `candidate` has the commit, which no branch has"},
	{CandidateJudged, "a candidate was judged at its own commit, against the head; it is an iteration of its own when it is taken"},
	{CandidateTaken, "this iteration's change is a candidate"},
	{CandidateConflicted, "a candidate does not go together with what was kept since it was made; its idea goes back to the queue"},
	{CandidateDropped, "a candidate is not made, since a budget is used up; `reason`"},
	{BranchBegun, "on a plateau the loop goes on from an earlier kept commit, as `branch` says: `head` has the files of that"},
	{BranchCompared, "the branch and the head that it may replace were measured in turn; `judgement` says what came of it"},
	{BranchKept, "the branch is better than the head that it left, and replaces it"},
	{BranchGivenUp, "the loop returns to the head that it had: `head` has the files of that; `reason`"},
	{ChangeCommitted, "the change is committed, before it is judged"},
	{ChangeJudged, "verify, guard or policy said what it thinks of the change"},
	{SampleTaken, "one evaluation where several decide: `metric`, `of` reference or candidate; at the end of baseline or head, for the claim; of branch or trunk where a branch is compared with the head that it left"},
	{ClaimMade, "baseline and head were measured anew: `claim` says how much better the head is"},
	{ChangeReverted, "the change was undone by a commit with its parent's tree"},
	{RepairAttempted, "the change was undone and the agent gets another attempt; `failure_reason`"},
	{IterationSucceeded, "the change is kept; `evidence_ids` name what showed it"},
	{IterationFailed, "the change is not kept; `failure_reason`"},
	{StrategyShifted, "discards in a row: another area, another technique"},
	{GateOpened, "the loop waits for a person"},
	{GateEscalated, "nobody answered in time; somebody was told again"},
	{GateClosed, "a person answered"},
	{AutonomyPaused, "the loop is paused"},
	{AutonomyResumed, "the loop goes on"},
	{MessageReceived, "a message was taken"},
	{MessageRefused, "a message was refused and changed nothing"},
	{PushRefused, "the user's repository did not take a push; it is tried again"},
	{Warned, "something that a person should know"},
	{BudgetExhausted, "a budget is used up; `exhausted_budget` names it"},
	{ProposalMade, "the diff from base to head, with its hash; a second one where the base has moved"},
	{ProposalReviewed, "the reviewer role said what it thinks of exactly that proposal"},
	{ProposalApproved, "a person approved the proposal, for its hash alone"},
	{ProposalRejected, "a person rejected the proposal"},
	{ProposalApplied, "the proposal is on a branch of the user's, or in a patch file (`how`)"},
	{AutonomyCompleted, "the loop ended by its own rules; `usage`"},
	{AutonomyHalted, "the loop was ended; `reason`"},
	{LoopFailed, "the loop could not go on; `error_code`"},
	{StewardOpened, "the steward's store, desk and ledger are ready"},
	{TaskSubmitted, "a task was handed in: `submitted`"},
	{TriggerReceived, "something from outside asked for work: `trigger`"},
	{TaskPrioritized, "the `priority` of a task was changed"},
	{TaskStateChanged, "a task went `from` one state `to` another, `evidence` says by what right"},
	{TierSet, "the risk `tier` of a task was set, `by` rules, the planner, the charter or a person; with a `task_plan` its plan was assessed once more, with a `gate` the question about its approval is asked in these words"},
	{StepBegun, "a `step` of a task was begun, by the child loop `loop_id`; with a `reason` the loop is ended again"},
	{ActionTaken, "one thing was done for a task: `action`, with its result"},
	{MilestoneReached, "a step of a task is finished, or its proposal is approved"},
	{ChildReported, "a child loop said where it stands: `child`"},
	{ChildTold, "the steward sent `message` to the child loop `loop_id`; with a `reason` it could not"},
	{TaskInterrupted, "a task gives way to one of higher priority: `reason` names it. Its work is kept. With a `usage` its planner was stopped, for whatever reason, having spent that"},
	{RateLimited, "an agent of a task is refused work until a time that is known, as `rate_limit`: the task sleeps until then"},
	{RateLimitOver, "that time has come, or a person has sent the task on before"},
	{LoopWarned, "a task comes near a limit: `finding`"},
	{LoopDetected, "a task goes in circles, or has used up a limit: `finding`. It stops and a person is asked"},
	{DriftFound, "what the steward finds is not what it has recorded: `drift`; with `drift.well`, it is again, and its gate says so"},
	{StewardValidated, "state, artifacts, children and remote were checked; `reason` says what was found"},
	{TaskEnded, "a task is over: `outcome`, with `reason`; `usage` is what it took, but for `agentCalls`, which stewards do not count"},
	{StewardEnded, "the steward was ended; `reason`"},
}

// Event is one thing that happened. Seq, Time, Loop, Type, Iteration and Phase are always
// there; the rest belongs to the type.
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
	Told             int64                         `json:"told,omitempty"` // the last event whose guidance an agent has taken up

	Opened    *Opened                       `json:"opened,omitempty"`
	Contract  *Contract                     `json:"contract,omitempty"`
	Amendment json.RawMessage               `json:"amendment,omitempty"`
	Limits    map[Resource]evidence.Decimal `json:"limits,omitempty"` // all budgets, after an amendment
	Judgement *Judgement                    `json:"judgement,omitempty"`
	Sleep     *Sleep                        `json:"sleep,omitempty"`
	Agent     string                        `json:"agent,omitempty"`  // which one, where a role has several
	Vendor    string                        `json:"vendor,omitempty"` // whose models it calls, where that matters to who reviews
	Until     time.Time                     `json:"until,omitzero"`
	Metric    *evidence.Decimal             `json:"metric,omitempty"`
	Metrics   map[string]evidence.Decimal   `json:"metrics,omitempty"` // the further ones of the baseline
	Of        string                        `json:"of,omitempty"`      // what was evaluated
	Judging   string                        `json:"judging,omitempty"` // how the metric is judged, now that its baseline is known
	Sampler   *sampling.Sampler             `json:"sampler,omitempty"` // of a metric that samples judge
	Claim     *Claim                        `json:"claim,omitempty"`
	Commit    string                        `json:"commit,omitempty"`
	Tree      string                        `json:"tree,omitempty"`
	Head      string                        `json:"head,omitempty"` // the branch's head afterwards
	Files     []string                      `json:"files,omitempty"`
	// TotalFiles is how many files the loop has touched, where Files can't tell.
	TotalFiles int         `json:"total_files,omitempty"`
	Tests      int         `json:"tests,omitempty"` // that pass in the guard on the unchanged code, as far as it tells
	Record     *Iteration  `json:"record,omitempty"`
	Area       string      `json:"area,omitempty"`
	Gate       *Gate       `json:"gate,omitempty"`
	Answer     *Answer     `json:"answer,omitempty"`
	Message    string      `json:"message,omitempty"`
	How        string      `json:"how,omitempty"`
	Idea       string      `json:"idea,omitempty"`
	Criteria   []Criterion `json:"criteria,omitempty"` // the acceptance criteria as the reviewer found them
	Proposal   *Proposal   `json:"proposal,omitempty"`
	Plan       *Plan       `json:"plan,omitempty"`
	// Candidate is what is known of a candidate by then; of a step, which one it was for.
	Candidate *Candidate `json:"candidate,omitempty"`
	Branch    *Branch    `json:"branch,omitempty"` // that is begun, with the head that it leaves

	Status     Status `json:"status,omitempty"`
	ExitStatus string `json:"exit_status,omitempty"`
	ErrorCode  string `json:"error_code,omitempty"`
	Cause      string `json:"cause,omitempty"` // the enforced rule behind it, by its code
	Recovery   string `json:"recovery,omitempty"`

	// Of a steward's tasks.
	Task      string           `json:"task,omitempty"` // its ID
	Submitted *task.Task       `json:"submitted,omitempty"`
	Trigger   *task.Trigger    `json:"trigger,omitempty"`
	From      task.State       `json:"from,omitempty"`
	To        task.State       `json:"to,omitempty"`
	Evidence  *task.Evidence   `json:"evidence,omitempty"` // by what right a task changed its state (S2)
	TaskPlan  *task.Plan       `json:"task_plan,omitempty"`
	Tier      task.Tier        `json:"tier,omitempty"`
	Priority  *int             `json:"priority,omitempty"`
	Action    *task.Action     `json:"action,omitempty"`
	Child     *task.ChildEvent `json:"child,omitempty"`
	LoopID    string           `json:"loop_id,omitempty"` // a child loop's
	Finding   *task.Finding    `json:"finding,omitempty"`
	Drift     *task.Drift      `json:"drift,omitempty"`
	Outcome   string           `json:"outcome,omitempty"`
	Actions   int              `json:"actions,omitempty"` // that a task has taken which is over
	Missed    map[string]int   `json:"missed,omitempty"`  // slots of schedules that Temporal has left out, in all
	// Governance is the SHA-256 of the governance files.
	Governance string `json:"governance,omitempty"`
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
