package sandbox

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls allows what is on a list: the calls of containers (calls_*.go, made from the profile of
// Moby), and the calls with which browsers and agents make sandboxes of their own, which give no power over anything
// outside. Some calls are allowed only in part: sockets of the common families, and no signal to process 1, which is
// the supervisor. Every other call fails as if it did not exist: io_uring, BPF, keyrings, foreign instruction sets.
//
//go:generate go run callsgen.go

// nested are the calls for sandboxes inside this one.
var nested = []uintptr{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_CLONE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
}

// families are the socket families that programs use. Others reach beyond the loopback or into the kernel.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// protocols are the allowed protocols: of the internet families ICMP, TCP, UDP and their variants; of netlink those
// about the network alone (routes, sockets, filters, generic, xfrm). Others escape Landlock's rules for ports (MPTCP,
// SMC), or reveal the machine's programs and devices.
var protocols = []uint32{
	0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_SCTP, unix.IPPROTO_UDPLITE,
	unix.NETLINK_SOCK_DIAG, unix.NETLINK_NETFILTER, unix.NETLINK_GENERIC,
}

const init1 = 1 // the supervisor

// rule is a condition on an argument of some calls. A call is refused if the argument is in refused, or is not in allowed
// (if given), or has one of the bits.
type rule struct {
	calls    []uintptr
	argument int
	allowed  []uint32
	refused  []uint32
	bits     uint32
}

var rules = []rule{
	// Root in a cgroup namespace may write the cgroup of that namespace, which can be pawl's.
	{calls: []uintptr{unix.SYS_UNSHARE, unix.SYS_CLONE}, argument: 0, bits: unix.CLONE_NEWCGROUP},
	{calls: []uintptr{unix.SYS_SOCKET}, argument: 0, allowed: families},
	{calls: []uintptr{unix.SYS_SOCKET}, argument: 2, allowed: protocols},
	{calls: []uintptr{unix.SYS_SOCKETPAIR}, argument: 0, allowed: []uint32{unix.AF_UNIX}},
	// With it, TCP connects without a connect call.
	{calls: []uintptr{unix.SYS_SENDTO}, argument: 3, bits: unix.MSG_FASTOPEN},
	{calls: []uintptr{unix.SYS_SENDMSG}, argument: 2, bits: unix.MSG_FASTOPEN},
	{calls: []uintptr{unix.SYS_SENDMMSG}, argument: 3, bits: unix.MSG_FASTOPEN},
	// It turns a TCP socket into one of SMC, for which Landlock has no rules. It is also used for TLS in the kernel,
	// which programs can do without.
	{calls: []uintptr{unix.SYS_SETSOCKOPT}, argument: 2, refused: []uint32{unix.TCP_ULP}},
	{calls: []uintptr{unix.SYS_PRLIMIT64}, argument: 0, allowed: []uint32{0}}, // only itself: the supervisor has more than one number
	// A lease on a readable file delays its writers. A signal that a file sends can reach any process.
	{calls: []uintptr{unix.SYS_FCNTL}, argument: 1, refused: []uint32{unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SETSIG}},
	// Nothing is sent to the supervisor, read from it or changed about it.
	{argument: 0, refused: []uint32{init1}, calls: []uintptr{
		unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN,
		unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	}},
	{calls: []uintptr{unix.SYS_PTRACE}, argument: 1, refused: []uint32{init1}},
	{calls: []uintptr{unix.SYS_SETPRIORITY}, argument: 0, allowed: []uint32{unix.PRIO_PROCESS}},
	{calls: []uintptr{unix.SYS_SETPRIORITY}, argument: 1, refused: []uint32{init1}},
	{calls: []uintptr{unix.SYS_IOPRIO_SET}, argument: 0, allowed: []uint32{1}}, // IOPRIO_WHO_PROCESS
	{calls: []uintptr{unix.SYS_IOPRIO_SET}, argument: 1, refused: []uint32{init1}},
	// Only what changes nothing but a program's memory layout (linux/personality.h).
	{calls: []uintptr{unix.SYS_PERSONALITY}, argument: 0, allowed: []uint32{0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff}},
}

// The offsets of the call's number, the instruction set and the arguments (struct seccomp_data).
const (
	numberAt, archAt, argumentsAt = 0, 4, 16

	absent  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// filter returns the program for the kernel. A filter can't see what clone3 is asked for, and programs do without it,
// as in containers. It is allowed if a process has to be started in a cgroup with it.
func filter(begins bool) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	jump := func(condition uint16, k uint32, yes, otherwise int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, Jt: uint8(yes), Jf: uint8(otherwise), K: k}
	}
	f := []unix.SockFilter{load(archAt), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(absent), load(numberAt)}
	var special []uintptr
	for _, r := range rules {
		var body []unix.SockFilter
		body = append(body, load(argumentsAt+8*uint32(r.argument)))
		if r.bits != 0 {
			body = append(body, jump(unix.BPF_JSET, r.bits, 0, 1), ret(refused))
		}
		for _, k := range r.refused {
			body = append(body, jump(unix.BPF_JEQ, k, 0, 1), ret(refused))
		}
		for i, k := range r.allowed {
			body = append(body, jump(unix.BPF_JEQ, k, len(r.allowed)-i, 0))
		}
		if len(r.allowed) > 0 {
			body = append(body, ret(refused))
		}
		body = append(body, load(numberAt))
		for _, call := range r.calls {
			f = append(append(f, jump(unix.BPF_JEQ, uint32(call), 0, len(body))), body...)
		}
		special = append(special, r.calls...)
	}
	numbers := slices.Concat(calls, ownCalls, nested, special)
	if begins {
		numbers = append(numbers, unix.SYS_CLONE3)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		// From all[i] to all[last].
		f = append(f, jump(unix.BPF_JGE, uint32(numbers[i]), 0, 2), jump(unix.BPF_JGT, uint32(numbers[last]), 1, 0), ret(unix.SECCOMP_RET_ALLOW))
		i = last + 1
	}
	return append(f, ret(absent))
}

// filterCalls puts the calling thread and everything it executes under the filter.
func filterCalls(begins bool) error {
	f := filter(begins)
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
