package steward

import (
	"slices"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// The lengths of the bounded lists in the state. Their full counts are in fields of their own.
const (
	KeepEnded   = 50   // finished tasks
	KeepKnown   = 2000 // keys of finished tasks, to recognise a task that comes again
	KeepAnswers = 20
	KeepNotes   = 20 // waiting notes of each task
	KeepActions = 20 // actions of each task, for loop detection and for people
)

// State is what the world sees of a steward (query `state`, `pawl steward show --json`) and what a steward is restored
// from. It is the fold of its events and nothing else.
type State struct {
	Steward string      `json:"steward"`
	Status  loop.Status `json:"status"`         // running, paused or waiting; completed or halted at the end
	State   task.State  `json:"state"`          // of the active task; WAITING_FOR_HUMAN if all started tasks wait
	Mode    string      `json:"mode,omitempty"` // mission; plan: tasks are planned, not executed; answer: no task starts
	// Held means that no new task starts; started tasks continue.
	Held bool `json:"held,omitempty"`
	// Paused means that nothing continues.
	Paused bool `json:"paused,omitempty"`

	Tasks      []Task      `json:"tasks"` // in order of arrival; a query shows started tasks first, then the queue, then finished ones
	TasksCount int         `json:"tasksCount"`
	Queue      []string    `json:"queue"` // tasks that wait to start, the next one first
	QueueCount int         `json:"queueCount"`
	Gates      []loop.Gate `json:"gates"`
	GatesCount int         `json:"gatesCount"`

	Indicators Indicators   `json:"indicators"`
	Usage      task.Usage   `json:"usage"`
	Drift      []task.Drift `json:"drift"` // drift that nobody has answered yet
	DriftCount int          `json:"driftCount"`
	Accepted   []task.Drift `json:"accepted,omitempty"` // drift that a person accepted as it is

	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"`   // the project's head when it was last read
	Remote string `json:"remote,omitempty"` // its remote's open work and CI status when they were last read, in a few words
	Ledger string `json:"ledger"`           // the ledger commit that this state follows
	Desk   string `json:"desk,omitempty"`
	Host   string `json:"host,omitempty"`

	Charter    string `json:"charter,omitempty"`    // SHA-256 of the spec
	Governance string `json:"governance,omitempty"` // SHA-256 of the governance files when they were last read

	Known         []Known               `json:"known,omitempty"`    // the tasks that came, by ID and dedupe key, oldest first
	Missed        map[string]int        `json:"missed,omitempty"`   // how many slots of each schedule were missed
	Slots         map[string]task.Slots `json:"slots,omitempty"`    // up to where the slots of each schedule are known
	Ill           map[string]string     `json:"ill,omitempty"`      // health checks that fail, each with the task that it made
	Answered      []loop.Answer         `json:"answered,omitempty"` // the last answers to gates
	StartedAt     time.Time             `json:"startedAt,omitzero"`
	ValidatedAt   time.Time             `json:"validatedAt,omitzero"`
	HaltRequested string                `json:"haltRequested,omitempty"`
	Reason        string                `json:"reason,omitempty"` // why the steward ended
	Seq           int64                 `json:"seq"`
}

// Task is a task in the steward's state. In state IDLE it waits to start, or is over if it has an outcome.
type Task struct {
	ID     string    `json:"id"`
	Title  string    `json:"title,omitempty"`
	Tier   task.Tier `json:"tier"`
	TierBy string    `json:"tierBy,omitempty"` // rules, planner, the charter or a person
	// TierReasons are the rules that gave the tier. TierNote is what a person who set it said.
	TierReasons []task.TierReason `json:"tierReasons,omitempty"`
	TierNote    string            `json:"tierNote,omitempty"`
	State       task.State        `json:"state"`
	Priority    int               `json:"priority"`
	After       []string          `json:"after,omitempty"` // the tasks before it that are not done yet
	Source      string            `json:"source,omitempty"`
	Held        bool              `json:"held,omitempty"`   // it waits in the backlog until somebody resumes it
	Paused      bool              `json:"paused,omitempty"` // a person paused it
	Notes       []string          `json:"notes,omitempty"`  // guidance that its loops or its planner have not got yet

	Plan       *task.Plan `json:"plan"`
	ApprovedBy string     `json:"approvedBy,omitempty"` // who approved exactly this plan
	Step       string     `json:"step"`                 // the step that started last
	Steps      []Step     `json:"steps,omitempty"`
	Loops      []string   `json:"loops"`
	Ending     []Step     `json:"ending,omitempty"` // steps of a plan that was given up, whose loops have not ended yet

	Actions     int           `json:"actions"`
	ProgressAt  time.Time     `json:"progressAt,omitzero"`
	Retries     int           `json:"retries"`
	Log         []task.Action `json:"log,omitempty"` // the last KeepActions actions
	Window      stuck.Window  `json:"window,omitzero"`
	Tripped     string        `json:"tripped,omitempty"`     // the rule that stopped it
	Interrupted string        `json:"interrupted,omitempty"` // the task to which it gives way
	Standstill  string        `json:"standstill,omitempty"`  // why nothing runs for it; only queries say so (Standing)

	WaitingFor *WaitingFor `json:"waitingFor"`
	Stop       string      `json:"stop,omitempty"` // the stop condition that it waits for
	Until      time.Time   `json:"until,omitzero"` // when an agent's rate limit ends; it sleeps until then
	Cost       task.Usage  `json:"cost"`
	// ExecutingMs is how long its loops have worked (S8). Its Cost includes the time of its planners too.
	ExecutingMs int64           `json:"executingMs,omitempty"`
	CostLimit   *metric.Decimal `json:"costLimit,omitempty"` // as raised by a person
	Outcome     string          `json:"outcome"`             // done or cancelled; "" until it is over
	Reason      string          `json:"reason,omitempty"`
	Base        string          `json:"base,omitempty"`     // the commit that its work starts from
	Head        string          `json:"head,omitempty"`     // the last commit of its work
	Proposal    string          `json:"proposal,omitempty"` // the hash of its one proposal
	Submitted   time.Time       `json:"submittedAt,omitzero"`
	Began       time.Time       `json:"beganAt,omitzero"`
	Ended       time.Time       `json:"endedAt,omitzero"`
	Since       time.Time       `json:"since,omitzero"` // when it entered its state
}

// PersonsTier returns the tier that a person set, also by the charter, or "".
func (t Task) PersonsTier() task.Tier {
	if t.TierBy == byPerson || t.TierBy == byCharter {
		return t.Tier
	}
	return ""
}

// Needs returns the reasons why a person has to approve the task's plan (S4), even if a person has approved it.
func (t Task) Needs() []task.Need {
	if len(t.Plan.Needs) == 0 && (t.Tier == task.T1 || t.Tier == task.T2) { // a person set that tier after the assessment
		return []task.Need{risk.TierNeed(t.Tier)}
	}
	return t.Plan.Needs
}

// outdated reports whether the plan was assessed under another charter or other governance files (S12).
func (s State) outdated(t Task) bool {
	differs := func(earlier, now string) bool { return earlier != "" && now != "" && earlier != now }
	return t.Plan != nil && (differs(t.Plan.Charter, s.Charter) || differs(t.Plan.Governance, s.Governance))
}

// Stands returns, in the form of a gate, that a task waits because a person paused it or stepped in. It is not a gate,
// because nothing is asked, but a person has to let the task continue. ok is false for any other task.
func (t Task) Stands() (g loop.Gate, ok bool) {
	if t.Outcome != "" || t.State != task.Waiting || !t.resumable() || t.doubted() {
		return g, false
	}
	text := "it waits until you continue it"
	if t.WaitingFor != nil && t.WaitingFor.What != "" {
		text = t.WaitingFor.What
	}
	return loop.Gate{ID: "paused", Kind: loop.GatePause, Task: t.ID, Summary: t.ID + ": " + text, OpenedAt: t.Since, Answers: []string{loop.MessageContinue}}, true
}

// Open returns everything at the steward that waits for a person: its gates, then the tasks that a person paused or
// stepped into. A paused steward lists no paused tasks, because the pause of the steward covers them. A steward that
// has ended takes no answers, so nothing waits.
func (s State) Open() []loop.Gate {
	if s.Status.Ended() {
		return nil
	}
	open := slices.Clone(s.Gates)
	if s.Paused {
		open = append(open, loop.Gate{ID: "paused", Kind: loop.GatePause, Summary: "the steward is paused: everything waits until you continue it", Answers: []string{loop.MessageContinue}})
	}
	for _, t := range s.Tasks {
		if g, stands := t.Stands(); stands && (!s.Paused || t.Paused) {
			open = append(open, g)
		}
	}
	return open
}

// Position returns the state of a task as people see it; of a finished task, its outcome. In a steward that has ended,
// nothing runs and nobody is asked, whatever state a task was left in.
func (s State) Position(t Task) string {
	switch {
	case t.Outcome != "":
		return t.Outcome
	case s.Status.Ended():
		return "not done, was " + string(t.State)
	}
	return string(t.State)
}

// Doing returns what a step's loop is doing, as people see it. The end of a loop told to halt may stay unknown.
func (s Step) Doing() string {
	if s.Told == loop.MessageHalt && s.Status != Over {
		return "told to halt"
	}
	return s.Status
}

// AtLoop reports whether a task of the steward waits for an answer at one of its loops.
func (s State) AtLoop(t Task) bool {
	return !s.Status.Ended() && t.atLoop()
}

func (t Task) atLoop() bool { return t.WaitingFor != nil && t.WaitingFor.Loop != "" }

// The outcomes of tasks.
const (
	Done      = "done"
	Cancelled = "cancelled"
)

// Step is a step of a task's plan, with its progress.
type Step struct {
	ID      string      `json:"id"`
	Loop    string      `json:"loop,omitempty"` // the child loop that does it; "" until it starts
	Status  string      `json:"status"`
	Told    string      `json:"told,omitempty"`    // the last message that the steward sent to the loop
	PauseAt string      `json:"pauseAt,omitempty"` // where it was told to pause: loop.PauseNow, PauseStep or PauseIteration
	Seq     int64       `json:"seq,omitempty"`     // the number of the loop's last report
	Said    string      `json:"said,omitempty"`    // the content of that report
	Head    string      `json:"head,omitempty"`
	Branch  string      `json:"branch,omitempty"`
	Usage   task.Usage  `json:"usage,omitzero"`
	Asks    *WaitingFor `json:"asks,omitempty"` // the question of its loop that waits for a person
	// Cap is what its loop may cost; nil means no limit.
	Cap *metric.Decimal `json:"cap,omitempty"`
	// Kept is the branch of an earlier attempt from whose work the next one continues, and KeptHead its head.
	Kept     string `json:"kept,omitempty"`
	KeptHead string `json:"keptHead,omitempty"`
	// Failed counts the failures of its loops since a person last let the task continue (S10).
	Failed int `json:"failed,omitempty"`
	// Counted is the part of its active time that is already in the executing time.
	Counted int64 `json:"counted,omitempty"`
}

// What a step's loop is doing, as far as the steward knows.
const (
	Pending = "pending" // it has not started
	Running = "running"
	Asking  = "asking" // a person has to answer at the loop
	Paused  = "paused" // the steward paused it
	Over    = "done"
)

// atWork reports whether a loop of the step has started and has not ended, as far as the steward knows.
func (s Step) atWork() bool { return s.Loop != "" && s.Status != Over && s.Status != Pending }

// LoopsAtWork returns the loops that have started and have not ended, as far as the steward knows.
func (s State) LoopsAtWork() (loops []string) {
	for _, t := range s.Tasks {
		for _, st := range slices.Concat(t.Steps, t.Ending) {
			if st.atWork() {
				loops = append(loops, st.Loop)
			}
		}
	}
	return loops
}

// Known remembers a task by digests of its keys, so that a task that comes again is recognised.
type Known = task.Known

// MaxDoneBefore is how many keys of tasks a new steward takes over that earlier stewards of the project have done.
const MaxDoneBefore = 500

// DoneBefore returns the last keys of tasks that a steward has done, each once.
func DoneBefore(entries []Known) []Known {
	var done []Known
	seen := map[string]bool{}
	for _, k := range entries {
		if k.Done && !seen[k.Key] {
			seen[k.Key] = true
			done = append(done, k)
		}
	}
	return list.Last(done, MaxDoneBefore)
}

// WaitingFor is what a task waits for: a gate of the steward, or a child's gate, which is answered there.
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
	Repeats     int64 `json:"repeats"` // the longest current streak of one action with one result
	Errors      int64 `json:"errors"`
	Milestones  int64 `json:"milestones"`
	ExecutingMs int64 `json:"executingMs"`
	Done        int64 `json:"tasksDone"`
	Cancelled   int64 `json:"tasksCancelled"`
}

// Find returns the task with that ID, or nil.
func (s State) Find(id string) *Task {
	return find(s.Tasks, func(t Task) bool { return t.ID == id })
}

// Foremost returns the first n tasks as people see them: started ones, then the queue, then the last finished ones.
func (s State) Foremost(n int) []Task {
	var started, queue, ended []*Task
	for i := range s.Tasks { // by index, because a task is large
		switch t := &s.Tasks[i]; {
		case t.Outcome != "":
			ended = append(ended, t)
		case t.State == task.Idle:
			queue = append(queue, t)
		default:
			started = append(started, t)
		}
	}
	open := first(append(started, queue...), n)
	tasks := make([]Task, 0, min(n, len(s.Tasks)))
	for _, t := range slices.Concat(open, list.Last(ended, n-len(open))) {
		tasks = append(tasks, *t)
	}
	return tasks
}

// Shown returns the state as a query answers it: at most n tasks and n gates, with complete counts, for people only.
func (s State) Shown(n int) State {
	s.Tasks = s.Foremost(n)
	s.Queue, s.Gates, s.Drift = first(s.Queue, n), first(s.Gates, n), first(s.Drift, n)
	s.Known, s.Answered = nil, nil
	return s
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }
