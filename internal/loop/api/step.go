package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// Key identifies a step within its loop for good. Its result is on disk under this key, and a retry returns it.
type Key struct {
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Name      string `json:"name"`
	Sample    int    `json:"sample,omitempty"` // which of several evaluations it is, from 0
	Repeat    int    `json:"repeat,omitempty"` // how often it was repeated after a pause
}

// Step is the common input of all steps: one command or agent runs in one tree under one limit.
type Step struct {
	Ref     string `json:"ref"`
	Key     Key    `json:"key"`
	Head    string `json:"head"` // the commit to which the tree is brought first
	LimitMs int64  `json:"limitMs"`
	// AsIs leaves the desk as it is, without bringing it to Head.
	AsIs bool `json:"asIs,omitempty"`
	// At is a commit to which the judge is brought instead of the head, and that stays on the branch: the reference
	// of a change, the baseline. With Trial it is a candidate.
	At string `json:"at,omitempty"`
	// Clean removes all that an earlier judgement left, even what judge.keep names, so that evaluations begin alike.
	Clean bool `json:"clean,omitempty"`
	// Desk is the desk that the step works on: 0 is the loop's own, any other one that of a candidate.
	Desk int `json:"desk,omitempty"`
	// Trial says that At is a candidate, on no branch: what it writes into caches is discarded.
	Trial bool `json:"trial,omitempty"`
	// Scratch makes the judge anew, and gives the command the user's caches without what the loop wrote there.
	Scratch bool `json:"scratch,omitempty"`
	// Intact makes a command fail that leaves tracked files of the judged commit changed: it has judged other code.
	Intact bool `json:"intact,omitempty"`
}

// Concerns returns the step.
func (s Step) Concerns() (iteration int, subject, name string) {
	return s.Key.Iteration, "step", s.Key.Name
}

// Workspace returns the name of the loop on its host.
func (s Step) Workspace() string { return s.Ref }

// Needs returns the commits that the trees are brought to.
func (s Step) Needs() []string { return []string{s.Head, s.At} }

// Core returns what all steps have in common.
func (s *Step) Core() *Step { return s }

// Asks returns the agent call that the step is, nil for any other step.
func (s *Step) Asks() *Call { return nil }

// TranscriptFile is the name of a transcript in the folder of its step.
const TranscriptFile = "transcript.txt"

// Transcript returns the recorded name of a transcript, with its whole SHA-256; folder is that of its step.
func Transcript(folder, digest string) string {
	return folder + "/" + TranscriptFile + digestMark + digest
}

// TranscriptIn returns file and SHA-256 of a transcript from its recorded name; ok is false for any other name.
func TranscriptIn(name string) (file, digest string, ok bool) {
	file, digest, ok = strings.Cut(name, digestMark)
	return file, digest, ok && strings.HasSuffix(file, "/"+TranscriptFile)
}

// Log returns the recorded name of a step's log, with the beginning of its SHA-256.
func Log(folder, digest string) string { return folder + digestMark + digest }

// LogIn returns the folder of a step from the recorded name of its log; ok is false for any other name.
func LogIn(name string) (folder string, ok bool) {
	folder, _, ok = strings.Cut(name, digestMark)
	return folder, ok && !strings.HasSuffix(folder, "/"+TranscriptFile)
}

// digestMark stands between the name of evidence and its SHA-256.
const digestMark = "@sha256:"

