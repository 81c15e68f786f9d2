package loop

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/phase"
	"pawl/internal/steward/task"
)

// Status says what a loop is doing as a whole.
type Status string

// The statuses of the contract.
const (
	Running   Status = "running"
	Paused    Status = "paused"
	Waiting   Status = "waiting"
	Blocked   Status = "blocked"
	Completed Status = "completed"
	Failed    Status = "failed"
	Halted    Status = "halted"
	// Sleeping: the agent's provider refuses work, and the loop continues by itself.
	Sleeping Status = "sleeping"
)

// Ended reports whether the loop is over.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Halted }

// The sizes of the state's bounded lists. The full counts are beside the lists.
const (
	KeepIterations = 20
	KeepCommits    = 100
	KeepFiles      = 100
	KeepTried      = 100
	KeepNotes      = 10
	KeepIdeas      = 20
	KeepAnswers    = 10
	KeepSetAside   = 20
)

// State is a loop as the world sees it (query `state`, `pawl show --json`) and as it is restored. Durations are in
// milliseconds. The fields of the contract are always present, empty or null if there is no value.
type State struct {
	Loop      string      `json:"loop"`
	Kind      string      `json:"kind"`
	Goal      string      `json:"goal,omitempty"`
	Status    Status      `json:"status"`
	Phase     phase.Phase `json:"phase"`
	Iteration int         `json:"iteration"`
	Attempt   int         `json:"attempt,omitempty"`  // counted from 1
	WaitsFor  string      `json:"waitsFor,omitempty"` // what the running step waits for, for people who look at it meanwhile

	Gate        *Gate    `json:"gate"`
	Answered    *Answer  `json:"answered,omitempty"` // how the last gate closed
	Given       []Answer `json:"given,omitempty"`    // the last KeepAnswers answers, to know one that is sent again
	PauseReason string   `json:"pauseReason"`

	Budget Budget `json:"budget"`

	Baseline      *metric.Decimal `json:"baseline"`
	Best          *metric.Decimal `json:"best"`
	BestIteration int             `json:"bestIteration,omitempty"`
	// Judging says how a metric loop judges changes, "" before its baseline is measured. If it judges by samples,
	// Selected is the metric by which the head was chosen, until the head is measured anew: Best is that of the head
	// before it.
	Selected *metric.Decimal `json:"selected,omitempty"`
	// Sampler has the samples, and Noise says what that means. BaselineMetrics are the further metrics of the
	// unchanged code.
	Judging         string                    `json:"judging,omitempty"`
	Noise           string                    `json:"noise,omitempty"`
	EvaluationMs    int64                     `json:"evaluationMs,omitempty"` // of one evaluation, if several decide
	Sampler         *stats.Sampler            `json:"sampler,omitempty"`
	BaselineMetrics map[string]metric.Decimal `json:"baselineMetrics,omitempty"`
	Form            *metric.Form              `json:"form,omitempty"`      // how its output shows its numbers
	MeasuredAt      time.Time                 `json:"measuredAt,omitzero"` // when `pawl validate` measured the baseline, zero if the loop did
	Claim           *Claim                    `json:"claim"`
	Scratch         *Scratch                  `json:"scratch,omitempty"` // the last judgement from scratch
	DiscardsInARow  int                       `json:"discardsInARow"`
	FixAttempts     int                       `json:"fixAttempts"`

	KnownTests *Judgement `json:"knownTests,omitempty"` // what the tests showed on the unchanged code (Deliver)
	GuardTests int        `json:"guardTests,omitempty"` // how many tests passed in the guard there, if known
	Tested     *Tested    `json:"tested,omitempty"`     // what the guard has tested there
	GuardRuns  bool       `json:"guardRuns,omitempty"`  // the guard noticed that functions only fail
	Leftovers  []string   `json:"leftovers,omitempty"`  // what the spec's commands leave in a tree: no change
	LastGuard  *Judgement `json:"lastGuard"`
	LastTest   *Judgement `json:"lastTest"`
	LastVerify *Judgement `json:"lastVerify"`

	ChangedFiles      []string `json:"changedFiles"` // git-quoted, accumulated (L5), capped
	ChangedFilesCount int      `json:"changedFilesCount"`

	// SetAside are the last changes that were undone because they improved too much to be kept unseen. Suspicious is how
	// many such changes were kept.
	SetAside   []SetAside `json:"setAside,omitempty"`
	Suspicious int        `json:"suspicious,omitempty"`

	LastChange *Change `json:"lastChange,omitempty"` // kept or not

	Repo   string `json:"repo,omitempty"`
	Branch string `json:"branch"`
	Base   string `json:"base,omitempty"`  // the commit that the loop started from
	Moved  string `json:"moved,omitempty"` // the new base, if a proposal was made again on top of it
	Begun  string `json:"begun,omitempty"` // where the steward's task began, if the loop is a later step of it
	Head   string `json:"head"`
	Ledger string `json:"ledger"` // the ledger commit that this state follows
	Desk   string `json:"desk"`
	Host   string `json:"host"`

	Steward string `json:"steward,omitempty"` // the workflow ID of the steward that started the loop

	Contract *Contract `json:"contract"`
	Plan     *Plan     `json:"plan,omitempty"` // fixed once the contract is approved
	Proposal *Proposal `json:"proposal"`

	ExitStatus string `json:"exitStatus"`
	ErrorCode  string `json:"errorCode"`
	Cause      string `json:"cause,omitempty"`  // the code of the rule that caused the error (E5)
	Reason     string `json:"reason,omitempty"` // why it ended, in words
	Recovery   string `json:"recovery"`

	Iterations []Iteration `json:"iterations"` // the last KeepIterations
	Kept       []Kept      `json:"kept"`       // the last KeepCommits
	KeptCount  int         `json:"keptCount"`
	Discarded  int         `json:"discarded"`

	Usage     Usage     `json:"usage"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ClockFrom is StartedAt plus the time that limits.wallClock did not count. ClockStopped is when the clock was
	// stopped, zero while it runs.
	ClockFrom    time.Time `json:"clockFrom,omitzero"`
	ClockStopped time.Time `json:"clockStopped,omitzero"`
	Seq          int64     `json:"seq"` // of the last event applied

	// What the loop carries from one iteration to the next.
	Analysis       metric.Analysis `json:"analysis,omitzero"`
	Tried          []Tried         `json:"tried,omitempty"`
	Ideas          []string        `json:"ideas,omitempty"`      // queued by a split (P2)
	Candidates     []Candidate     `json:"candidates,omitempty"` // that are being made or tried, or wait
	Taken          *Candidate      `json:"taken,omitempty"`      // this iteration's change
	Alike          string          `json:"alike,omitempty"`      // the base of candidates, if the head has its tree again
	Backtrack      *Backtrack      `json:"backtrack,omitempty"`  // if limits.backtrack allows it
	Guidance       []Note          `json:"guidance,omitempty"`   // from `steer`, for the next agent call
	Strategy       int             `json:"strategy,omitempty"`   // how often it was shifted (P8)
	AgentFailures  int             `json:"agentFailures,omitempty"`
	NoNumbers      int             `json:"noNumbers,omitempty"`
	QuickCall      bool            `json:"quickCall,omitempty"`      // the last call of a writer took less than a second
	QuickNothings  int             `json:"quickNothings,omitempty"`  // iterations in a row whose quick call changed nothing
	IterationSteps int             `json:"iterationSteps,omitempty"` // agent calls in this iteration (E4)
	IterationStart time.Time       `json:"iterationStart,omitzero"`
	PauseRequested bool            `json:"pauseRequested,omitempty"`
	PauseAt        string          `json:"pauseAt,omitempty"`       // PauseNow, PauseStep or PauseIteration
	PausedBy       string          `json:"pausedBy,omitempty"`      // who asked for the pause
	RateLimit      *task.RateLimit `json:"rateLimit,omitempty"`     // why the last agent call failed
	Sleep          *Sleep          `json:"sleep,omitempty"`         // why and until when the loop sleeps
	HaltRequested  string          `json:"haltRequested,omitempty"` // the reason, "" for none
	// Refusing has the agents of a chain whose providers refuse work, and until when pawl does not call them first.
	Refusing map[string]time.Time `json:"refusing,omitempty"`
	// Writers are the vendors whose models have written code, if reviewer.otherVendor needs them.
	Writers []string `json:"writers,omitempty"`
	Course  *Course  `json:"course,omitempty"` // of the iteration of a Deliver loop
}

// Footing returns the commit from which the proposal's diff begins: the new base, if the work is on top of it now;
// else the commit at which the steward's task began, if the loop is a step of a task; else the base. The contract
// keeps the base with which it was approved.
func (s State) Footing() string { return cmp.Or(s.Moved, s.Begun, s.Base) }

// Own returns the commit from which the diff of the loop's own changes begins.
func (s State) Own() string { return cmp.Or(s.Moved, s.Base) }

// New returns the state of a loop that has only an ID and a kind. Its lists are empty, never null.
func New(id, kind string) State {
	return State{Loop: id, Kind: kind, Status: Running, ChangedFiles: []string{}, Iterations: []Iteration{}, Kept: []Kept{}}
}

// How a metric loop judges changes.
const (
	JudgedSingly    = "single"        // one measurement of each change, as in the source
	JudgedExactly   = "deterministic" // the same, because the metric does not vary
	JudgedBySamples = "sequential"    // evaluations of reference and change in turn
)

// Claim says how much better the head is than the baseline. Both are measured again when the loop is over.
type Claim struct {
	stats.Claim
	// FalseKeeps is the largest number of changes that are expected to be kept by chance.
	FalseKeeps float64      `json:"falseKeeps"`
	Holdout    *stats.Claim `json:"holdout,omitempty"` // by verify.holdout.command
}

// Scratch is the result of judging a head in a new judge, in caches that no change of the loop has written.
type Scratch struct {
	Head   string          `json:"head"`
	Passed bool            `json:"passed"`
	Judged bool            `json:"judged"`           // or it could not be judged
	Reason string          `json:"reason,omitempty"` // what failed, or why it was not judged
	Metric *metric.Decimal `json:"metric,omitempty"`
	// Unproven says that the base fails from scratch as well, so it may not be the fault of the loop's changes.
	Unproven bool `json:"unproven,omitempty"`
}

// Stands reports whether a commit was judged from scratch and has passed.
func (s *Scratch) Stands(commit string) bool { return s != nil && s.Head == commit && s.Passed }

// Failed reports whether a commit was judged from scratch and has failed, where its base has not.
func (s *Scratch) Failed(commit string) bool {
	return s != nil && s.Head == commit && s.Judged && !s.Passed && !s.Unproven
}

// Doubtful reports whether a commit was judged from scratch and has failed, and so has its base.
func (s *Scratch) Doubtful(commit string) bool { return s != nil && s.Head == commit && s.Unproven }

// Sleep says that a loop waits until its agent's provider lets it work again, or until setup.command is tried again. No
// person has to do anything.
type Sleep struct {
	Class  result.Class `json:"class"`
	Reason string       `json:"reason"` // what the provider said, or how setup.command failed
	Status int          `json:"status,omitempty"`
	Since  time.Time    `json:"since"`
	Until  time.Time    `json:"until"` // when the call is made again
	Times  int          `json:"times"` // how often in a row this call was refused, or this step has failed
	Role   string       `json:"role,omitempty"`
	Step   string       `json:"step,omitempty"` // the step that is tried again: setup; "" for an agent's call
}

// String returns the reason of the sleep in words.
func (s Sleep) String() string {
	if s.Step != "" {
		return s.Reason
	}
	text := "the agent's provider refuses work"
	if s.Class == result.RateLimited {
		text = "the agent's rate limit is used up"
	}
	return text + ": " + s.Reason
}

// Gate is a question that waits for a person.
type Gate struct {
	ID        string    `json:"id"`
	Kind      GateKind  `json:"kind"`
	Summary   string    `json:"summary"`
	Hash      string    `json:"hash"`
	Again     bool      `json:"again,omitempty"` // an approval of that hash was given before, so a new one has to name the gate
	OpenedAt  time.Time `json:"openedAt"`
	Answers   []string  `json:"answers"`
	Choices   []string  `json:"choices,omitempty"` // the choices of an `answer`
	Budget    Resource  `json:"budget,omitempty"`  // the budget that is used up, at a budget gate
	On        string    `json:"on,omitempty"`      // the head that the change is on, at a newFiles gate
	Tree      string    `json:"tree,omitempty"`    // what that head would become
	Escalated int       `json:"escalated,omitempty"`
	// Limit is the limit that is used up, and Cost what the task has cost, at a steward's budget gate.
	Limit *metric.Decimal `json:"limit,omitempty"`
	Cost  *metric.Decimal `json:"cost,omitempty"`
	Task  string          `json:"task,omitempty"`  // the steward's task that it is about
	About string          `json:"about,omitempty"` // the drift or the rule that it is about
	// Points are the separate points at the end of the summary, for a list.
	Points []string `json:"points,omitempty"`
}

// Listed returns the summary for a list: the text without the points, and the points.
func (g Gate) Listed() (first string, points []string) {
	if first, cut := strings.CutSuffix(g.Summary, " "+strings.Join(g.Points, "; ")); cut && len(g.Points) > 0 {
		return first, g.Points
	}
	return g.Summary, nil
}

// Preface returns the text before the diff that a newFiles gate asks about. The hash covers it, so the approval of a
// change with new files is never the approval of a proposal, whose diff can be the same to the byte. Other gates have no
// preface.
func (g Gate) Preface() string {
	if g.On == "" {
		return ""
	}
	return "New files on " + g.On + "\nas the tree " + g.Tree + "\n\n"
}

// Pauses reports whether the gate only makes the loop wait.
func (g Gate) Pauses() bool { return g.Kind == GatePause || g.Kind == GateBreakpoint }

// OffersDiff reports whether `pawl diff` shows what the gate asks to approve.
func (g Gate) OffersDiff() bool { return g.Kind == GateDiff || g.Tree != "" }

// GateKind says what a gate is about. It decides how the gate is answered.
type GateKind string

// The gates of loops.
const (
	GatePause      GateKind = "pause"
	GateBreakpoint GateKind = "breakpoint"
	GateContract   GateKind = "contract"
	GateNewFiles   GateKind = "newFiles"
	GateDiff       GateKind = "diff"
	GateGuard      GateKind = "guard"
	GateBudget     GateKind = "budget"
	GateQuestion   GateKind = "question"
)

// Answer says how a gate was closed: by which message, and by whom.
type Answer struct {
	Gate    string `json:"gate"`
	Message string `json:"message"`        // approve, reject, continue, answer, extend, amend
	Hash    string `json:"hash,omitempty"` // what it approved, rejected or extended, if it named that
	Task    string `json:"task,omitempty"` // the steward's task that the gate was about
	Choice  string `json:"choice,omitempty"`
	Apply   string `json:"apply,omitempty"` // how an approved diff is applied at once
	// Amendment is the fragment of the spec in extend and amend.
	Amendment json.RawMessage `json:"amendment,omitempty"`
	By        string          `json:"by,omitempty"`
	Note      string          `json:"note,omitempty"`
}

// Judgement is the result of a command or policy for a change.
type Judgement struct {
	Passed   bool            `json:"passed"`
	Blocked  bool            `json:"blocked,omitempty"`
	Policy   string          `json:"policy,omitempty"` // the guard's policy by name (L1)
	Reason   string          `json:"reason,omitempty"`
	ExitCode int             `json:"exitCode"`
	Metric   *metric.Decimal `json:"metric,omitempty"`
	// Samples is the result of all evaluations of the change, if there is more than one.
	Samples    *stats.Judgement `json:"samples,omitempty"`
	DurationMs int64            `json:"durationMs"`
	Log        string           `json:"log,omitempty"` // where the full output is
	Iteration  int              `json:"iteration"`
	Violations []string         `json:"violations,omitempty"`
	Passing    int              `json:"passing,omitempty"` // of a guard: how many tests passed, if its output says that
	Tested     *Tested          `json:"tested,omitempty"`  // of a guard or test run that exits 0: what its output shows
	Flaky      []string         `json:"flaky,omitempty"`   // of a guard that failed, then passed twice on the same tree: what had failed
	// Vanished says of a guard that passed which tests of the unchanged code it no longer has, "" if none.
	Vanished string `json:"vanished,omitempty"`
	Tests    *Tests `json:"tests,omitempty"`
	// Leftovers are the paths that the command left in the tree and that git does not ignore.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Tests is the result of a test run, including the rerun of failed tests. Lists are capped.
type Tests struct {
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Skipped   int      `json:"skipped"`
	Failing   []string `json:"failing,omitempty"`
	New       []string `json:"new,omitempty"`   // that fail now and did not in the run before
	Fixed     []string `json:"fixed,omitempty"` // that failed in the run before and do not now
	Flaky     []string `json:"flaky,omitempty"` // that failed, then passed on the same tree
	Signature string   `json:"signature,omitempty"`
	Broken    bool     `json:"broken,omitempty"`
	Worse     bool     `json:"worse,omitempty"` // than in the run before

	Known    []string `json:"known,omitempty"`    // that fail now and on the unchanged code
	Excused  bool     `json:"excused,omitempty"`  // no other test fails, and no fewer tests pass
	Progress bool     `json:"progress,omitempty"` // more tests pass than on the unchanged code

	Printed string `json:"printed,omitempty"` // of a failed run that names no test: the first line of its errors, else of its output
}

// Contract is what a person approves before autonomy starts.
type Contract struct {
	Hash       string     `json:"hash"`
	Base       string     `json:"base"`
	Sealed     []Seal     `json:"sealed"`
	Tools      []string   `json:"tools"`
	ApprovedBy string     `json:"approvedBy"`
	ApprovedAt *time.Time `json:"approvedAt"`
}

// Seal protects a part of the evaluator: the content of a file of the base commit, names that match a glob, or the
// content of a file outside the repository.
type Seal struct {
	Path string `json:"path"` // git-quoted; a glob for names; an absolute path outside the repository
	Blob string `json:"blob"` // git's digest of the content; outside the repository SHA-256, "" for a folder
	Mode string `json:"mode"`
	// Names is "" for a file of the base commit, else one of the constants.
	Names string `json:"names,omitempty"`
	// Lines are directives in the files that the glob matches, of which no line may change.
	Lines []string `json:"lines,omitempty"`
	// Except are globs of the scope by which a person opens what matches them.
	Except []string `json:"except,omitempty"`
	// By says what runs or reads it, such as "make in guard.command"; "" if that is not known or not to be told.
	By string `json:"by,omitempty"`
	// Untold says that the seal is for verify.holdout.command only, which no agent hears about.
	Untold bool `json:"untold,omitempty"`
}

// What a seal can protect instead of one file of the base commit.
const (
	SealThere   = "there"   // files of the base commit that match
	SealNew     = "new"     // added files that match
	SealAll     = "all"     // both
	SealLines   = "lines"   // nothing but lines of files that match
	SealOutside = "outside" // a program, file or folder outside the repository
)

// OfFiles reports whether the seal protects files of the base commit.
func (s Seal) OfFiles() bool { return s.Names == "" || s.Names == SealThere || s.Names == SealAll }

// OfNewFiles reports whether the seal forbids new files.
func (s Seal) OfNewFiles() bool { return s.Names == SealNew || s.Names == SealAll }

// Plan is what the planner wrote. The contract has its hash.
type Plan struct {
	Hash string `json:"hash"` // SHA-256 of the whole text
	Text string `json:"text"` // its beginning; the ledger has the whole text
	Log  string `json:"log,omitempty"`
}

// Proposal is the diff from base to head; its hash is the SHA-256 of that diff.
type Proposal struct {
	Hash       string `json:"hash"`
	Base       string `json:"base"`
	Head       string `json:"head"`
	Files      int    `json:"files"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	State      string `json:"state"`            // open, approved, rejected, applied
	Anew       bool   `json:"anew,omitempty"`   // it was made on a base that had moved, and names that base
	By         string `json:"by,omitempty"`     // who approved or rejected it
	Branch     string `json:"branch,omitempty"` // the branch to which it was applied
	Commit     string `json:"commit,omitempty"` // the commit on that branch that contains it
}

