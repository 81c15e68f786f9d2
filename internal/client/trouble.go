package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/loop/api"
)

// Trouble is a failure that keeps a loop from continuing, or from being read if it has ended. Without a report the loop
// would just seem to run.
type Trouble struct {
	Loop  string `json:"loop"`
	What  string `json:"what"`
	Ended bool   `json:"ended,omitempty"`
}

// manyTries is how often a workflow task must fail to be reported: the replacement of a worker costs one attempt.
const manyTries = 3

// troubleOf returns what keeps a loop or steward from continuing: what fails and is tried again, or no worker takes. The
// loop itself can't know: the service retries its activities and its workflow tasks.
func (c *Client) troubleOf(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	if a := failing(d); a != nil {
		return a.GetActivityType().GetName() + " fails and is tried again: " + a.GetLastFailure().GetMessage()
	}
	if t := d.GetPendingWorkflowTask(); t.GetAttempt() > manyTries {
		return fmt.Sprintf("the workflow fails and is tried again (%d times): its history says why", t.GetAttempt())
	}
	for _, a := range d.GetPendingActivities() {
		queue := a.GetActivityOptions().GetTaskQueue().GetName()
		waits := a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && c.Now().Sub(a.GetScheduledTime().AsTime()) > lastPoll
		if waits && queue != "" && c.Served(ctx) && !c.polled(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY) {
			return fmt.Sprintf("%s waits on the queue %s, and no worker polls it: start pawl on that host; if there is no such host, correct repo.host and start again", a.GetActivityType().GetName(), queue)
		}
	}
	return ""
}

// failing returns the first activity that has failed and is tried again, nil if there is none.
func failing(d *workflowservice.DescribeWorkflowExecutionResponse) *workflowpb.PendingActivityInfo {
	for _, a := range d.GetPendingActivities() {
		f := a.GetLastFailure()
		if f != nil && f.GetApplicationFailureInfo().GetCategory() != enumspb.APPLICATION_ERROR_CATEGORY_BENIGN {
			return a
		}
	}
	return nil
}

// Troubles returns the loops of this host that can't continue, or whose ledger is gone, according to their files and, if
// an engine runs, to Temporal. They are in the order of their names.
func (c *Client) Troubles(ctx context.Context) ([]Trouble, error) {
	torn, err := hostrecord.Torn(c.Home)
	if err != nil {
		return nil, err
	}
	out := list.Map(torn, func(ref string) Trouble { return Trouble{Loop: ref, What: tornRecord} })
	records, err := hostrecord.List(c.Home)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(records))
	several(readers, len(records), func(i int) {
		if !records[i].Closed {
			found[i] = c.unwell(ctx, records[i])
		} else if _, _, err := c.open(ctx, records[i]); fault.CodeOf(err) == fault.LedgerDamaged {
			found[i] = c.unreadable(ctx, records[i])
		}
	})
	for i, trouble := range found {
		if trouble != "" {
			out = append(out, Trouble{records[i].Loop, trouble, records[i].Closed})
		}
	}
	unopened, err := c.unopened(ctx, records)
	out = append(out, unopened...)
	slices.SortStableFunc(out, func(a, b Trouble) int { return strings.Compare(a.Loop, b.Loop) })
	return slices.CompactFunc(out, func(a, b Trouble) bool { return a.Loop == b.Loop }), err
}

// unopened returns the loops and stewards that this host can't open. It has no record of them yet, or, if they continue
// from a ledger, only that of an earlier run.
func (c *Client) unopened(ctx context.Context, records []hostrecord.Record) (out []Trouble, err error) {
	if c.SDK == nil {
		return nil, nil
	}
	host, err := c.Home.HostID()
	if err != nil {
		return nil, err
	}
	running, err := c.executions(ctx, loopsQuery+" AND ExecutionStatus = 'Running'")
	for _, e := range running {
		id := e.GetExecution().GetWorkflowId()
		if recordOf(records, e) != nil {
			continue
		}
		if d, err := c.asked(ctx, id); err == nil && failing(d).GetLastWorkerIdentity() == api.HostQueue(host) {
			out = append(out, Trouble{Loop: id, What: c.troubleOf(ctx, d)})
		}
	}
	return out, err
}

// tornRecord describes a loop whose workspace record is damaged.
const tornRecord = "its workspace record is damaged; the worker makes it again from the ledger"

// damage returns which of this host's files of a loop or a steward are damaged, "" if it has none or they are whole.
func (c *Client) damage(ctx context.Context, id string) string {
	if refs, err := hostrecord.Torn(c.Home); err == nil && slices.Contains(refs, git.RefName(id)) {
		return tornRecord
	}
	if r, ok := c.Record(id); ok {
		return c.unreadable(ctx, r)
	}
	return ""
}

// unwell returns what keeps a record's loop from continuing, "" for nothing.
func (c *Client) unwell(ctx context.Context, r hostrecord.Record) string {
	if text := c.unreadable(ctx, r); text != "" {
		return text
	}
	if c.SDK == nil || c.Namespace != "" && r.Namespace != c.Namespace {
		return ""
	}
	d, err := c.asked(ctx, r.Loop)
	switch {
	case gone(err):
		return ""
	case err != nil:
		return c.unread(err)
	case d.GetWorkflowExecutionInfo().GetFirstRunId() != r.FirstRun:
		return ""
	}
	return c.troubleOf(ctx, d)
}

// asked asks the service for its record of a workflow, for a limited time: one whose disk is full does not answer.
func (c *Client) asked(ctx context.Context, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return c.askedRun(ctx, id, "")
}

// askedRun is asked for one run of the workflow, or for its newest one if run is "".
func (c *Client) askedRun(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	return c.SDK.DescribeWorkflowExecution(ctx, id, run)
}

// unread says why the service does not return a record. The usual reason of an engine on this host is a disk that is full
// or read-only.
func (c *Client) unread(err error) string {
	if reason := c.Home.Unwritable(); reason != "" && !c.Explicit {
		return reason + ". The loop continues once it can be written again"
	}
	if _, late := errors.AsType[*serviceerror.DeadlineExceeded](err); late || errors.Is(err, context.DeadlineExceeded) {
		return "Temporal did not return its record in time"
	}
	return fmt.Sprintf("Temporal can't read its record: %v", err)
}

// unreadable returns why the ledger of a record can't be read, "" if it can.
func (c *Client) unreadable(ctx context.Context, r hostrecord.Record) string {
	if c.begins(ctx, r) {
		return ""
	}
	var err error
	if r.Steward() {
		_, err = c.RecordedSteward(ctx, r.Ref)
	} else {
		_, err = c.RecordedAt(ctx, r)
	}
	if err == nil || gone(err) || ctx.Err() != nil {
		return ""
	}
	first, _, _ := strings.Cut(dirfd.Known(err.Error()), "\n")
	if r.Closed { // it was pushed at the loop's end, and may have been removed since
		return "its ledger can't be read: " + first + "; a worker that starts mends it, if the repository still has it"
	}
	return "its ledger can't be read: " + first + "; the worker mends it from the repository"
}
