package fault

import (
	"errors"
	"fmt"

	"pawl/internal/lib/list"
)

// Code names a fault; it is the workflow failure type and the state's errorCode.
type Code string

// The codes of the contract. ALO_* are those of the phase-machine source (L11).
const (
	LoopNotFound        Code = "ALO_LOOP_NOT_FOUND"
	LoopAlreadyRunning  Code = "ALO_LOOP_ALREADY_RUNNING"
	LoopNotPaused       Code = "ALO_LOOP_NOT_PAUSED"
	MaxIterations       Code = "ALO_MAX_ITERATIONS_EXCEEDED"
	MaxFixAttempts      Code = "ALO_MAX_FIX_ATTEMPTS_EXCEEDED"
	GuardBlocked        Code = "ALO_GUARD_BLOCKED"
	TestFailed          Code = "ALO_TEST_FAILED"
	PhaseTimeout        Code = "ALO_PHASE_TIMEOUT"
	InvalidTransition   Code = "ALO_INVALID_TRANSITION"
	Cancelled           Code = "ALO_CANCELLED"
	AgentFailed         Code = "ALO_AGENT_FAILED"
	BudgetExhausted     Code = "BUDGET_EXHAUSTED"
	InvalidSpec         Code = "INVALID_SPEC"
	InvalidMessage      Code = "INVALID_MESSAGE"
	PreconditionFailed  Code = "PRECONDITION_FAILED"
	LedgerAhead         Code = "LEDGER_AHEAD"
	GateClosed          Code = "GATE_CLOSED"
	GateMismatch        Code = "GATE_MISMATCH"
	HashMismatch        Code = "HASH_MISMATCH"
	ReviewMissing       Code = "REVIEW_MISSING"
	ReviewRejected      Code = "REVIEW_REJECTED"
	BaseMoved           Code = "BASE_MOVED"
	EngineUnreachable   Code = "ENGINE_UNREACHABLE"
	NoWorker            Code = "NO_WORKER"
	InfrastructureError Code = "INFRASTRUCTURE"
	PermissionDenied    Code = "PERMISSION_DENIED"
	WallClockExceeded   Code = "WALL_CLOCK_EXCEEDED"
	CycleTermination    Code = "CYCLE_TERMINATION"
	QueueFull           Code = "QUEUE_FULL"
	TooManyNotes        Code = "TOO_MANY_NOTES"
	LedgerDamaged       Code = "LEDGER_DAMAGED"
	NotReproduced       Code = "NOT_REPRODUCED"
)

// Family is a group of faults that is matched as a whole: errors.Is(err, Enforcement). One kind of
// them is matched by New(code, "").
type Family string

// The families. Enforcement are the faults by which rules are enforced that no agent can talk its way
// around (E5); those of the review gate (E3) are a family within it.
const (
	Enforcement  Family = "an enforced rule was broken"
	ReviewGating Family = "nobody has approved exactly that"
)

// within says which family a family is part of.
var within = map[Family]Family{ReviewGating: Enforcement}

// Has reports whether a family is that one, or has it as a part.
func (f Family) Has(part Family) bool {
	for ; part != ""; part = within[part] {
		if part == f {
			return true
		}
	}
	return false
}

// Error says what the faults of the family have in common.
func (f Family) Error() string { return string(f) }

// Row is one row of the table: what a code means, what a person does about it, and the exit
// code of the command that meets it.
type Row struct {
	Code    Code
	Meaning string
	advice  string // with the placeholders of a Subject
	Exit    int
	Family  Family // "" for none
}

// Recovery returns what a person does about a fault of that code, for any loop.
func (k Row) Recovery() string { return anyLoop.fill(k.advice) }

