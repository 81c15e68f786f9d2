package activities

import (
	"context"
	"errors"
	"os"
	"time"

	"go.temporal.io/sdk/temporal"

	"pawl/internal/act"
	"pawl/internal/notify"
	"pawl/internal/workspace"
)

// notifyBound is how long one attempt to tell somebody may take.
const notifyBound = 30 * time.Second

// Notify tells one of spec.notify. A command runs in the user's repository, where that is on this
// host, with the environment of the loop's other commands.
func (a *Activities) Notify(ctx context.Context, in act.Notify) error {
	ctx, cancel := context.WithTimeout(ctx, notifyBound)
	defer cancel()
	dir := a.Home.Dir
	if r, err := workspace.Read(a.Home, in.Ref); in.Ref != "" && err == nil {
		if info, err := os.Stat(r.Repo); err == nil && info.IsDir() {
			dir = r.Repo
		}
	}
	err := notify.Send(ctx, in.To, in.Notice, notifying(), dir)
	var final *notify.Final
	if errors.As(err, &final) {
		return temporal.NewNonRetryableApplicationError(final.Error(), "Notify", nil)
	}
	return err
}
