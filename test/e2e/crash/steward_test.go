package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

// stewardCourse is an agent for every way that a steward's task goes: `broad` has two steps and a third that builds on
// both, `narrow` asks before it begins, `never` asks and is cancelled, `circle` makes no progress until it is stopped.
// The fifth iteration of `circle` waits until its steward has told it to pause, so that the pause always meets that
// iteration.
const stewardCourse = `
echo "$PAWL_LOOP.$PAWL_ROLE.$PAWL_TASK.$PAWL_ITERATION.$PAWL_ATTEMPT" >> "$WORLD/calls"
case $PAWL_ROLE.$PAWL_TASK.$PAWL_LOOP in
planner.broad.*) printf -- '---\nsteps:\n  - {id: x, kind: deliver}\n  - {id: y, kind: deliver}\n  - {id: z, kind: deliver, after: [x, y]}\n---\nWrite three.\n' > "$PAWL_PLAN" ;;
planner.circle.*) printf -- '---\nsteps: [{id: x, kind: improve, spec: {limits: {iterations: 9}}}]\n---\nGo round.\n' > "$PAWL_PLAN" ;;
planner.*) printf -- '---\nsteps: [{id: x, kind: deliver}]\n---\nWrite one.\n' > "$PAWL_PLAN" ;;
*.crew-circle-x)
	[ "$PAWL_ITERATION" -lt 5 ] || while ! [ -e "$WORLD/noticed" ]; do sleep 0.05; done
	echo "go round" ;;
*.crew-urgent-x) echo "closed" > work/today.md; echo "write" ;;
*) echo "$PAWL_LOOP" > "work/$PAWL_LOOP"; echo "write" ;;
esac
`

// crewTasks are the tasks in the order of their submission.
var crewTasks = []string{
	`{"id":"broad","body":"Write three."}`, `{"id":"narrow","body":"A delicate matter."}`,
	`{"id":"never","body":"Another delicate matter."}`, `{"id":"circle","body":"Go round.","priority":-1}`,
}

// crewSpec returns the steward's charter.
func (w *machine) crewSpec() json.RawMessage {
	w.T.Helper()
	w.kind, w.Loop = "Steward", "crew"
	agent := doc{"command": []string{"sh", filepath.Join(w.Dir, "agent.sh")}, "env": doc{"WORLD": w.Dir}}
	b, err := json.Marshal(doc{
		"kind": "steward", "name": "crew", "repo": doc{"path": w.Repo}, "agent": agent, "validateEvery": cmp.Or(w.validates, "1s"),
		"tiers": []doc{{"tier": "T1", "words": []string{"delicate"}}},
		"defaults": doc{
			"scope": []string{"work/**"}, "newFiles": "allow", "test": doc{"command": "true"}, "verify": doc{"command": "cat work/n"},
			"sandbox": doc{"allow": []string{w.Dir}},
			"agent":   agent, "approvals": doc{"tools": []string{"*"}, "diff": "auto"}, "limits": doc{"toolCalls": 1000, "activeTime": "1h"},
		},
	})
	require.NoError(w.T, err)
	return b
}

