package steps

import (
	"context"
	"fmt"
	"os"

	"pawl/internal/act"
	"pawl/internal/durable"
)

// alone waits until no other loop of this host measures. It then keeps other loops from measuring until the slot is
// closed, or this process dies. If the step is interrupted, it stops waiting. Waiting costs no active time, because a
// step's time counts from the start of its command.
func (w *Work) alone(ctx context.Context) (*os.File, error) {
	w.Live.Store(&act.Live{Tool: "waiting until another loop of this host has measured"})
	defer w.Live.Store(&act.Live{})
	slot, err := durable.Lock(ctx, w.Workspace.Machine.Home.JudgeSlot())
	if err != nil {
		return nil, fmt.Errorf("waiting for this host's slot for measurements: %w", err)
	}
	return slot, nil
}
