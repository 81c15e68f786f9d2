package render

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
)

// Event renders an event of a loop as a line, and says whether it is of note. Other events are only for `log --all`.
func (s Style) Event(k kind.Kind, e loop.Event) (line string, ofNote bool) {
	text, color, ofNote := s.describe(e)
	if e.Record != nil {
		text, color, ofNote = finished(k, *e.Record)
	}
	place := "    "
	if e.Iteration > 0 {
		place = padLeft(itoa(e.Iteration), 4)
	}
	line = s.Dim(e.Time.In(s.zone()).Format(time.DateTime)) + "  " + place + "  " + s.paint(color, text)
	return s.Hang(line, 27), ofNote // below the text
}

// Note renders an event as a line under a loop's iterations. The end, gates and iterations themselves have other forms.
func (s Style) Note(e loop.Event) (line string, ofNote bool) {
	switch e.Type {
	case loop.IterationSucceeded, loop.IterationFailed, loop.BaselineMeasured, loop.GateOpened,
		loop.ContractDrawn, loop.ProposalMade, loop.AutonomyCompleted, loop.AutonomyHalted, loop.LoopFailed:
		return "", false
	}
	if approvesContract(e) { // the loop begins, and that line says by whom
		return "", false
	}
	text, color, ofNote := s.describe(e)
	if e.Type == loop.ProposalReviewed {
		return "      " + strings.Join(s.Review(e), "\n        "), ofNote
	}
	return s.Hang("      "+s.paint(cmp.Or(color, dim), text), 8), ofNote
}

// approvesContract reports whether an event closes the gate of the contract with its approval.
func approvesContract(e loop.Event) bool {
	if e.Type != loop.GateClosed || e.Gate == nil || e.Answer == nil {
		return false
	}
	return e.Gate.Kind == loop.GateContract && e.Answer.Message == loop.MessageApprove
}

