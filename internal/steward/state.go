// Package steward is the supervisor's machine (S): its state, the events that change it, its
// transition table with the evidence that each transition needs, and every decision: what a message
// does, what happens next. Pure: it knows no Temporal, no repository and no clock. Start at State,
// then Apply (what events do), Next (what is to be done) and Answer (what people say).
package steward

import (
	"slices"
	"time"

	"pawl/internal/assess"
	"pawl/internal/detect"
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/task"
)

// How many entries the bounded lists of the state keep; their full counts stand beside them.
const (
	KeepEnded   = 50   // tasks that are over
	KeepKnown   = 2000 // tasks that are over, by the keys by which one that comes again is known
	KeepAnswers = 20
	KeepNotes   = 20 // guidance that waits, of each task
	KeepActions = 20 // of each task, for loop detection and for people
)

// State is a steward as the world sees it (query `state`, `pawl steward show --json`) and as it is
// restored: the fold of its events, and nothing else.
type State struct {
	Steward string      `json:"steward"`
	Status  loop.Status `json:"status"`         // running, paused, waiting; completed or halted at the end
	State   task.State  `json:"state"`          // of the active task; WAITING_FOR_HUMAN where only waiting ones are left
	Mode    string      `json:"mode,omitempty"` // mission; plan: nothing is begun beyond its plan; answer: nothing is begun
	// Held says that no task is begun, but those that have begun go on.
	Held bool `json:"held,omitempty"`
	// Paused says that nothing goes on at all.
	Paused bool `json:"paused,omitempty"`

	Tasks      []Task      `json:"tasks"` // as they came; a query shows those that have begun first, then the queue, then those that are over
	TasksCount int         `json:"tasksCount"`
	Queue      []string    `json:"queue"` // tasks that wait to be begun, the next one first
	QueueCount int         `json:"queueCount"`
	Gates      []loop.Gate `json:"gates"`
	GatesCount int         `json:"gatesCount"`

	Indicators Indicators   `json:"indicators"`
	Usage      task.Usage   `json:"usage"`
	Drift      []task.Drift `json:"drift"` // that nobody has settled yet
	DriftCount int          `json:"driftCount"`
	Accepted   []task.Drift `json:"accepted,omitempty"` // that a person has taken as it is

	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"` // the project's head as it was last read
	Ledger string `json:"ledger"`         // the ledger commit that this state follows
	Desk   string `json:"desk,omitempty"`
	Host   string `json:"host,omitempty"`

	Charter    string `json:"charter,omitempty"`    // SHA-256 of the spec
	Governance string `json:"governance,omitempty"` // SHA-256 of the governance files, as they were last read

	Known         []Known           `json:"known,omitempty"`    // tasks that came, by id and dedupe key, the oldest first
	Missed        map[string]int    `json:"missed,omitempty"`   // slots of schedules that Temporal has left out, in all
	Ill           map[string]string `json:"ill,omitempty"`      // health checks that fail, with the tasks that came of it
	Answered      []loop.Answer     `json:"answered,omitempty"` // the last answers to gates
	StartedAt     time.Time         `json:"startedAt,omitzero"`
	ValidatedAt   time.Time         `json:"validatedAt,omitzero"`
	HaltRequested string            `json:"haltRequested,omitempty"`
	Reason        string            `json:"reason,omitempty"` // why it ended
	Seq           int64             `json:"seq"`
}

