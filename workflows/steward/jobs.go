package steward

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/workflows/display"
)

// job is work under way beside the main line.
type job struct {
	steward.Job
	cancel func()
}

// underWay returns the jobs under way, in an order that every replay repeats.
func (r *run) underWay() (jobs []steward.Job) {
	for _, key := range slices.Sorted(maps.Keys(r.jobs)) {
		if j := r.jobs[key].Job; j.Do != "" {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// start begins the jobs, and reports whether the steward should end. If it should, it cancels all jobs.
func (r *run) start(ctx workflow.Context, jobs []steward.Job) (end bool) {
	for _, j := range jobs {
		switch j.Do {
		case steward.End:
			for _, key := range slices.Sorted(maps.Keys(r.jobs)) {
				r.jobs[key].cancel()
			}
			return true
		case steward.Drop:
			j.Do = steward.Plan
			if planning, ok := r.jobs[j.Key()]; ok {
				planning.cancel()
			}
		default:
			r.background(ctx, j.Key(), j, func(ctx workflow.Context) error { return works[j.Do](r, ctx, j) })
		}
	}
	return false
}

// background runs work beside the main line, once at a time for each key.
func (r *run) background(ctx workflow.Context, key string, j steward.Job, work func(workflow.Context) error) {
	if _, ok := r.jobs[key]; ok {
		return
	}
	ctx, cancel := workflow.WithCancel(ctx)
	r.jobs[key] = job{j, cancel}
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() {
			delete(r.jobs, key)
			r.finished++
		}()
		if err := work(ctx); err != nil && ctx.Err() == nil {
			workflow.GetLogger(ctx).Error("a job of the steward failed", "job", key, "error", err)
		}
	})
}

// may is asked before each part of a job, because the state may have changed during the part before (S6). If the part
// may not be done, the job stops; the steward's next step decides what follows.
func (r *run) may(j steward.Job) error {
	if stop := steward.Stopped(r.State(), r.charter, j); stop != nil {
		return &stopped{stop.Why}
	}
	return nil
}

// stopped says why an action was not done.
type stopped struct{ why string }

func (s *stopped) Error() string { return s.why }

// works has the function for each sort of job.
var works = map[steward.Do]func(*run, workflow.Context, steward.Job) error{
	steward.Plan: (*run).plan, steward.Assess: (*run).plan, steward.Begin: (*run).begin, steward.Tell: (*run).tell,
}

// plan makes the planner plan a task and assesses the plan (S3), or assesses the plan that the task has again (S12).
func (r *run) plan(ctx workflow.Context, j steward.Job) error {
	if r.may(j) != nil { // its task may be gone by now
		return nil
	}
	s := r.State()
	t := s.Find(j.Task)
	input := stewardapi.PlanTask{
		Step:    api.Step{Ref: r.opened.Ref, Key: api.Key{Iteration: t.Actions, Name: string(j.Do) + "-" + t.ID, Repeat: int(s.Seq)}, LimitMs: r.charter.Limits.Executing.D().Milliseconds()},
		Steward: s.Steward, Ledger: s.Ledger, Charter: r.charter, Task: t.ID, Note: j.Note, Tier: t.PersonsTier(), CostUSD: j.Cap, Again: j.Plan,
	}
	summary, failed, apply := "plan "+t.ID, "it could not be planned: ", steward.AfterPlan
	if j.Do == steward.Assess {
		summary, failed, apply = "assess the plan of "+t.ID+" once more", "its risk could not be assessed: ", steward.AfterAssess
	} else {
		input.Claims = steward.Claims(s, r.charter, t.ID)
	}
	var out stewardapi.TaskPlanned
	err := r.execute(ctx, stewardapi.PlanTaskName, summary, input, &out)
	switch {
	case err != nil && ctx.Err() != nil: // the planner gave way, or nobody wants the task any more; a plan that it had just made counts
		out.Interrupted = true
	case err != nil:
		out.Problems = append(out.Problems, failed+display.Plain(err))
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return r.follow(ctx, func(s steward.State) []loop.Event { return apply(s, r.charter, j, out) })
}

// begin starts the loop of a step, or adopts a running loop. A loop with the step's ID belongs to the step if it was
// started for the same plan; any other loop does not.
func (r *run) begin(ctx workflow.Context, j steward.Job) error {
	err := r.beginAs(ctx, &j)
	return cmp.Or(err, r.catchUp(ctx, j.Loop))
}

// beginAs is begin without the loop's reports, which wait. It sets the loop's ID.
func (r *run) beginAs(ctx workflow.Context, j *steward.Job) error {
	cannot := func(reason string) error {
		return r.follow(ctx, func(s steward.State) []loop.Event { return steward.CannotBegin(s, *j, reason) })
	}
	var read stewardapi.ChildRead
	taken := "" // the name, if somebody took it before the start
	for n, id := 2, j.Loop; ; {
		r.begun[j.Loop] = true // before it is read: what it reports meanwhile is newer
		if err := r.execute(ctx, stewardapi.ReadChildName, "is there a loop "+j.Loop+"?", stewardapi.ReadChild{Loop: j.Loop}, &read); err != nil {
			return cannot("whether the loop " + j.Loop + " runs already can't be read: " + display.Plain(err))
		}
		if read.Found && !read.Of(r.State().Steward, j.Plan) {
			if err := r.catchUp(ctx, j.Loop); err != nil {
				return err
			}
			j.Loop = fmt.Sprintf("%s.%d", id, n) // the name belongs to an earlier life of the steward, or to somebody else
			n++
			continue
		}
		var err error
		if read.Found {
			j.Do = steward.Adopt
			err = r.may(*j)
		} else {
			err = r.launch(ctx, *j)
		}
		var stop *stopped
		switch {
		case errors.As(err, &stop):
			return nil
		case startedAlready(err):
			if taken == j.Loop {
				return cannot("another workflow has the ID " + j.Loop + ", and can't be read")
			}
			taken = j.Loop // taken since it was read, by this step's loop or by another
			continue
		case err != nil:
			return cannot("the step " + j.Step.ID + " can't start: " + display.Plain(err))
		}
		break
	}
	if err := r.follow(ctx, func(s steward.State) []loop.Event { return steward.AfterBegin(s, *j) }); err != nil {
		return err
	}
	return r.reported(ctx, read.Event)
}

// catchUp applies what a loop has reported while it was being started.
func (r *run) catchUp(ctx workflow.Context, id string) error {
	delete(r.begun, id)
	unheard := r.unheard
	r.unheard = nil
	for _, e := range unheard {
		if err := r.report(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// startedAlready reports whether the error says that the child's workflow ID is taken.
func startedAlready(err error) bool {
	var child *temporal.ChildWorkflowExecutionAlreadyStartedError
	var tested *serviceerror.WorkflowExecutionAlreadyStarted // the error of the SDK's test environment
	return errors.As(err, &child) || errors.As(err, &tested)
}

// launch starts a child loop. The child outlives this run, and the steward.
func (r *run) launch(ctx workflow.Context, j steward.Job) error {
	base, err := r.footing(ctx, j)
	if err != nil {
		return err
	}
	if err := r.may(j); err != nil {
		return err
	}
	sp, err := steward.LoopSpec(r.State(), r.charter, j, base, r.opened.Onto)
	if err != nil {
		return err
	}
	if sp.Repo.Path != "" && sp.Repo.Host == "" && r.queue() != api.TaskQueue { // a path means the steward's host
		sp.Repo.Host = r.State().Host
	}
	doc, err := json.Marshal(sp)
	if err != nil {
		return err
	}
	k, err := kind.Of(sp.Kind)
	if err != nil {
		return err
	}
	start := launch.Of(j.Loop, "pawl/"+j.Loop, sp)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: j.Loop, TaskQueue: api.TaskQueue, WorkflowTaskTimeout: launch.TaskTimeout, Memo: start.Memo,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         start.Summary, StaticDetails: start.Details,
	})
	child := workflow.ExecuteChildWorkflow(ctx, k.Workflow, json.RawMessage(doc))
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return err
	}
	// Only this run learns of the child's end this way. It also learns of an end that the child could not report.
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = child.Get(ctx, nil)
		if ctx.Err() == nil {
			_ = r.read(ctx, j.Loop)
		}
	})
	return nil
}

