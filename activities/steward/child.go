package steward

import (
	"context"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/loop/rules"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// ReadChild returns the state of a child loop: from the loop itself, else from the ledger on this host. An error
// means that neither could be asked now; the activity is tried again.
func (a *Stewards) ReadChild(ctx context.Context, input stewardapi.ReadChild) (stewardapi.ChildRead, error) {
	snapshot, err := loopsOf(ctx, a.Machine).Snapshot(ctx, input.Loop)
	if fault.CodeOf(err) == fault.LoopNotFound {
		return stewardapi.ChildRead{}, nil
	}
	if err != nil {
		return stewardapi.ChildRead{}, err
	}
	s, event := snapshot.State, task.ChildStands
	switch {
	case s.Status.Ended():
		event = task.ChildEnded
	case s.Gate != nil:
		event = task.ChildAsks
	}
	return stewardapi.ChildRead{Found: true, Event: rules.Child(s, event)}, nil
}

// loopsOf returns a client with the connection of the activity.
func loopsOf(ctx context.Context, m *workspace.Machine) *client.Client {
	return &client.Client{Home: m.Home, SDK: m.Temporal(ctx), Namespace: m.Namespace, Now: time.Now}
}
