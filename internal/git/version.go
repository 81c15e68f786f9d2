package git

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// MinVersion of git has every option that pawl uses (repack --geometric is the youngest).
const MinVersion = "2.34"

// versionTime is far more than git takes to say its version.
const versionTime = 10 * time.Second

// Unusable is a git that pawl can't work with.
type Unusable struct {
	What string
	Do   string // what the user can do about it
}

func (e *Unusable) Error() string { return e.What + "; " + e.Do }

// Version returns git's version. The error is *Unusable where git is too old or hangs.
func Version(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	out, err := Runner{}.Run(limited, "version")
	if limited.Err() != nil && ctx.Err() == nil {
		return "", &Unusable{fmt.Sprintf("git does not print its version within %v", versionTime), "run git version by hand, and repair what keeps it from ending"}
	}
	if err != nil {
		return "", err
	}
	v, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), " ")
	var have, want struct{ major, minor int }
	_, _ = fmt.Sscanf(MinVersion, "%d.%d", &want.major, &want.minor)
	if n, _ := fmt.Sscanf(v, "%d.%d", &have.major, &have.minor); n < 2 || have.major < want.major || have.major == want.major && have.minor < want.minor {
		return v, &Unusable{fmt.Sprintf("git %s is too old", Printable(v)), fmt.Sprintf("install %s or later", MinVersion)}
	}
	return v, nil
}
