package opening

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"pawl/activities/hosted"
	"pawl/activities/recording"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/userrepo"
)

// Place says whether a host that left something untaken is gone, and whether another one can go on with
// its loop: all that the host had recorded is in the repository. A ledger that another run has gone on
// with is LEDGER_AHEAD.
func (a *Opener) Place(ctx context.Context, in act.Place) (act.Placed, error) {
	out, err := a.hostGone(ctx, in)
	if err == nil {
		a.Logger.Info("a loop asks whether its host is gone", "loop", in.Loop, "gone", out.Gone, "why", out.Why)
	}
	return out, err
}

func (a *Opener) hostGone(ctx context.Context, in act.Place) (act.Placed, error) {
	if in.Host == a.Host {
		return act.Placed{Why: "this is the host"}, nil
	}
	silent, err := a.silent(ctx, in.Host)
	if err != nil {
		return act.Placed{}, err
	}
	if !silent {
		return act.Placed{Why: "the host " + in.Host + " asks for work"}, nil
	}
	return a.Reachable(ctx, in)
}

// Reachable says whether another host can go on with a loop whose own is gone.
func (a *Opener) Reachable(ctx context.Context, in act.Place) (act.Placed, error) {
	store, err := store.Open(ctx, a.StoreOf(in.URL))
	if err != nil {
		return act.Placed{}, fmt.Errorf("opening the store: %w", err)
	}
	at, since, err := reached(ctx, store, in)
	if err != nil {
		return act.Placed{}, hosted.Refusal(recording.PlainFault(userrepo.Unreached(in.URL, err)))
	}
	if at != in.Ledger && since == nil {
		return act.Placed{Why: fmt.Sprintf("the host %s is gone, and what it recorded last (%s) is not in %s", in.Host, in.Ledger, in.URL)}, nil
	}
	return act.Placed{Gone: true, Why: fmt.Sprintf("the host %s asked for no work for %s", in.Host, watch), Ledger: at, Since: since}, nil
}

// A host that lives asks for work at least once in this time, however busy it is: its polls of
// workflow tasks, which nothing keeps it from, come back within 70 seconds.
const watch = 75 * time.Second

// silent watches whether a host asks for work. Only what it sees itself counts: not the clock of the
// service, and not what that remembers, since it forgets all pollers when it is started.
func (a *Opener) silent(ctx context.Context, host string) (bool, error) {
	first, err := a.lastPoll(ctx, host)
	for looks := 0; err == nil && looks < 3; looks++ {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(watch / 3):
		}
		var last time.Time
		if last, err = a.lastPoll(ctx, host); last.After(first) {
			return false, nil
		}
	}
	return err == nil, err
}

// lastPoll is when a host last asked for work on any of its queues, as the service has noted it.
func (a *Opener) lastPoll(ctx context.Context, host string) (last time.Time, err error) {
	service := activity.GetClient(ctx).WorkflowService()
	for _, name := range []string{act.TaskQueue, act.HostQueue(host), act.AgentQueue(host)} {
		parts, err := service.ListTaskQueuePartitions(ctx, &workflowservice.ListTaskQueuePartitionsRequest{
			Namespace: a.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
		})
		if err != nil {
			return last, fmt.Errorf("asking for the partitions of %s: %w", name, err)
		}
		for of, list := range map[enumspb.TaskQueueType][]*taskqueuepb.TaskQueuePartitionMetadata{
			enumspb.TASK_QUEUE_TYPE_WORKFLOW: parts.GetWorkflowTaskQueuePartitions(), enumspb.TASK_QUEUE_TYPE_ACTIVITY: parts.GetActivityTaskQueuePartitions(),
		} {
			for _, part := range list {
				d, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
					Namespace: a.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: part.GetKey()}, TaskQueueType: of,
				})
				if err != nil {
					return last, fmt.Errorf("asking who polls %s: %w", part.GetKey(), err)
				}
				for _, p := range d.GetPollers() {
					if at := p.GetLastAccessTime().AsTime(); p.GetIdentity() == act.HostQueue(host) && at.After(last) {
						last = at
					}
				}
			}
		}
	}
	return last, nil
}

// reached is where a loop's ledger is in the repository, and which of the events that its host was sent
// are in there beyond what the loop knows of: that may have died before it could say so. Where the
// repository has not even what the loop knows, there is nothing to compare: since is nil, and at is not
// in.Ledger.
func reached(ctx context.Context, store *store.Store, in act.Place) (at string, since []loop.Event, err error) {
	ref := "refs/pawl-ledger/" + strings.TrimPrefix(in.Branch, "pawl/")
	refs, err := userrepo.Refs(ctx, store, userrepo.At(in.URL), ref)
	if at = refs[ref]; err != nil || at == in.Ledger || at == "" {
		return at, nil, err
	}
	if at, err = userrepo.FetchLedger(ctx, store, userrepo.At(in.URL), ref); err != nil {
		return "", nil, err
	}
	if since, err = ledger.Since(ctx, store, at, in.Ledger); err != nil {
		return at, nil, nil // it is behind what the loop knows, or of another descent
	}
	if len(since) > len(in.Sent) || !slices.EqualFunc(since, in.Sent[:len(since)], same) {
		return at, nil, fault.New(fault.LedgerAhead, "the ledger in %s is at %s, where another run has taken it", in.URL, at)
	}
	return at, append([]loop.Event{}, since...), nil
}

// same reports whether two events are one, which the ledger may have completed.
func same(x, y loop.Event) bool { return x.Seq == y.Seq && x.Type == y.Type && x.Time.Equal(y.Time) }
