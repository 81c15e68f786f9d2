package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/integrations/schedule"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
)

// sendToSteward sends a message about a task: a new one, or the ID of one, "" for none.
func (a *app) sendToSteward(ctx context.Context, name, message string, about any, m steward.Message) error {
	if about != "" {
		encoded, err := json.Marshal(about)
		if err != nil {
			return fmt.Errorf("encoding the task: %w", err)
		}
		m.Task = encoded
	}
	return a.visit(ctx, func(s *session) error {
		sent, err := s.SendTask(ctx, name, message, m)

		hasEnded := err == nil || fault.CodeOf(err) == fault.GateClosed
		endsSteward := message == loop.MessageHalt && m.Task == nil
		if endsSteward && hasEnded && !sent.Untold && s.SDK != nil {
			a.removeSchedules(ctx, s, name)
		}
		if err != nil {
			return err
		}
		return a.reportSent(s, sent)
	})
}

// removeSchedules removes the schedules of a steward that has ended.
func (a *app) removeSchedules(ctx context.Context, s *session, name string) {
	err := schedule.Remove(ctx, s.SDK.ScheduleClient(), charter.Charter{Name: name})
	if err != nil {
		a.say("the schedules of %s could not be removed: %v", render.Clean(name), err)
	}
}
