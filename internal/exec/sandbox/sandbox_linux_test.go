package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/egress"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/remove"
	"pawl/test/harness/testdir"
	"pawl/test/harness/tier"
)

func TestMain(m *testing.M) {
	supervisor.Main()
	testdir.InMemory()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for every process with the race detector
	os.Exit(m.Run())
}

// place is a user's machine in a folder: a home, a $PAWL_HOME with a desk, a repository.
type place struct {
	t                                     *testing.T
	dir, home, pawl, repo, desk, exchange string
	request                               sandbox.Request
}

func newPlace(t *testing.T, m sandbox.Machine) *place {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove.All(filepath.Join(dir, "user"))) }) // the layers of an ordinary user keep the testing package from removing it
	p := &place{
		t: t, dir: dir, home: filepath.Join(dir, "user"), pawl: filepath.Join(dir, "user", ".local", "state", "pawl"),
		repo: filepath.Join(dir, "repo"),
	}
	p.desk, p.exchange = filepath.Join(p.pawl, "loops", "l", "desk"), filepath.Join(p.pawl, "loops", "l", "exchange")
	for name, text := range map[string]string{
		"user/.ssh/id": "key\n", "user/.bashrc": "rc\n", "user/.cache/go-build/x": "x\n", "user/.gitconfig": gitconfig, "user/.claude.json": "{}\n",
		"user/.claude/session": "s\n", "user/tools/agent.sh": "exit 0\n", "user/tools/lib.sh": "l\n", "user/notes/n": "n\n", "user/notes.txt": "m\n", "repo/file": "theirs\n", "repo/.git/hooks/post-commit": "h\n",
		"user/.local/state/pawl/stores/s.git/HEAD": "ref\n", "user/.local/state/pawl/loops/other/steps/stdout": "transcript\n",
		"user/.local/state/pawl/loops/l/judge/f": "f\n", "user/.local/state/pawl/loops/l/desk/f": "f\n", "user/.local/state/pawl/loops/l/exchange/p": "p\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Setenv("HOME", p.home)
	t.Setenv("GOPATH", "") // its caches are those of this home
	p.request = sandbox.Request{Policy: sandbox.Policy{Machine: m, Network: sandbox.Filtered, Tree: "desk"}, Home: p.pawl, Repo: p.repo, Own: []string{p.desk, p.exchange}, Env: os.Environ(),
		Layers: []string{filepath.Join(p.pawl, "loops", "l", "layers")},
	}
	return p
}

// sh runs a script in the sandbox as an agent would be run, and returns its exit code and output.
func (p *place) sh(script string) (int, string) {
	p.t.Helper()
	s, err := supervisor.Start(p.t.Name(), p.request.Machine.Files)
	require.NoError(p.t, err)
	defer s.Close()
	return p.in(s, script)
}

func (p *place) in(s *supervisor.Supervisor, script string) (int, string) {
	p.t.Helper()
	policy := sandbox.Make(p.request)
	out := filepath.Join(p.dir, "out")
	r, err := s.Run(context.Background(), supervisor.Command{
		Argv: []string{"bash", "-c", script}, Dir: p.desk, Env: append(os.Environ(), "W="+p.dir), Stdout: out, Stderr: out, Sandbox: &policy,
	})
	require.NoError(p.t, err)
	b, err := os.ReadFile(out)
	require.NoError(p.t, err)
	return r.ExitCode, string(b) + r.StartError
}

// gitconfig has a user's settings of git, with credentials in them.
const gitconfig = "[user]\n\tname = Ann\n[credential]\n\thelper = \"!echo password=sesame\"\n[http \"https://example.com\"]\n\textraHeader = sesame\n"

// machines returns the ways in which this machine can keep files out of reach. Without -tags nightly it returns
// only the one that pawl uses here; TestE6_ClaimsAreTried has all of them.
func machines(t *testing.T) map[string]sandbox.Machine {
	found := everyMachine(t)
	if !tier.Nightly {
		taken := string(sandbox.Probe().Files)
		return map[string]sandbox.Machine{taken: found[taken]}
	}
	return found
}

