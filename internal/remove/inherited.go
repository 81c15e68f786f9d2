package remove

import (
	"golang.org/x/sys/unix"

	"pawl/internal/held"
)

// Inherited removes the lists of permissions that a command gave a folder: everything made in it later inherits them.
// Most folders have none, and not every file system knows them, so it reports nothing.
func Inherited(dir string) {
	for _, list := range []string{"system.posix_acl_default", "system.posix_acl_access"} {
		_ = unix.Removexattr(held.At(dir), list)
	}
}
