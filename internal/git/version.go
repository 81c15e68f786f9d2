package git

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// MinVersion is the oldest git that can merge without a working tree (merge-tree --write-tree).
const MinVersion = "2.38"

// versionTime is far longer than git needs to print its version.
const versionTime = 10 * time.Second

// Unusable is a git with which pawl can't work.
type Unusable struct {
	What string
	Do   string // what the user can do about it
}

func (e *Unusable) Error() string { return e.What + "; " + e.Do }

// Version returns git's version. The error is *Unusable if git is too old or hangs.
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