func everyMachine(t *testing.T) map[string]sandbox.Machine {
	m := sandbox.Probe()
	if m.Files == sandbox.ByNothing {
		lacking(t, "this machine has no mount namespaces and no usable bwrap")
	}
	found := map[string]sandbox.Machine{string(m.Files): m}
	if path, ok := sandbox.Bubblewrap(); ok {
		found[string(sandbox.ByBwrap)] = sandbox.Machine{Files: sandbox.ByBwrap, Bwrap: path, Network: true, Landlock: m.Landlock, Filter: m.Filter, Begins: m.Begins}
	} else if os.Getenv("PAWL_TEST_ALL") != "" {
		t.Fatal("bwrap is not there or does not work")
	}
	return found
}

func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("PAWL_TEST_ALL") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// TestE6_WhatCanBeReadIsNotSpokenTo: an agent tries to connect to a program in the repository, and to block others
// from its files, which needs no write.
func TestE6_WhatCanBeReadIsNotSpokenTo(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			short, err := os.MkdirTemp("", "s") // the path of a socket is limited to about a hundred bytes
			require.NoError(t, err)
			defer os.RemoveAll(short)
			require.NoError(t, os.WriteFile(filepath.Join(short, "file"), nil, 0o644))
			p.request.Repo = short
			l, err := net.Listen("unix", filepath.Join(short, "s"))
			require.NoError(t, err)
			defer l.Close()
			code, out := p.sh(`perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new(Peer => "` + short + `/s") ? "connected" : "no"'`)
			require.Equal(t, 0, code, out)
			require.Equal(t, "no", out)
			if m.Files != sandbox.ByBwrap { // also programs that begin after the sandbox
				policy := sandbox.Make(p.request)
				late, err := net.Listen("unix", filepath.Join(short, "late"))
				require.NoError(t, err)
				defer late.Close()
				require.NoError(t, syscall.Mkfifo(filepath.Join(short, "pipe"), 0o666))
				reader, err := os.OpenFile(filepath.Join(short, "pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
				require.NoError(t, err)
				defer reader.Close()
				file, err := os.Open(filepath.Join(short, "file"))
				require.NoError(t, err)
				defer file.Close()
				require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
				s, err := supervisor.Start(t.Name(), m.Files)
				require.NoError(t, err)
				defer s.Close()
				for name, script := range map[string]string{
					"connects":         `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => "` + short + `/late") and exit 1'`,
					"writes":           `perl -MFcntl -e 'sysopen(my $p, "` + short + `/pipe", O_WRONLY|O_NONBLOCK) and exit 1'`,
					"waits for a lock": `flock --nonblock "` + short + `/file" true`,
					"changes":          `! touch "` + short + `/file" && ! touch "` + short + `/new" && cat "` + short + `/file"`,
				} {
					r, err := s.Run(context.Background(), supervisor.Command{Argv: []string{"bash", "-c", script}, Dir: p.desk, Env: os.Environ(), Sandbox: &policy})
					require.NoError(t, err)
					require.Zero(t, r.ExitCode, name)
				}
			}
			if !m.Filter {
				return
			}
			for _, command := range []int{1024, 1026, 10} { // F_SETLEASE, F_NOTIFY, F_SETSIG
				code, out = p.sh(fmt.Sprintf(`perl -e 'open(my $f, "<", "%s/file") or die; print fcntl($f, %d, 0) ? "done" : $!{EPERM} ? "no" : $!'`, short, command))
				require.Equal(t, 0, code, out)
				require.Equal(t, "no", out, command)
			}
		})
	}
}

// TestE6_NoSignalEndsTheSupervisor: a command sends every signal to every number that is not in its process table,
// which includes the supervisor's threads. Without Landlock's limit on signals they arrive, and are dropped.
func TestE6_NoSignalEndsTheSupervisor(t *testing.T) {
	m := sandbox.Probe()
	if m.Files != sandbox.ByNamespace && m.Files != sandbox.ByUserNamespace {
		lacking(t, "this machine has no namespaces")
	}
	m.Landlock = 0
	p := newPlace(t, m)
	code, out := p.sh(`for n in $(seq 2 64); do [ ! -e /proc/$n ] && kill -0 $n || continue; echo $n >>found
		for s in $(seq 31); do kill -$s $n; done; done; test -s found && echo alive`)
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "alive")
}