// Task is a task as the steward has it: in state IDLE it waits to be begun, or is over where it has
// an outcome.
type Task struct {
	ID       string     `json:"id"`
	Title    string     `json:"title,omitempty"`
	Tier     task.Tier  `json:"tier"`
	TierBy   string     `json:"tierBy,omitempty"` // rules, planner, the charter or a person
	TierWhy  string     `json:"tierWhy,omitempty"`
	State    task.State `json:"state"`
	Priority int        `json:"priority"`
	After    []string   `json:"after,omitempty"` // those that are not done yet
	Source   string     `json:"source,omitempty"`
	Held     bool       `json:"held,omitempty"`   // it waits in the backlog until somebody resumes it
	Paused   bool       `json:"paused,omitempty"` // a person has paused it
	Notes    []string   `json:"notes,omitempty"`  // guidance that its loops, or its planner, have not had yet

	Plan       *task.Plan `json:"plan"`
	ApprovedBy string     `json:"approvedBy,omitempty"` // of exactly that plan
	Step       string     `json:"step"`                 // the one that was begun last
	Steps      []Step     `json:"steps,omitempty"`
	Loops      []string   `json:"loops"`
	Ending     []Step     `json:"ending,omitempty"` // of a plan that was given up, whose loops have not ended yet

	Actions     int           `json:"actions"`
	ProgressAt  time.Time     `json:"progressAt,omitzero"`
	Retries     int           `json:"retries"`
	Log         []task.Action `json:"log,omitempty"` // the last KeepActions
	Window      detect.Window `json:"window,omitzero"`
	Tripped     string        `json:"tripped,omitempty"`     // the rule that stopped it
	Interrupted string        `json:"interrupted,omitempty"` // the task that it gives way to

	WaitingFor *WaitingFor       `json:"waitingFor"`
	Stop       string            `json:"stop,omitempty"` // the stop condition for which it waits
	Until      time.Time         `json:"until,omitzero"` // it sleeps: an agent's rate limit ends then
	Cost       task.Usage        `json:"cost"`
	CostLimit  *evidence.Decimal `json:"costLimit,omitempty"` // raised by a person
	Outcome    string            `json:"outcome"`             // done or cancelled; "" while it is not over
	Reason     string            `json:"reason,omitempty"`
	Base       string            `json:"base,omitempty"`     // the commit that its work starts from
	Head       string            `json:"head,omitempty"`     // what it has come to
	Proposal   string            `json:"proposal,omitempty"` // the hash of its one proposal
	Submitted  time.Time         `json:"submittedAt,omitzero"`
	Began      time.Time         `json:"beganAt,omitzero"`
	Ended      time.Time         `json:"endedAt,omitzero"`
	Since      time.Time         `json:"since,omitzero"` // it has been in its state
}

// PersonsTier is the tier that a person has set, in the charter too, "" where none has.
func (t Task) PersonsTier() task.Tier {
	if t.TierBy == byPerson || t.TierBy == byCharter {
		return t.Tier
	}
	return ""
}

// needs are the reasons why a person has to approve the task's plan (S4), whether one has or not.
func (t Task) needs() []string {
	if len(t.Plan.Needs) == 0 && (t.Tier == task.T1 || t.Tier == task.T2) { // a person has said so since
		return []string{assess.NeedTier + string(t.Tier)}
	}
	return t.Plan.Needs
}

// outdated reports whether the tier of a task, and whether a person has to approve its plan, was assessed by
// another charter or by other governance files than there are now (S12).
func (s State) outdated(t Task) bool {
	differs := func(then, now string) bool { return then != "" && now != "" && then != now }
	return t.Plan != nil && (differs(t.Plan.Charter, s.Charter) || differs(t.Plan.Governance, s.Governance))
}

// Stands is what a task waits for that a person has paused, or stepped into, as a gate: it is none, since
// nothing is asked, but a person has to let it go on. ok is false for any other task.
func (t Task) Stands() (g loop.Gate, ok bool) {
	if t.Outcome != "" || t.State != task.Waiting || !t.resumable() {
		return g, false
	}
	what := "it waits until you let it go on"
	if t.WaitingFor != nil && t.WaitingFor.What != "" {
		what = t.WaitingFor.What
	}
	return loop.Gate{ID: "paused", Kind: loop.GatePause, Task: t.ID, Summary: t.ID + ": " + what, OpenedAt: t.Since, Answers: []string{loop.MessageContinue}}, true
}

// Open is everything that waits for a person at the steward: its gates, then what a person has paused or stepped
// into. A steward that is paused lets none of its tasks go on, so that it stands for them. One that has ended takes
// no answers: nothing waits.
func (s State) Open() []loop.Gate {
	if s.Status.Ended() {
		return nil
	}
	all := slices.Clone(s.Gates)
	if s.Paused {
		all = append(all, loop.Gate{ID: "paused", Kind: loop.GatePause, Summary: "the steward is paused: nothing goes on until you let it", Answers: []string{loop.MessageContinue}})
	}
	for _, t := range s.Tasks {
		if g, stands := t.Stands(); stands && (!s.Paused || t.Paused) {
			all = append(all, g)
		}
	}
	return all
}

// Position is the state of a task as people are shown it: what it came to, where it is over. In a steward that has
// ended nothing goes on and nobody is asked, whatever state a task was left in.
func (s State) Position(t Task) string {
	switch {
	case t.Outcome != "":
		return t.Outcome
	case s.Status.Ended():
		return "not done, was " + string(t.State)
	}
	return string(t.State)
}

