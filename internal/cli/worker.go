package cli

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/worker"

	"pawl/config"
	hostworker "pawl/internal/worker"
)

// localWorker is this process's share in this host's worker. The zero value is no share: another process has the worker.
type localWorker struct {
	cancel context.CancelFunc // nil without a share
	done   chan struct{}
	err    error // valid once done is closed
	began  time.Time
	once   sync.Once

	polls atomic.Bool // this process is the host's worker; otherwise another one is, and this one stands by
	ready chan bool

	triggers chan string // the address that serves triggers, "" when they are no longer served
}

// startWorker starts the worker, or stands by if another process is this host's. It does not wait until it is ready.
// close ends it.
func (s *session) startWorker(parent context.Context) {
	ctx, cancel := context.WithCancel(parent)
	w := &localWorker{cancel: cancel, began: time.Now(), done: make(chan struct{}), ready: make(chan bool, 4), triggers: make(chan string, 4)}
	s.worker = w
	go func() {
		defer close(w.done)
		o := hostworker.Options{
			Home: s.Home, Client: s.SDK, Namespace: s.temporal.Namespace, Logger: s.logger, Embedded: s.engine != nil, Ready: w.note,
			Worker: s.app.worker, Telemetry: s.shown, Triggers: func(address string) { offer(w.triggers, address) },
			Closed: s.temporal.Ports(), Services: s.temporal.Services(), Keys: s.temporal.Keys(),
		}
		// The owner of the engine and the host's worker often are one process. When it dies, this one may get the
		// worker's lock before anybody has the engine. That passes.
		for patience := time.Now().Add(outage); ; {
			w.err = s.app.deps.Worker(ctx, o)
			if ctx.Err() != nil {
				w.err = nil // it was told to end
			}
			if w.err == nil {
				return
			}
			if w.polls.Load() {
				w.note(false)
				patience = time.Now().Add(outage)
			}
			if _, lost := errors.AsType[*serviceerror.Unavailable](w.err); !lost || time.Now().After(patience) {
				s.logger.Error("the worker ended", "error", w.err)
				return
			}
			s.logger.Warn("the worker lost the engine and starts again", "error", w.err)
			select {
			case <-ctx.Done():
				w.err = nil
				return
			case <-time.After(retryEvery):
			}
		}
	}()
}

// How often a worker that lost the engine starts again, and how long that may fail.
const (
	retryEvery = 100 * time.Millisecond
	outage     = 30 * time.Second
)

// note records whether this process is the host's worker.
func (w *localWorker) note(ours bool) {
	w.polls.Store(ours)
	offer(w.ready, ours)
}

// offer sends a value unless nobody takes it.
func offer[T any](ch chan<- T, value T) {
	select {
	case ch <- value:
	default:
	}
}

// stopTimeout is how long the worker may take to end: as long as its steps, and a little more. Supervisors end what
// it leaves, and the next worker continues from there.
func (a *app) stopTimeout() time.Duration { return a.worker.StopTimeout + 5*time.Second }

// configureWorker reads the worker's settings, from the environment and the command's flags.
func (a *app) configureWorker(cmd *cobra.Command, _ []string) (err error) {
	given := map[string]string{}
	for _, setting := range config.WorkerSettings {
		if f := cmd.Flags().Lookup(setting.Flag); f != nil && f.Changed {
			given[setting.Flag] = f.Value.String()
		}
	}
	if a.worker, err = config.LoadWorker(given); err != nil {
		return usage(err.Error())
	}
	// All workers of a process share one cache. It gets the size that the first worker finds, and the embedded engine
	// starts some workers of its own.
	worker.SetStickyWorkflowCacheSize(a.worker.Cache)
	return nil
}

// workerFlags adds the flags of a worker's settings to a command that runs a worker until it is interrupted.
func workerFlags(cmd *cobra.Command) *cobra.Command {
	for _, s := range config.WorkerSettings {
		cmd.Flags().String(s.Flag, s.Default, s.Usage+" ("+s.Env()+")")
	}
	return cmd
}

// stop ends the worker and waits for it, but not longer than limit. A second call does not wait again.
func (w *localWorker) stop(limit time.Duration) {
	w.once.Do(func() {
		if w.cancel == nil {
			return
		}
		w.cancel()
		select {
		case <-w.done:
		case <-time.After(limit):
		}
	})
}