// crew asks the steward for its state.
func (w *machine) crew(ctx context.Context) (s steward.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := w.client.QueryWorkflow(ctx, w.Loop, "", "state")
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// tell sends the steward a message as an update. It ignores errors: if the steward still waits for the message, the
// caller sends it again.
func (w *machine) tell(ctx context.Context, name, payload string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = w.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: w.Loop, UpdateName: name, Args: []any{json.RawMessage(payload)}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
}

// people does once what people would do in that state of the steward: submit tasks, answer questions, end the steward
// when all tasks are over. It reports whether the steward has ended.
func (w *machine) people(ctx context.Context, s steward.State) (over bool) {
	if s.Status.Ended() {
		return true
	}
	tasks := crewTasks
	if w.tasks != nil {
		tasks = w.tasks
	}
	for _, t := range tasks[min(s.TasksCount, len(tasks)):] {
		w.tell(ctx, "submit", `{"task":`+t+`,"by":"ann"}`)
		return false
	}
	for _, g := range s.Gates {
		switch {
		case g.Kind == steward.GateStuck && s.Find(g.Task).Steps[0].Told != loop.MessagePause: // else it may end before the pause meets it
		case g.Kind == steward.GateStuck:
			w.Write("noticed", "")
			w.tell(ctx, "answer", fmt.Sprintf(`{"task":%q,"choice":"cancel","by":"ann"}`, g.Task))
		case g.Task == "never":
			w.tell(ctx, "answer", `{"task":"never","choice":"cancel","by":"ann"}`)
		default:
			w.tell(ctx, "approve", fmt.Sprintf(`{"task":%q,"hash":%q,"by":"ann"}`, g.Task, g.Hash))
		}
	}
	if s.TasksCount == len(tasks) && !slices.ContainsFunc(s.Tasks, func(t steward.Task) bool { return t.Outcome == "" || len(t.Ending) > 0 }) {
		w.tell(ctx, "halt", `{"by":"ann","note":"all is done"}`)
	}
	return false
}

// supervise acts for people until the steward or the node has ended. It starts the steward if it does not run.
func (w *machine) supervise(n *node, spec json.RawMessage) (over bool) {
	w.T.Helper()
	begun := false
	for end := time.Now().Add(world.Patience); ; {
		began := time.Now()
		if began.After(end) {
			s, err := w.crew(n.living)
			w.T.Fatalf("the steward does not come to its end: %v %s", err, pretty(w, s))
		}
		if !begun {
			begun = w.begin(spec) == nil
		} else if s, err := w.crew(n.living); err == nil && w.people(n.living, s) {
			ctx, cancel := context.WithTimeout(n.living, 5*time.Second)
			ended := w.client.GetWorkflow(ctx, w.Loop, "").Get(ctx, nil) == nil
			cancel()
			if ended {
				return true
			}
		}
		select {
		case <-n.gone:
			return false
		case <-world.Rested(began):
		}
	}
}

// crewOutcome is everything that could differ between two stewards that have ended.
type crewOutcome struct {
	Tasks   []string            // the outcome of each task
	Events  map[string][]string // the ledger's events for each task, without those that a restart repeats
	Commits []string            // the branches' commits: subject and tree, sorted
}

// crewOutcome reads the outcome, and checks what must hold for every steward and its loops.
func (w *machine) crewOutcome() (o crewOutcome) {
	w.T.Helper()
	ctx := w.T.Context()
	st, _, head := w.openLedger()
	report, err := ledger.Verify(ctx, st, head)
	require.NoError(w.T, err)
	require.Empty(w.T, report.Faults)
	require.True(w.T, report.Ended)
	book := ledger.OpenSteward(st)
	events, err := book.Events(ctx, head)
	require.NoError(w.T, err)
	for i, e := range events {
		require.Equal(w.T, int64(i+1), e.Seq, "the ledger's events are numbered without a gap: %s", e.Type)
	}
	folded := loop.Fold(steward.New(w.Loop), events).At(head)
	snapshot, err := book.State(ctx, head)
	require.NoError(w.T, err)
	require.Equal(w.T, pretty(w, folded), pretty(w, snapshot), "the ledger's state must be the fold of its events")
	var asked steward.State
	w.until("the steward that has ended says what it came to", func() bool {
		var err error
		asked, err = w.crew(ctx)
		return err == nil
	})
	require.Equal(w.T, pretty(w, folded.Shown(100)), pretty(w, asked), "the workflow's state must be the fold of the ledger's events")
	require.NoError(w.T, w.replay(w.history("")), "the workflow's history must replay")
	require.Equal(w.T, head, w.Git("rev-parse", w.record().Ledger), "the ledger must be pushed")

	o.Events = map[string][]string{}
	for _, e := range events {
		if text := aboutTask(e); text != "" {
			o.Events[e.Task] = append(o.Events[e.Task], text)
		}
	}
	for _, t := range folded.Tasks {
		o.Tasks = append(o.Tasks, fmt.Sprintf("%s %s %s %v by %q", t.ID, t.Tier, t.Outcome, t.Loops, t.ApprovedBy))
		for _, id := range t.Loops {
			r, ok := hostrecord.Latest(w.home, id)
			require.True(w.T, ok, "%s was run", id)
			require.True(w.T, r.Closed, "%s is over", id)
			w.until("nothing runs for "+id, func() bool { return len(w.processes(r.Token())) == 0 })
			child, err := st.Ref(ctx, r.Ledger)
			require.NoError(w.T, err)
			report, err := ledger.Verify(ctx, st, child)
			require.NoError(w.T, err)
			require.Empty(w.T, report.Faults, id)
			if t.Outcome == steward.Done {
				o.Commits = append(o.Commits, lines([]byte(w.Git("log", "--reverse", "--format=%s %T", w.base+"..refs/heads/pawl/"+id)))...)
			}
		}
	}
	slices.Sort(o.Commits)
	require.Empty(w.T, w.Git("status", "--porcelain"), "the project's tree is as it was")
	require.Contains(w.T, w.Read("repo/.pawl/STATUS_LEDGER.md"), "narrow")
	return o
}

// aboutTask says what happened to a task, "" for an event that depends on when somebody looked.
func aboutTask(e loop.Event) string {
	text := string(e.Type)
	switch e.Type {
	case loop.TaskSubmitted, loop.PlanMade, loop.MilestoneReached, loop.LoopDetected:
	case loop.TaskStateChanged:
		text += fmt.Sprintf(" %s %s", e.From, e.To)
	case loop.TierSet:
		text += " " + string(e.Tier)
	case loop.GateOpened:
		text += " " + string(e.Gate.Kind)
	case loop.GateClosed:
		text += " " + e.Answer.Message + " " + e.Answer.Choice
	case loop.StepBegun:
		text += " " + e.LoopID
	case loop.TaskEnded:
		text += " " + e.Outcome
	case loop.ActionTaken:
		if e.Action.What == task.Iterated { // depends on whether the loop was read during its iterations or at its end
			return ""
		}
		text += " " + e.Action.Name + " " + e.Action.Outcome
	default:
		return ""
	}
	return text
}

// tasksRunTwice returns the agent's calls that were made more than once, without those of the loop in which a call
// waits to be interrupted.
func (w *machine) tasksRunTwice() []string {
	return slices.DeleteFunc(w.callsRepeated(), func(call string) bool { return strings.HasPrefix(call, "crew-circle-x.") })
}

func newCrew(t testing.TB) *machine { return newMachine(t, stewardCourse) }