// Preface returns the text before the diff of a proposal that was made again: its new base and its head. If others
// changed other files, the diff itself can be the same to the byte, but an approval on the earlier base must not
// count for the new one. `git apply` ignores the text.
func (p Proposal) Preface() string {
	if !p.Anew {
		return ""
	}
	return "Made anew on the base " + p.Base + "\nas " + p.Head + "\n\n"
}

// Iteration is the record of one finished iteration; it never changes afterwards (L8).
type Iteration struct {
	N           int              `json:"n"`
	Description string           `json:"description"`
	Metric      *metric.Decimal  `json:"metric"` // null if there is no metric, which is optional in Deliver
	Delta       metric.Decimal   `json:"delta"`
	Kept        bool             `json:"kept"`
	Reason      string           `json:"reason"`
	Commit      string           `json:"commit"`
	DurationMs  int64            `json:"durationMs"`
	Attempts    int              `json:"attempts,omitempty"`
	Tree        string           `json:"tree,omitempty"` // of the change, if it was judged
	Files       []string         `json:"files,omitempty"`
	Evidence    []string         `json:"evidence,omitempty"`
	EndedAt     time.Time        `json:"endedAt,omitzero"`
	PhaseMs     map[string]int64 `json:"phaseMs,omitempty"` // active time by phase (L10)
	Note        string           `json:"note,omitempty"`    // that it is large, or several changes at once
	Agent       string           `json:"agent,omitempty"`   // the agent that made it, if a role has several

	// Suspicious says that the change is kept although it improves too much in one step.
	Suspicious bool `json:"suspicious,omitempty"`

	// Flaky is what failed in the guard, and then did not when it ran again on the same tree.
	Flaky []string `json:"flaky,omitempty"`

	// Vanished says which tests of the unchanged code the guard of a kept change no longer has.
	Vanished string `json:"vanished,omitempty"`

	Branch int `json:"branch,omitempty"` // the branch that the loop explored (limits.backtrack), 0 for none

	// Unmeasured says that Metric is that of the reference: the change was never measured.
	Unmeasured bool            `json:"unmeasured,omitempty"`
	Samples    int             `json:"samples,omitempty"` // evaluations of the change; Metric is their mean
	Spread     *metric.Decimal `json:"spread,omitempty"`  // their standard deviation, if there are several
	LLR        *float64        `json:"llr,omitempty"`     // their log-likelihood ratio, if samples decide
	// Metrics are the means of the further metrics.
	Metrics map[string]metric.Decimal `json:"metrics,omitempty"`
}