// Doing is what a step's loop is doing, as people are shown it: of one that was told to halt the steward need not know how it ended.
func (s Step) Doing() string {
	if s.Told == loop.MessageHalt && s.Status != Over {
		return "told to halt"
	}
	return s.Status
}

// AtLoop reports whether a task of the steward waits for an answer at one of its loops.
func (s State) AtLoop(t Task) bool {
	return !s.Status.Ended() && t.WaitingFor != nil && t.WaitingFor.Loop != ""
}

// The outcomes of tasks.
const (
	Done      = "done"
	Cancelled = "cancelled"
)

// Step is a step of a task's plan, as far as it has come.
type Step struct {
	ID     string      `json:"id"`
	Loop   string      `json:"loop,omitempty"` // the child that does it, "" while it was not begun
	Status string      `json:"status"`
	Told   string      `json:"told,omitempty"` // the last message that the steward sent to the loop
	Seq    int64       `json:"seq,omitempty"`  // of the last report of the loop
	Said   string      `json:"said,omitempty"` // what that was
	Head   string      `json:"head,omitempty"`
	Branch string      `json:"branch,omitempty"`
	Usage  task.Usage  `json:"usage,omitzero"`
	Asks   *WaitingFor `json:"asks,omitempty"` // what a person is to answer at its loop
	// Cap is what its loop may cost, nil for anything.
	Cap *evidence.Decimal `json:"cap,omitempty"`
	// Kept is the branch of an earlier try whose work the next one goes on from, KeptHead its head.
	Kept     string `json:"kept,omitempty"`
	KeptHead string `json:"keptHead,omitempty"`
	// Failed is how often its loops have failed since a person has sent the task on (S10).
	Failed int `json:"failed,omitempty"`
	// Counted is how much of its active time has been counted as executing time.
	Counted int64 `json:"counted,omitempty"`
}

// What a step's loop is doing, as far as the steward knows.
const (
	Pending = "pending" // it is to be begun
	Running = "running"
	Asking  = "asking" // a person is to answer at the loop
	Paused  = "paused" // the steward has paused it
	Over    = "done"
)

// Known is a task that came once: its keys are digests, so that a task that comes again is the same one.
type Known struct {
	Key  string `json:"k"`
	Task string `json:"t"`
	Done bool   `json:"d,omitempty"`
}

// WaitingFor is what a task waits for: a gate of the steward, or one of a child, answered there.
type WaitingFor struct {
	Loop string `json:"loop,omitempty"`
	Gate string `json:"gate"`
	Kind string `json:"kind,omitempty"`
	What string `json:"what,omitempty"`
}

// Indicators are the metrics of S13.
type Indicators struct {
	Transitions int64 `json:"transitions"`
	Actions     int64 `json:"actions"`
	Repeats     int64 `json:"repeats"` // the longest streak of one action with one result now
	Errors      int64 `json:"errors"`
	Milestones  int64 `json:"milestones"`
	ExecutingMs int64 `json:"executingMs"`
	Done        int64 `json:"tasksDone"`
	Cancelled   int64 `json:"tasksCancelled"`
}

// Find returns the task of that ID; nil where the state has none.
func (s State) Find(id string) *Task {
	i := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Tasks[i]
}

// Foremost are the first n tasks as people want to see them: those that have begun, then those that are to be
// begun, then the last of those that are over.
func (s State) Foremost(n int) []Task {
	n = min(n, len(s.Tasks))
	all := make([]Task, 0, n)
	for _, waits := range []bool{false, true} {
		for i := range s.Tasks { // a task is large
			if t := &s.Tasks[i]; len(all) < n && t.Outcome == "" && (t.State == task.Idle) == waits {
				all = append(all, *t)
			}
		}
	}
	over := n - len(all)
	from := len(s.Tasks)
	for ; over > 0; from-- {
		if s.Tasks[from-1].Outcome != "" {
			over--
		}
	}
	for _, t := range s.Tasks[from:] {
		if t.Outcome != "" {
			all = append(all, t)
		}
	}
	return all
}

// Shown is the state as a query answers it: with n tasks and gates at most, and without what only the machine
// needs. The counts beside the lists are of all.
func (s State) Shown(n int) State {
	s.Tasks = s.Foremost(n)
	s.Queue, s.Gates, s.Drift = first(s.Queue, n), first(s.Gates, n), first(s.Drift, n)
	s.Known, s.Answered = nil, nil
	return s
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }
