package steward

import (
	"cmp"
	"slices"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

func (s *State) applied(t *Task, e loop.Event) {
	switch e.Type {
	case loop.TaskStateChanged:
		s.Indicators.Transitions++
		t.State, t.Since, t.Window = e.To, e.Time, t.Window.Entered(e.To)
		s.entered(t, e)
	case loop.PlanMade:
		t.Plan, t.ApprovedBy, t.Base, t.Interrupted = e.TaskPlan, "", "", ""
		s.Governance = cmp.Or(e.TaskPlan.Governance, s.Governance)
		t.Notes = t.Notes[min(int(e.Told), len(t.Notes)):] // the others came after the planner was asked
		s.spend(t, e)
	case loop.TierSet:
		if p := e.TaskPlan; p != nil && t.Plan != nil { // the plan was assessed again
			s.Governance = cmp.Or(p.Governance, s.Governance)
			needs := t.Needs()
			if t.Plan = p; slices.ContainsFunc(p.Needs, func(need task.Need) bool { return !slices.Contains(needs, need) }) {
				t.ApprovedBy = "" // nobody approved the plan for that
			}
		}
		t.Tier, t.TierBy, t.TierReasons, t.TierNote = e.Tier, e.By, e.TierReasons, e.Reason
		if t.Plan != nil && e.TaskPlan == nil && e.By == byPerson { // replaces the tier of the assessment
			t.Plan = new(*t.Plan)
			t.Plan.Needs = slices.DeleteFunc(slices.Clone(t.Plan.Needs), func(need task.Need) bool { return need.Kind == task.NeedTier })
		}
	case loop.TaskPrioritized:
		t.Priority = *e.Priority
	case loop.GateOpened:
		t.WaitingFor = &WaitingFor{Gate: e.Gate.ID, Kind: string(e.Gate.Kind), What: e.Gate.Summary}
		if e.Gate.Kind == GateTier {
			t.Stop = StopApproval
		}
	case loop.GateClosed:
		t.WaitingFor = nil
		s.answered(t, e)
	case loop.ActionTaken:
		s.acted(t, e)
	case loop.StepBegun:
		if e.Reason != "" { // nobody wants the task any more
			t.Ending, t.Loops = append(t.Ending, Step{ID: e.Step, Loop: e.LoopID, Status: Running}), append(slices.Clip(t.Loops), e.LoopID)
			break
		}
		t.begun(e)
	case loop.MilestoneReached:
		s.Indicators.Milestones++
	case loop.ChildReported:
		s.reported(t, e)
	case loop.ChildTold:
		for i := range t.Ending {
			if t.Ending[i].Loop == e.LoopID {
				t.Ending[i].Told = e.Message
			}
		}
		for i := range t.Steps {
			if st := &t.Steps[i]; st.Loop == e.LoopID {
				st.Told, st.PauseAt = e.Message, e.How
				if e.Message == loop.MessageContinue && st.Status == Paused {
					st.Status, t.Interrupted = Running, ""
				}
			}
		}
		if e.Message == loop.MessageSteer && len(t.Notes) > 0 && t.Notes[0] == e.Note {
			t.Notes = slices.Clone(t.Notes[1:])
		}
	case loop.TaskInterrupted:
		if e.Usage == nil {
			t.Interrupted = e.Reason
		}
		s.spend(t, e)
	case loop.RateLimited:
		t.Until = e.RateLimit.Until
	case loop.RateLimitOver:
		t.Until = time.Time{}
	case loop.LoopWarned:
		t.Window = t.Window.Told(*e.Finding)
		t.Notes = append(slices.Clip(t.Notes), "This comes near a limit: "+e.Finding.Text+". Do something else than before.")
	case loop.LoopDetected:
		t.Tripped = e.Finding.Rule
	case loop.MessageReceived:
		messaged(t, e)
	case loop.TaskEnded:
		s.ended(t, e)
	}
}

// spend adds what an event says that a task has spent.
func (s *State) spend(t *Task, e loop.Event) {
	if e.Usage != nil {
		spent := e.Usage.OfTask()
		t.Cost, s.Usage = t.Cost.Add(spent), s.Usage.Add(spent)
	}
}

// usageOf converts a task's usage to the type that events have.
func usageOf(u task.Usage) *loop.Usage {
	return &loop.Usage{
		ActiveMs: u.ActiveMs, ToolCalls: int64(u.ToolCalls), CostUSD: u.CostUSD,
		InputTokens: u.Tokens - u.OutputTokens, OutputTokens: u.OutputTokens,
	}
}

// entered applies a new state to a task: its plan becomes steps, or is given up.
func (s *State) entered(t *Task, e loop.Event) {
	t.Stop = ""
	if e.To != task.Waiting {
		t.WaitingFor = nil
	}
	switch e.To {
	case task.Planning:
		if t.Began.IsZero() {
			t.Began = e.Time
		}
		if e.From != task.Idle && e.From != task.Planning {
			t.giveUp()
			t.Plan, t.ApprovedBy, t.Retries = nil, "", 0
		}
	case task.Executing:
		if len(t.Steps) == 0 && t.Plan != nil {
			t.Steps = list.Map(t.Plan.Steps, func(st task.Step) Step { return Step{ID: st.ID, Status: Pending} })
		}
	case task.Waiting:
		if e.Evidence == nil {
			break
		}
		t.Stop = e.Evidence.Stop
		if t.WaitingFor == nil && (t.Stop == "" || t.Stop == StopGuardrail) {
			t.WaitingFor = t.asks()
		}
		if t.WaitingFor == nil {
			t.WaitingFor = &WaitingFor{What: cmp.Or(e.Evidence.Reason, e.Evidence.Answer)}
		}
	}
}

// asks returns the question of one of the task's loops, or nil.
func (t Task) asks() *WaitingFor {
	for _, st := range t.Steps {
		if st.Status == Asking && st.Asks != nil {
			return st.Asks
		}
	}
	return nil
}

// giveUp removes the task's steps. Their loops that still run are moved to Ending.
func (t *Task) giveUp() {
	for _, st := range t.Steps {
		if st.atWork() {
			t.Ending = append(t.Ending, Step{ID: st.ID, Loop: st.Loop, Status: Running, Usage: st.Usage, Cap: st.Cap})
		}
	}
	t.Steps, t.Step, t.Head, t.Proposal = nil, "", "", ""
}

// answered applies an answer to a gate of the task, apart from its change of state.
func (s *State) answered(t *Task, e loop.Event) {
	a := e.Answer
	switch {
	case a.Message == loop.MessageApprove && t.Plan != nil:
		t.ApprovedBy = cmp.Or(a.By, "a person")
	case a.Choice == Replan && t.Began.IsZero():
		t.After = nil // it continues without the tasks that it waited for
	case a.Message == loop.MessageExtend:
		if e.Limits != nil {
			t.CostLimit = new(e.Limits[loop.CostUSD])
		}
	case a.Choice == Continue || a.Choice == Replan:
		t.restart()
	}
}

// restart resets the count of the rule that stopped the task, because a person let the task continue.
func (t *Task) restart() {
	if t.Tripped != "" {
		t.Window, t.Retries, t.Tripped = t.Window.Continue(t.Tripped), 0, ""
		for i := range t.Steps {
			t.Steps[i].Failed = 0
		}
	}
}

func messaged(t *Task, e loop.Event) {
	switch e.Message {
	case MessageHold:
		t.Held = true
	case MessageResume:
		t.Held = false
	case loop.MessagePause:
		t.Paused = true
	case loop.MessageContinue:
		t.Paused, t.Until = false, time.Time{}
		t.restart()
	case loop.MessageSteer:
		t.Notes = list.Last(append(slices.Clip(t.Notes), e.Note), KeepNotes)
	case Intervene:
		t.WaitingFor = &WaitingFor{Kind: Intervene, What: "a person has stepped in, until `continue`"}
	}
}

// ended drops most data of a finished task, and frees the tasks that waited for it.
func (s *State) ended(t *Task, e loop.Event) {
	t.giveUp()
	id := t.ID
	t.Outcome, t.Reason, t.Ended, t.Proposal, t.Head = e.Outcome, e.Reason, e.Time, e.Commit, cmp.Or(e.Head, t.Head)
	t.Window, t.Log, t.Notes, t.Interrupted, t.WaitingFor, t.Paused, t.Until = stuck.Window{}, nil, nil, "", nil, false, time.Time{}
	if t.Plan != nil {
		t.Plan = new(*t.Plan)
		t.Plan.Steps = nil
	}
	if e.Outcome == Done {
		s.Indicators.Done++
	} else {
		s.Indicators.Cancelled++
	}
	s.Gates = slices.DeleteFunc(slices.Clone(s.Gates), func(g loop.Gate) bool { return g.Task == id })
	s.Known = slices.Clone(s.Known)
	for i := range s.Known {
		if s.Known[i].Task == id {
			s.Known[i].Done = e.Outcome == Done
		}
	}
	for i := range s.Tasks { // they no longer give way
		if s.Tasks[i].Interrupted == id && s.Tasks[i].State == task.Planning {
			s.Tasks[i].Interrupted = ""
		}
	}
	if e.Outcome == Done {
		for i := range s.Tasks {
			s.Tasks[i].After = without(s.Tasks[i].After, id)
		}
	}
}
