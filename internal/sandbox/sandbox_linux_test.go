package sandbox_test

import (
	"context"
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

	"pawl/internal/proc"
	"pawl/internal/sandbox"
)

func TestMain(m *testing.M) {
	proc.Main()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // of every process that the race detector looks at
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
	p := &place{
		t: t, dir: dir, home: filepath.Join(dir, "user"), pawl: filepath.Join(dir, "user", ".local", "state", "pawl"),
		repo: filepath.Join(dir, "repo"),
	}
	p.desk, p.exchange = filepath.Join(p.pawl, "loops", "l", "desk"), filepath.Join(p.pawl, "loops", "l", "exchange")
	for name, text := range map[string]string{
		"user/.ssh/id": "key\n", "user/.bashrc": "rc\n", "user/.cache/go-build/x": "x\n", "user/.gitconfig": "config\n", "user/.claude.json": "{}\n",
		"user/.claude/session": "s\n", "user/tools/agent.sh": "exit 0\n", "user/tools/lib.sh": "l\n", "user/notes/n": "n\n", "user/notes.txt": "m\n", "repo/file": "theirs\n", "repo/.git/hooks/post-commit": "h\n",
		"user/.local/state/pawl/stores/s.git/HEAD": "ref\n", "user/.local/state/pawl/loops/other/steps/stdout": "transcript\n",
		"user/.local/state/pawl/loops/l/judge/f": "f\n", "user/.local/state/pawl/loops/l/desk/f": "f\n", "user/.local/state/pawl/loops/l/exchange/p": "p\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Setenv("HOME", p.home)
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp")) // so that the home is a real one
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	p.request = sandbox.Request{Machine: m, Home: p.pawl, Repo: p.repo, Own: []string{p.desk, p.exchange}, Env: os.Environ()}
	return p
}

// sh runs a script in the sandbox as an agent would be run, and returns its exit code and output.
func (p *place) sh(script string) (int, string) {
	p.t.Helper()
	s, err := proc.Start(p.t.Name(), p.request.Machine.Files)
	require.NoError(p.t, err)
	defer s.Close()
	return p.in(s, script)
}

func (p *place) in(s *proc.Supervisor, script string) (int, string) {
	p.t.Helper()
	policy := sandbox.Make(p.request)
	out := filepath.Join(p.dir, "out")
	r, err := s.Run(context.Background(), proc.Command{
		Argv: []string{"bash", "-c", script}, Dir: p.desk, Env: append(os.Environ(), "W="+p.dir), Stdout: out, Stderr: out, Sandbox: &policy,
	})
	require.NoError(p.t, err)
	b, err := os.ReadFile(out)
	require.NoError(p.t, err)
	return r.ExitCode, string(b) + r.StartError
}

// machines are the ways in which this machine can keep files out of reach.
func machines(t *testing.T) map[string]sandbox.Machine {
	m := sandbox.Probe()
	if m.Files == sandbox.ByNothing {
		lacking(t, "this machine has no mount namespaces and no usable bwrap")
	}
	found := map[string]sandbox.Machine{string(m.Files): m}
	if path, ok := sandbox.Bubblewrap(); ok {
		found[string(sandbox.ByBwrap)] = sandbox.Machine{Files: sandbox.ByBwrap, Bwrap: path, Landlock: m.Landlock}
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

// Each script must print what it found, and exits as the shell does.
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
				{"read git's settings", `grep -q config ~/.gitconfig`, true},
				{"change git's settings", `echo 1 >~/.gitconfig`, false},
				{"run what the spec names", `sh ~/tools/agent.sh`, true},
				{"read what the spec names by the home's short name", `grep -q m ~/notes.txt`, true},
				{"read what is beside the agent", `cat ~/tools/lib.sh`, true},
				{"change what the spec names", `echo 1 >~/tools/agent.sh`, false},
				{"write what the spec allows", `echo 1 >~/notes/n`, true},
				{"use the agent's own sign-in", `echo 1 >~/.claude/session && grep -q {} ~/.claude.json`, true},
				// bubblewrap makes no copies.
				{"replace the agent's settings", `echo 1 >~/.claude.json.new && mv ~/.claude.json.new ~/.claude.json`, m.Files != sandbox.ByBwrap},
				{"use scratch space beside everything", `echo 1 >$W/scratch && echo 1 >$(mktemp)`, true},
				{"read the repository", `grep -q theirs $W/repo/file`, true},
				{"write the repository", `echo 1 >$W/repo/file`, false},
				{"make files in the repository", `echo 1 >$W/repo/.git/hooks/pre-commit || echo 1 >$W/repo/.git/new`, false},
				{"remove a file of the repository", `rm -f $W/repo/file || mv $W/repo/file $W/repo/other`, false},
				{"stop the loop", `echo 1 >$W/repo/loop-stop`, true},
				{"remove the repository", `rm -rf $W/repo; test ! -e $W/repo/file`, false},
				{"rename the repository", `mv $W/repo $W/elsewhere`, false},
				{"read a key", `cat ~/.ssh/id`, false},
				{"list the home", `ls -A ~ | grep -q bashrc`, false},
				{"read the store", `cat $W/user/.local/state/pawl/stores/s.git/HEAD`, false},
				{"see that there is a store", `test -e $W/user/.local/state/pawl/stores`, false},
				{"read another loop's transcript", `cat $W/user/.local/state/pawl/loops/other/steps/stdout`, false},
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
			for name, want := range map[string]string{"user/.bashrc": "rc\n", "user/.gitconfig": "config\n", "user/.claude.json": "{}\n", "repo/file": "theirs\n", "user/notes/n": "1\n"} {
				b, err := os.ReadFile(filepath.Join(p.dir, name))
				require.NoError(t, err)
				require.Equal(t, want, string(b), name)
			}
		})
	}
}