// Each script must print what it found, and exit like the shell.
func TestE6_WhatIsInReachOfAgents(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			p.request.Argv = []string{"/usr/bin/claude", filepath.Join(p.home, "tools", "agent.sh")}
			p.request.Named = []string{"sh -c '. " + filepath.Join(p.home, "tools", "agent.sh") + "; cat ~/notes.txt'"}
			p.request.Allow = []string{filepath.Join(p.home, "notes")}
			for _, c := range []struct {
				name, script string
				works        bool
			}{
				{"write the desk", `echo 1 >f && echo 1 >new && rm new`, true},
				{"rename on the desk", `mkdir d && mv f d/f && mv d/f f`, true},
				{"leave a result", `echo 1 >$W/user/.local/state/pawl/loops/l/exchange/r`, true},
				{"use a cache", `echo 1 >~/.cache/go-build/y`, true},
				// bubblewrap can't show a part of a file.
				{"read git's settings", `test "$(git config user.name)" = Ann`, m.Files != sandbox.ByBwrap},
				{"read the credentials among them", `grep -q sesame ~/.gitconfig`, false},
				{"change git's settings, in memory", `git config --global user.name Bob`, true},
				{"run what the spec names", `sh ~/tools/agent.sh`, true},
				{"read what the spec names by the home's short name", `grep -q m ~/notes.txt`, true},
				{"read what is beside the agent", `cat ~/tools/lib.sh`, true},
				{"change what the spec names", `echo 1 >~/tools/agent.sh`, false},
				{"write what the spec allows", `echo 1 >~/notes/n`, true},
				{"use the agent's own sign-in", `echo 1 >~/.claude/session && grep -q {} ~/.claude.json`, true},
				// bubblewrap makes no copies.
				{"replace the agent's settings", `echo 1 >~/.claude.json.new && mv ~/.claude.json.new ~/.claude.json`, m.Files != sandbox.ByBwrap},
				{"use scratch space", `echo 1 >$(mktemp) && echo 1 >/var/tmp/x && echo 1 >/dev/shm/x`, true},
				{"write beside its tree, in memory", `echo 1 >$W/scratch`, true}, // because W is in /tmp
				{"write the root", `echo 1 >/new || mkdir /data`, false},
				{"write the system", `echo 1 >/usr/new || echo 1 >>/etc/passwd`, false},
				{"read what is root's alone", `grep -q . /etc/shadow`, false},
				{"read the repository", `grep -q theirs $W/repo/file`, true},
				{"list the repository", `ls -A $W/repo | grep -q '^file$'`, true},
				{"write the repository", `echo 1 >$W/repo/file`, false},
				{"make files in the repository", `echo 1 >$W/repo/.git/hooks/pre-commit || echo 1 >$W/repo/.git/new`, false},
				{"remove a file of the repository", `rm -f $W/repo/file || mv $W/repo/file $W/repo/other`, false},
				{"stop the loop", `echo 1 >$W/repo/loop-stop`, false},
				{"make a file at the repository's root", `echo 1 >$W/repo/GNUmakefile`, false},
				{"remove the repository", `rm -rf $W/repo; test ! -e $W/repo/file`, false},
				{"rename the repository", `mv $W/repo $W/elsewhere`, false},
				{"read a key", `cat ~/.ssh/id`, false},
				{"list the home", `ls -A ~ | grep -q bashrc`, false},
				{"read the store", `cat $W/user/.local/state/pawl/stores/s.git/HEAD`, false},
				{"see that there is a store", `test -e $W/user/.local/state/pawl/stores`, false},
				{"read another loop's transcript", `cat $W/user/.local/state/pawl/loops/other/steps/stdout`, false},
				{"make io_uring or a keyring", `python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(l.syscall(425,0,0)==-1 and l.syscall(250,0,-3,0)==-1)'`, false},
				{"make a namespace of cgroups", `unshare -UrC true`, false},
				{"make one by a call that cannot be looked into", `python3 -c 'import ctypes,os,sys
a = (ctypes.c_uint64 * 11)(0x12000000, 0, 0, 0, 17); r = ctypes.CDLL(None).syscall(435, a, 88)
if r == 0: os._exit(0)
sys.exit(r < 0)'`, m.Begins},
				{"limit the supervisor", `prlimit --pid 1 --cpu=1 || for t in 2 3 4 5 6; do prlimit --pid $t --cpu=1 && break; done`, false},
				{"limit itself", `prlimit --cpu=1000 true && ulimit -n 100`, true},
				{"slow the supervisor down", `renice -n 19 -p 1 || renice -n 19 -u $(id -u) || chrt -i -p 0 1 || taskset -p 1 1`, false},
				{"have the kernel end the supervisor first", `echo 1000 >/proc/1/oom_score_adj`, m.Files == sandbox.ByBwrap}, // with bubblewrap, process 1 is bubblewrap itself, in the sandbox
				{"end the supervisor", `kill -SEGV 1 || kill -9 1`, false},
				{"go through the supervisor's threads", `for t in $(seq 2 20); do grep -q '^Tgid:.1$' /proc/$t/status 2>/dev/null || continue
					ls /proc/$t/root/ >/dev/null && exit 0; cat /proc/$t/environ && exit 0; readlink /proc/$t/cwd && exit 0; readlink /proc/$t/fd/3 && exit 0; done; exit 1`, false},
				{"see other processes", `test $(ls /proc | grep -c '^[0-9]') -gt 12`, false},
				{"share memory with others", `ipcs -m | grep -q 0x`, false},
				{"see the judge", `test -e $W/user/.local/state/pawl/loops/l/judge`, false},
				{"go round by a link", `ln -s $W/user/.ssh/id l; cat l`, false},
				{"go round by another process", `cat /proc/$PPID/root$W/user/.ssh/id`, false},
				{"uncover what is hidden", `umount $W/user || umount $W/user/.local/state/pawl || mount -t tmpfs none $W/repo`, false},
				{"uncover it in a namespace", `unshare -Urm sh -c "umount -l $W/user"`, false},
				{"have the right to mount", `test $((0x$(sed -n 's/^CapPrm:.//p' /proc/self/status) & 0x200000)) != 0 -o $((0x$(sed -n 's/^CapInh:.//p' /proc/self/status) & 0x200000)) != 0`, false},
				{"make a disk's node", `mknod disk b 254 0`, false},
				{"read a disk", `head -c 1 /dev/vda`, false},
				{"find a container engine", `test -S /run/docker.sock -o -S /var/run/docker.sock -o -e /run/user/0/bus`, false},
			} {
				code, out := p.sh("exec 2>&1; " + c.script)
				require.Equal(t, c.works, code == 0, "%s: exit %d\n%s", c.name, code, out)
			}
			for name, want := range map[string]string{"user/.bashrc": "rc\n", "user/.gitconfig": gitconfig, "user/.claude.json": "{}\n", "repo/file": "theirs\n", "user/notes/n": "1\n", "user/.claude/session": "s\n"} {
				b, err := os.ReadFile(filepath.Join(p.dir, name))
				require.NoError(t, err)
				require.Equal(t, want, string(b), name)
			}
			require.NoFileExists(t, filepath.Join(p.home, ".cache/go-build/y"), "it is in the layer")
			require.NoFileExists(t, filepath.Join(p.dir, "scratch"))
		})
	}
}