// describe returns what happened.
func (s Style) describe(e loop.Event) (text, color string, ofNote bool) {
	switch e.Type {
	case loop.LoopOpened:
		if e.Opened != nil {
			return "opened: branch " + Clean(branchName(e.Opened.Branch)) + " from " + Short(e.Opened.Base), "", true
		}
		return "opened", "", true
	case loop.LoopResumed:
		return "resumed from its ledger at " + Short(e.Head), "", true
	case loop.LoopMoved:
		if e.Opened != nil {
			return "moved to the host " + Clean(e.Opened.Host) + ", at " + Short(e.Head) + note(e.Reason), "", true
		}
	case loop.ContractDrawn:
		if e.Contract != nil {
			return "contract " + digest(e.Contract.Hash) + ", " + sealCount(e.Contract.Sealed), "", true
		}
	case loop.ContractAmended:
		text := "contract amended" + by(e) + note(string(e.Amendment))
		if e.Contract != nil {
			text += ", now " + digest(e.Contract.Hash)
		}
		return text + note(e.Note), "", true
	case loop.BaselineMeasured:
		return "baseline " + number(e.Metric) + Around(", measured by pawl validate ", Ago(e.MeasuredAt, e.Time), "") + note(e.Note), "", true
	case loop.SampleTaken:
		return "evaluated the " + Clean(e.Of) + note(number(e.Metric)), "", false
	case loop.ClaimMade:
		if e.Claim != nil {
			return "claim: " + strings.Join(claimed(*e.Claim), "; "), "", measuredAnew(*e.Claim)
		}
	case loop.JudgedFromScratch:
		if v := e.Scratch; v != nil {
			colour := ""
			if !v.Passed {
				colour = yellow
			}
			return "checked " + again(v), colour, true
		}
	case loop.PlanMade:
		if e.Plan != nil {
			text := "the plan " + digest(e.Plan.Hash)
			if e.Contract != nil {
				text += ", contract " + digest(e.Contract.Hash)
			}
			return text + ": " + Clean(strings.SplitN(strings.TrimSpace(e.Plan.Text), "\n", 2)[0]), "", true
		}
		if p := e.TaskPlan; p != nil {
			return Clean(e.Task) + ": the plan " + digest(p.Hash) + ", " + plural(len(p.Steps), "step"), "", true
		}
	case loop.TestsKnown:
		if e.Judgement == nil || e.Judgement.Passed || e.Judgement.Tests == nil {
			ago := Around(", measured by pawl validate ", Ago(e.MeasuredAt, e.Time), "")
			return "the tests ran on the unchanged code" + ago, "", ago != ""
		}
		reason, text := "", "what fails there does not count: "+tests(*e.Judgement)
		if len(e.Judgement.Tests.Failing) == 0 {
			reason, text = Around(" (", Clean(cmp.Or(otherThanTests(*e.Judgement), e.Judgement.Tests.Printed)), ")"), "no failing test is named, so every failure counts"
		}
		return "the tests fail on the unchanged code" + reason + "; " + text, yellow, true
	case loop.GuardKnown:
		ago := Around(", measured by pawl validate ", Ago(e.MeasuredAt, e.Time), "")
		return "the guard ran on the unchanged code" + ago, "", ago != ""
	case loop.TestsSkipped:
		return "the tests are skipped" + note(e.Reason), "", true
	case loop.ChangeAccepted:
		return "the guard let " + Short(e.Commit) + " pass", "", false
	case loop.ProposalReviewed:
		return "reviewed: " + reviewed(e), "", true
	case loop.AutonomyStarted:
		return "started" + by(e), "", true
	case loop.IterationStarted:
		return "iteration starts" + titled("; left: ", amounts(e.BudgetsRemaining), ", "), "", false
	case loop.CheckpointCreated:
		return "checkpoint " + Short(e.Head), "", false
	case loop.PhaseEntered:
		return "phase " + string(e.Phase) + above(1, ", attempt ", e.Attempt, ""), "", false
	case loop.StepEnded:
		text := "ended: " + Clean(cmp.Or(e.Step, "step"))
		if e.Usage != nil {
			text += " after " + Duration(millis(float64(e.Usage.ActiveMs)))
		}
		return text + note(e.Reason), "", false
	case loop.ChangeCommitted:
		files := plural(len(e.Files), "file")
		if e.TotalFiles > len(e.Files) { // the list may be cut
			files = "at least " + files
		}
		return "committed " + Short(e.Commit) + ": " + files + note(e.Note), "", e.Note != ""
	case loop.ChangeReverted:
		return "reverted " + Short(e.Commit) + note(e.Reason), "", false
	case loop.ChangeJudged:
		return judged(e)
	case loop.RepairAttempted:
		return "attempt " + itoa(e.Attempt-1) + " undone (" + Clean(e.FailureReason) + note(e.Reason) + ")" + note(e.Note), yellow, true
	case loop.StrategyShifted:
		return "strategy shifts" + note(e.Reason), yellow, true
	case loop.CandidateBegun, loop.CandidateMade, loop.CandidateJudged, loop.CandidateTaken, loop.CandidateConflicted, loop.CandidateDropped:
		text, ofNote := candidate(e)
		return text, "", ofNote
	case loop.BranchBegun, loop.BranchCompared, loop.BranchKept, loop.BranchGivenUp:
		text, color := branch(e)
		return text, color, true
	case loop.IdeaQueued, loop.IdeaTaken:
		return strings.ReplaceAll(string(e.Type), "_", " ") + ": " + Clean(e.Idea), "", false
	case loop.GateOpened, loop.GateEscalated:
		word := "waiting"
		if e.Type == loop.GateEscalated {
			word = "still waiting"
		}
		if e.Gate != nil {
			word += " (" + string(e.Gate.Kind) + ", gate " + Clean(e.Gate.ID) + ")"
		}
		if e.Gate != nil && e.Finding == nil { // else the event before it says what was found
			word += ": " + Clean(summary(*e.Gate))
		}
		return word, yellow, true
	case loop.GateClosed:
		switch {
		case e.Answer != nil && e.Answer.Message == steward.MessageSettled && e.Gate != nil:
			return ofTask(e) + "gate " + Clean(e.Gate.ID) + " is closed: " + Clean(e.Note), "", true
		case e.Answer != nil:
			return ofTask(e) + "answered: " + Clean(strings.TrimSpace(e.Answer.Message+" "+e.Answer.Choice)) + by(e) + note(e.Note), "", true
		}
	case loop.AutonomyPaused:
		return "paused" + note(e.Reason), yellow, false
	case loop.AutonomyResumed:
		return "resumed" + by(e), "", true
	case loop.MessageReceived:
		message := strings.TrimSpace("message " + Clean(e.Message) + " " + Clean(e.How))
		return ofTask(e) + message + by(e) + note(e.Note), "", true
	case loop.MessageRefused:
		return "message " + Clean(e.Message) + " refused" + note(strings.ReplaceAll(e.Reason, "\n", "; ")), yellow, true
	case loop.PermissionGranted:
		return Clean(e.Role) + " is permitted " + Clean(e.Reason), "", false
	case loop.PermissionDenied:
		return "not permitted" + note(e.Reason), red, true
	case loop.PushRefused:
		return "a push was refused" + note(e.Reason), yellow, true
	case loop.Warned:
		return ofTask(e) + "warning" + note(cmp.Or(e.Reason, e.Note)), yellow, true
	case loop.AgentReplaced:
		return "the provider of " + Clean(e.Agent) + " refuses work (" + Clean(e.Outcome) + ")" + note(e.Reason) + "; " + Clean(e.Note) + " makes the call instead", yellow, true
	case loop.SleepBegun:
		if l := e.Sleep; l != nil {
			manner := "this call was refused "
			if l.Step != "" {
				manner = "it has failed "
			}
			return "asleep until " + s.when(l.Until) + " (" + manner + plural(l.Times, "time") + "): " + Clean(l.String()), yellow, true
		}
	case loop.SleepEnded:
		if e.Step != "" {
			return "awake: " + Clean(e.Step) + " runs again", "", true
		}
		return "awake: the agent is called again", "", true
	case loop.BudgetExhausted:
		return "budget used up: " + string(e.ExhaustedBudget), yellow, true
	case loop.ProposalMade:
		if p := e.Proposal; p != nil {
			return "proposal " + digest(p.Hash) + ": " + plural(p.Files, "file") + ", +" + itoa(p.Insertions) + " -" + itoa(p.Deletions) + note(e.Reason), "", true
		}
	case loop.ProposalApproved, loop.ProposalRejected, loop.ProposalApplied:
		if p := e.Proposal; p != nil {
			text := strings.TrimPrefix(string(e.Type), "proposal_") + Around(" (", Clean(e.How), ")")
			return "proposal " + digest(p.Hash) + " " + text + by(e) + note(e.Note), "", true
		}
	case loop.AutonomyCompleted:
		return "completed" + note(e.Reason), green, true
	case loop.AutonomyHalted:
		return "halted" + note(e.Reason), yellow, true
	case loop.LoopFailed:
		return "failed (" + e.ErrorCode + ")" + note(e.Reason), red, true
	}
	return s.supervised(e)
}

