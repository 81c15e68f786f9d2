package loop

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/task"
)

// Apply returns the state after the event. A state changes in no other way. The workflow and the ledger both apply
// every event, so they always agree. An event without an effect changes only the sequence number; it is a message for
// people.
func (s State) Apply(e Event) State {
	s.Seq = e.Seq
	if apply := effects[e.Type]; apply != nil {
		apply(&s, e)
	}
	if e.Judgement != nil {
		s.Leftovers = Union(s.Leftovers, e.Judgement.Leftovers)
	}
	s.Budget = s.Clocked(e.Time)
	return s
}

// Fold applies events in order and returns the last state.
func Fold[S interface{ Apply(Event) S }](s S, events []Event) S {
	for _, e := range events {
		s = s.Apply(e)
	}
	return s
}

// effects has what each type of event does to a state. Older states share its slices, so none is changed in place.
var effects = map[Type]func(*State, Event){
	LoopOpened: func(s *State, e Event) {
		o := e.Opened
		s.Loop, s.Kind, s.Goal, s.Status = e.Loop, o.Kind, o.Goal, Running
		s.Repo, s.Branch, s.Base, s.Begun, s.Head = o.Repo, o.Branch, o.Base, o.Begun, o.Base
		s.Desk, s.Host, s.Steward = o.Desk, o.Host, o.Steward
		s.Budget, s.StartedAt = NewBudget(o.Limits), e.Time
		s.Iterations, s.Kept, s.ChangedFiles = []Iteration{}, []Kept{}, []string{}
		if k, err := kind.Of(o.Kind); err == nil && k.Course {
			s.Course = &Course{}
		}
		if o.Backtrack {
			s.Backtrack = &Backtrack{}
		}
	},
	LoopResumed: func(s *State, e Event) {
		s.Status, s.Gate, s.PauseReason, s.HaltRequested = Running, nil, "", ""
		s.awake()
		s.withdrawPause()
		s.startClock(e.Time)
		s.Head, s.Desk, s.Host = e.Head, e.Opened.Desk, e.Opened.Host
		s.Phase = e.Phase
		s.lostDesks(true)
	},
	LoopMoved: func(s *State, e Event) {
		s.lostDesks(false)
		if e.Head != s.Head {
			s.LastChange = nil // the last change was lost
		}
		s.Head, s.Desk, s.Host = e.Head, e.Opened.Desk, e.Opened.Host
		if e.FailureReason == "" {
			return
		}
		s.Phase = e.Phase
		s.awake()
		if g := s.Gate; g != nil { // the gate's subject is lost, but a person still wants the loop to wait
			s.PauseRequested = s.PauseRequested || g.Pauses()
			s.Gate, s.Status, s.PauseReason = nil, Running, ""
			s.startClock(e.Time)
		}
	},
	ContractDrawn: func(s *State, e Event) { s.Contract = e.Contract },
	ContractAmended: func(s *State, e Event) {
		s.Contract, s.Budget, s.NoNumbers = e.Contract, s.Budget.WithLimits(e.Limits), 0
		s.retry(e.Amendment)
	},
	BaselineMeasured: func(s *State, e Event) {
		s.Baseline, s.Best, s.GuardTests = e.Metric, e.Metric, e.Tests
		s.GuardRuns, s.Tested, s.MeasuredAt = e.Runs, e.Tested, e.MeasuredAt
		s.Judging, s.Noise, s.Sampler, s.BaselineMetrics, s.Form = e.Judging, e.Note, e.Sampler, e.Metrics, e.Form
		if s.EvaluationMs = 0; e.Sampler != nil && e.Judgement != nil {
			s.EvaluationMs = e.Judgement.DurationMs
		}
		s.measuredAnew()
		s.Analysis.Add(metric.Trial{Kept: true, Metric: e.Metric, Description: "baseline"})
	},
	AutonomyStarted: func(s *State, e Event) {
		if s.Contract != nil {
			s.Contract = new(*s.Contract)
			s.Contract.ApprovedBy, s.Contract.ApprovedAt = e.By, new(e.Time)
		}
	},
	PlanMade: func(s *State, e Event) { s.Plan, s.Contract = e.Plan, e.Contract },
	PhaseEntered: func(s *State, e Event) {
		s.Phase, s.Attempt = e.Phase, e.Attempt
		s.count(func(c Course) Course { return c.Enter(e.Phase) })
	},
	IterationStarted: func(s *State, e Event) {
		s.Iteration, s.Attempt, s.IterationStart, s.IterationSteps = e.Iteration, 1, e.Time, 0
		s.Budget = s.Budget.Spend(Iterations, Count(1))
		s.count(func(c Course) Course { return c.Begin(e.Iteration) })
	},
	StepEnded: applyStep,
	IdeaQueued: func(s *State, e Event) {
		s.Ideas = list.Last(append(slices.Clip(s.Ideas), e.Idea), KeepIdeas)
	},
	IdeaTaken: func(s *State, e Event) {
		if len(s.Ideas) > 0 {
			s.Ideas = s.Ideas[1:]
		}
	},
	ChangeCommitted: func(s *State, e Event) {
		s.LastChange = &Change{Commit: e.Commit, Parent: s.Head}
		s.Head = e.Head
		for _, f := range e.Files {
			if !slices.Contains(s.ChangedFiles, f) {
				s.ChangedFilesCount++
			}
		}
		s.ChangedFiles = Union(s.ChangedFiles, e.Files)
		if e.TotalFiles > 0 { // counted by git: the lists are capped and can't tell
			s.ChangedFilesCount = e.TotalFiles
		}
	},
	ChangeJudged: func(s *State, e Event) {
		switch e.Step {
		case "verify":
			s.LastVerify = e.Judgement
			s.NoNumbers = inARow(s.NoNumbers, e.Judgement.Reason == reason.NoNumber)
		case "guard", "policy", "check":
			s.LastGuard = e.Judgement
		case "test":
			s.LastTest = e.Judgement
			if t := e.Judgement.Tests; !e.Judgement.Passed && t != nil {
				s.count(func(c Course) Course { return c.Failed(t.Signature, t.Worse) })
			}
		}
	},
	SampleTaken: func(s *State, e Event) {
		s.sample(func(sampler *stats.Sampler) {
			switch e.Of {
			case stats.MeasureCandidate:
				sampler.AddCandidate(*e.Metric)
			case stats.MeasureReference, stats.Head:
				sampler.AddReference(*e.Metric)
			}
		})
		if ofHead := e.Of == stats.MeasureReference && s.Sampler != nil && s.Sampler.Missing() == 0; ofHead || e.Of == stats.Head && s.Sampler != nil {
			s.Best, s.Selected = new(s.Sampler.Best()), nil
			s.measured(*s.Best)
		}
	},
	ClaimMade:         func(s *State, e Event) { s.Claim = e.Claim },
	JudgedFromScratch: func(s *State, e Event) { s.Scratch = e.Scratch },
	TestsKnown: func(s *State, e Event) {
		s.KnownTests, s.Tested, s.MeasuredAt = e.Judgement, e.Tested, e.MeasuredAt
	},
	GuardKnown:     func(s *State, e Event) { s.Tested, s.MeasuredAt = e.Tested, e.MeasuredAt },
	ChangeAccepted: func(s *State, e Event) { s.accept() },
	ChangeReverted: func(s *State, e Event) {
		s.undone(e.Commit)
		s.Head = e.Head
		s.sample((*stats.Sampler).Settle)
	},
	CandidateBegun: candidate, CandidateMade: candidate,
	CandidateJudged: func(s *State, e Event) {
		candidate(s, e)
		s.sample((*stats.Sampler).Settle)
	},
	CandidateTaken:   func(s *State, e Event) { s.take(*e.Candidate) },
	CandidateDropped: func(s *State, e Event) { s.drop(e.Candidate.N) },
	CandidateConflicted: func(s *State, e Event) {
		s.Ideas = list.Last(append(slices.Clip(s.Ideas), e.Idea), KeepIdeas)
	},
	BranchBegun: func(s *State, e Event) {
		s.Selected = nil
		s.branch(e)
		s.sample((*stats.Sampler).HeadChanged)
	},
	BranchCompared: func(s *State, e Event) {
		s.backtrack(func(b *Backtrack) { b.Compared++; b.Branch.Compared = s.BestIteration })
	},
	BranchKept: func(s *State, e Event) {
		s.backtrack(func(b *Backtrack) { b.Branch, b.Since = nil, s.DiscardsInARow })
		s.Best, s.Selected = e.Metric, nil
		s.sample((*stats.Sampler).HeadChanged) // the comparison has selected it
	},
	BranchGivenUp: func(s *State, e Event) {
		s.Selected = nil
		s.giveUpBranch(e)
		s.sample((*stats.Sampler).HeadChanged)
	},
	RepairAttempted: func(s *State, e Event) {
		s.Taken = nil // another attempt is another change
		s.sample((*stats.Sampler).Settle)
		s.Attempt = e.Attempt
		s.count(Course.Rework)
	},
	IterationSucceeded: func(s *State, e Event) {
		base := s.BestIteration
		if s.DiscardsInARow = 0; e.Metric != nil {
			if s.BestIteration = e.Record.N; s.Sampler == nil { // else fresh samples decide
				s.Best = e.Metric
			} else {
				s.Selected = e.Metric
			}
		}
		s.sample(func(sampler *stats.Sampler) {
			sampler.Settle()
			sampler.HeadChanged()
		})
		s.accept()
		s.KeptCount++
		if e.Record.Suspicious {
			s.Suspicious++
		}
		s.Kept = list.Last(append(slices.Clip(s.Kept), keptOf(*e.Record)), KeepCommits)
		s.keptOn(base, e)
		s.AgentFailures, s.QuickNothings = 0, 0
		s.record(e)
	},
	IterationFailed: func(s *State, e Event) {
		s.sample((*stats.Sampler).Settle)
		s.Discarded++
		if e.FailureReason == reason.Suspicious {
			r := *e.Record
			s.SetAside = list.Last(append(slices.Clip(s.SetAside), SetAside{r.N, r.Commit, r.Description, r.Metric}), KeepSetAside)
		} else {
			s.DiscardsInARow++
		}
		s.AgentFailures = inARow(s.AgentFailures, e.FailureReason == reason.AgentFailed)
		s.QuickNothings = inARow(s.QuickNothings, e.FailureReason == reason.NoChange && s.QuickCall)
		if e.Tree != "" {
			s.Tried = list.Last(append(slices.Clip(s.Tried), Tried{e.Tree, e.Metric, e.Record.N}), KeepTried)
		}
		s.record(e)
	},
	StrategyShifted: func(s *State, e Event) { s.Strategy++ },
	GateOpened: func(s *State, e Event) {
		s.Gate, s.Answered = e.Gate, nil
		switch e.Gate.Kind {
		case GatePause, GateBreakpoint:
			s.Status = Paused
		case GateGuard:
			s.Status = Blocked
		default:
			s.Status = Waiting
		}
		s.PauseReason = e.Gate.Summary
	},
	GateEscalated: func(s *State, e Event) {
		if s.Gate != nil {
			s.Gate = new(*s.Gate)
			s.Gate.Escalated++
		}
	},
	GateClosed: func(s *State, e Event) {
		s.Gate, s.Answered, s.Status, s.PauseReason = nil, e.Answer, Running, ""
		if given := *e.Answer; given.Hash != "" { // another answer approves nothing
			given.Amendment, given.Note = nil, ""
			s.Given = list.Last(append(slices.Clip(s.Given), given), KeepAnswers)
		}
		if e.Gate.Kind == GateQuestion && e.Answer.Message == MessageAnswer && !s.Underway() {
			s.NoNumbers, s.QuickNothings = 0, 0
		}
		if e.Gate.Kind == GatePause && s.Steward != "" && e.Answer.By == StewardName(s.Steward) { // the steward ends the sleep
			s.wake(e.Time)
		}
		s.asleep()
	},
	AgentReplaced: func(s *State, e Event) {
		refusing := map[string]time.Time{}
		maps.Copy(refusing, s.Refusing)
		refusing[e.Agent] = e.Until
		s.Refusing = refusing
	},
	SleepBegun: func(s *State, e Event) {
		if s.Sleep = e.Sleep; e.Sleep.Class == result.RateLimited {
			s.RateLimit = &task.RateLimit{Until: e.Sleep.Until, Said: e.Sleep.Reason}
		}
		s.asleep()
	},
	SleepEnded: func(s *State, e Event) { s.awake() },
	AutonomyPaused: func(s *State, e Event) {
		switch {
		case GateKind(e.Reason) == GatePause:
			s.PauseRequested, s.PauseAt = false, PauseNow
			s.stopClock(e.By, e.Time)
		case s.PauseAt != PauseIteration: // a pause before the next iteration stays requested
			s.withdrawPause()
		}
	},
	AutonomyResumed: func(s *State, e Event) {
		s.startClock(e.Time)
		if !s.PauseRequested {
			s.withdrawPause()
		}
	},
	MessageReceived: func(s *State, e Event) {
		switch e.Message {
		case MessagePause:
			s.PauseRequested, s.PauseAt, s.PausedBy = true, e.How, e.By
		case MessageContinue:
			s.withdrawPause()
			s.wake(e.Time) // a person may end the sleep earlier
		case MessageHalt, MessageSetMode:
			s.HaltRequested = cmp.Or(s.HaltRequested, e.Reason, "halted")
		case MessageSteer:
			s.Guidance = list.Last(append(slices.Clip(s.Guidance), Note{e.Seq, e.By, e.Note}), KeepNotes)
		}
	},
	ProposalMade: func(s *State, e Event) {
		s.Proposal = e.Proposal
		if e.Head != "" && e.Proposal != nil { // on top of the base as it is now
			s.Head, s.Moved = e.Head, e.Proposal.Base
		}
	},
	ProposalReviewed: func(s *State, e Event) {
		if e.Reason == "" { // no decision: the reviewer is asked again
			s.count(Course.Undecided)
		}
	},
	ProposalApproved: proposal, ProposalRejected: proposal, ProposalApplied: proposal,
	AutonomyCompleted: end, AutonomyHalted: end, LoopFailed: end,
}