// An ordinary user gets the same by other means. Root runs these tests again as an ordinary user.
func TestE6_AsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user")
	}
	dir, err := os.MkdirTemp("", "user-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chown(dir, nobody, nobody))
	program := filepath.Join(dir, "test")
	b, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, b, 0o755))
	run := "TestE6_(WhatIsInReachOfAgents|ClaimsAreTried|Networks|WhatAnAgentLinks|AnOrdinaryUserHasLayers|EachJudgementHasFreshSurroundings)"
	if tier.Nightly {
		run = "."
	}
	cmd := exec.Command(program, "-test.v", "-test.run", run)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestE6_WhatIsInReachOfAgents")
	if sandbox.Probe().Overlay {
		require.Contains(t, string(out), "layers over this user's caches: true")
	}
}

// Layers need the right to open locked folders, because the kernel makes one in each layer.
func TestE6_AnOrdinaryUserHasLayers(t *testing.T) {
	t.Logf("layers over this user's caches: %v", sandbox.Probe().Overlay)
}

// A home that the spec makes writable is the user's own, and the sandbox makes nothing in it.
func TestE6_WhatIsAllowedStaysAsItIs(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			p.request.Allow, p.request.Argv = []string{p.home}, []string{"/usr/bin/claude"}
			before, err := os.ReadDir(p.home)
			require.NoError(t, err)
			code, out := p.sh(`echo 1 >~/.claude.json && test ! -e $W/user/.local/state/pawl/stores`)
			require.Zero(t, code, out)
			after, err := os.ReadDir(p.home)
			require.NoError(t, err)
			require.Len(t, after, len(before))
			b, err := os.ReadFile(filepath.Join(p.home, ".claude.json"))
			require.NoError(t, err)
			require.Equal(t, "1\n", string(b))
		})
	}
}

