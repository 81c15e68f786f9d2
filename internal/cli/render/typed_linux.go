package render

import "golang.org/x/sys/unix"

// dropTyped drops what was typed at a terminal and has not been read.
func dropTyped(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
