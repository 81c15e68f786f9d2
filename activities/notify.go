package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"pawl/activities/workspace"
	"pawl/internal/integrations/notify"
	"pawl/internal/loop/api"
)

// notifyBound is how long one attempt to notify somebody may take.
const notifyBound = 30 * time.Second

// Notify notifies one receiver of spec.notify. A command runs in the user's repository, if that is on this host.
func (a *Activities) Notify(ctx context.Context, input api.Notify) error {
	ctx, cancel := context.WithTimeout(ctx, notifyBound)
	defer cancel()
	dir, release := a.Workplace(input.Ref)
	defer release()
	err := notify.Send(ctx, input.To, input.Notice, workspace.Notifying(), dir)
	if final, ok := errors.AsType[*notify.Final](err); ok {
		return temporal.NewNonRetryableApplicationError(final.Error(), "Notify", nil)
	}
	return err
}