// A write to a home is lost and does no harm.
func TestE6_HomeIsAnEmptyOneInMemory(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			code, out := p.sh(`echo alias ls=rm >>~/.bashrc && cat ~/.bashrc`)
			require.Zero(t, code, out)
			require.Equal(t, "alias ls=rm\n", out)
			b, err := os.ReadFile(filepath.Join(p.home, ".bashrc"))
			require.NoError(t, err)
			require.Equal(t, "rc\n", string(b))
		})
	}
}

// A network of its own has only the sandbox's own servers. An open network has all servers, except what Landlock
// closes.
func TestE6_Networks(t *testing.T) {
	if sandbox.Probe().Landlock < 4 {
		lacking(t, "this machine's Landlock knows no ports")
	}
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			answer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
			defer answer.Close()
			port := answer.Listener.Addr().(*net.TCPAddr).Port
			ask := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && grep -q hello <&3`, port)
			through := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && printf 'CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n' >&3 && head -1 <&3 | grep -q 200`, egress.Port, port)
			for _, script := range []string{ask, through} {
				code, out := p.sh(script)
				require.NotZero(t, code, "this machine's own: %s", out)
			}
			code, out := p.sh(`python3 -c '
import socket
s = socket.socket(); s.bind(("127.0.0.1", 8080)); s.listen()
c = socket.create_connection(("127.0.0.1", 8080)); c.sendall(b"x"); print(s.accept()[0].recv(1))'`)
			require.Zero(t, code, "servers that tests start: %s", out)
			if m.Network {
				code, out = p.sh(fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d`, egress.Port))
				require.Zero(t, code, "the proxy: %s", out)
			}
			p.request.Network = sandbox.None
			code, out = p.sh(fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d`, egress.Port))
			require.NotZero(t, code, "no proxy: %s", out)
			p.request.Network = sandbox.Open
			code, out = p.sh(ask)
			require.Zero(t, code, "this machine's network: %s", out)
			p.request.Closed = []int{port}
			code, out = p.sh(ask)
			require.NotZero(t, code)
			require.Contains(t, out, "Permission denied")
			code, out = p.sh(fmt.Sprintf(`python3 -c '
import socket, sys
for s, fast in (socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262), 0), (socket.socket(), 0x20000000):
    try: s.sendto(b"x", fast, ("127.0.0.1", %[1]d)) if fast else s.connect(("127.0.0.1", %[1]d))
    except OSError: continue
    sys.exit(0)
sys.exit(1)'`, port))
			require.NotZero(t, code, "by other means than connect and TCP: %s", out)
		})
	}
}

// Only socket families and protocols on a list are allowed. Others get around Landlock's rules for ports (MPTCP,
// SMC), or reach the machine.
func TestE6_SocketsOfOtherFamiliesAndProtocols(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			code, out := p.sh(`python3 -c '
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for f, t, p in (1, 1, 0), (2, 1, 6), (2, 2, 17), (16, 3, 0), (16, 3, 4):
    socket.socket(f, t, p)
for f, t, p in (2, 1, 262), (2, 1, 256), (17, 3, 0), (40, 1, 0), (38, 5, 0), (16, 3, 9), (16, 3, 11), (16, 3, 15):
    try: socket.socket(f, t, p)
    except PermissionError: continue
    except OSError as e: print(f, t, p, e)
    else: print(f, t, p)
try: print("fast open", socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 1)))
except PermissionError: pass
try: print("fast open", socket.socket().sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", 1)))
except PermissionError: pass
except OSError as e: print("fast open by a message", e)
if libc.sendmmsg(socket.socket().fileno(), None, 1, 0x20000000) != -1 or ctypes.get_errno() != errno.EPERM: print("fast open by several", ctypes.get_errno())
socket.socketpair(1, 1, 0)
try: print("a pair", socket.socketpair(2, 1, 0))
except PermissionError: pass
except OSError as e: print("a pair", e)'`)
			require.Zero(t, code, out)
			require.Empty(t, out, "what is not refused")
		})
	}
}

