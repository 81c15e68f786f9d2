package render

import (
	"cmp"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

// supervised describes an event of a steward or of one of its tasks, and any other event by its name.
func (s Style) supervised(e loop.Event) (text, color string, ofNote bool) {
	about := ofTask(e)
	ofNote = true
	switch e.Type {
	case loop.StewardOpened:
		text = "the steward has opened" + note(e.Reason)
	case loop.StewardValidated:
		text, ofNote = "validated"+note(e.Reason), false
	case loop.StewardEnded:
		text, color = "ended"+note(e.Reason), yellow
	case loop.TaskSubmitted:
		text = about + "submitted" + by(e)
		if t := e.Submitted; t != nil {
			text += note(t.Title)
		}
	case loop.TaskStateChanged:
		text = about + string(e.From) + " → " + string(e.To) + because(e)
		if e.To == "WAITING_FOR_HUMAN" {
			color = yellow
		}
	case loop.TaskPrioritized:
		text = about + "priority" + known(" ", e.Priority, "") + by(e)
	case loop.TaskInterrupted:
		text, color = about+"gives way to "+cmp.Or(Clean(e.Reason), "another task"), yellow
		switch {
		case e.Usage != nil: // its planner has ended
			text = about + "planning interrupted"
		case e.Reason == "":
			text, color = about+"works again, and gives way to nobody", ""
		}
	case loop.TaskEnded:
		text, color = about+cmp.Or(Clean(e.Outcome), "over")+note(e.Reason), green
		if e.Outcome != "done" {
			color = yellow
		}
	case loop.TierSet:
		text = about + "tier " + string(e.Tier) + by(e) + note(cmp.Or(e.Reason, task.BesideAll(e.TierReasons, e.Tier)))
	case loop.StepBegun:
		text = about + "step " + Clean(e.Step) + " " + cmp.Or(Clean(e.How), "started") + ": loop " + Clean(e.LoopID) + note(e.Reason)
	case loop.ActionTaken:
		text, ofNote = about+"action", false
		if a := e.Action; a != nil {
			text += " " + Clean(a.Name) + note(a.Outcome) + note(a.Reason)
		}
	case loop.MilestoneReached:
		text, color = about+"milestone: step "+Clean(e.Step), green
		if e.Reason != "step "+e.Step { // the event has a reason of its own
			text += note(e.Reason)
		}
	case loop.ChildReported:
		text, ofNote = about+"loop reports", false
		if c := e.Child; c != nil {
			text = about + "loop " + Clean(c.Loop) + " reports " + Clean(c.Event)
		}
	case loop.ChildTold:
		text, ofNote = about+"told the loop "+Clean(e.LoopID)+" to "+Clean(e.Message), e.Message == loop.MessageContinue
		if e.Reason != "" {
			text = about + "could not tell the loop " + Clean(e.LoopID) + " to " + Clean(e.Message) + note(e.Reason)
		}
	case loop.RateLimited:
		text, color = about+"an agent's rate limit: it sleeps", yellow
		if l := e.RateLimit; l != nil {
			text += " until " + s.when(l.Until) + note(l.Said)
		}
	case loop.RateLimitOver:
		text = about + "continues after the rate limit"
	case loop.LoopWarned, loop.LoopDetected:
		text, color = about+"near a limit", yellow
		if e.Type == loop.LoopDetected {
			text, color = about+"stopped", red
		}
		if f := e.Finding; f != nil {
			text += " (" + Clean(f.Rule) + ")" + note(f.Text)
		}
	case loop.DriftFound:
		text, color = about+"drift", yellow
		if d := e.Drift; d != nil {
			if d.Well != "" {
				text, color = about+"drift has passed", ""
			}
			text += " (" + Clean(strings.TrimSpace(d.Name+" "+d.What)) + ")" + note(cmp.Or(d.Well, d.Text))
		}
	case loop.TriggerReceived:
		text = "trigger"
		if tr := e.Trigger; tr != nil {
			text += " " + Clean(tr.Name) + " " + Clean(tr.Result) + Around(", task ", Clean(tr.Task), "")
		}
	default:
		text = strings.ReplaceAll(string(e.Type), "_", " ") + note(e.Reason)
	}
	return text, color, ofNote
}

// because returns the evidence by which a task changed its state, as far as it helps a person.
func because(e loop.Event) string {
	v := e.Evidence
	if v == nil {
		return ""
	}
	switch {
	case v.Answer == "" && v.Trigger != "":
		return ": it came from " + Clean(v.Trigger)
	case v.Stop == steward.StopCircle || v.Stop == steward.StopCheckIn: // loop_detected, the event before it, says why
		return ""
	}
	return note(cmp.Or(v.Answer, v.Approval, v.Note, v.Reason, v.Blocker, v.Done))
}
