package steward

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"pawl/internal/charter"
	"pawl/internal/detect"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/task"
)

// New returns a steward of which nothing is known yet but its name. Its lists are empty and not absent.
func New(name string) State {
	return State{Steward: name, Status: loop.Running, State: task.Idle, Tasks: []Task{}, Queue: []string{}, Gates: []loop.Gate{}, Drift: []task.Drift{}}
}

// At returns the state with the ledger commit that it follows.
func (s State) At(ledger string) State { s.Ledger = ledger; return s }

// Stamp fills in whose event it is.
func (s State) Stamp(e loop.Event) loop.Event { e.Loop = s.Steward; return e }

// Last returns the number of the last event that was applied.
func (s State) Last() int64 { return s.Seq }

// Code returns the commit that an entry of the ledger stands for: the project's head.
func (s State) Code() string { return s.Base }

// Unnoted returns the state without the notes that wait, for a run that refuses none: it drops the oldest.
func (s State) Unnoted() State {
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		s.Tasks[i].Notes = nil
	}
	return s
}

// Halting returns why the steward is being ended, "" where it is not.
func (s State) Halting() string { return s.HaltRequested }

// Waits returns the open gate of that ID, nil where none is open.
func (s State) Waits(id string) *loop.Gate {
	for _, g := range s.Gates {
		if g.ID == id {
			return &g
		}
	}
	return nil
}

// AnswerTo returns how the gate of that ID was closed, nil where nobody closed it, or that is long ago.
func (s State) AnswerTo(id string) *loop.Answer {
	for _, a := range s.Answered {
		if a.Gate == id {
			return &a
		}
	}
	return nil
}

// Fold applies events in their order.
func Fold(s State, events []loop.Event) State {
	for _, e := range events {
		s = s.Apply(e)
	}
	return s
}

// Apply returns the state after the event. It is the only way in which a state changes.
func (s State) Apply(e loop.Event) State {
	s.Seq = e.Seq
	s.Tasks = slices.Clone(s.Tasks)
	switch e.Type {
	case loop.StewardOpened:
		if o := e.Opened; o != nil {
			s.Repo, s.Base, s.Desk, s.Host = o.Repo, o.Base, o.Desk, o.Host
		}
		s.Charter = cmp.Or(e.Commit, s.Charter)
		if s.StartedAt.IsZero() {
			s.StartedAt, s.Mode = e.Time, e.How
		}
	case loop.TaskSubmitted:
		s.submitted(e)
	case loop.GateOpened:
		s.Gates = append(slices.Clone(s.Gates), *e.Gate)
	case loop.GateEscalated:
		s.Gates = slices.Clone(s.Gates)
		for i := range s.Gates {
			if s.Gates[i].ID == e.Gate.ID {
				s.Gates[i].Escalated++
			}
		}
	case loop.GateClosed:
		s.Gates = slices.DeleteFunc(slices.Clone(s.Gates), func(g loop.Gate) bool { return g.ID == e.Answer.Gate })
		s.Answered = last(append(slices.Clip(s.Answered), *e.Answer), KeepAnswers)
		if e.Drift != nil {
			s.Drift = slices.DeleteFunc(slices.Clone(s.Drift), func(known task.Drift) bool { return same(known, *e.Drift) })
			if e.Answer.Choice == Keep {
				s.Accepted = last(append(slices.Clip(s.Accepted), *e.Drift), KeepAnswers)
			}
		}
	case loop.DriftFound:
		if !slices.ContainsFunc(s.Drift, func(d task.Drift) bool { return same(d, *e.Drift) }) {
			s.Drift = append(slices.Clip(s.Drift), *e.Drift)
		}
	case loop.StewardValidated:
		s.ValidatedAt = e.Time
		s.Base = cmp.Or(e.Head, s.Base)
		if e.Missed != nil {
			s.Missed = e.Missed
		}
		s.Governance = cmp.Or(e.Governance, s.Governance)
	case loop.TriggerReceived:
		s.triggered(*e.Trigger)
	case loop.MessageReceived:
		s.received(e)
	case loop.StewardEnded:
		s.Status, s.Reason = cmp.Or(e.Status, loop.Completed), e.Reason
	}
	if e.Task != "" {
		if t := s.Find(e.Task); t != nil {
			s.applied(t, e)
		}
	}
	s.derive()
	return s
}