// Each call whose arguments the filter checks is refused by the filter, and not by the kernel behind it. The calls
// here are also wrong in another way, for which the kernel would return another error.
func TestE6_CallsAreRefusedByWhatTheyAskFor(t *testing.T) {
	calls := [][]int{
		{unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP | 1}, {unix.SYS_CLONE, unix.CLONE_NEWCGROUP | unix.CLONE_THREAD},
		{unix.SYS_PRLIMIT64, 1, 99}, {unix.SYS_PRLIMIT64, 2, 99},
		{unix.SYS_FCNTL, 99, unix.F_SETLEASE}, {unix.SYS_FCNTL, 99, unix.F_NOTIFY}, {unix.SYS_FCNTL, 99, 10},
		{unix.SYS_KILL, 1, 99}, {unix.SYS_TGKILL, 1, 1, 99}, {unix.SYS_RT_SIGQUEUEINFO, 1, 0, 0}, {unix.SYS_RT_TGSIGQUEUEINFO, 1, 1, 0, 0},
		{unix.SYS_PIDFD_OPEN, 1, 1 << 20}, {unix.SYS_PTRACE, 0x4206, 1, 1, 1 << 30},
		{unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 1}, {unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0, 0, 0, 1},
		{unix.SYS_SETPRIORITY, 1, 99999, 0}, {unix.SYS_SETPRIORITY, 2, 99999, 0}, {unix.SYS_SETPRIORITY, 0, 1, 19},
		{unix.SYS_IOPRIO_SET, 2, 99999, 4 << 13}, {unix.SYS_IOPRIO_SET, 3, 99999, 4 << 13}, {unix.SYS_IOPRIO_SET, 1, 1, 7 << 13},
		{unix.SYS_SCHED_SETAFFINITY, 1, 8, 0}, {unix.SYS_SCHED_SETSCHEDULER, 1, 99, 0}, {unix.SYS_SCHED_SETPARAM, 1, 0}, {unix.SYS_SCHED_SETATTR, 1, 0, 0},
		{unix.SYS_PERSONALITY, 0x400000}, {unix.SYS_SETSOCKOPT, 99, unix.IPPROTO_TCP, unix.TCP_ULP},
	}
	said, err := json.Marshal(calls)
	require.NoError(t, err)
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			code, out := newPlace(t, m).sh(`python3 -c '
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for call in ` + string(said) + `:
    ctypes.set_errno(0)
    if libc.syscall(*map(ctypes.c_long, call)) != -1 or ctypes.get_errno() != errno.EPERM: print(call, ctypes.get_errno())'`)
			require.Zero(t, code, out)
			require.Empty(t, out, "what is not refused")
		})
	}
}

func TestE6_NoSignalsAndNoTracing(t *testing.T) {
	if sandbox.Probe().Landlock < 6 {
		lacking(t, "this machine's Landlock knows no signals")
	}
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			me := os.Getpid()
			for _, script := range []string{
				fmt.Sprintf("kill -9 %d", me), "kill -9 $PPID", fmt.Sprintf("cat /proc/%d/environ", me), fmt.Sprintf("cat /proc/%d/maps", me),
				fmt.Sprintf("head -c 1 /proc/%d/mem", me), fmt.Sprintf("readlink /proc/%d/fd/0", me),
				`for t in $(seq 60); do grep -qs "^Tgid:[[:space:]]*$PPID$" /proc/$t/status && exit 0; done; exit 1`, // a thread of the supervisor
			} {
				code, out := p.sh(script)
				if name == string(sandbox.ByBwrap) && strings.Contains(script, "PPID") {
					continue // with bubblewrap the parent is bubblewrap, and ending it ends the agent
				}
				require.NotZero(t, code, "%s\n%s", script, out)
			}
		})
	}
}

