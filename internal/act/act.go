// Package act is the contract between workflows and activities: the names of the handful of
// activities, what goes in and what comes out. Workflows call by these names and link none of
// the code behind them. Values here enter history, so they are small: paths, digests and short
// tails, never prompts, diffs or transcripts. Start at Step, the activity that does the work.
package act

import (
	"fmt"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// The activities. An iteration costs four to six of them.
const (
	OpenName   = "Open"   // store, desk and judge; the repository's preconditions (P0)
	StepName   = "Step"   // run one thing in one tree under one limit
	CheckName  = "Check"  // how much active time a running step has spent
	CommitName = "Commit" // take the change, judged by the policies first
	SettleName = "Settle" // keep or revert, append to the ledger
	RecordName = "Record" // append what happens between iterations
	AmendName  = "Amend"  // the sealed files and the hash of an amended contract
	CloseName  = "Close"  // proposal, last push, trees given up
	FindName   = "Find"   // on which host's queue a loop's store is
	ReviewName = "Review" // take a person's word on the proposal of a loop that has ended
	ApplyName  = "Apply"  // bring an approved proposal onto the user's branch
	NotifyName = "Notify" // tell one of spec.notify
	PlaceName  = "Place"  // whether a loop's host is gone, and where its ledger is then
)

// TaskQueue is where workflows and everything that is not bound to a host run.
const TaskQueue = "pawl"

// HostMemo is the memo that names the host of a loop that has moved.
const HostMemo = "host"

// HostQueue is where work on a host's trees runs.
func HostQueue(host string) string { return TaskQueue + "@" + host }

// AgentQueue is where a host's agents run where they have slots of their own.
func AgentQueue(host string) string { return HostQueue(host) + "/agents" }

// Open asks for a loop's store and trees. FirstRun identifies the chain of runs, so that a
// retry finds what an earlier attempt made and a new loop of an old name gets a suffix.
type Open struct {
	Loop     string    `json:"loop"`
	FirstRun string    `json:"firstRun"`
	Run      string    `json:"run"`
	Spec     spec.Spec `json:"spec"`
	Ledger   string    `json:"ledger,omitempty"` // resume from this ledger head
	// Moved says that the run goes on, on another host: what it has amended need not be in the
	// ledger yet.
	Moved bool `json:"moved,omitempty"`
}

// Place asks for a loop with a repo.url whose host did not take what was to be done there.
type Place struct {
	Loop   string `json:"loop"`
	Host   string `json:"host"`
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Ledger is where the ledger is as far as the loop knows, Sent what its host may have recorded
	// after that without being able to say so.
	Ledger string       `json:"ledger,omitempty"`
	Sent   []loop.Event `json:"sent,omitempty"`
}

// Placed says whether another host can go on: the loop's own is gone, and the repository has all that
// it recorded.
type Placed struct {
	Gone   bool         `json:"gone"`
	Why    string       `json:"why"`
	Ledger string       `json:"ledger,omitempty"` // its head in the repository
	Since  []loop.Event `json:"since,omitempty"`  // what it has of Sent, as it was recorded
}

// Amend asks for the contract that the loop would have with another spec. Nothing changes yet.
type Amend struct {
	Ref  string    `json:"ref"`
	Base string    `json:"base"`
	Spec spec.Spec `json:"spec"`
}

// Opened is where the loop lives from now on.
type Opened struct {
	Ref      string      `json:"ref"` // the loop's name in refs and folders
	Queue    string      `json:"queue"`
	Agents   string      `json:"agents,omitempty"` // the queue of the agents, where it is another
	Host     string      `json:"host"`
	Repo     string      `json:"repo"`
	Branch   string      `json:"branch"`
	Base     string      `json:"base"`
	Onto     string      `json:"onto,omitempty"` // the branch that the work is to be applied to
	Desk     string      `json:"desk"`
	Sealed   []loop.Seal `json:"sealed,omitempty"`
	InScope  int         `json:"inScope"` // how many files the scope matches now
	Contract string      `json:"contract"`
	Stop     string      `json:"stop,omitempty"` // a loop-stop file is there
	Warnings []string    `json:"warnings,omitempty"`
	// Protections are what holds on this host whatever the agent does, and what does not, for the
	// contract; a worker of an older version told none.
	Protections []string `json:"protections,omitempty"`
	// MoveAfterMs is how long this host may leave something untaken until the loop asks whether it
	// is gone; 0: the loop stays.
	MoveAfterMs int64 `json:"moveAfterMs,omitempty"`
	// Attributes says that the namespace knows the search attributes.
	Attributes bool        `json:"attributes,omitempty"`
	State      *loop.State `json:"state,omitempty"` // of the ledger head to resume from
}

// Entry is what every activity that appends to the ledger is given: where the ledger stands
// and the events to append. Events whose outcome only the activity knows (the head after a
// revert, the proposal) are filled in by it and come back in Settled.
type Entry struct {
	Ref    string       `json:"ref"`
	Ledger string       `json:"ledger"`
	Events []loop.Event `json:"events"`
	Push   bool         `json:"push,omitempty"`
}

// Settle keeps a change, or reverts the commit Revert.
type Settle struct {
	Entry
	Revert string `json:"revert,omitempty"`
	// Keep leaves the desk as it is: a person is to mend what is on it.
	Keep bool `json:"keep,omitempty"`
	// Parent is what Revert stood on.
	Parent string `json:"parent,omitempty"`
	// Idle says that the loop now waits: its processes are given up.
	Idle bool `json:"idle,omitempty"`
	// Park says that the loop waits long: its trees are given up too.
	Park bool `json:"park,omitempty"`
	// Base and Head ask for the proposal between them.
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
}

// Close ends the loop.
type Close struct {
	Entry
	Base string `json:"base"`
	Head string `json:"head"`
}

// Settled is the ledger's new head and what else came of it.
type Settled struct {
	Ledger      string         `json:"ledger"`
	Head        string         `json:"head,omitempty"`
	Proposal    *loop.Proposal `json:"proposal,omitempty"`
	Stop        string         `json:"stop,omitempty"`        // a loop-stop file is there
	PushRefused string         `json:"pushRefused,omitempty"` // why the last push was refused
}

// Tree says in which tree a step runs.
type Tree string

// The trees of a loop.
const (
	Desk  Tree = "desk"
	Judge Tree = "judge"
)

// Key names a step for good: its result is kept on disk under it, so that a retry returns it.
type Key struct {
	Run       string `json:"run"`
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Name      string `json:"name"`
	Repeat    int    `json:"repeat,omitempty"` // how often a pause repeated it
}

// Step runs one thing (agent, check, verify, guard, setup) in one tree under one limit.
type Step struct {
	Ref     string   `json:"ref"`
	Key     Key      `json:"key"`
	Tree    Tree     `json:"tree"`
	Head    string   `json:"head"`    // the commit that the tree is brought to first
	AsIs    bool     `json:"asIs"`    // run in the tree as it stands
	Command []string `json:"command"` // argv
	LimitMs int64    `json:"limitMs"`

	Measure *Measure `json:"measure,omitempty"` // read a number from stdout
	Tests   *Tests   `json:"tests,omitempty"`   // read which tests failed
	Agent   *Agent   `json:"agent,omitempty"`   // the command is an agent
	// Entry is appended to the ledger before an agent is started: nothing that an agent does is
	// ahead of the checkpoint that it can be undone to (A3).
	Entry *Entry `json:"entry,omitempty"`
	// Judge has the policies judge the desk first: on what violates one nothing is run.
	Judge *Commit `json:"judge,omitempty"`

	// Budget is what is left of the budgets that are watched while an agent works.
	Budget map[loop.Resource]evidence.Decimal `json:"budget,omitempty"`
}

// Tests says what a run of the tests is compared with: the log of an earlier run, "" for none.
type Tests struct {
	Before string `json:"before,omitempty"`
}

// Measure says how the metric is read.
type Measure struct {
	Pattern string `json:"pattern,omitempty"`
}

// Agent is what an agent call is told beyond the state of the loop, which the activity takes
// from the ledger.
type Agent struct {
	Role     string            `json:"role"`
	Phase    string            `json:"phase"`
	Kind     string            `json:"kind"`
	Loop     string            `json:"loop"`
	Env      map[string]string `json:"env,omitempty"`
	Idea     string            `json:"idea,omitempty"`
	Repair   string            `json:"repair,omitempty"`   // why the attempt before was undone
	Evidence string            `json:"evidence,omitempty"` // path of the log that shows it
	Guidance []loop.Note       `json:"guidance,omitempty"`
	// Attempt counts reworks from 1, where it isn't the key's.
	Attempt int `json:"attempt,omitempty"`
	// Proposal is what a reviewer judges.
	Proposal *loop.Proposal `json:"proposal,omitempty"`
}

// Stepped is what came of a step. A verdict is a result; only infrastructure is an error.
type Stepped struct {
	ExitCode    int    `json:"exitCode"`
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timedOut,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	StartError  string `json:"startError,omitempty"` // the command can't be started
	Failure     string `json:"failure,omitempty"`    // an agent says that it failed, whatever its exit code
	ElapsedMs   int64  `json:"elapsedMs"`            // active time, all attempts of the activity
	Leftover    int    `json:"leftover,omitempty"`   // processes that outlived it and were ended
	Denied      string `json:"denied,omitempty"`     // what the role did that it may not: nothing of it is kept
	Violates    bool   `json:"violates,omitempty"`   // what is on the desk violates a policy, so it was not run

	Ledger string `json:"ledger,omitempty"` // the ledger's head after Entry was appended
	Stop   string `json:"stop,omitempty"`   // a loop-stop file is there

	Metric   *evidence.Decimal `json:"metric,omitempty"`
	NoNumber string            `json:"noNumber,omitempty"` // why there is no metric
	Warning  string            `json:"warning,omitempty"`

	Description string     `json:"description,omitempty"`
	Idea        string     `json:"idea,omitempty"`
	GiveUp      string     `json:"giveUp,omitempty"`
	Regenerate  bool       `json:"regenerate,omitempty"` // the fixer asks for another approach
	Plan        *loop.Plan `json:"plan,omitempty"`
	Usage       loop.Usage `json:"usage,omitzero"`
	PromptBytes int64      `json:"promptBytes,omitempty"`
	Session     string     `json:"session,omitempty"` // by which the agent's program knows the call

	// Exhausted is the budget that was crossed while the agent worked, and ended it.
	Exhausted loop.Resource `json:"exhausted,omitempty"`

	Tests   *loop.Tests `json:"tests,omitempty"`
	Opinion *Opinion    `json:"opinion,omitempty"`
	Log     string      `json:"log,omitempty"`    // folder with stdout, stderr, prompt
	Digest  string      `json:"digest,omitempty"` // SHA-256 of stdout
	Tail    string      `json:"tail,omitempty"`   // the last lines, for people
}

// Opinion is a reviewer's answer, as it counts: Decision is "" where it decided nothing.
type Opinion struct {
	Decision string `json:"decision,omitempty"` // APPROVED, REJECTED
	Note     string `json:"note,omitempty"`
	Why      string `json:"why,omitempty"` // why it is no decision
	// Criteria are the acceptance criteria, each with what the reviewer found.
	Criteria []loop.Criterion `json:"criteria,omitempty"`
}

// OK reports whether the command ran and exited 0, and an agent did not fail in its own words.
func (s Stepped) OK() bool {
	return s.ExitCode == 0 && s.Signal == "" && !s.TimedOut && !s.Interrupted && s.StartError == "" && s.Failure == "" && s.Exhausted == ""
}

// Live is what a running step tells with its heartbeats: what it has spent up to now.
type Live struct {
	Usage loop.Usage `json:"usage,omitzero"`
	Tool  string     `json:"tool,omitempty"` // the last that its agent called
}

// Ending says in a few words how the command ended.
func (s Stepped) Ending() string {
	switch {
	case s.Violates:
		return "not run, the change violates a policy"
	case s.StartError != "":
		return "can't be started: " + s.StartError
	case s.Exhausted != "":
		return fmt.Sprintf("ended, as the budget %s is used up", s.Exhausted)
	case s.Interrupted:
		return "interrupted"
	case s.TimedOut:
		return fmt.Sprintf("took longer than it may, ended after %s", time.Duration(s.ElapsedMs)*time.Millisecond)
	case s.Failure != "":
		return s.Failure
	case s.Signal != "":
		return "was ended by " + s.Signal
	case s.ExitCode != 0:
		return fmt.Sprintf("exit %d", s.ExitCode)
	}
	return "ok"
}

// Check asks how a running step is doing.
type Check struct {
	Ref string `json:"ref"`
	Key Key    `json:"key"`
}

// Checked answers it: a step that this host doesn't run has spent what its record says.
type Checked struct {
	Running bool  `json:"running"`
	SpentMs int64 `json:"spentMs"`
}

// Commit takes what the desk differs from Head by. A change that violates a policy is not
// committed; the violations come back instead.
type Commit struct {
	Ref         string    `json:"ref"`
	Ledger      string    `json:"ledger"` // where the contract is
	Head        string    `json:"head"`
	Iteration   int       `json:"iteration"`
	Attempt     int       `json:"attempt"`
	Description string    `json:"description"`
	Time        time.Time `json:"time"`
	// AllowNew is the hash of a change whose new files a person has approved (newFiles: ask). It
	// holds for exactly that change.
	AllowNew string `json:"allowNew,omitempty"`
}

// Committed is the commit, or why there is none.
type Committed struct {
	Commit     string      `json:"commit,omitempty"`
	Tree       string      `json:"tree,omitempty"`
	NoChange   bool        `json:"noChange,omitempty"`
	Files      []string    `json:"files,omitempty"` // git-quoted, capped
	FileCount  int         `json:"fileCount"`
	Area       string      `json:"area,omitempty"`
	Violations []Violation `json:"violations,omitempty"` // capped
	// TotalFiles is how many files the loop has touched, where that was counted anew.
	TotalFiles int `json:"totalFiles,omitempty"`
	// NewFiles need approval first; NewFilesHash, the SHA-256 of the whole change as a diff, is
	// what is approved. There is no commit then.
	NewFiles     []string `json:"newFiles,omitempty"` // git-quoted, capped
	NewFilesHash string   `json:"newFilesHash,omitempty"`
}

// Find asks for the host of a loop; the answer is Found.
type Find struct {
	Loop string `json:"loop"`
}

// Found is the queue of the host that has a loop's store.
type Found struct {
	Queue string `json:"queue"`
}

// Review is a person's word on the proposal of a loop that has ended, for exactly that hash.
type Review struct {
	Loop   string    `json:"loop"`
	Hash   string    `json:"hash"`
	Answer string    `json:"answer"` // approve or reject
	By     string    `json:"by,omitempty"`
	Note   string    `json:"note,omitempty"`
	Time   time.Time `json:"time"`
}

// Reviewed is the proposal afterwards.
type Reviewed struct {
	Loop     string        `json:"loop"`
	Proposal loop.Proposal `json:"proposal"`
}

// Ways of applying a proposal.
const (
	FastForward = "ff"
	Merge       = "merge"
	Squash      = "squash"
	Patch       = "patch"
)

// Ways are the ways of applying a proposal.
var Ways = []string{FastForward, Merge, Squash, Patch}

// Apply brings an approved proposal onto the branch that the loop started from. Time is the same
// in every attempt, so that a retry makes the same commits.
type Apply struct {
	Loop string    `json:"loop"`
	Hash string    `json:"hash"`
	How  string    `json:"how"`
	By   string    `json:"by,omitempty"`
	Time time.Time `json:"time"`
	// Proposal is given by a loop that is still running: its proposal as it has it. It records
	// what comes of it by itself. After a loop's end the ledger has the proposal and the record.
	Proposal *loop.Proposal `json:"proposal,omitempty"`
	// Ledger is where such a loop's ledger stands.
	Ledger string `json:"ledger,omitempty"`
}

// Applied is what came of it. Where the branch had moved nothing was applied, and Moved is the
// proposal that takes its place: with a hash of its own, which nobody has looked at yet.
type Applied struct {
	Loop        string         `json:"loop"`
	Hash        string         `json:"hash"`
	How         string         `json:"how"`
	Branch      string         `json:"branch,omitempty"`
	Commit      string         `json:"commit,omitempty"`
	Already     bool           `json:"already,omitempty"` // the branch had it
	Patch       string         `json:"patch,omitempty"`   // the file, on the loop's host
	Proposal    *loop.Proposal `json:"proposal,omitempty"`
	Moved       *loop.Proposal `json:"moved,omitempty"`
	PushRefused string         `json:"pushRefused,omitempty"`
}

// Violation is a broken rule: which, of which policy, where.
type Violation struct {
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule"`
	Path   string `json:"path"`           // git-quoted, "" for the change as a whole
	Line   int    `json:"line,omitempty"` // 0 where the rule has none
	Detail string `json:"detail,omitempty"`
	Blocks bool   `json:"blocks,omitempty"` // more than a discard: the loop stops for a person
}

// Where is the place of a violation for people: "src/a.go:12", "the change".
func (v Violation) Where() string {
	switch {
	case v.Path == "":
		return "the change"
	case v.Line > 0:
		return fmt.Sprintf("%s:%d", v.Path, v.Line)
	}
	return v.Path
}

// String is the violation in a line: "secrets: src/a.go:12, it looks like a GitHub token".
func (v Violation) String() string { return fmt.Sprintf("%s: %s, %s", v.Rule, v.Where(), v.Detail) }

// Fill completes an event with what only the activity that recorded it could know: the head
// after a revert, the proposal. Activity and workflow both apply the event filled in.
func Fill(e loop.Event, out Settled) loop.Event {
	switch e.Type {
	case loop.ChangeReverted:
		e.Head = out.Head
	case loop.ProposalMade:
		e.Proposal = out.Proposal
	}
	return e
}

// Notify asks to tell one of spec.notify what happened.
type Notify struct {
	Ref    string `json:"ref,omitempty"` // "" where the loop has no place yet
	To     string `json:"to"`
	Notice Notice `json:"notice"`
}

// Notice is what people are told, and what a webhook and a command get as JSON: a gate that opened
// or was not answered in time, or the loop's end.
type Notice struct {
	Loop   string      `json:"loop"`
	Kind   string      `json:"kind"`
	Event  loop.Type   `json:"event"` // gate_opened, gate_escalated, or the event of the end
	Status loop.Status `json:"status"`
	Gate   *NoticeGate `json:"gate"` // null at the end
	How    []How       `json:"how"`  // the ways to answer the gate
	Reason string      `json:"reason"`
	Time   time.Time   `json:"time"`
}

// NoticeGate is what waits.
type NoticeGate struct {
	ID      string        `json:"id"`
	Kind    loop.GateKind `json:"kind"`
	Summary string        `json:"summary"`
	Hash    string        `json:"hash,omitempty"`
	Answers []string      `json:"answers"`
}

// How is one way to answer: the signal or update with its JSON input, and the same as a command.
type How struct {
	Answer  string         `json:"answer"`
	Payload map[string]any `json:"payload"`
	Command string         `json:"command"`
}