// Measured reports whether the record's metric is its own. A row without a measurement, or whose guard failed,
// carries the reference (P7).
func (iter Iteration) Measured() bool {
	return iter.Metric != nil && (iter.Kept || iter.Reason == "" || !iter.Delta.IsZero())
}

// Why returns what the note says about the reason, "" if the note is about something else.
func (iter Iteration) Why() string {
	switch {
	case iter.Kept:
	case iter.Reason == reason.AgentFailed, iter.Reason == reason.NoNumber,
		iter.Reason == reason.VerifyFailed, iter.Reason == reason.GuardFailed,
		iter.Reason == reason.Inconclusive, iter.Reason == reason.Repeated,
		strings.HasPrefix(iter.Reason, reason.Bound):
		return iter.Note
	}
	return ""
}

// Kept is a commit that stayed.
type Kept struct {
	Iteration   int    `json:"iteration"`
	Commit      string `json:"commit"`
	Description string `json:"description"`
	Suspicious  bool   `json:"suspicious,omitempty"`
	Flaky       bool   `json:"flaky,omitempty"` // its guard failed, and then passed twice
	Vanished    string `json:"vanished,omitempty"`
}

// Vanished says which tests of the unchanged code the guard no longer has at the last of the kept changes, "" if none.
func Vanished(kept []Kept) string {
	if len(kept) == 0 {
		return ""
	}
	return kept[len(kept)-1].Vanished
}

