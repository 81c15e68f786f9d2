package world

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
)

// The remote repository of these tests is a bare one beside the world's, which loops reach only by its URL.

// Shares copies the world's repository into a bare one, and makes the loop use that.
func (w *World) Shares() string {
	w.T.Helper()
	bare := filepath.Join(w.Dir, "project.git")
	w.Git("clone", "--quiet", "--bare", w.Repo, bare)
	w.Configures("[user]\nname = Ann\nemail = ann@example.com\n")
	w.Spec["repo"] = Doc{"url": "file://" + bare}
	return bare
}

// Configures adds to the user's git configuration, for the worker and the test itself.
func (w *World) Configures(text string) {
	w.T.Helper()
	for _, file := range []string{"user/.gitconfig", ".gitconfig"} {
		w.Write(file, w.Read(file)+text)
	}
}

// There runs git in the shared repository.
func (w *World) There(args ...string) string {
	w.T.Helper()
	return w.Git(append([]string{"--git-dir", filepath.Join(w.Dir, "project.git")}, args...)...)
}

// Has returns the content of a file at a ref of the shared repository.
func (w *World) Has(ref, name string) string {
	w.T.Helper()
	return w.There("show", ref+":"+name)
}

// RowsThere returns the descriptions of the loop's results in the shared repository.
func (w *World) RowsThere() (rows []string) {
	w.T.Helper()
	for _, line := range strings.Split(w.Has("refs/pawl-ledger/"+w.Loop, "loop-results.tsv"), "\n") {
		f := strings.Split(line, "\t")
		rows = append(rows, f[0]+" "+f[4]+" "+f[5])
	}
	return rows
}

// Daemon serves the world's folder by git's own protocol and returns the URL of its repositories.
func (w *World) Daemon(options ...string) string {
	w.T.Helper()
	core := w.Git("--exec-path")
	if _, err := os.Stat(filepath.Join(core, "git-daemon")); err != nil {
		Lacks(w.T, "there is no git daemon: "+err.Error())
	}
	address := FreeAddress(w.T)
	host, port, _ := net.SplitHostPort(address)
	// Not `git daemon`, which would leave the daemon behind.
	cmd := exec.Command(filepath.Join(core, "git-daemon"), append(options, "--reuseaddr", "--export-all", "--listen="+host, "--port="+port, "--base-path="+w.Dir, w.Dir)...)
	cmd.Env = Environ(w.Home, w.Dir)
	TieToParent(cmd)
	require.NoError(w.T, cmd.Start())
	w.T.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	w.Until("git serves", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "git://" + address
}
