package activities_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"pawl/activities"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// beats records every heartbeat, and every activity that starts.
type beats struct {
	interceptor.WorkerInterceptorBase
	beat func(details ...any)
	do   func(next func() (any, error)) (any, error)
}

func (b *beats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &inbound{beats: b}
	in.Next = next
	return in
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	beats *beats
}

func (i *inbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	o := &outbound{beats: i.beats}
	o.Next = out
	return i.Next.Init(o)
}

func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	next := func() (any, error) { return i.Next.ExecuteActivity(ctx, in) }
	if i.beats.do == nil {
		return next()
	}
	return i.beats.do(next)
}

type outbound struct {
	interceptor.ActivityOutboundInterceptorBase
	beats *beats
}

func (o *outbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if o.beats.beat != nil {
		o.beats.beat(details...)
	}
	o.Next.RecordHeartbeat(ctx, details...)
}

// registry records what is registered.
type registry struct {
	worker.ActivityRegistry
	all map[string]any
}

func (r registry) RegisterActivityWithOptions(f any, o activity.RegisterOptions) { r.all[o.Name] = f }

func TestEveryActivityBeatsWhileItWorks(t *testing.T) {
	a := activities.New(home.Home{Dir: t.TempDir()}, "host", "pawl", "default", false)
	r := registry{all: map[string]any{}}
	a.RegisterShared(r)
	a.RegisterTrees(r)
	require.Len(t, r.all, 26)
	var all sync.WaitGroup // the activities wait, and t.Parallel would let no more of them wait at a time than there are processors
	defer all.Wait()
	for name, f := range r.all {
		all.Go(func() {
			t.Run(name, func(t *testing.T) {
				seen := make(chan struct{}, 10)
				env := actest.Environment(a, &beats{
					beat: func(...any) { seen <- struct{}{} },
					do: func(func() (any, error)) (any, error) { // it works until it has sent two heartbeats
						<-seen
						<-seen
						return nil, nil
					},
				})
				env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
				_, err := env.ExecuteActivity(name, reflect.Zero(reflect.TypeOf(f).In(1)).Interface())
				require.NoError(t, err)
			})
		})
	}
}

func TestAStepsBeatsTellWhatItHasSpent(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	proceed := filepath.Join(l.Opened.Desk, "proceed")
	var told []api.Live
	env := actest.Environment(l.Activities, &beats{beat: func(details ...any) {
		if len(details) == 1 {
			told = append(told, details[0].(api.Live))
		}
		if n := len(told); n > 1 && told[n-1].Usage.ActiveMs > told[n-2].Usage.ActiveMs {
			gittest.Write(t, proceed, "")
		}
	}})
	env.RegisterActivity(l.Check)
	value, err := env.ExecuteActivity(l.Check, api.Check{Step: l.Step(1), Command: "until test -e " + proceed + "; do sleep 0.1; done"})
	require.NoError(t, err)
	var out api.Checked
	require.NoError(t, value.Get(&out))
	require.Zero(t, out.ExitCode)
	require.FileExists(t, proceed)
}

// The worker of an agent's step dies after the agent has spent something. Recovery reads what its heartbeats
// reported.
func TestWhatAnEarlierAttemptToldIsToldAgain(t *testing.T) {
	a := activities.New(home.Home{Dir: t.TempDir()}, "host", "pawl", "default", false)
	before := api.Live{Usage: loop.Usage{ToolCalls: 3, ActiveMs: 50}, Tool: "Edit"}
	seen := make(chan api.Live, 10)
	env := actest.Environment(a, &beats{
		beat: func(details ...any) { seen <- details[0].(api.Live) },
		do: func(func() (any, error)) (any, error) {
			require.Equal(t, before, <-seen)
			return nil, os.ErrDeadlineExceeded
		},
	})
	env.SetHeartbeatDetails(before)
	env.RegisterActivity(a.CallAgent)
	_, err := env.ExecuteActivity(a.CallAgent, api.Call{})
	require.Error(t, err)
}
