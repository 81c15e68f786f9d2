package remove

import "golang.org/x/sys/unix"

// From linux/fs.h.
const immutable, appendOnly = 0x10, 0x20

// clearFlags clears the immutable and append-only flags. An agent that runs as root, as in many containers, can set
// them, and then pawl can clear them.
func clearFlags(fd int) {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&(immutable|appendOnly) == 0 {
		return
	}
	_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^(immutable|appendOnly)))
}
