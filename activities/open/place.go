package open

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

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// Place reports whether a silent host is gone, and another one can continue its loop, as all that was recorded is in the
// repository. If another run has continued the ledger, the error is LEDGER_AHEAD.
func (a *Opener) Place(ctx context.Context, input api.Place) (out api.Placed, err error) {
	defer func() {
		if err == nil {
			a.Logger.Info("a loop asks whether its host is gone", "loop", input.Loop, "gone", out.Gone, "why", out.Why)
		}
	}()
	if input.Host == a.Host {
		return api.Placed{Why: "this is the host"}, nil
	}
	silent, err := a.silent(ctx, input.Host)
	if err != nil {
		return api.Placed{}, err
	}
	if !silent {
		return api.Placed{Why: "the host " + input.Host + " asks for work"}, nil
	}
	return a.Reachable(ctx, input)
}

// Reachable reports whether another host can continue a loop whose own host is gone.
func (a *Opener) Reachable(ctx context.Context, input api.Place) (api.Placed, error) {
	store, err := store.Open(ctx, a.StoreOf(input.URL))
	if err != nil {
		return api.Placed{}, fmt.Errorf("opening the store: %w", err)
	}
	commit, events, err := reached(ctx, store, input)
	if err != nil {
		return api.Placed{}, workspace.Refusal(record.PlainFault(userrepo.Unreached(input.URL, err)))
	}
	if commit != input.Ledger && events == nil {
		return api.Placed{Why: fmt.Sprintf("the host %s is gone, and what it recorded last (%s) is not in %s", input.Host, input.Ledger, input.URL)}, nil
	}
	return api.Placed{Gone: true, Why: fmt.Sprintf("the host %s asked for no work for %s", input.Host, watch), Ledger: commit, Since: events}, nil
}

// A host that is alive asks for work at least once in this time, however busy it is: its polls for workflow tasks,
// which nothing delays, return within 70 seconds.
const watch = 75 * time.Second

// silent watches whether a host asks for work. It only relies on its own observation, and not on the service's clock
// or memory, because the service forgets all pollers when it restarts.
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

// lastPoll returns when a host last asked for work on any of its queues, as the service recorded it.
func (a *Opener) lastPoll(ctx context.Context, host string) (last time.Time, err error) {
	service := activity.GetClient(ctx).WorkflowService()
	for _, name := range []string{api.TaskQueue, api.HostQueue(host), api.AgentQueue(host)} {
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
					if when := p.GetLastAccessTime().AsTime(); p.GetIdentity() == api.HostQueue(host) && when.After(last) {
						last = when
					}
				}
			}
		}
	}
	return last, nil
}

// reached returns where a loop's ledger is in the repository. events are those of the ledger after input.Ledger,
// which the host was sent: the host may have died before it could report them. If the repository does not even have
// input.Ledger, events is nil and commit differs from input.Ledger.
func reached(ctx context.Context, store *store.Store, input api.Place) (commit string, events []loop.Event, err error) {
	ref := "refs/pawl-ledger/" + strings.TrimPrefix(input.Branch, "pawl/")
	repo, err := workspace.Find(ctx, spec.Repo{URL: input.URL})
	if err != nil {
		return "", nil, err
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, store, repo, ref)
	if commit = refs[ref]; err != nil || commit == input.Ledger || commit == "" {
		return commit, nil, err
	}
	if commit, err = userrepo.FetchLedger(ctx, store, repo, ref); err != nil {
		return "", nil, err
	}
	if events, err = ledger.Since(ctx, store, commit, input.Ledger); err != nil {
		return commit, nil, nil // the ledger is behind input.Ledger, or does not descend from it
	}
	if len(events) > len(input.Sent) || !slices.EqualFunc(events, input.Sent[:len(events)], same) {
		return commit, nil, fault.New(fault.LedgerAhead, "the ledger in %s is at %s, where another run has taken it", input.URL, commit)
	}
	return commit, append([]loop.Event{}, events...), nil
}

// same reports whether two events are the same. The ledger may have completed one of them.
func same(x, y loop.Event) bool { return x.Seq == y.Seq && x.Type == y.Type && x.Time.Equal(y.Time) }
