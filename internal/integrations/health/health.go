// Package health checks whether something that a project runs is healthy (S5): whether a command exits 0, or an address
// answers. It does not decide what follows, and never tries twice. Start at Check.
package health

import (
	"context"
	"net/http"
	"time"

	"pawl/internal/integrations/notify"
	"pawl/internal/steward/charter"
)

// within limits the time of one check.
const within = time.Minute

// Check tries the command or the address of a trigger with `from: health`. ill says what is wrong, "" if nothing is.
// The command runs in dir with that environment, outside of any sandbox, like commands of `notify`. When it ends, so do
// all processes that it started.
func Check(ctx context.Context, t charter.Trigger, env []string, dir string) (ill string) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if t.Command != "" {
		if err := notify.Run(ctx, []string{"/bin/sh", "-c", t.Command}, env, dir, nil); err != nil {
			return err.Error()
		}
		return ""
	}
	answer, err := notify.Ask(ctx, http.MethodGet, t.URL, nil)
	switch {
	case err != nil:
		return err.Error()
	case answer.StatusCode >= 400:
		return "it answers " + answer.Status
	}
	return ""
}
