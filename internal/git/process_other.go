//go:build !linux

package git

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
