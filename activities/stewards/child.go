package stewards

import (
	"context"
	"time"

	"pawl/activities/hosted"
	"pawl/internal/act"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/task"
)

// ReadChild returns the state of a child loop: from the loop itself, else from the ledger on this host. An error
// means that neither could be asked now; the activity is tried again.
func (a *Stewards) ReadChild(ctx context.Context, in act.ReadChild) (act.ChildRead, error) {
	snapshot, err := loopsOf(ctx, a.Machine).Snapshot(ctx, in.Loop)
	if fault.CodeOf(err) == fault.LoopNotFound {
		return act.ChildRead{}, nil
	}
	if err != nil {
		return act.ChildRead{}, err
	}
	s, event := snapshot.State, task.ChildStands
	switch {
	case s.Status.Ended():
		event = task.ChildEnded
	case s.Gate != nil:
		event = task.ChildAsks
	}
	return act.ChildRead{Found: true, Event: govern.Child(s, event)}, nil
}

// loopsOf returns a client with the connection of the activity.
func loopsOf(ctx context.Context, m *hosted.Machine) *client.Client {
	return &client.Client{Home: m.Home, SDK: m.Temporal(ctx), Namespace: m.Namespace, Now: time.Now}
}