// SetAside is a change that was undone because it improved too much to be kept unseen.
type SetAside struct {
	Iteration   int             `json:"iteration"`
	Commit      string          `json:"commit"`
	Description string          `json:"description"`
	Metric      *metric.Decimal `json:"metric,omitempty"`
}

// Tried is a tree that was judged and discarded. It is not judged again (P2: avoid what failed).
type Tried struct {
	Tree   string          `json:"tree"`
	Metric *metric.Decimal `json:"metric,omitempty"`
	N      int             `json:"n"`
}

// Change is a commit of the loop, with its parent.
type Change struct {
	Commit string `json:"commit"`
	Parent string `json:"parent"`
	// Accepted says that the change stays: it passed the guard, or its iteration was kept.
	Accepted bool `json:"accepted,omitempty"`
}

// Note is guidance from a person.
type Note struct {
	Seq  int64  `json:"seq,omitempty"` // of the event that brought it
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
}

// Usage is what the loop has spent.
type Usage struct {
	ActiveMs     int64          `json:"activeMs"`
	AgentCalls   int64          `json:"agentCalls"`
	ToolCalls    int64          `json:"toolCalls"`
	InputTokens  int64          `json:"inputTokens"`
	OutputTokens int64          `json:"outputTokens"`
	CostUSD      metric.Decimal `json:"costUSD"`
}