// triggered keeps which health checks fail.
func (s *State) triggered(tr task.Trigger) {
	if tr.From != charter.Health {
		return
	}
	s.Ill = maps.Clone(s.Ill)
	if tr.Result == Healthy {
		delete(s.Ill, tr.Name)
		return
	}
	if s.Ill == nil {
		s.Ill = map[string]string{}
	}
	s.Ill[tr.Name] = tr.Task
}

func same(a, b task.Drift) bool { return a.Name == b.Name && a.What == b.What }

// Key is what a task is known by, without what it says.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func (s *State) submitted(e loop.Event) {
	in := e.Submitted
	s.Tasks = append(s.Tasks, Task{
		ID: in.ID, Title: in.Title, Tier: in.Tier, TierBy: by(in.Tier), State: task.Idle, Priority: in.Priority, After: in.After, Source: in.Source,
		Loops: []string{}, Submitted: e.Time, Since: e.Time,
	})
	s.TasksCount++
	s.Known = append(slices.Clip(s.Known), Known{Key: Key("id " + in.ID), Task: in.ID})
	if in.Dedupe != "" {
		s.Known = append(s.Known, Known{Key: Key("dedupe " + in.Dedupe), Task: in.ID})
	}
}

func by(tier task.Tier) string {
	if tier == "" {
		return ""
	}
	return "a person"
}

// received applies a message that is about the steward as a whole; one about a task is applied to that.
func (s *State) received(e loop.Event) {
	if e.Task != "" {
		return
	}
	switch e.Message {
	case MessageHold:
		s.Held = true
	case MessageResume:
		s.Held = false
	case loop.MessagePause:
		s.Paused = true
	case loop.MessageContinue:
		s.Paused = false
	case loop.MessageHalt:
		s.HaltRequested = cmp.Or(e.Reason, e.Message)
	case loop.MessageSetMode:
		s.Mode = e.How
	}
}

