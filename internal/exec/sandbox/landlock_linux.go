package sandbox

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const ruleNetPort = 2 // LANDLOCK_RULE_NET_PORT, which x/sys lacks

// landlock keeps signals and abstract sockets inside, and closes ports of an open network. Its rules can only allow, so
// each port that stays open needs a rule. That takes about 50 ms, once for everything that a thread runs.
func landlock(p Policy) error {
	type portRule struct{ access, port uint64 }
	attr := unix.LandlockRulesetAttr{}
	if p.Machine.Landlock >= landlockNet && len(p.Closed) > 0 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if p.Machine.Landlock >= landlockScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if p.Machine.Landlock == 0 || attr == (unix.LandlockRulesetAttr{}) {
		return nil // an older version can't restrict tracing alone; process namespaces do that
	}
	// Older kernels take a shorter structure, and accept a longer one if the rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("making the rules: %w", errno)
	}
	defer unix.Close(int(fd))
	if attr.Handled_access_net != 0 {
		for port := range 1 << 16 {
			if slices.Contains(p.Closed, port) {
				continue
			}
			rule := portRule{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
			// A raw call, because it never blocks and there are many.
			if _, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
				return fmt.Errorf("rule for port %d: %w", port, errno)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("entering: %w", errno)
	}
	return nil
}

// landlockVersion returns the kernel's version of Landlock, 0 for none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}