// Table lists every code, the source's eleven first, with the source's recovery hint leading.
var Table = []Row{
	{LoopNotFound, "no loop with that ID", "`pawl list` shows the IDs that there are.", 2, ""},
	{LoopAlreadyRunning, "a loop with that ID is running", "Use the existing loop (`{show}`, `pawl log`), halt it, or start under another name.", 2, ""},
	{LoopNotPaused, "the loop does not wait for `continue`", "Wait for a pause; `{show}` says what the {word} is doing.", 2, ""},
	{MaxIterations, "the iteration limit was reached without success", "Abort, or raise `limits.iterations` and start again.", 3, ""},
	{MaxFixAttempts, "the fix limit was reached with tests still failing", "Manual intervention: look at the last change and its test output.", 3, ""},
	{GuardBlocked, "the guard blocked a change", "Start the loop again. While a loop is blocked, fix the violations on the desk and `continue`, or `reject` the change.", 5, ""},
	{TestFailed, "tests failed for good", "Debug the tests: the output of the last run is in the step's log.", 3, ""},
	{PhaseTimeout, "a phase took longer than its limit", "Increase the timeout (`test.timeout`, `verify.timeout`, `limits.phaseTimeout`), or make the command faster.", 3, ""},
	{InvalidTransition, "a phase change that the machine does not allow", "Check the state machine: this is a bug in pawl, please report it.", 1, ""},
	{Cancelled, "the loop was cancelled", "Restart it if needed.", 5, ""},
	{AgentFailed, "the agent failed for good", "Check the agent's configuration (`agent.command`) and its output in the step's log.", 3, ""},
	{BudgetExhausted, "a budget is used up", "Raise the budget under `limits` and start again.", 6, ""},
	{InvalidSpec, "the spec is invalid", "Correct the keys that are named.", 2, ""},
	{InvalidMessage, "the message could not be understood", "Correct what is named and send it again.", 2, ""},
	{PreconditionFailed, "a precondition is not met", "Do what the message says and start again.", 2, ""},
	{LedgerAhead, "the ledger is ahead of this run", "The loop or steward was reset or restored to a point before its last record; start it again from its ledger.", 3, ""},
	{GateClosed, "nothing waits for this answer", "See `{show}` for what the {word} waits for, if anything.", 2, ""},
	{GateMismatch, "the answer is for another gate or of another kind", "Answer the gate that `{show}` names, in one of the ways it lists.", 2, ""},
	{HashMismatch, "the hash does not match what waits for approval", "Look at what waits now (`{show}`) and answer with exactly that hash.", 2, ReviewGating},
	{EngineUnreachable, "no Temporal service answers", "Start the engine with `pawl up`, or check TEMPORAL_ADDRESS.", 1, ""},
	{NoWorker, "Temporal answers, but no worker does for this loop or steward", "Start a worker on the loop's host: `pawl up`.", 1, ""},
	{InfrastructureError, "the machine or a service failed, not the loop's work", "See the message, then start the loop again.", 1, ""},
	{PermissionDenied, "a role lacks a permission; nothing of that work was run or kept", "Grant it under `permissions.<role>` and start again, or give the work to another role.", 3, Enforcement},
	{WallClockExceeded, "the loop's wall clock has run out; never a failure type, only the `cause` beside `BUDGET_EXHAUSTED`", "Raise `limits.wallClock` and start again.", 6, Enforcement},
	{QueueFull, "the steward's queue is full", "Submit the task again later, or raise `limits.queue`.", 2, ""},
	{CycleTermination, "an iteration has used up its agent calls; never a failure type, only the `cause` beside `BUDGET_EXHAUSTED`", "Raise `limits.steps` and start again.", 6, Enforcement},
	{TooManyNotes, "too many notes wait for the next agent call", "Send it again once that call has ended; `{show}` says what the {word} is doing.", 2, ""},
	{LedgerDamaged, "the loop's record is damaged and can't be repaired here", "Do what the message says; what was pushed is in the repository.", 3, ""},
	{NotReproduced, "what the loop kept passed, and fails from scratch; nothing is proposed", "Read each commit of the branch (`git log -p`), because one of them may have left a forged result in a cache. Run the command that fails in a fresh clone.", 3, ""},
	{ReviewMissing, "the proposal has not been approved", "Look at it (`{diff}`) and approve exactly its hash (`{approve} --hash …`).", 2, ReviewGating},
	{ReviewRejected, "the proposal was rejected", "Start another loop; the rejected work stays on its branch.", 2, ReviewGating},
	{BaseMoved, "the branch has moved since the proposal was made", "Look at the new proposal (`{diff}`), approve its hash and apply it.", 2, ReviewGating},
}