// asleep sets the status of a loop that sleeps and waits for nobody.
func (s *State) asleep() {
	if s.Sleep != nil && s.Gate == nil {
		s.Status, s.PauseReason = Sleeping, s.Sleep.String()
	}
}

// wake brings the end of a sleep forward to now.
func (s *State) wake(now time.Time) {
	if s.Sleep != nil && now.Before(s.Sleep.Until) {
		s.Sleep = new(*s.Sleep)
		s.Sleep.Until = now
	}
}

// awake ends a sleep.
func (s *State) awake() {
	if s.Sleep == nil {
		return
	}
	s.Sleep, s.RateLimit = nil, nil
	if s.Status == Sleeping {
		s.Status, s.PauseReason = Running, ""
	}
}

func (s *State) withdrawPause() { s.PauseRequested, s.PauseAt, s.PausedBy = false, PauseNow, "" }

// sample changes the sampler of a loop that has one. Older states keep theirs.
func (s *State) sample(do func(*stats.Sampler)) {
	if s.Sampler != nil {
		s.Sampler = new(*s.Sampler)
		do(s.Sampler)
	}
}

// inARow returns how often something has happened in a row, if it has happened once more or not.
func inARow(n int, counts bool) int {
	if counts {
		return n + 1
	}
	return 0
}