// footing returns the branch that a step's loop starts from: that of an earlier attempt whose work is kept, that of the
// step before it, or one that joins the branches of several steps.
func (r *run) footing(ctx workflow.Context, j steward.Job) (branch string, err error) {
	switch {
	case j.From != "":
		return j.From, nil
	case len(j.After) == 0:
		return "", nil
	case len(j.After) == 1:
		return j.After[0].Branch, nil
	}
	input := stewardapi.Join{Ref: r.opened.Ref, Task: j.Task, Step: j.Step.ID}
	input.Heads = list.Map(j.After, func(st steward.Step) string { return st.Head })
	var out stewardapi.Joined
	j.Do = steward.Join
	if err = r.may(j); err == nil {
		err = r.execute(ctx, stewardapi.JoinName, "join the work of the steps before "+j.Step.ID, input, &out)
	}
	if err != nil {
		return "", err
	}
	if err := r.follow(ctx, func(s steward.State) []loop.Event { return steward.AfterJoin(s, r.charter, j, out) }); err != nil {
		return "", err
	}
	if len(out.Conflicts) > 0 {
		return "", &stopped{"the steps before it can't be joined"} // a person is asked
	}
	return out.Branch, nil
}

// tell sends a message to a child loop. A loop that is over needs none.
func (r *run) tell(ctx workflow.Context, j steward.Job) error {
	m := loop.Message{By: loop.StewardName(r.State().Steward), Note: j.Note, Choice: j.Choice}
	err := workflow.SignalExternalWorkflow(ctx, j.Loop, "", j.Message, m).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a loop could not be told", "loop", j.Loop, "message", j.Message, "error", err)
	} else if r.State().Asks(j.Loop) && j.Message == loop.MessagePause {
		// The loop gives up its slot, unless somebody answered it just before: then it runs until it pauses.
		if err := r.read(ctx, j.Loop); err != nil {
			return err
		}
	}
	failed := ""
	if err != nil {
		failed = "the loop takes no message: " + display.Plain(err)
	}
	if !r.haltable { // a run that began before did not tell a loop again that is to pause sooner
		j.Choice = ""
	}
	if turn := r.follow(ctx, func(steward.State) []loop.Event { return steward.AfterTell(j, failed) }); turn != nil {
		return turn
	}
	if err != nil { // it may have ended without being able to report that
		return r.read(ctx, j.Loop)
	}
	return nil
}

