package repo

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// MinVersion of git is what has every option used here (repack --geometric is the youngest).
const MinVersion = "2.34"

// versionTime is far more than git takes to say which it is.
const versionTime = 10 * time.Second

// Version returns git's version. The error is a *Precondition where that is none to work with, and
// says what to do where git is missing.
func Version(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	c := call{plain: true, args: []string{"version"}}
	out, err := c.run(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return "", &Precondition{Code: UnusableGit, What: fmt.Sprintf("git does not say its version within %v", versionTime), Do: "run git version by hand, and mend what holds it up"}
	}
	if err != nil {
		return "", err
	}
	v := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	v, _, _ = strings.Cut(v, " ")
	var major, minor, wantMajor, wantMinor int
	_, _ = fmt.Sscanf(MinVersion, "%d.%d", &wantMajor, &wantMinor)
	if n, _ := fmt.Sscanf(v, "%d.%d", &major, &minor); n < 2 || major < wantMajor || major == wantMajor && minor < wantMinor {
		return v, &Precondition{Code: UnusableGit, What: fmt.Sprintf("git %s is too old", printable(v)), Do: fmt.Sprintf("install %s or later", MinVersion)}
	}
	return v, nil
}
