package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

var ownCalls []uintptr // amd64 has all of its calls too
