package git

import "pawl/internal/pin"

// Program is git's full path as package pin has it, "git" where there is none.
func Program() string {
	at, err := pin.Path("git")
	if err != nil {
		return "git"
	}
	return at
}
