package sandbox_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

const memoryLimit, processLimit = 64 << 20, 40

// bounded returns a place in which commands have limits. It skips the test if the machine can't limit them.
func bounded(t *testing.T, m sandbox.Machine) *place {
	p := newPlace(t, m)
	s, err := supervisor.Start(t.Name(), m.Files)
	require.NoError(t, err)
	defer s.Close()
	found, err := s.Check(context.Background(), supervisor.Check{Sandbox: sandbox.Make(p.request), Asked: []sandbox.Question{
		{Deed: sandbox.Outgrowing, Target: "memory"}, {Deed: sandbox.Outgrowing, Target: "processes"},
	}})
	require.NoError(t, err)
	if found[0].Done || found[1].Done {
		if os.Geteuid() == 0 {
			lacking(t, "root can make no cgroup here")
		}
		t.Skip("this user can make no cgroup here")
	}
	p.request.Limits = sandbox.Limits{Memory: memoryLimit, Processes: processLimit}
	return p
}

// reached runs a script and returns how it ended and which limits it reached.
func (p *place) reached(s *supervisor.Supervisor, script string) supervisor.Result {
	p.t.Helper()
	policy := sandbox.Make(p.request)
	r, err := s.Run(context.Background(), supervisor.Command{
		Argv: []string{"bash", "-c", script}, Dir: p.desk, Env: os.Environ(), Stdout: filepath.Join(p.dir, "out"), Stderr: filepath.Join(p.dir, "out"),
		Sandbox: &policy, Limit: time.Minute,
	})
	require.NoError(p.t, err)
	return r
}

// A memory bomb and a fork bomb end the command, but neither pawl nor the commands after it.
func TestE6_BombsEndTheCommand(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := bounded(t, m)
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			r := p.reached(s, `exec python3 -c 'b = []
for i in range(400): b.append(bytearray(b"x") * (1 << 20))'`)
			require.Equal(t, "SIGKILL", r.Signal+map[bool]string{true: "SIGKILL"}[r.ExitCode == 137], "by bubblewrap it is an exit code")
			require.Positive(t, r.Reached.Killed)
			r = p.reached(s, `head -c 200M /dev/zero >/tmp/full`)
			require.Positive(t, r.Reached.Killed, "files in memory count")
			r = p.reached(s, `sh -c 'for i in $(seq 200); do sleep 1000 & done'; exit 0`)
			require.Positive(t, r.Reached.Refused, "%+v", r)
			require.LessOrEqual(t, r.Leftover, processLimit)
			r = p.reached(s, `exec python3 -c 'import threading, time
for i in range(200): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()'`)
			require.NotZero(t, r.ExitCode)
			require.Positive(t, r.Reached.Refused, "threads count")
			r = p.reached(s, `echo 1 >f`)
			require.Zero(t, r.ExitCode)
			require.Zero(t, r.Reached, "a new count")
		})
	}
}

// cgroups returns the cgroups of this test's token, because other tests may run on this machine too.
func cgroups(t *testing.T, token string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == sandbox.BoundsName(token) {
			found = append(found, path)
		}
		return nil
	}))
	return found
}

// TestE6_TryingLimitsLeavesNothing tries them in this process: the thread that does it may be the first of the
// process, which never ends.
func TestE6_TryingLimitsLeavesNothing(t *testing.T) {
	bounded(t, sandbox.Probe())
	require.Empty(t, sandbox.Unkept(t.Name()))
	require.Empty(t, cgroups(t, t.Name()+", tried"))
}