// Outcome is the result of a step. A verdict is a result; only infrastructure causes errors.
type Outcome struct {
	ExitCode    int           `json:"exitCode"`
	Signal      string        `json:"signal,omitempty"`
	TimedOut    bool          `json:"timedOut,omitempty"`
	Interrupted bool          `json:"interrupted,omitempty"`
	StartError  string        `json:"startError,omitempty"` // why the command could not be started
	Failure     string        `json:"failure,omitempty"`    // why it failed, at any exit code
	Exhausted   loop.Resource `json:"exhausted,omitempty"`  // the budget that was used up while it ran, which ended it
	ElapsedMs   int64         `json:"elapsedMs"`            // active time, all attempts of the activity
	Log         string        `json:"log,omitempty"`        // the folder with stdout, stderr and prompt
	Digest      string        `json:"digest,omitempty"`     // the SHA-256 of stdout
	Tail        string        `json:"tail,omitempty"`       // the last lines, for people
	Stop        string        `json:"stop,omitempty"`       // which loop-stop file asks for the end, "" for none
	Warning     string        `json:"warning,omitempty"`
	// Vanished says which tests passed on the unchanged code and no longer do. It is a note: nothing failed.
	Vanished string `json:"vanished,omitempty"`
	Tests    int    `json:"tests,omitempty"` // of a guard: how many passed, if its output says that
	Of       string `json:"of,omitempty"`    // on disk: the commit that the step was run on
	// Tested is what a guard that exits 0 has tested, as far as its output shows it.
	Tested *loop.Tested `json:"tested,omitempty"`
	// Failing are the tests that failed in a guard, as far as its output shows them.
	Failing *Failing `json:"failing,omitempty"`
	// Recalled is when `pawl validate` ran the step, zero if the loop did. It has cost the loop nothing.
	Recalled time.Time `json:"recalled,omitzero"`
	// Leftovers are the files that a command of the spec left in the tree and that git does not ignore. They are set
	// by judgements of the unchanged code, and by checks.
	Leftovers []string `json:"leftovers,omitempty"`
	// Altered are the tracked files of the commit that a judging command left changed, git-quoted and capped. It has
	// failed then, whatever its exit code.
	Altered []string `json:"altered,omitempty"`
	// Empty are the submodules whose folders were empty when a command failed on the unchanged code, git-quoted and capped.
	Empty []string `json:"empty,omitempty"`
	// Unlayered says that a step from scratch ran nothing, because this machine does not keep a loop's caches apart.
	Unlayered bool `json:"unlayered,omitempty"`
	// RateLimit says why an agent's program refused to work.
	RateLimit *task.RateLimit `json:"rateLimit,omitempty"`
	// Class is the result of an agent's call, "" for any other step and for a call that runs again.
	Class result.Class `json:"class,omitempty"`
	// Transcript is the SHA-256 of an agent's transcript, which is in the folder Log as TranscriptFile.
	Transcript string `json:"transcript,omitempty"`
	// Refused has the provider's answer if the class says that it refused.
	Refused *Refused `json:"refused,omitempty"`
}

// RootUnit is a Go package in the repository's root folder, whose path does not show that.
const RootUnit = "."

// Failing are the tests that failed in a run.
type Failing struct {
	Broken    bool     `json:"broken,omitempty"`    // something could not be built or loaded
	Signature string   `json:"signature,omitempty"` // equal for runs that failed in the same way, "" if that is unknown
	Names     []string `json:"names,omitempty"`     // capped
	Units     []string `json:"units,omitempty"`     // the files, packages or classes of all failing tests, each once
}