// read asks for the state of a child loop, and applies the answer.
func (r *run) read(ctx workflow.Context, id string) error {
	var out stewardapi.ChildRead
	if err := r.execute(ctx, stewardapi.ReadChildName, "where does "+id+" stand?", stewardapi.ReadChild{Loop: id}, &out); err != nil {
		return err
	}
	switch {
	case !out.Found:
		out.Event = steward.Lost(id, steward.Gone)
	case out.Another(r.State().Steward): // whatever that one does is not the steward's
		out.Event = steward.Lost(id, "another loop, which this steward did not start, has its ID now")
	}
	return r.reported(ctx, out.Event)
}

// hear receives the signals of child loops, in order.
func (r *run) hear(ctx workflow.Context) {
	channel := workflow.GetSignalChannelWithOptions(ctx, task.ChildSignal, workflow.SignalChannelOptions{Description: "A child loop says where it stands; people need not send it"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var raw converter.RawValue
			channel.Receive(ctx, &raw)
			if r.take(ctx, raw) != nil {
				return
			}
		}
	})
}

// drain receives the reports that have arrived and were not read, before continue-as-new.
func (r *run) drain(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, task.ChildSignal)
	var raw converter.RawValue
	for channel.ReceiveAsync(&raw) {
		_ = r.take(ctx, raw)
	}
}

// take applies one report. An unreadable report changes nothing: the loop is read when that matters.
func (r *run) take(ctx workflow.Context, raw converter.RawValue) error {
	var e task.ChildEvent
	if err := json.Unmarshal(raw.Payload().GetData(), &e); err != nil || !e.Complete() {
		return nil
	}
	return r.report(ctx, e)
}

// report applies a child loop's report. If the loop is just being started, the report waits until that is recorded.
func (r *run) report(ctx workflow.Context, e task.ChildEvent) error {
	if r.begun[e.Loop] {
		r.unheard = append(r.unheard, e)
		return nil
	}
	return r.reported(ctx, e)
}

// reported records what follows from a loop's report, nothing if the loop has none.
func (r *run) reported(ctx workflow.Context, e task.ChildEvent) error {
	if e.Event == "" {
		return nil
	}
	return r.follow(ctx, func(s steward.State) []loop.Event { return steward.AfterChild(s, r.charter, e) })
}
