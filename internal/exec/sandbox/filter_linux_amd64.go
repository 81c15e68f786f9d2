package sandbox

import "golang.org/x/sys/unix"

// The numbers of the 32-bit ABI (x32) have a bit set that no call on the list has.
const auditArch = unix.AUDIT_ARCH_X86_64