// applied applies an event to the task that it is about.
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
		t.Cost = t.Cost.Add(spent(e))
		s.Usage = s.Usage.Add(spent(e))
	case loop.TierSet:
		if p := e.TaskPlan; p != nil && t.Plan != nil { // it was assessed once more
			s.Governance = cmp.Or(p.Governance, s.Governance)
			before := t.needs()
			if t.Plan = p; slices.ContainsFunc(p.Needs, func(need string) bool { return !slices.Contains(before, need) }) {
				t.ApprovedBy = "" // nobody has approved it for that
			}
		}
		t.Tier, t.TierBy, t.TierWhy = e.Tier, e.By, e.Reason
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
		if e.Reason != "" { // nobody wants it any more
			t.Ending, t.Loops = append(slices.Clip(t.Ending), Step{ID: e.Step, Loop: e.LoopID, Status: Running}), append(slices.Clip(t.Loops), e.LoopID)
			break
		}
		t.begun(e)
	case loop.MilestoneReached:
		s.Indicators.Milestones++
	case loop.ChildReported:
		s.reported(t, e)
	case loop.ChildTold:
		t.Ending = slices.Clone(t.Ending)
		for i := range t.Ending {
			if t.Ending[i].Loop == e.LoopID {
				t.Ending[i].Told = e.Message
			}
		}
		for i := range t.steps() {
			if st := &t.Steps[i]; st.Loop == e.LoopID {
				st.Told = e.Message
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
		t.Cost, s.Usage = t.Cost.Add(spent(e)), s.Usage.Add(spent(e))
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

// steps returns the task's steps, as a list of its own that may be written to.
func (t *Task) steps() []Step {
	t.Steps = slices.Clone(t.Steps)
	return t.Steps
}

func spent(e loop.Event) task.Usage {
	if e.Usage == nil {
		return task.Usage{}
	}
	return task.Usage{CostUSD: e.Usage.CostUSD, Tokens: e.Usage.InputTokens + e.Usage.OutputTokens, ActiveMs: e.Usage.ActiveMs, ToolCalls: int(e.Usage.ToolCalls)}
}

// entered is what a new state makes of a task: its plan becomes its steps, or is given up.
func (s *State) entered(t *Task, e loop.Event) {
	t.Stop = ""
	switch e.To {
	case task.Planning:
		if t.Began.IsZero() {
			t.Began = e.Time
		}
		if e.From != task.Idle && e.From != task.Planning {
			t.giveUp()
			t.Plan, t.ApprovedBy, t.Retries = nil, "", 0
		}
		t.WaitingFor = nil
	case task.Executing:
		if len(t.Steps) == 0 && t.Plan != nil {
			for _, st := range t.Plan.Steps {
				t.Steps = append(t.Steps, Step{ID: st.ID, Status: Pending})
			}
		}
		t.WaitingFor = nil
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
	case task.Idle:
		t.WaitingFor = nil
	}
}

// asks is what a loop of the task asks, nil for nothing.
func (t Task) asks() *WaitingFor {
	for _, st := range t.Steps {
		if st.Status == Asking && st.Asks != nil {
			return st.Asks
		}
	}
	return nil
}

// giveUp leaves the task without steps. Loops of theirs that go on are to be ended.
func (t *Task) giveUp() {
	for _, st := range t.Steps {
		if st.Loop != "" && st.Status != Over && st.Status != Pending {
			t.Ending = append(slices.Clip(t.Ending), Step{ID: st.ID, Loop: st.Loop, Status: Running, Usage: st.Usage, Cap: st.Cap})
		}
	}
	t.Steps, t.Step, t.Head, t.Proposal = nil, "", "", ""
}

// answered is what an answer to a gate of the task changes beside its state.
func (s *State) answered(t *Task, e loop.Event) {
	a := e.Answer
	switch {
	case a.Message == loop.MessageApprove && t.Plan != nil:
		t.ApprovedBy = cmp.Or(a.By, "a person")
	case a.Choice == Replan && t.Began.IsZero():
		t.After = nil // it goes on without what it waited for
	case a.Message == loop.MessageExtend:
		if e.Limits != nil {
			limit := e.Limits[loop.CostUSD]
			t.CostLimit = &limit
		}
	case a.Choice == Continue || a.Choice == Replan:
		t.restart()
	}
}

// restart lets the rule that has stopped the task count from the beginning: a person has sent it on.
func (t *Task) restart() {
	if t.Tripped != "" {
		t.Window, t.Retries, t.Tripped = t.Window.Continue(t.Tripped), 0, ""
		for i := range t.steps() {
			t.Steps[i].Failed = 0
		}
	}
}

// begun notes the loop that does a step. The task is interrupted no longer.
func (t *Task) begun(e loop.Event) {
	for i := range t.steps() {
		if st := t.Steps[i]; st.ID == e.Step {
			t.Steps[i] = Step{ID: st.ID, Loop: e.LoopID, Status: Running, Failed: st.Failed, Kept: st.Kept, KeptHead: st.KeptHead}
			if cap, capped := e.Limits[loop.CostUSD]; capped {
				t.Steps[i].Cap = &cap
			}
		}
	}
	t.Step = e.Step
	if !slices.Contains(t.Loops, e.LoopID) {
		t.Loops = append(slices.Clip(t.Loops), e.LoopID)
	}
}

// acted counts an action.
func (s *State) acted(t *Task, e loop.Event) {
	a := *e.Action
	t.Actions++
	t.Window = t.Window.Add(a)
	t.Log = last(append(slices.Clip(t.Log), a), KeepActions)
	t.Cost, s.Usage = t.Cost.Add(spent(e)), s.Usage.Add(spent(e))
	s.Indicators.Actions++
	s.Indicators.ExecutingMs += a.ActiveMs
	if a.Error != "" {
		s.Indicators.Errors++
	}
	if a.Progress {
		t.ProgressAt = e.Time
	}
	for i := range t.steps() {
		st := &t.Steps[i]
		if st.Loop == a.Loop {
			st.Counted += a.ActiveMs
		}
		if st.ID != a.Step {
			continue
		}
		switch {
		case a.Milestone:
			st.Status, t.Retries = Over, 0
		case a.What == task.StepStarted:
			st.Status, st.Loop = Pending, ""
			if a.Outcome != task.RateLimited && a.Outcome != task.Spent {
				t.Retries++
				st.Failed++
			}
		}
	}
}

// reported takes up where a child loop stands.
func (s *State) reported(t *Task, e loop.Event) {
	c := e.Child
	ending := slices.Clone(t.Ending)
	for i := range ending {
		if st := &ending[i]; st.Loop == c.Loop && c.Result != nil {
			more := c.Result.Usage.Sub(st.Usage)
			st.Usage, t.Cost, s.Usage = c.Result.Usage, t.Cost.Add(more), s.Usage.Add(more)
		}
	}
	if c.Event == task.ChildEnded {
		ending = slices.DeleteFunc(ending, func(st Step) bool { return st.Loop == c.Loop })
	}
	if t.Ending = ending; len(ending) == 0 {
		t.Ending = nil
	}
	for i := range t.steps() {
		st := &t.Steps[i]
		if st.Loop != c.Loop || st.Status == Over || st.Status == Pending {
			continue
		}
		if c.Seq >= st.Seq {
			st.Seq, st.Said = c.Seq, c.Event
		}
		if r := c.Result; r != nil {
			st.Head, st.Branch = cmp.Or(r.Head, st.Head), cmp.Or(r.Branch, st.Branch)
			more := r.Usage.Sub(st.Usage)
			st.Usage, t.Cost, s.Usage = r.Usage, t.Cost.Add(more), s.Usage.Add(more)
			t.Base = cmp.Or(t.Base, r.Base)
			t.Head = cmp.Or(r.Head, t.Head)
			if r.Proposal != nil {
				t.Proposal = r.Proposal.Hash
			}
			if c.Event == task.ChildEnded && goesOn(r) && st.Branch != "" && t.made(*st) {
				st.Kept, st.KeptHead = st.Branch, st.Head
			}
		}
		switch c.Event {
		case task.ChildAsks:
			if s.pausedBySteward(*st, *c.Gate) {
				st.Status = Paused // as it was told to
				continue
			}
			st.Status, st.Asks = Asking, &WaitingFor{Loop: c.Loop, Gate: c.Gate.ID, Kind: c.Gate.Kind, What: c.Gate.Summary}
			if w := t.WaitingFor; w != nil && w.Loop == "" {
				continue // it waits for more than that
			}
			t.WaitingFor = st.Asks
		case task.ChildAnswered, task.IterationEnded, task.ChildStands:
			if c.Event == task.ChildStands && st.Status == Paused { // it was taken up again without its pause
				st.Status, st.Told = Running, ""
			}
			if st.Status == Asking {
				st.Status, st.Asks = Running, nil
				if w := t.WaitingFor; w != nil && w.Loop == c.Loop {
					t.WaitingFor = nil
				}
			}
		}
	}
}

// goesOn reports whether the next try of a step goes on from the work that a loop has kept: the loop ended for
// want of money, time or a rate limit, or a person has halted it, and nobody has found fault with the work.
func goesOn(r *task.ChildResult) bool {
	return r.ErrorCode == string(fault.BudgetExhausted) || r.ErrorCode == string(fault.Cancelled) || r.RateLimit != nil
}

// made reports whether the loop of a step has come further than where it began.
func (t *Task) made(st Step) bool {
	if st.Head == "" || st.Head == t.Base || st.Head == st.KeptHead {
		return false
	}
	return !slices.ContainsFunc(t.Steps, func(other Step) bool { return other.ID != st.ID && other.Head == st.Head })
}

// messaged is what a message does to the task that it names.
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
		t.Notes = last(append(slices.Clip(t.Notes), e.Note), KeepNotes)
	case Intervene:
		t.WaitingFor = &WaitingFor{Kind: Intervene, What: "a person has stepped in, until `continue`"}
	}
}