// An ordinary user gets the same by other means. Root runs these tests once more as one.
func TestE6_AsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user")
	}
	dir, err := os.MkdirTemp("", "pawl-user-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chown(dir, nobody, nobody))
	program := filepath.Join(dir, "test")
	b, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, b, 0o755))
	cmd := exec.Command(program, "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestE6_WhatIsInReachOfAgents")
}

// A write to a home is lost and harms nobody.
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

func TestE6_ClosedPorts(t *testing.T) {
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
			code, out := p.sh(ask)
			require.Zero(t, code, "a port that is nobody's business: %s", out)
			p.request.Closed = []int{port}
			code, out = p.sh(ask)
			require.NotZero(t, code)
			require.Contains(t, out, "Permission denied")
			p.request.Ports = []int{port}
			code, out = p.sh(ask)
			require.Zero(t, code, "the spec opens it: %s", out)
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
			} {
				code, out := p.sh(script)
				if name == string(sandbox.ByBwrap) && strings.Contains(script, "PPID") {
					continue // there the parent is bubblewrap's, and ending it ends the agent
				}
				require.NotZero(t, code, "%s\n%s", script, out)
			}
		})
	}
}

// What a command daemonises is found and ended, sandbox or not.
func TestE6_NothingOfASandboxSurvives(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			code, out := p.sh(`setsid bash -c 'echo $$ >` + p.dir + `/pid; exec sleep 1000.25' & while ! [ -s ` + p.dir + `/pid ]; do :; done`)
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
			s, err := proc.Start(t.Name(), m.Files)
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

// A home that somebody made up in the temporary folder is scratch, but for what looks like settings.
func TestE6_AHomeThatIsMadeUp(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			t.Setenv("TMPDIR", p.dir)
			for script, works := range map[string]bool{
				"echo 1 >~/scratch": true, "cat ~/notes.txt": true, "cat ~/.ssh/id": false, "echo 1 >~/.bashrc": false, "test -e " + p.pawl + "/stores": false,
			} {
				code, out := p.sh(script)
				require.Equal(t, works, code == 0, "%s\n%s", script, out)
			}
			require.FileExists(t, filepath.Join(p.home, "scratch"))
		})
	}
}

func BenchmarkCommand(b *testing.B) {
	m := sandbox.Probe()
	run := func(name string, policy *sandbox.Policy, by sandbox.Means) {
		b.Run(name, func(b *testing.B) {
			s, err := proc.Start("bench", by)
			require.NoError(b, err)
			defer s.Close()
			once := func() {
				_, err := s.Run(context.Background(), proc.Command{Argv: []string{"/bin/true"}, Dir: "/", Env: os.Environ(), Sandbox: policy})
				require.NoError(b, err)
			}
			once()
			for b.Loop() {
				once()
			}
		})
	}
	home := b.TempDir()
	make := func(m sandbox.Machine) *sandbox.Policy {
		p := sandbox.Make(sandbox.Request{Machine: m, Home: home, Closed: []int{1, 2}, Env: os.Environ()})
		return &p
	}
	run("none", nil, sandbox.ByNothing)
	run(string(m.Files), make(m), m.Files)
	if path, ok := sandbox.Bubblewrap(); ok {
		m.Files, m.Bwrap = sandbox.ByBwrap, path
		run("bubblewrap", make(m), m.Files)
	}
}
