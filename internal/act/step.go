package act

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/outcome"
	"pawl/internal/task"
)

// Key names a step for good within its loop: its result is kept on disk under it, so that a retry
// returns it.
type Key struct {
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Name      string `json:"name"`
	Sample    int    `json:"sample,omitempty"` // which evaluation it is of several, from 0
	Repeat    int    `json:"repeat,omitempty"` // how often a pause repeated it
}

// Step is what every step is given: one thing runs in one tree under one limit.
type Step struct {
	Ref     string `json:"ref"`
	Key     Key    `json:"key"`
	Head    string `json:"head"` // the commit that the tree is brought to first
	LimitMs int64  `json:"limitMs"`
	// AsIs takes the desk as it was left, without bringing it to Head.
	AsIs bool `json:"asIs,omitempty"`
	// At is a commit that stays on the branch, to which the judge is brought in the place of the head: the
	// reference of a change, the baseline.
	At string `json:"at,omitempty"`
	// Clean lets nothing of an earlier judgement survive, not even what judge.keep names: evaluations that are
	// compared begin alike.
	Clean bool `json:"clean,omitempty"`
	// Desk is the desk that the step works on: 0 is the loop's own, any other one that of a candidate.
	Desk int `json:"desk,omitempty"`
	// Trial says that At is a candidate, on no branch: what it leaves in caches is thrown away.
	Trial bool `json:"trial,omitempty"`
}

// Concerns is the step.
func (s Step) Concerns() (iteration int, what, name string) {
	return s.Key.Iteration, "step", s.Key.Name
}

// Workspace is the name of the loop on its host.
func (s Step) Workspace() string { return s.Ref }

// Core returns what all steps have in common.
func (s *Step) Core() *Step { return s }

// Asks returns the call of an agent that the step is, nil for any other.
func (s *Step) Asks() *Call { return nil }

// TranscriptFile is the name of a transcript in the folder of its step.
const TranscriptFile = "transcript.txt"

// Transcript names a transcript as it is recorded, with the whole SHA-256; the folder is that of its step.
func Transcript(folder, digest string) string {
	return folder + "/" + TranscriptFile + "@sha256:" + digest
}

// TranscriptIn returns the file and the SHA-256 of the transcript that a recorded name stands for; ok is false for the
// name of something else.
func TranscriptIn(name string) (file, digest string, ok bool) {
	file, digest, ok = strings.Cut(name, "@sha256:")
	return file, digest, ok && strings.HasSuffix(file, "/"+TranscriptFile)
}

// Outcome is what came of a step. A verdict is a result; only infrastructure is an error.
type Outcome struct {
	ExitCode    int           `json:"exitCode"`
	Signal      string        `json:"signal,omitempty"`
	TimedOut    bool          `json:"timedOut,omitempty"`
	Interrupted bool          `json:"interrupted,omitempty"`
	StartError  string        `json:"startError,omitempty"` // why the command can't be started
	Failure     string        `json:"failure,omitempty"`    // why it failed, whatever its exit code: an agent says so, or it was not run
	Exhausted   loop.Resource `json:"exhausted,omitempty"`  // the budget that was used up while it ran, and ended it
	ElapsedMs   int64         `json:"elapsedMs"`            // active time, all attempts of the activity
	Log         string        `json:"log,omitempty"`        // the folder with stdout, stderr and prompt
	Digest      string        `json:"digest,omitempty"`     // the SHA-256 of stdout
	Tail        string        `json:"tail,omitempty"`       // the last lines, for people
	Stop        string        `json:"stop,omitempty"`       // a loop-stop file is there
	Warning     string        `json:"warning,omitempty"`
	Tests       int           `json:"tests,omitempty"` // of a guard: how many passed, as far as its output tells
	Of          string        `json:"of,omitempty"`    // on disk: the commit that the step was run on
	// Leftovers are what a command of the spec has left in the tree that git does not ignore: of a judgement on
	// the unchanged code, and of a check.
	Leftovers []string `json:"leftovers,omitempty"`
	// RateLimit is why an agent's program refused to work.
	RateLimit *task.RateLimit `json:"rateLimit,omitempty"`
	// Class is what came of an agent's call, "" of any other step, and where the call runs again.
	Class outcome.Class `json:"class,omitempty"`
	// Transcript is the SHA-256 of the transcript of an agent's call, which is in the folder Log as TranscriptFile.
	Transcript string `json:"transcript,omitempty"`
	// Refused says what its provider answered instead of work, where that is the class.
	Refused *Refused `json:"refused,omitempty"`
}