func judged(e loop.Event) (text, color string, ofNote bool) {
	j := e.Judgement
	if j == nil {
		return "judged by " + Clean(e.Step), "", false
	}
	if e.Step == "policy" { // its violations say more than its name
		text, color = "not allowed", yellow
		if j.Blocked {
			text, color = "blocked", red
		}
		return text + note(strings.Join(j.Violations, "; ")), color, true
	}
	if e.Step == "test" && j.Tests != nil {
		if !j.Passed || len(j.Tests.Flaky) > 0 {
			color = yellow
		}
		return tests(*j), color, true
	}
	verdict := "passed"
	if !j.Passed {
		verdict, color = "failed", yellow
		if j.Blocked {
			verdict, color, ofNote = "blocked", red, true
		}
	}
	text = Clean(e.Step) + " " + verdict + known(", metric ", e.Metric, "")
	if len(j.Flaky) > 0 {
		text, color, ofNote = text+"; flaky (failed, then passed twice unchanged): "+names(j.Flaky), yellow, true
	}
	if judgement := j.Samples; judgement != nil {
		text += " (" + plural(judgement.Samples, "evaluation") + " against " + judgement.Reference.String() + ", log likelihood ratio " + strconv.FormatFloat(judgement.LLR, 'g', 3, 64) + ")"
	}
	text += note(j.Reason)
	for _, v := range j.Violations {
		text += "; " + Clean(v)
	}
	return text, color, ofNote
}

// finished renders an iteration's end, without the columns of Style.Iteration.
func finished(k kind.Kind, iter loop.Iteration) (text, color string, ofNote bool) {
	text, color = outcomeOf(k, iter), green
	if !iter.Kept {
		color = ""
	}
	if iter.Measured() {
		text += " " + iter.Metric.String() + " (" + change(iter.Delta, iter.Metric.Sub(iter.Delta)) + ")"
	}
	return text + Around(" by ", Clean(iter.Agent), "") + ": " + Clean(iter.Description) + Around(" (", Clean(iter.Why()), ")"), color, true
}

func by(e loop.Event) string {
	person := e.By
	if person == "" && e.Answer != nil {
		person = e.Answer.By
	}
	return Around(" by ", Clean(person), "")
}

// ofTask names the steward's task that an event is about.
func ofTask(e loop.Event) string { return Around("", Clean(e.Task), ": ") }

func note(text string) string { return Around(": ", Clean(text), "") }

// summary returns what a gate asks in one line.
func summary(g loop.Gate) string {
	first, points := g.Listed()
	if len(points) == 0 {
		return first
	}
	separator := "; "
	if strings.HasSuffix(first, ":") {
		separator = " "
	}
	return first + separator + strings.Join(points, "; ")
}
