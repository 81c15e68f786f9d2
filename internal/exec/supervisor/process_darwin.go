package supervisor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopting says whether orphans become the supervisor's children. Here they become launchd's, and are found by their
// environment.
const adopting = false

const waitAll = 0

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func becomeReaper() error { return nil }

func closeOnExec() { unix.CloseOnExec(controlFD) }

func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// supervised returns everything that runs under this supervisor. It misses a process that has both left its parents and
// changed its environment.
func supervised(token string) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	found := descendants(all, os.Getpid())
	for _, p := range all {
		if p.pid != os.Getpid() && !p.ended && !slices.Contains(found, p) &&
			slices.Contains(environment(p.pid), TokenVariable+"="+token) {
			found = append(found, p)
		}
	}
	return found, nil
}

func processes() ([]process, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	all := make([]process, len(table))
	for i, k := range table {
		const zombie, noDevice = 5, -1 // SZOMB, NODEV
		ended := k.Proc.P_stat == zombie
		all[i] = process{
			pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid), pgid: int(k.Eproc.Pgid),
			terminal: k.Eproc.Tdev != noDevice, ended: ended, ending: ended,
			start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		}
	}
	return all, nil
}

func (p process) signal(sig syscall.Signal) error { return unix.Kill(p.pid, sig) }

// environment parses what sysctl gives: argc, the path, NULs, argc arguments, the variables.
func environment(pid int) []string {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(data) < 4 {
		return nil
	}
	argc := int(binary.LittleEndian.Uint32(data))
	_, rest, _ := bytes.Cut(data[4:], []byte{0})
	words := strings.Split(string(bytes.TrimLeft(rest, "\x00")), "\x00")
	return words[min(argc, len(words)):]
}

// workingDirectory would need libproc, and so cgo. Here Reap uses only the token.
func workingDirectory(int) string { return "" }

// endOrphans does nothing here: supervisors end by themselves when their worker dies.
func endOrphans(string) (int, error) { return 0, nil }

// firstToGo does nothing here.
func firstToGo(int) {}

// supervising is not needed here, because there are no cgroups.
func supervising(string) bool { return false }

// Unnamed returns 0: this system does not tell which files are open.
func (s *Supervisor) Unnamed() int64 { return 0 }

// Effort returns nothing: it is not known here.
func (s *Supervisor) Effort() Effort { return Effort{} }
