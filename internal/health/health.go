// Package health checks whether something that a project runs is healthy (S5): whether a command exits 0, or an address
// answers. It does not decide what follows, and never tries twice. Start at Check.
package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"pawl/internal/charter"
	"pawl/internal/notify"
)

// within limits the time of one check.
const within = time.Minute

// Check tries the command or the address of a trigger with `from: health`. ill says what is wrong, "" if nothing is.
// The command runs in dir with that environment, outside of any sandbox, like commands of `notify`. When it ends, so do
// all processes that it started.
func Check(ctx context.Context, t charter.Trigger, env []string, dir string) (ill string) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if t.Command != "" {
		err = notify.Run(ctx, []string{"/bin/sh", "-c", t.Command}, env, dir, nil)
	} else {
		err = get(ctx, t.URL)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func get(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("it is not an address")
	}
	r.Header.Set("User-Agent", "pawl")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok { // without the address, which may hold a secret
			err = at.Err
		}
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	if answer.StatusCode >= 400 {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return nil
}
