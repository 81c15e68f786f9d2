package repository_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/test/harness/world"
)

// sshd serves this host to anybody with the world's key, and returns the port. The key is in the world's home and in an
// agent that listens there. The home knows the host.
func sshd(w *world.World) (port string) {
	w.T.Helper()
	program := "/usr/sbin/sshd" // it starts itself again by its full path
	for _, needed := range []string{program, "ssh", "ssh-keygen", "ssh-agent", "ssh-add"} {
		if _, err := exec.LookPath(needed); err != nil {
			world.Lacks(w.T, "there is no "+needed)
		}
	}
	me, err := user.Current()
	require.NoError(w.T, err)
	if me.Uid == "0" {
		require.NoError(w.T, os.MkdirAll("/run/sshd", 0o755)) // it requires this folder
	}
	run := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(w.T, err, "%s: %s", name, out)
	}
	at := func(name string) string { return filepath.Join(w.Dir, filepath.FromSlash(name)) }
	w.Write("user/.ssh/x", "")
	require.NoError(w.T, os.Chmod(at("user/.ssh"), 0o700))
	for _, name := range []string{"user/.ssh/id_ed25519", "hostkey"} {
		run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(name))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.T, err)
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(w.T, err)
	require.NoError(w.T, l.Close())
	w.Write("user/.ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%s %s", port, w.Read("hostkey.pub")))
	w.Write("user/.ssh/config", fmt.Sprintf("Host *\n\tUser %s\n\tUserKnownHostsFile %s\n\tStrictHostKeyChecking yes\n\tBatchMode yes\n\tIdentityFile none\n", me.Username, at("user/.ssh/known_hosts")))
	w.Write("sshd_config", fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n",
		port, at("hostkey"), at("user/.ssh/id_ed25519.pub")))

	for _, c := range []*exec.Cmd{
		exec.Command(program, "-D", "-e", "-f", at("sshd_config")),
		exec.Command("ssh-agent", "-D", "-a", at("user/.ssh/agent")),
	} {
		world.TieToParent(c)
		require.NoError(w.T, c.Start())
		w.T.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	w.Until("the agent has the key", func() bool {
		add := exec.Command("ssh-add", "-q", at("user/.ssh/id_ed25519"))
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+at("user/.ssh/agent"))
		return add.Run() == nil
	})
	w.Until("sshd listens", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}

// huntsKey looks for a key, for an agent that has one, and for a way to the server. It names no file of the home,
// because files that a spec names can be read.
const huntsKey = `{
	D=$(echo %s | base64 -d)
	env | grep -a SSH_
	ls -A "$D"
	grep -raE 'OPENSSH PRIVATE KE[Y]' ~ "$D" .git /tmp /var/tmp /run
	SSH_AUTH_SOCK=$D/agent ssh-add -l | grep -a ED25519
	cat /proc/[0-9]*/environ | tr '\0' '\n' | grep -a SSH_AUTH_SOCK
	SSH_AUTH_SOCK=$D/agent ssh -o BatchMode=yes -o StrictHostKeyChecking=no -p %[2]s 127.0.0.1 echo by ssh
	exec 5<>"/dev/tcp/127.0.0.1/%[2]s" && echo by TCP
	exec 5<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" && printf 'CONNECT 127.0.0.1:%[2]s HTTP/1.1\r\nHost: x\r\n\r\n' >&5 && timeout 5 head -c 12 <&5 | grep -a 200
	GIT_TERMINAL_PROMPT=0 git push "$URL" HEAD:refs/heads/mine && echo by push
} 2>/dev/null`

// TestE6_KeysOfARepositoryByItsURLAreThatOfPawlsGitAlone has the worker's user reach a repository by ssh, with a key in
// an agent. A loop works on it and pushes to it. The loop's agent and verify find no key, no agent and no server.
func TestE6_KeysOfARepositoryByItsURLAreThatOfPawlsGitAlone(t *testing.T) {
	world.Slow(t, "TestE6_CredentialsOfARepositoryByItsURLAreThatOfPawlsGitAlone has them over HTTP")
	if lacks := sandbox.Probe().Lacks(sandbox.Filtered, []int{1}); lacks != "" {
		world.Lacks(t, "this machine lacks "+lacks)
	}
	t.Parallel()
	w := world.Alone(t, "")
	w.Shares()
	port := sshd(w)
	keys := filepath.Join(w.Dir, "user", ".ssh")
	w.Env = append(w.Env, "SSH_AUTH_SOCK="+filepath.Join(keys, "agent"))
	w.Configures("[core]\nsshCommand = ssh -F " + filepath.Join(keys, "config") + "\n")
	url := "ssh://127.0.0.1:" + port + w.Dir + "/project.git"
	hunt := "URL='" + url + "'; export URL; " + fmt.Sprintf(huntsKey, base64.StdEncoding.EncodeToString([]byte(keys)), port)
	w.Set(doc{
		"repo": doc{"url": url}, "newFiles": "allow", "sandbox": doc{"use": "required", "allow": []string{}},
		"agent":  doc{"command": []string{"bash", "-c", hunt + " >work/found; touch work/found; " + world.Raises}, "env": doc{}},
		"verify": doc{"command": "bash -c " + "'" + strings.ReplaceAll(hunt, "'", `'\''`) + "' | sed 's/^/found: /'; cat work/n", "timeout": "2m"},
	})
	said := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, said.Code, said.Err)
	require.Equal(t, "11", w.Has("refs/heads/pawl/"+w.Loop, "work/n"), "pawl's own git reaches it, and pushes")
	require.Empty(t, w.Has("refs/heads/pawl/"+w.Loop, "work/found"))
	stdout, err := filepath.Glob(filepath.Join(w.Home, "loops", w.Loop, "steps", "0001.*verify*", "stdout"))
	require.NoError(t, err)
	require.NotEmpty(t, stdout)
	for _, name := range stdout {
		assert.NotContains(t, world.ReadFile(name), "found:")
	}
	require.NotContains(t, w.There("for-each-ref"), "refs/heads/mine")
	found, _ := exec.Command("grep", "-rlaF", "OPENSSH PRIVATE KEY", w.Home).Output()
	require.Empty(t, string(found))
}
