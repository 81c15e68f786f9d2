package git

import "pawl/internal/pin"

// Program returns git's full path from package pin, "git" if there is none.
func Program() string {
	at, err := pin.Path("git")
	if err != nil {
		return "git"
	}
	return at
}