// Refused is the answer of a provider that refuses to work.
type Refused struct {
	Status int       `json:"status,omitempty"` // the HTTP status
	Said   string    `json:"said,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it works again, zero if unknown
	// Printed says that the program reported success, changed nothing, and printed the refusal as its last words.
	Printed bool `json:"printed,omitempty"`
}

// Core returns what all outcomes have in common.
func (o *Outcome) Core() *Outcome { return o }

// Warn adds a warning for people.
func (o *Outcome) Warn(text string) {
	if text != "" && o.Warning != "" {
		text = o.Warning + "; " + text
	}
	o.Warning = cmp.Or(text, o.Warning)
}

// Said returns the result of an agent's call; for any other step, it has only the outcome.
func (o *Outcome) Said() Called { return Called{Outcome: *o} }

// Cut turns the outcome into that of a step that was interrupted after it had spent the given usage.
func (o *Outcome) Cut(spent loop.Usage) {
	*o = Outcome{Interrupted: true, ElapsedMs: spent.ActiveMs}
}

// OK reports whether the command ran and exited 0, and nothing else says that it failed.
func (o Outcome) OK() bool {
	return o.ExitCode == 0 && o.Signal == "" && !o.TimedOut && !o.Interrupted && o.StartError == "" && o.Failure == "" && o.Exhausted == ""
}

// Missing reports whether a shell could not find or start a program.
func (o Outcome) Missing() bool { return o.ExitCode == 126 || o.ExitCode == 127 }

// Ending says in a few words how the step ended, for people.
func (o Outcome) Ending() string {
	if len(o.Empty) == 0 {
		return o.ending()
	}
	return o.ending() + "; submodules are empty there: " + strings.Join(o.Empty, ", ")
}

func (o Outcome) ending() string {
	switch {
	case o.StartError != "":
		return "can't be started: " + o.StartError
	case o.Exhausted != "":
		return fmt.Sprintf("ended because the budget %s is used up", o.Exhausted)
	case o.Interrupted:
		return "interrupted"
	case o.TimedOut:
		return fmt.Sprintf("took too long and was ended after %s", time.Duration(o.ElapsedMs)*time.Millisecond)
	case o.Failure != "":
		return o.Failure
	case o.Signal != "":
		return "was ended by " + o.Signal
	case o.ExitCode != 0:
		return fmt.Sprintf("exit %d", o.ExitCode)
	}
	return "ok"
}

// Check runs check.command on the desk.
type Check struct {
	Step
	Command string `json:"command"`
	// Ledger is the entry with the contract. With AsIs, a desk that violates its policies is not checked.
	Ledger string `json:"ledger,omitempty"`
	// Leftovers are files that the spec's own commands leave in a tree. They are not part of any change.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Checked is the result of a check. A check that did not run because the desk violates a policy has failed.
type Checked struct {
	Outcome
	Violates bool `json:"violates,omitempty"`
}

// Verify runs verify.command in the judge and reads the metric from its stdout.
type Verify struct {
	Step
	Command string `json:"command"`
	Pattern string `json:"pattern,omitempty"`
	// Names are the names of the further metrics to read.
	Names []string `json:"names,omitempty"`
	// Form is how the unchanged code showed its numbers, nil if they are not measured yet.
	Form *metric.Form `json:"form,omitempty"`
	// Unchanged says that the code is that which the changes will be compared with.
	Unchanged bool `json:"unchanged,omitempty"`
	// Alone makes sure that no other loop of the host measures at the same time.
	Alone bool `json:"alone,omitempty"`
}

// Measured is the result; NoNumber says why the command succeeded without a metric.
type Measured struct {
	Outcome
	Metric   *metric.Decimal           `json:"metric,omitempty"`
	NoNumber string                    `json:"noNumber,omitempty"`
	Metrics  map[string]metric.Decimal `json:"metrics,omitempty"` // the further ones
	Form     *metric.Form              `json:"form,omitempty"`
}

// Guard runs guard.command in the judge. Its result is an Outcome.
type Guard struct {
	Step
	Command string `json:"command"`
	// Tests is how many tests must pass at least, if the output says how many passed.
	Tests   int      `json:"tests,omitempty"`
	Reports []string `json:"reports,omitempty"` // globs of the reports that it writes
	// Known is what the guard has tested on the unchanged code, from rules version 6 on. It may not name more failed
	// tests than there, whatever its exit code.
	Known *loop.Tested `json:"known,omitempty"`
}

// Test runs test.command in the judge.
type Test struct {
	Step
	Command string   `json:"command"`
	Before  string   `json:"before,omitempty"`  // the log of the run to compare this one with
	Known   string   `json:"known,omitempty"`   // the log of the run on the unchanged code, "" for none
	Fewer   bool     `json:"fewer,omitempty"`   // fewer tests may pass than on the unchanged code
	Strict  bool     `json:"strict,omitempty"`  // it may not name more failures than there, whatever its exit code
	Reports []string `json:"reports,omitempty"` // globs of the reports that it writes
}

// Tested is the result; Tests is nil if the run was interrupted.
type Tested struct {
	Outcome
	Tests *loop.Tests `json:"tests,omitempty"`
}

// Progress asks how much active time a running step has used.
type Progress struct {
	Ref string `json:"ref"`
	Key Key    `json:"key"`
}

// Concerns returns the step.
func (p Progress) Concerns() (iteration int, subject, name string) {
	return p.Key.Iteration, "step", p.Key.Name
}

// Spent is the answer. For a step that does not run on this host, it has what the step's record says.
type Spent struct {
	Running bool  `json:"running"`
	Ms      int64 `json:"ms"`
}

// Canary breaks the code in scope, in the judge, and runs the commands that should guard it, except empty ones. It
// measures the broken code too if it knows the metric of the unchanged code.
type Canary struct {
	Step
	Spec  spec.Spec `json:"spec"`
	Guard string    `json:"guard,omitempty"`
	Test  string    `json:"test,omitempty"`
	// Signature is that of the tests that fail on the unchanged code, "" if none fail.
	Signature string `json:"signature,omitempty"`
	// Hollow asks for a second kind of error: functions that only fail.
	Hollow bool `json:"hollow,omitempty"`
	// Metric is that of the unchanged code, from rules version 6 on, and Form how verify showed it.
	Metric *metric.Decimal `json:"metric,omitempty"`
	Form   *metric.Form    `json:"form,omitempty"`
}

// Guards reports whether there is a command that has to notice broken code.
func (c Canary) Guards() bool { return c.Guard != "" || c.Test != "" }

// Canaried is the result. Its outcome is that of the last command.
type Canaried struct {
	Outcome
	Files   int      `json:"files,omitempty"`   // how many were broken, 0 if no code in scope can be broken
	Broken  []string `json:"broken,omitempty"`  // the names of the broken files, git-quoted, capped
	Seen    bool     `json:"seen,omitempty"`    // a command noticed a syntax error in these files
	Emptied int      `json:"emptied,omitempty"` // how many files then got functions that only fail
	Hollow  bool     `json:"hollow,omitempty"`  // no command noticed that their functions only fail
	Instead []string `json:"instead,omitempty"` // what the commands use instead, as far as that shows
	Unmoved bool     `json:"unmoved,omitempty"` // verify succeeds with the metric of the unchanged code
}

// Runs reports whether a command noticed more than a compiler does: that functions only fail.
func (c Canaried) Runs() bool { return c.Seen && c.Emptied > 0 && !c.Hollow && !c.Interrupted }

// Blind reports whether there was code to break, and no command noticed.
func (c Canaried) Blind() bool { return c.Files > 0 && !c.Seen && !c.Interrupted }
