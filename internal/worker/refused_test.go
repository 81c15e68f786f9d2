package worker_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"pawl/config"
	hostworker "pawl/internal/worker"
)

// refused is a worker that the service refuses at once.
type refused struct {
	worker.Worker
	fatal   func(error)
	stopped bool
}

func (r *refused) Start() error {
	r.fatal(errors.New("no such namespace"))
	return nil
}

func (r *refused) Stop() { r.stopped = true }

func TestAWorkerEndsIfTheServiceRefusesIt(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.o.Worker.Triggers = config.NoTriggers
	var workers []worker.Worker
	err := hostworker.Work(t.Context(), m.o, m.a, func(fatal func(error)) []worker.Worker {
		workers = []worker.Worker{&refused{fatal: fatal}, &refused{fatal: fatal}}
		return workers
	})
	require.EqualError(t, err, "the service refuses the worker: no such namespace")
	for _, w := range workers {
		require.True(t, w.(*refused).stopped)
	}
}
