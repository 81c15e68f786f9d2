//go:build !linux

package repo

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