// Refused is what a provider answered instead of work.
type Refused struct {
	Status int       `json:"status,omitempty"` // of HTTP
	Said   string    `json:"said,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it works again, zero where nobody knows
}

// Core returns what all outcomes have in common.
func (o *Outcome) Core() *Outcome { return o }

// Warn adds something that people should know.
func (o *Outcome) Warn(text string) {
	if text != "" && o.Warning != "" {
		text = o.Warning + "; " + text
	}
	o.Warning = cmp.Or(text, o.Warning)
}

// Said returns what came of an agent's call, of any other step its outcome alone.
func (o *Outcome) Said() Called { return Called{Outcome: *o} }

// Cut makes the outcome that of a step that was interrupted, and had spent that.
func (o *Outcome) Cut(spent loop.Usage) {
	*o = Outcome{Interrupted: true, ElapsedMs: spent.ActiveMs}
}

// OK reports whether the command ran and exited 0, and nothing else says that it failed.
func (o Outcome) OK() bool {
	return o.ExitCode == 0 && o.Signal == "" && !o.TimedOut && !o.Interrupted && o.StartError == "" && o.Failure == "" && o.Exhausted == ""
}

// Ending says in a few words how the step ended.
func (o Outcome) Ending() string {
	switch {
	case o.StartError != "":
		return "can't be started: " + o.StartError
	case o.Exhausted != "":
		return fmt.Sprintf("ended, as the budget %s is used up", o.Exhausted)
	case o.Interrupted:
		return "interrupted"
	case o.TimedOut:
		return fmt.Sprintf("took longer than it may, ended after %s", time.Duration(o.ElapsedMs)*time.Millisecond)
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
	// Ledger is where the contract is. Its policies judge first what is checked AsIs, and what violates
	// one is not checked.
	Ledger string `json:"ledger,omitempty"`
	// Leftovers are what the spec's own commands leave in a tree: they count to no change.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Checked is what came of a check. One that was not run, since the desk violates a policy, has failed.
type Checked struct {
	Outcome
	Violates bool `json:"violates,omitempty"`
}

// Verify runs verify.command in the judge and reads the metric from its stdout.
type Verify struct {
	Step
	Command string `json:"command"`
	Pattern string `json:"pattern,omitempty"`
	// Names are the further metrics to read.
	Names []string `json:"names,omitempty"`
	// Alone lets no other loop of the host measure meanwhile.
	Alone bool `json:"alone,omitempty"`
}

// Measured is what came of it; NoNumber says why there is no metric where the command succeeded.
type Measured struct {
	Outcome
	Metric   *evidence.Decimal           `json:"metric,omitempty"`
	NoNumber string                      `json:"noNumber,omitempty"`
	Metrics  map[string]evidence.Decimal `json:"metrics,omitempty"` // the further ones
}

// Guard runs guard.command in the judge. What comes of it is an Outcome.
type Guard struct {
	Step
	Command string `json:"command"`
	// Tests is how many tests have to pass at least, as far as the output tells.
	Tests   int      `json:"tests,omitempty"`
	Reports []string `json:"reports,omitempty"` // globs of the JUnit XML files that it writes
}

// Test runs test.command in the judge.
type Test struct {
	Step
	Command string   `json:"command"`
	Before  string   `json:"before,omitempty"`  // the log of the run that this one is compared with
	Known   string   `json:"known,omitempty"`   // the log of the run on the unchanged code, "" where there was none
	Fewer   bool     `json:"fewer,omitempty"`   // fewer tests may pass than on the unchanged code
	Reports []string `json:"reports,omitempty"` // globs of the JUnit XML files that it writes
}

// Tested is what came of it; Tests is nil where the run was interrupted.
type Tested struct {
	Outcome
	Tests *loop.Tests `json:"tests,omitempty"`
}

// Progress asks how a running step is doing.
type Progress struct {
	Ref string `json:"ref"`
	Key Key    `json:"key"`
}

// Concerns is the step.
func (p Progress) Concerns() (iteration int, what, name string) {
	return p.Key.Iteration, "step", p.Key.Name
}

// Spent answers it: a step that does not run on this host has spent what its record says.
type Spent struct {
	Running bool  `json:"running"`
	Ms      int64 `json:"ms"`
}