// ended is the end of a task: it becomes small, and what waited for it may go on.
func (s *State) ended(t *Task, e loop.Event) {
	t.giveUp()
	id := t.ID
	t.Outcome, t.Reason, t.Ended, t.Proposal, t.Head = e.Outcome, e.Reason, e.Time, e.Commit, cmp.Or(e.Head, t.Head)
	t.Window, t.Log, t.Notes, t.Interrupted, t.WaitingFor, t.Paused, t.Until = detect.Window{}, nil, nil, "", nil, false, time.Time{}
	if t.Plan != nil {
		small := *t.Plan
		small.Steps = nil
		t.Plan = &small
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
	for i := range s.Tasks { // it gives way to nobody any more
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

// derive brings what follows from the tasks in step with them: the state of the active one, the queue,
// the counts; and forgets the oldest tasks that are over.
func (s *State) derive() {
	over := 0
	for _, t := range s.Tasks {
		if t.Outcome != "" && len(t.Ending) == 0 {
			over++
		}
	}
	if forget := over - KeepEnded; forget > 0 {
		s.Tasks = slices.DeleteFunc(s.Tasks, func(t Task) bool {
			if t.Outcome == "" || len(t.Ending) > 0 || forget == 0 {
				return false
			}
			forget--
			return true
		})
	}
	if n := len(s.Known) - s.alive() - KeepKnown; n > 0 {
		s.Known = slices.DeleteFunc(slices.Clone(s.Known), func(k Known) bool {
			if n == 0 || s.Find(k.Task) != nil {
				return false
			}
			n--
			return true
		})
	}
	s.Queue = []string{}
	s.State = task.Idle
	longest := 0
	for _, t := range s.inOrder() {
		if t.Outcome != "" {
			continue
		}
		switch t.State {
		case task.Idle:
			s.Queue = append(s.Queue, t.ID)
		default:
			if rank[t.State] > rank[s.State] && (t.Interrupted == "" || s.State == task.Idle) {
				s.State = t.State
			}
		}
		longest = max(longest, t.Window.Repeats())
	}
	s.Indicators.Repeats = int64(longest)
	s.GatesCount, s.QueueCount = len(s.Gates), len(s.Queue)
	switch {
	case s.Status.Ended():
	case s.Paused:
		s.Status = loop.Paused
	case s.State == task.Waiting:
		s.Status = loop.Waiting
	default:
		s.Status = loop.Running
	}
}

// rank is which task's state is that of the steward: one that works before one that waits.
var rank = map[task.State]int{task.Waiting: 1, task.Planning: 2, task.Executing: 3}

// alive counts the tasks that are not over, or not forgotten.
func (s *State) alive() int { return 2 * len(s.Tasks) }

// inOrder are the tasks in the order in which they get to work: the higher priority first, then those
// that have begun, then as they came.
func (s *State) inOrder() []*Task {
	tasks := make([]*Task, len(s.Tasks))
	for i := range s.Tasks {
		tasks[i] = &s.Tasks[i]
	}
	slices.SortStableFunc(tasks, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(began(a), began(b)))
	})
	return tasks
}

func began(t *Task) int64 {
	if t.Began.IsZero() {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	return t.Began.UnixMilli()
}

func without(list []string, what string) []string {
	if !slices.Contains(list, what) {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == what })
}

// last returns the last n of a list.
func last[T any](list []T, n int) []T {
	if len(list) > n {
		return slices.Clone(list[len(list)-n:])
	}
	return list
}