// Lookup returns the table's row for code; ok is false for a code that is not in it.
func Lookup(code Code) (Row, bool) {
	return list.First(Table, func(k Row) bool { return k.Code == code })
}

// Recovery returns what the table says to do about code, "" for an unknown one.
func Recovery(code Code) string {
	k, _ := Lookup(code)
	return k.Recovery()
}

// Error is a fault that happened: its code, what happened, and what to do where that is more
// exact than the table's general advice. Package wire sends it as JSON.
type Error struct {
	Code Code   `json:"code"`
	What string `json:"what"`
	Do   string `json:"advice,omitempty"`
	// Cause is the rule that was enforced, where the code says only what came of it: a loop that is out
	// of wall clock ends with BUDGET_EXHAUSTED. It is matched as the code is.
	Cause Code `json:"cause,omitempty"`
	// Step names what failed before the work of the activity began: Setup, or "".
	Step string `json:"step,omitempty"`

	// template is an advice with the placeholders of a Subject, if it has one of its own and no Do.
	template string
}

// Setup is the Step of a fault whose work did not begin because setup.command failed.
const Setup = "setup"

// New returns a fault with the table's advice.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, What: fmt.Sprintf(format, args...)}
}

// Advise returns the same fault with more exact advice.
func (e *Error) Advise(do string) *Error {
	advised := *e
	advised.Do, advised.template = do, ""
	return &advised
}

// AdviseAbout returns the same fault with more exact advice, which has the placeholders of a Subject.
func (e *Error) AdviseAbout(template string) *Error {
	advised := *e
	advised.Do, advised.template = "", template
	return &advised
}

// In returns the same fault with the step that failed.
func (e *Error) In(step string) *Error {
	failed := *e
	failed.Step = step
	return &failed
}

// About returns the same fault, whose advice names the subject's commands instead of those for any loop.
func (e *Error) About(subject Subject) *Error {
	general := e.general()
	if filled := subject.fill(general); filled != general {
		return e.Advise(filled)
	}
	return e
}

// Settled returns the same fault without a template of its own, as it can be sent to others.
func (e *Error) Settled() *Error {
	if e.template == "" {
		return e
	}
	return e.Advise(e.Advice())
}

// Advice returns what to do: the fault's own advice, else the table's.
func (e *Error) Advice() string {
	if e.Do != "" {
		return e.Do
	}
	return anyLoop.fill(e.general())
}

// general returns the advice that a subject fills in, "" if the fault has a more exact one.
func (e *Error) general() string {
	if e.Do != "" {
		return ""
	}
	if e.template != "" {
		return e.template
	}
	k, _ := Lookup(e.Code)
	return k.advice
}

// Error says what happened and what to do, in a form for people.
func (e *Error) Error() string {
	if advice := e.Advice(); advice != "" {
		return e.What + "\n" + advice
	}
	return e.What
}

// Is makes errors.Is match two faults by code, so that fault.New(code, "") is a pattern, and a
// family by any of its members. The cause counts as the code does.
func (e *Error) Is(target error) bool {
	for _, code := range []Code{e.Code, e.Cause} {
		k, known := Lookup(code)
		switch t := target.(type) {
		case Family:
			if known && t.Has(k.Family) {
				return true
			}
		case *Error:
			if code != "" && t.Code == code {
				return true
			}
		}
	}
	return false
}

// CodeOf returns the code of the first fault in err's chain, "" where there is none.
func CodeOf(err error) Code {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Code
	}
	return ""
}