// A process that a command daemonises is found and ended, with and without a sandbox.
func TestE6_NothingOfASandboxSurvives(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			code, out := p.sh(`setsid bash -c 'echo $$ >pid; exec sleep 1000.25' & while ! [ -s pid ]; do :; done`)
			require.Zero(t, code, out)
			found, err := filepath.Glob("/proc/[0-9]*/cmdline")
			require.NoError(t, err)
			for _, file := range found {
				b, _ := os.ReadFile(file)
				require.NotContains(t, string(b), "1000.25")
			}
		})
	}
}

// A tree that was removed and made again is another folder.
func TestATreeThatIsMadeAgainIsInReach(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			code, out := p.in(s, `test -e f`)
			require.Zero(t, code, out)
			require.NoError(t, os.RemoveAll(p.desk))
			require.NoError(t, os.Mkdir(p.desk, 0o755))
			code, out = p.in(s, `test ! -e f && echo 1 >g`)
			require.Zero(t, code, out)
			require.FileExists(t, filepath.Join(p.desk, "g"))
		})
	}
}

// The parts that the sandbox adds to a step: making a policy, making a room, and running a command in it.
func BenchmarkCommand(b *testing.B) {
	m := sandbox.Probe()
	home := b.TempDir()
	request := sandbox.Request{
		Policy: sandbox.Policy{Machine: m, Network: sandbox.Filtered, Tree: "judge"}, Home: home, Env: os.Environ(), Argv: []string{"sh", "-c", "true"},
		Layers: []string{filepath.Join(home, "layers", "trial"), filepath.Join(home, "layers", "judge")},
	}
	run := func(name string, by sandbox.Means, policy func() *sandbox.Policy) {
		b.Run(name, func(b *testing.B) {
			s, err := supervisor.Start("bench", by)
			require.NoError(b, err)
			defer s.Close()
			once := func() {
				r, err := s.Run(context.Background(), supervisor.Command{Argv: []string{"/bin/true"}, Dir: "/", Env: os.Environ(), Sandbox: policy()})
				require.NoError(b, err)
				require.Zero(b, r.ExitCode)
			}
			once()
			for b.Loop() {
				once()
			}
		})
	}
	b.Run("policy", func(b *testing.B) {
		for b.Loop() {
			sandbox.Make(request)
		}
	})
	run("none", sandbox.ByNothing, func() *sandbox.Policy { return nil })
	same := sandbox.Make(request)
	run(string(m.Files), m.Files, func() *sandbox.Policy { return &same })
	fresh := 0
	run(string(m.Files)+", a room each", m.Files, func() *sandbox.Policy {
		p := same
		fresh++
		p.Fresh = fmt.Sprint(fresh)
		return &p
	})
	if path, ok := sandbox.Bubblewrap(); ok {
		request.Machine.Files, request.Machine.Bwrap = sandbox.ByBwrap, path
		wrapped := sandbox.Make(request)
		run("bubblewrap", sandbox.ByBwrap, func() *sandbox.Policy { return &wrapped })
	}
}

// TestE6_AKeyOfTheWorkersIsReadByNobody: the key of a certificate for Temporal may be anywhere, such as in /etc/pawl.
func TestE6_AKeyOfTheWorkersIsReadByNobody(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			reads := filepath.Join(p.dir, "etc")
			require.NoError(t, os.Mkdir(reads, 0o755))
			require.NoError(t, os.Symlink(filepath.Join(reads, "key"), filepath.Join(p.dir, "link")))
			for _, file := range []string{filepath.Join(reads, "key"), filepath.Join(reads, "other"), filepath.Join(p.repo, "key"), filepath.Join(p.desk, "key")} {
				require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o644))
			}
			p.request.Named = append(p.request.Named, reads)
			read := `for f in "$W/etc/key" "$W/repo/key" key "$W/etc/other"; do cat "$f" 2>&- || echo; done`
			_, out := p.sh(read)
			require.Equal(t, "text\ntext\ntext\ntext\n", out)
			p.request.Secrets = []string{filepath.Join(p.dir, "link"), filepath.Join(p.repo, "key"), filepath.Join(p.desk, "key"), filepath.Join(p.dir, "none"), reads}
			_, out = p.sh(read)
			require.Equal(t, 1, strings.Count(out, "text\n"), out)
		})
	}
}
