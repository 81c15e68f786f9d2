package agentcall

import (
	"context"
	"errors"
	"time"

	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/safego"
)

// lookEvery is the time between two looks at a program. It limits by how much a budget can be exceeded.
const lookEvery = 250 * time.Millisecond

// watch runs a program and looks at it until it has ended. A look returns whether the program has to be ended: then it is
// interrupted, and the result does not say so, since nobody but pawl interrupted it.
func watch(
	ctx context.Context, host *supervisor.Supervisor, command supervisor.Command, look func() bool,
) (supervisor.Result, error) {
	running, interrupt := context.WithCancel(ctx)
	defer interrupt()
	ended, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		err := safego.Caught(func() error {
			lookUntil(running, ended, interrupt, look)
			return nil
		})
		if err != nil {
			interrupt()
		}
		watched <- err
	}()

	result, err := host.Run(running, command)
	close(ended)
	if err := errors.Join(err, <-watched); err != nil {
		return result, err
	}
	if ctx.Err() == nil && running.Err() != nil {
		result.Interrupted = false
	}
	return result, nil
}

func lookUntil(running context.Context, ended <-chan struct{}, interrupt func(), look func() bool) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if running.Err() == nil && look() {
			interrupt()
		}
	}
}