// accept records that the last change stays on the branch.
func (s *State) accept() {
	if s.LastChange != nil {
		s.LastChange = new(*s.LastChange)
		s.LastChange.Accepted = true
	}
}

// count changes the course of an iteration. A kind that counts nothing within an iteration has no course.
func (s *State) count(step func(Course) Course) {
	if s.Course != nil {
		c := step(*s.Course)
		s.Course, s.FixAttempts = &c, c.Fixes
	}
}

// quickCallMs is the time within which no agent reads a task, let alone works on it.
const quickCallMs = 1000

// applyStep adds what a step cost. Guidance is for one agent call and is removed after it. Guidance that came during
// the call stays, and so does all guidance for a call that will be repeated.
func applyStep(s *State, e Event) {
	if class := result.Class(e.Outcome); class != "" && !class.Refused() {
		if _, refused := s.Refusing[e.Agent]; refused {
			s.Refusing = maps.Clone(s.Refusing)
			delete(s.Refusing, e.Agent)
		}
		if e.Vendor != "" {
			s.Writers = Union(s.Writers, []string{e.Vendor})
		}
	}
	u := e.Usage
	if u == nil {
		return
	}
	*s = s.Spending(*u)
	s.IterationSteps += int(u.AgentCalls)
	if u.AgentCalls > 0 {
		s.RateLimit = e.RateLimit
		if e.Role == spec.RoleWriter {
			s.QuickCall = u.ActiveMs < quickCallMs
		}
	}
	if e.Told > 0 {
		s.Guidance = slices.DeleteFunc(slices.Clone(s.Guidance), func(n Note) bool { return n.Seq <= e.Told })
	}
}