// Result is what a finished loop returns.
type Result struct {
	ExitStatus     string          `json:"exitStatus"`
	ErrorCode      string          `json:"errorCode"`
	Cause          string          `json:"cause,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Recovery       string          `json:"recovery,omitempty"`
	Iterations     int             `json:"iterations"`
	Kept           []Kept          `json:"kept"`
	KeptCount      int             `json:"keptCount"`
	Discarded      int             `json:"discarded"`
	Baseline       *metric.Decimal `json:"baseline"`
	Best           *metric.Decimal `json:"best"`
	Delta          *metric.Decimal `json:"delta"`
	Branch         string          `json:"branch"`
	Head           string          `json:"head"`
	Proposal       *Proposal       `json:"proposal"`
	Usage          Usage           `json:"usage"`
	Recommendation string          `json:"recommendation"`
	// Candidates are those that no iteration has taken. They were given up.
	Candidates []Candidate `json:"candidates,omitempty"`
	Claim      *Claim      `json:"claim"`
	Scratch    *Scratch    `json:"scratch,omitempty"`
	Tested     *Tested     `json:"tested,omitempty"` // what the guard has tested on the unchanged code
	SetAside   []SetAside  `json:"setAside,omitempty"`
}

// Spending returns the state with the spending of a running step in budgets and usage, for people who look at it meanwhile.
// The loop itself adds it when the step has ended.
func (s State) Spending(u Usage) State {
	for _, r := range Resources {
		if n := u.Of(r); s.Budget != nil && n.Sign() > 0 {
			s.Budget = s.Budget.Spend(r, n)
		}
	}
	s.Usage = s.Usage.Add(u)
	return s
}

// Criterion is the reviewer's finding about one acceptance criterion. It counts as met only with evidence.
type Criterion struct {
	Criterion string `json:"criterion"`
	Met       bool   `json:"met"`
	Evidence  string `json:"evidence,omitempty"`
}
