package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/toolpath"
)

// Probe tries what this machine offers, once per process.
var Probe = sync.OnceValue(func() Machine {
	landlock := landlockVersion()
	_, begins, err := parentsOf(processController)
	begins = begins && err == nil
	means := ByUserNamespace
	if os.Geteuid() == 0 {
		means = ByNamespace
	}
	if m, ok := try(means); ok {
		m.Landlock, m.Begins = landlock, begins
		return m
	}
	m := Machine{Landlock: landlock, Begins: begins, Filter: inOwnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		return filterCalls(false)
	}) == nil}
	if bwrap, ok := bubblewrap(); ok {
		m.Files, m.Bwrap, m.Network = ByBwrap, bwrap, exec.Command(bwrap, "--ro-bind", "/", "/", "--unshare-net", bwrap, "--version").Run() == nil
	}
	return m
})

// inOwnThread calls do on a thread that runs nothing else afterwards. The thread stays, because what it forked before
// (git, a supervisor) is killed when it ends (PR_SET_PDEATHSIG depends on the thread).
func inOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
		select {}
	}()
	return <-done
}

const probeName = "pawl-sandbox-probe"

// Main does the work of a Probe, an Answer or a command in bubblewrap's network if this process was started for it,
// and then never returns. Call it first in every main and TestMain; supervisor.Main does.
func Main() {
	switch {
	case len(os.Args) == 3 && os.Args[0] == outgrowName:
		joining, _ := strconv.Atoi(os.Args[2])
		outgrow(os.Args[1], joining)
	case len(os.Args) > 2 && os.Args[1] == entryName: // bubblewrap can't change the program's arg 0
		var first entry
		err := json.Unmarshal([]byte(os.Args[2]), &first)
		if err == nil {
			err = first.enter(os.Args[3:])
		}
		fmt.Fprintln(os.Stderr, "pawl: the sandbox:", err)
		os.Exit(127)
	}
	if len(os.Args) != 2 || os.Args[0] != probeName {
		return
	}
	m := Machine{Files: Means(os.Args[1]), Network: true, Filter: true}
	if err := Settle(); err != nil {
		os.Exit(1)
	}
	p := Policy{Machine: m, Network: Filtered, Places: sorted([]Place{
		{Path: "/tmp", Access: Empty}, {Path: "/usr", Access: Read}, {Path: "/proc", Access: Write}, {Path: "/dev/null", Access: Write},
	})}
	enter := func() error {
		proxy, err := Enter(p)
		if proxy != nil {
			proxy.Close()
		}
		return err
	}
	m.Overlay = inOwnThread(overlays) == nil
	err := inOwnThread(enter)
	if err != nil { // no network of its own
		m.Network, p.Network = false, Open
		err = inOwnThread(enter)
	}
	if err != nil { // no filter
		m.Filter, p.Machine.Filter = false, false
		err = inOwnThread(enter)
	}
	if err != nil || json.NewEncoder(os.Stdout).Encode(m) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// overlays tries to mount a layer in memory.
func overlays() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := memory(staging, "mode=0755"); err != nil {
		return err
	}
	dirs := map[string]string{}
	for _, name := range []string{"lower", upper, working, "merged"} {
		dirs[name] = filepath.Join(staging, name)
		if err := os.Mkdir(dirs[name], 0o755); err != nil {
			return err
		}
	}
	return mountOverlay(dirs["merged"], []string{dirs["lower"]}, dirs[upper], dirs[working])
}

// try starts this program as a supervisor that enters a room.
func try(means Means) (m Machine, ok bool) {
	if os.Args[0] == probeName {
		return m, false // this program does not call Main, and would start itself endlessly
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{probeName, string(means)}, []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = Supervisor(means)
	out, err := cmd.Output()
	return m, err == nil && json.Unmarshal(out, &m) == nil
}

// bubblewrap finds bwrap and tries it.
func bubblewrap() (path string, ok bool) {
	path, err := toolpath.Path("bwrap")
	if err != nil {
		return "", false
	}
	return path, exec.Command(path, "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--tmpfs", "/tmp", path, "--version").Run() == nil
}