// keptOf returns the commit of a kept iteration.
func keptOf(r Iteration) Kept {
	return Kept{Iteration: r.N, Commit: r.Commit, Description: r.Description, Suspicious: r.Suspicious, Flaky: len(r.Flaky) > 0, Vanished: r.Vanished}
}

// record appends a finished iteration and updates the analysis.
func (s *State) record(e Event) {
	r := *e.Record
	if s.Taken = nil; r.Kept || len(s.Candidates) == 0 {
		s.Alike = ""
	}
	s.Iterations = list.Last(append(slices.Clip(s.Iterations), r), KeepIterations)
	s.Analysis.Add(metric.Trial{
		N: r.N, Area: e.Area, Files: r.Files, Kept: r.Kept, Delta: r.Delta, Metric: e.Metric,
		Reason: r.Reason, Description: r.Description, Idea: e.Idea,
	}) // Add makes new lists, so older states keep theirs
}

// proposal sets the proposal after a review or an application.
func proposal(s *State, e Event) { s.Proposal = e.Proposal }

func end(s *State, e Event) {
	s.Status, s.ExitStatus, s.ErrorCode, s.Cause, s.Recovery, s.Reason = e.Status, e.ExitStatus, e.ErrorCode, e.Cause, e.Recovery, e.Reason
	s.Gate, s.PauseReason, s.Sleep = nil, "", nil
}

// Union returns the files of both lists, each once, at most KeepFiles.
func Union(files, added []string) []string {
	for _, f := range added {
		if !slices.Contains(files, f) && len(files) < KeepFiles {
			files = append(slices.Clip(files), f)
		}
	}
	return files
}
