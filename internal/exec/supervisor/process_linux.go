package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
)

// adopting says whether orphans become the supervisor's children.
const adopting = true

// waitAll includes children that were cloned without SIGCHLD as their end signal.
const waitAll = unix.WALL

// executable is this program, even if its file was replaced or removed.
func executable() string { return "/proc/self/exe" }

func becomeReaper() error {
	_ = os.WriteFile("/proc/self/comm", []byte(supervisorName), 0) // it would be "exe"
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// closeOnExec keeps commands from inheriting the control socket and every other file that the worker was started with.
// Otherwise a daemon could keep holding a lock or a pipe of some shell.
func closeOnExec() {
	if unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		unix.CloseOnExec(controlFD)
	}
}

func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// supervised returns everything that runs under this supervisor.
func supervised(string) ([]process, error) {
	procs, err := processes()
	return descendants(procs, os.Getpid()), err
}

// processes reads the process table. Reading /proc/<pid>/task/<tid>/children would be fewer reads, but that file is
// reliable only while all of these processes are stopped.
func processes() ([]process, error) {
	dir, err := os.Open(sandbox.Processes)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	procs := make([]process, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := lookUp(pid); err == nil {
				procs = append(procs, p)
			}
		}
	}
	return procs, nil
}

// lookUp parses /proc/<pid>/stat; see proc_pid_stat(5) for the numbers.
func lookUp(pid int) (process, error) {
	var buffer [1024]byte
	fd, err := unix.Open(sandbox.Processes+"/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, err
	}
	n, err := unix.Read(fd, buffer[:])
	unix.Close(fd)
	if err != nil {
		return process{}, err
	}
	// The name, in parentheses, may contain anything, so the fields begin after the last parenthesis.
	line := buffer[:n]
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const first = 3 // the number of fields[0]
	if len(fields) <= 22-first {
		return process{}, fmt.Errorf("process %d: cannot read %q", pid, line)
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(string(fields[field-first]))
		return n
	}
	const exiting = 4 // PF_EXITING
	zombie := bytes.ContainsAny(fields[0], "ZX")
	start, _ := strconv.ParseUint(string(fields[22-first]), 10, 64)
	return process{
		pid: pid, ppid: number(4), pgid: number(5), terminal: number(7) != 0, start: start,
		ticks: number(14) + number(15) + number(16) + number(17), // with the children for which it has waited
		// A zombie with threads has only lost its first thread.
		ended:  zombie && number(20) <= 1,
		ending: zombie || number(9)&exiting != 0,
	}, nil
}

// signal reaches exactly the process that was seen, never another one with the same ID.
func (p process) signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return err
	}
	if err != nil { // an old kernel, a strict container, or no descriptor left
		return unix.Kill(p.pid, sig)
	}
	defer unix.Close(fd)
	if current, err := lookUp(p.pid); err != nil || current.start != p.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func environment(pid int) []string {
	data, _ := os.ReadFile(sandbox.Processes + "/" + strconv.Itoa(pid) + "/environ")
	return strings.Split(string(data), "\x00")
}

func workingDirectory(pid int) string {
	dir, _ := os.Readlink(sandbox.Processes + "/" + strconv.Itoa(pid) + "/cwd")
	return strings.TrimSuffix(dir, " (deleted)")
}

// supervises returns the arguments of a supervisor of this token, nil for any other process.
func (p process) supervises(token string) []string {
	line, _ := os.ReadFile(sandbox.Processes + "/" + strconv.Itoa(p.pid) + "/cmdline")
	args := strings.Split(string(line), "\x00")
	if len(args) < 3 || args[0] != supervisorName || args[1] != token {
		return nil
	}
	return args
}

// supervising reports whether there is a supervisor of this token.
func supervising(token string) bool {
	procs, err := processes()
	return err != nil || slices.ContainsFunc(procs, func(p process) bool { return !p.ended && p.supervises(token) != nil })
}

// endOrphans waits for the supervisors of this token whose worker is dead, kills those that don't end, and returns how
// many it killed.
func endOrphans(token string) (killed int, err error) {
	if token == "" {
		return 0, nil
	}
	procs, err := processes()
	if err != nil {
		return 0, err
	}
	for _, p := range procs {
		args := p.supervises(token)
		if args == nil {
			continue
		}
		// A worker keeps its children until its last thread is gone. By then, the next worker may have had the locks
		// for some time.
		worker, err := lookUp(p.ppid)
		if err == nil && !worker.ending && args[2] == strconv.Itoa(p.ppid) {
			continue
		}
		_ = p.signal(unix.SIGCONT)
		if !p.waitFor(orphanWithin) {
			_ = p.signal(unix.SIGKILL)
			p.waitFor(killWithin)
			killed++
		}
	}
	return killed, nil
}

// waitFor reports whether a process ends within the time. It need not be a child.
func (p process) waitFor(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		if current, err := lookUp(p.pid); err != nil || current.start != p.start || current.ended {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// firstToGo makes the kernel end a command first when memory runs out. Processes that it starts inherit that.
func firstToGo(pid int) {
	_ = os.WriteFile(sandbox.Processes+"/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("900"), 0)
}

// Unnamed returns the bytes on disk of open files that have no name any more, of what runs under the supervisor. No
// walk through folders finds such files. Processes that can't be inspected are not counted.
func (s *Supervisor) Unnamed() (bytes int64) {
	procs, err := processes()
	if err != nil {
		return 0
	}
	seen := map[[2]uint64]bool{}
	for _, p := range descendants(procs, s.cmd.Process.Pid) {
		path := filepath.Join("/proc", strconv.Itoa(p.pid), "fd")
		dir, err := os.Open(path)
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			var st unix.Stat_t
			var fs unix.Statfs_t
			file := filepath.Join(path, name)
			if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 || seen[[2]uint64{uint64(st.Dev), st.Ino}] {
				continue
			}
			seen[[2]uint64{uint64(st.Dev), st.Ino}] = true
			if unix.Statfs(file, &fs) == nil && fs.Type != unix.TMPFS_MAGIC {
				bytes += st.Blocks * 512
			}
		}
	}
	return bytes
}

// clockTick is the unit of times in /proc/<pid>/stat: USER_HZ, which is 100 on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

// Effort returns what everything that runs under the supervisor has used so far. It may be less than before when a process
// has ended.
func (s *Supervisor) Effort() (e Effort) {
	procs, err := processes()
	if err != nil {
		return Effort{}
	}
	for _, p := range descendants(procs, s.cmd.Process.Pid) {
		e.CPU += time.Duration(p.ticks) * clockTick
		e.Bytes += transferred(p.pid)
	}
	return e
}

// transferred returns the bytes that a process has read and written, in files, pipes and connections; 0 if it can't be
// inspected.
func transferred(pid int) (bytes int64) {
	data, err := os.ReadFile(filepath.Join(sandbox.Processes, strconv.Itoa(pid), "io"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if key == "rchar" || key == "wchar" {
			n, _ := strconv.ParseInt(value, 10, 64)
			bytes += n
		}
	}
	return bytes
}
