package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	box "pawl/internal/exec/sandbox"
)

// sandbox checks what this machine offers to confine an agent. It tries each feature, because a kernel may have a
// feature that an administrator or a container forbids.
func sandbox() []Row {
	const namespaces = "As administrator: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0 (those that exist). Or install bubblewrap: apt install bubblewrap, dnf install bubblewrap."
	m := box.Probe()
	check := func(name string, found bool, ok, lacks, advice string) Row {
		if found {
			return Row{Name: name, Status: OK, What: ok}
		}
		return Row{Name: name, Status: Note, What: lacks, Fix: advice}
	}
	unkept := box.Unkept("doctor " + strconv.Itoa(os.Getpid()))
	return []Row{
		check("sandbox", m.Files != box.ByNothing, "files and processes of their own for agents, by "+string(m.Files), "agents can't have files and processes of their own here: they have your rights", namespaces),
		check("sandbox's network", m.Network, "agents have one of their own", "agents are on this machine's network, and could answer their own gates through it", namespaces),
		check("sandbox's caches", m.Overlay, "layers over yours", "no overlays: agents begin with empty caches", "Use Linux 5.11 or later; as root, modprobe overlay."),
		check("sandbox's limits", len(unkept) == 0, "limits.memory and limits.processes, by cgroups", "no cgroup keeps "+strings.Join(unkept, " and ")+" here",
			"Run pawl as root, or as an ordinary user with systemd-run --user --scope pawl up. In a container, limit the container itself."),
		check("sandbox's kernel calls", m.Filter, "those of containers", "all of the kernel's", "Use a kernel with CONFIG_SECCOMP_FILTER."),
		check("Landlock", m.Landlock > 0, fmt.Sprintf("version %d", m.Landlock), "this kernel does not offer it", "Use Linux 6.7 or later with lsm=landlock among its security modules. With a network of their own agents need it less."),
	}
}
