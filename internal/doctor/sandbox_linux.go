package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sandbox looks for what an agent could be confined with. Each is tried, since what a kernel has
// and what an administrator or a container allows are two things.
func sandbox(ctx context.Context) []Row {
	return []Row{bubblewrap(ctx), landlock(), userNamespaces(ctx)}
}

// trial bounds each attempt.
const trial = 10 * time.Second

func bubblewrap(ctx context.Context) Row {
	const name = "bubblewrap"
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return Row{name, Note, "bwrap is not on the PATH", "Install it to confine agents: apt install bubblewrap, dnf install bubblewrap."}
	}
	ctx, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--die-with-parent", "true").CombinedOutput()
	if err != nil {
		why, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return Row{name, Note, fmt.Sprintf("%s does not work here (%v): %s", path, err, why), "Allow unprivileged user namespaces (see below), or the container these system calls."}
	}
	version, _ := exec.CommandContext(ctx, path, "--version").Output()
	return Row{name, OK, strings.TrimSpace(string(version)) + " works", ""}
}

func landlock() Row {
	const createRulesetVersion = 1 // LANDLOCK_CREATE_RULESET_VERSION: answer with the ABI instead
	abi, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetVersion)
	if errno != 0 {
		return Row{"Landlock", Note, "this kernel does not offer it: " + errno.Error(), "Use Linux 5.13 or later with lsm=landlock among its security modules, to confine agents without bubblewrap."}
	}
	return Row{"Landlock", OK, fmt.Sprintf("ABI %d", abi), ""}
}

func userNamespaces(ctx context.Context) Row {
	const name = "user namespaces"
	ctx, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	cmd := exec.CommandContext(ctx, "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return Row{name, Note, "this user can't make one: " + firstLine(err), "As administrator: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0 (those that exist)."}
	}
	return Row{name, OK, "this user can make them", ""}
}
