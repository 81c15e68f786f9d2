package repo

import (
	"context"
	"fmt"
	"strings"
)

// MinVersion of git is what has every option used here (repack --geometric is the youngest).
const MinVersion = "2.34"

// Version returns git's version; an error says what to do if it is missing or too old.
func Version(ctx context.Context) (string, error) {
	c := call{plain: true, args: []string{"version"}}
	out, err := c.run(ctx)
	if err != nil {
		return "", err
	}
	v := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	v, _, _ = strings.Cut(v, " ")
	var major, minor, wantMajor, wantMinor int
	_, _ = fmt.Sscanf(MinVersion, "%d.%d", &wantMajor, &wantMinor)
	if n, _ := fmt.Sscanf(v, "%d.%d", &major, &minor); n < 2 || major < wantMajor || major == wantMajor && minor < wantMinor {
		return v, fmt.Errorf("git %s is too old; install %s or later", printable(v), MinVersion)
	}
	return v, nil
}