// What kill -9 of a supervisor leaves is ended, and its cgroups are removed: by its worker, or, if that is gone too,
// by recovery.
func TestE6_NoCgroupIsLeft(t *testing.T) {
	m := sandbox.Probe()
	p := bounded(t, m)
	left := func() []string { return cgroups(t, t.Name()) }
	s, err := supervisor.Start(t.Name(), m.Files)
	require.NoError(t, err)
	require.Zero(t, p.reached(s, `exit 0`).ExitCode)
	require.NotEmpty(t, left())
	require.NoError(t, s.Close())
	require.Empty(t, left(), "after Close")

	s, err = supervisor.Start(t.Name(), m.Files)
	require.NoError(t, err)
	require.Zero(t, p.reached(s, `exit 0`).ExitCode)
	require.NoError(t, syscall.Kill(supervisorOf(t), syscall.SIGKILL))
	_ = s.Close()
	require.Empty(t, left(), "after kill -9")

	// The state after both worker and supervisor were killed: the cgroups still have a process.
	b, err := sandbox.NewBounds(t.Name(), p.request.Limits)
	require.NoError(t, err)
	b.Close()
	escaped := exec.Command("sleep", "1000")
	require.NoError(t, escaped.Start())
	require.NotEmpty(t, left())
	for _, at := range left() {
		require.NoError(t, os.WriteFile(filepath.Join(at, "in", "cgroup.procs"), []byte(strconv.Itoa(escaped.Process.Pid)), 0))
	}
	_, err = supervisor.Reap(t.Name())
	require.NoError(t, err)
	require.Empty(t, left(), "after Reap")
	require.ErrorContains(t, escaped.Wait(), "killed")
}

// supervisorOf returns the process ID of the test's supervisor.
func supervisorOf(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		if line, _ := os.ReadFile(file); strings.HasPrefix(string(line), "pawl-supervisor\x00"+t.Name()+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("there is no supervisor")
	return 0
}

// A command that makes its own namespaces and mounts the cgroups there finds its own cgroup, and not the one with the
// limit.
func TestE6_NoCommandLiftsItsLimits(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := bounded(t, m)
			p.request.Machine.Filter = false // the filter would not let it make namespaces
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			r := p.reached(s, `exec 2>&1; unshare -UrCm sh -c '
				mkdir /tmp/m /tmp/p /tmp/u; mount -t cgroup -o memory none /tmp/m; mount -t cgroup -o pids none /tmp/p; mount -t cgroup2 none /tmp/u
				for f in $(find /tmp/m /tmp/u /tmp/p -maxdepth 1 -name memory.limit_in_bytes -o -name memory.memsw.limit_in_bytes); do echo -1 >$f; done
				for f in $(find /tmp/u /tmp/p -maxdepth 1 -name memory.max -o -name pids.max); do echo max >$f; done; ls /tmp/m /tmp/u /tmp/p; cat /tmp/m/memory.limit_in_bytes'
			sh -c 'for i in $(seq 200); do sleep 1000 & done'; exit 0`)
			out, err := os.ReadFile(filepath.Join(p.dir, "out"))
			require.NoError(t, err)
			require.Positive(t, r.Reached.Refused, "processes\n%s", out)
			p.request.Fresh = "2"
			r = p.reached(s, `exec python3 -c 'b = bytearray(b"x") * (400 << 20)'`)
			require.Positive(t, r.Reached.Killed, "memory\n%s", out)
		})
	}
}

// If a limit of the spec can't be kept, `required` is broken. pawl's own default breaks nothing.
func TestE6_ALimitThatIsNotKeptIsSaid(t *testing.T) {
	f := sandbox.Facts{Policy: sandbox.Policy{Limits: sandbox.Limits{Memory: memoryLimit, Processes: processLimit}}}
	_, broken := sandbox.Said(sandbox.Claims(f), nil)
	require.Contains(t, sandbox.InWords(broken), "MEMORY IS NOT BOUNDED")
	require.Contains(t, sandbox.InWords(broken), "PROCESSES ARE NOT BOUNDED")
	f.Policy.Limits.Memory, f.DefaultProcesses = 0, true
	lines, broken := sandbox.Said(sandbox.Claims(f), nil)
	require.NotContains(t, sandbox.InWords(broken), "BOUNDED")
	require.Contains(t, strings.Join(lines, "\n"), "PROCESSES ARE NOT BOUNDED")
	require.Contains(t, strings.Join(lines, "\n"), "memory is not bounded: limits.memory is not set")
}
