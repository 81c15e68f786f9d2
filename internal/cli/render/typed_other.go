//go:build !linux

package render

import "golang.org/x/sys/unix"

// dropTyped drops what was typed at a terminal and has not been read.
func dropTyped(fd int) error {
	const input = 1 // FREAD
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input)
}
