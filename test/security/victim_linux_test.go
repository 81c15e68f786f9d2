package security_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/test/harness/world"
)

// newVictim makes a world with its own engine and worker, apart in the given way, and puts around it what an agent
// might want. It returns what the agent has found out.
func newVictim(t *testing.T, way string) (*world.World, map[string]string) {
	t.Helper()
	t.Parallel()
	w := world.Alone(t, "")
	for name, content := range map[string]string{
		"tmp/x": "", "shims/x": "", "precious": "mine\n", "user/key": "key\n", "user/.claude/settings.json": "{}\n", "user/.git-credentials": "https://ann:word@example.com\n", "user/.config/git/credentials": "https://ann:word@example.com\n",
		"user/.cache/go-build/x": "", "user/.npm/_cacache/x": "", "user/.cargo/registry/x": "", "user/.gitconfig": "[user]\n\tname = Ann\n\temail = ann@example.com\n",
	} {
		w.Write(name, content)
	}
	// It has its own temporary folder, so that the home is a real one. None of the secrets is needed for a build.
	w.Env = append(w.Env, "TMPDIR="+w.Dir+"/tmp", "GOCACHE="+w.Dir+"/user/.cache/go-build", "PATH="+w.Dir+"/shims:"+os.Getenv("PATH"),
		"DATABASE_URL=postgres://app:sesame@db/app", "MY_PASS=sesame", "GH_PAT=sesame", "SENTRY_DSN=sesame", "OF_SOMETHING=sesame", "NPM_CONFIG_X=https://ann:sesame@example.com")
	// In a sandbox the numbers of processes begin at 1, so a small one may be another process's there. Only root may do this.
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte("20000"), 0)
	up := serves(t, w, way)
	other := w.Loop + "-other"
	w.Set(doc{"name": other})
	s := w.Pawl("run", "--json", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	w.Set(doc{"name": w.Loop})

	engine, ui, history := ports(w)
	told := map[string]string{
		"H": w.Home, "REPO": w.Repo, "LOOP": w.Loop, "OTHER": other, "ENGINE": engine, "UI": ui, "HISTORY": history,
		"UP": strconv.Itoa(up.Cmd.Process.Pid), "SUPERVISOR": "$PPID", "CONFINED": "yes", "LACKS": strings.Join(missing(), " "), "PROXY": proxyOfOthers(t), "TERMINAL": terminal(t),
	}
	switch way {
	case byNobody:
		told["CONFINED"] = ""
	case byBwrap, byOrdinaryBwrap: // there, a command's parent is in the sandbox itself
		told["SUPERVISOR"] = told["UP"]
	}
	shares(t, w)
	return w, told
}

// serves starts a world's engine and worker, apart in the given way. There, this test's program is bin/agent.
func serves(t *testing.T, w *world.World, way string) *world.Command {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	// Another process copies the program. A file that this process writes could still be open in a child that was just
	// forked, and nobody can run such a file.
	out, err := exec.Command("install", "-D", self, filepath.Join(w.Dir, "bin", "agent")).CombinedOutput()
	require.NoError(t, err, string(out))
	if way == byOrdinary || way == byOrdinaryBwrap {
		w.Ordinary()
	}
	up := w.Prepare("up", "--json")
	if way == byBwrap || way == byOrdinaryBwrap {
		up.Cmd.Args = append([]string{"agent", apart, up.Cmd.Path}, up.Cmd.Args[1:]...)
		up.Cmd.Path = filepath.Join(w.Dir, "bin", "agent")
	}
	up.Begin()
	t.Cleanup(func() {
		up.Interrupt()
		<-up.Gone
	})
	w.Until("pawl serves", func() bool { return w.Engine().Address != "" })
	return up
}

// shares makes what programs share with anybody who knows its name: memory, a queue, a key, sockets.
func shares(t *testing.T, w *world.World) {
	t.Helper()
	file := filepath.Join("/dev/shm", "pawl-test-"+w.Loop)
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	t.Cleanup(func() { os.Remove(file) })

	id, err := unix.SysvShmGet(sharedKey, 1, unix.IPC_CREAT|0o666)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })

	if openQueue(queue(w.Loop), unix.O_RDONLY|unix.O_CREAT) == nil {
		t.Cleanup(func() { _ = unlinkQueue(queue(w.Loop)) })
	}
	if key, err := unix.AddKey("user", queue(w.Loop), []byte("x"), unix.KEY_SPEC_USER_KEYRING); err == nil {
		t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	}
	for _, name := range []string{filepath.Join(w.Dir, "early"), "@pawl-test-" + w.Loop, filepath.Join(w.Repo, "work", "socket")} {
		listens(t, name)
	}
}

func listens(t testing.TB, name string) {
	t.Helper()
	l, err := net.Listen("unix", name)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
}

// listensLater begins to listen when an attempt waits for it, first in the desk, then in the judge. It returns early if
// the loop ends before that.
func listensLater(w *world.World, loop *world.Command) {
	w.T.Helper()
	for _, tree := range []string{"desk", "judge"} {
		waits := filepath.Join(w.Home, "loops", w.Loop, tree, "work", "late")
		w.Until("an attempt waits for a socket", func() bool {
			select {
			case <-loop.Gone:
				return true
			default:
				_, err := os.Stat(waits)
				return err == nil
			}
		})
		if tree == "desk" {
			listens(w.T, filepath.Join(w.Dir, "late"))
		}
		_ = os.WriteFile(waits+".go", nil, 0o666)
	}
}

// proxyOfOthers returns the port of a proxy on this host that connects to any address.
func proxyOfOthers(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(server, client)
		io.Copy(client, server)
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	require.NoError(t, err)
	return at.Port()
}

// terminal returns a terminal of the user's.
func terminal(t *testing.T) string {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { main.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(main.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(main.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	return fmt.Sprintf("/dev/pts/%d", n)
}
