package command

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"pawl/internal/home/hostrecord"
	"pawl/internal/loop/api"
)

// count adds n to the number of activities that this worker runs of a workflow, and reports whether any is left.
func (s *steps) count(workflow string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underway[workflow] += n; s.underway[workflow] == 0 {
		delete(s.underway, workflow)
	}
	return s.underway[workflow] > 0
}

// Left ends the steps of a loop whose run is lost, and reports whether this worker no longer runs anything of that
// run. Until then the ledger may still grow.
func (a *Runner) Left(r hostrecord.Record) bool {
	if a.steps.count(r.Loop, 0) {
		a.Release(r.Ref)
	}
	return !a.steps.count(r.Loop, 0)
}

// beatEvery is the time between two heartbeats of an activity. Their answers bring pause, halt and cancellation.
const beatEvery = time.Second

// Beating runs an activity, and sends heartbeats until it ends, so that no activity has to send them itself.
func (a *Runner) Beating(ctx context.Context, input *interceptor.ExecuteActivityInput, next interceptor.ActivityInboundInterceptor) (any, error) {
	workflow := activity.GetInfo(ctx).WorkflowExecution.ID
	a.steps.count(workflow, 1)
	defer a.steps.count(workflow, -1)
	h := &heart{}
	if activity.HasHeartbeatDetails(ctx) {
		var earlier api.Live // the last attempt's report counts until this one reports more
		if activity.GetHeartbeatDetails(ctx, &earlier) == nil {
			h.say(func() api.Live { return earlier })
		}
	}
	ctx, stop := context.WithCancel(context.WithValue(ctx, heartKey{}, h))
	defer stop()
	a.InBackground(func() { h.beat(ctx) })
	return next.ExecuteActivity(ctx, input)
}

// heart has what the heartbeats of one attempt of an activity report.
type heart struct {
	live atomic.Pointer[func() api.Live]
}

type heartKey struct{}

// say makes every later heartbeat report what live returns at that time.
func (h *heart) say(live func() api.Live) {
	if h != nil {
		h.live.Store(&live)
	}
}

func (h *heart) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if live := h.live.Load(); live != nil {
				activity.RecordHeartbeat(ctx, (*live)())
			} else {
				activity.RecordHeartbeat(ctx)
			}
		}
	}
}
