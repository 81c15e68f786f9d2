package steps

import (
	"context"
	"fmt"
	"os"

	"pawl/internal/act"
	"pawl/internal/durable"
)

// alone waits until no other loop of this host measures, and keeps them all from that until the slot is closed, or this
// process dies. A step that is interrupted meanwhile waits no longer. Waiting costs no active time: what a step spends
// is counted from when its command starts.
func (w *Work) alone(ctx context.Context) (*os.File, error) {
	w.Live.Store(&act.Live{Tool: "waiting until another loop of this host has measured"})
	defer w.Live.Store(&act.Live{})
	slot, err := durable.Lock(ctx, w.Workspace.Machine.Home.JudgeSlot())
	if err != nil {
		return nil, fmt.Errorf("waiting for this host's slot for measurements: %w", err)
	}
	return slot, nil
}
