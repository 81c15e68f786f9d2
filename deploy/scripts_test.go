package deploy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stubs are programs on a PATH of their own, in place of the containers' programs.
type stubs struct {
	t   *testing.T
	dir string
}

func newStubs(t *testing.T) stubs { return stubs{t, t.TempDir()} }

// add makes a program that notes its arguments and then runs the script.
func (s stubs) add(name, script string) {
	s.t.Helper()
	text := "#!/bin/sh\necho \"$*\" >>" + s.dir + "/calls\n" + script + "\n"
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700))
}

// calls returns the arguments of every call, in order.
func (s stubs) calls() []string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "calls"))
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// run runs a script with only a PATH and the given variables in its environment.
func (s stubs) run(script string, env ...string) (code int, out string) {
	s.t.Helper()
	cmd := exec.Command("sh", strings.Fields(script)...)
	cmd.Env = append(env, "PATH="+s.dir+":"+os.Getenv("PATH"))
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(s.t, err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func TestTheSchemaOfBothDatabasesIsBroughtUpToDate(t *testing.T) {
	s := newStubs(t)
	s.add("temporal-sql-tool", "")
	code, out := s.run("schema.sh", "SCHEMA_DIR=/schema")
	require.Equal(t, 0, code, out)
	require.Equal(t, []string{
		"--database temporal create",
		"--database temporal setup-schema --version 0.0",
		"--database temporal update-schema --schema-dir /schema/temporal/versioned",
		"--database temporal_visibility create",
		"--database temporal_visibility setup-schema --version 0.0",
		"--database temporal_visibility update-schema --schema-dir /schema/visibility/versioned",
	}, s.calls())
}

func TestASchemaThatFailsFailsTheScript(t *testing.T) {
	s := newStubs(t)
	s.add("temporal-sql-tool", `case $* in *update*) exit 1 ;; esac`)
	code, _ := s.run("schema.sh")
	require.NotEqual(t, 0, code, "else the server would start without")
	require.Len(t, s.calls(), 3)
}

func TestTheNamespaceIsMadeOnceTemporalAnswers(t *testing.T) {
	s := newStubs(t)
	s.add("sleep", "")
	s.add("temporal", `case $* in
	*health*) [ "$(grep -c health `+s.dir+`/calls)" -ge 3 ] ;;
	*describe*) exit 1 ;;
	esac`)
	code, out := s.run("namespace.sh", "TEMPORAL_ADDRESS=there:7233", "PAWL_NAMESPACE=loops", "PAWL_RETENTION=90d")
	require.Equal(t, 0, code, out)
	calls := s.calls()
	require.Equal(t, "operator namespace create --namespace loops --retention 90d --address there:7233", calls[len(calls)-1])
	require.Equal(t, 3, strings.Count(strings.Join(calls, "\n"), "operator cluster health --address there:7233"))
}

func TestANamespaceThatIsThereIsLeftAlone(t *testing.T) {
	s := newStubs(t)
	s.add("temporal", "")
	code, out := s.run("namespace.sh", "TEMPORAL_ADDRESS=there:7233", "PAWL_NAMESPACE=loops", "PAWL_RETENTION=90d")
	require.Equal(t, 0, code, out)
	require.NotContains(t, strings.Join(s.calls(), "\n"), "create")
}

func TestATemporalThatNeverAnswersIsGivenUpWithTheReason(t *testing.T) {
	s := newStubs(t)
	s.add("sleep", "")
	s.add("temporal", "echo connection refused >&2; exit 1")
	code, out := s.run("namespace.sh", "TEMPORAL_ADDRESS=there:7233", "PAWL_NAMESPACE=loops", "PAWL_RETENTION=90d", "TRIES=3")
	require.Equal(t, 1, code)
	require.Contains(t, out, "Temporal at there:7233 does not answer: connection refused")
}

// gitRemote serves the repositories in a folder. It tries another port if somebody else has taken the free one
// meanwhile.
func gitRemote(t *testing.T, dir string, env ...string) (address string, stop func()) {
	t.Helper()
	for {
		address = freeAddress(t)
		_, port, _ := net.SplitHostPort(address)
		cmd := exec.Command("sh", "git.sh")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_ROOT=" + dir, "GIT_DAEMON_PORT=" + port, "GIT_REPOSITORIES=project other"}
		cmd.Env = append(cmd.Env, env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // git daemon is a child of git
		require.NoError(t, cmd.Start())
		gone := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(gone)
		}()
		stop = sync.OnceFunc(func() { // once, because another process may have the number afterwards
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-gone
		})
		t.Cleanup(stop)
		serves := false
		until(t, func() bool {
			select {
			case <-gone:
				return true
			default:
			}
			code, _ := newStubs(t).run("git.sh health", cmd.Env...)
			serves = code == 0
			return serves
		})
		if serves {
			return address, stop
		}
		stop()
	}
}

// The real git remote: one repository pushes, another fetches.
func TestTheGitRemoteTakesAndGives(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // after a restart it has what was pushed
		address, stop := gitRemote(t, dir)
		require.NoError(t, git(t, "ls-remote", "--quiet", "git://"+address+"/other.git"))
		work := filepath.Join(t.TempDir(), "work")
		require.NoError(t, git(t, "clone", "--quiet", "git://"+address+"/project.git", work))
		if _, err := os.Stat(filepath.Join(work, "n")); err != nil {
			require.NoError(t, os.WriteFile(filepath.Join(work, "n"), []byte("10\n"), 0o600))
			require.NoError(t, git(t, "-C", work, "add", "n"))
			require.NoError(t, git(t, "-C", work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "-m", "n"))
			require.NoError(t, git(t, "-C", work, "push", "--quiet", "origin", "HEAD:main"))
		}
		stop()
	}
	require.NoError(t, git(t, "-C", filepath.Join(dir, "project.git"), "cat-file", "-e", "main:n"))
}

// What the compose file has for workers and for people, on the same repositories.
func TestWorkersPushBranchesAndLedgersOfLoopsOnly(t *testing.T) {
	dir, work := t.TempDir(), filepath.Join(t.TempDir(), "work")
	takes := expand(t, readCompose(t).Services["git"].Environment["GIT_TAKES"], nil)
	people, _ := gitRemote(t, dir)
	workers, _ := gitRemote(t, dir, "GIT_TAKES="+takes)
	at := func(address string) string { return "git://" + address + "/project.git" }
	commit := func(message string) {
		require.NoError(t, git(t, "-C", work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--allow-empty", "-m", message))
	}
	require.NoError(t, git(t, "clone", "--quiet", at(people), work))
	commit("first")
	push := func(address string, refs ...string) error {
		return git(t, append([]string{"-C", work, "push", "--quiet", at(address)}, refs...)...)
	}
	require.NoError(t, push(people, "HEAD:refs/heads/main"), "a person pushes what they want")
	require.NoError(t, push(workers, "HEAD:refs/heads/pawl/x", "HEAD:refs/pawl-ledger/x"))
	commit("second")
	require.NoError(t, push(workers, "HEAD:refs/heads/pawl/x", "HEAD:refs/pawl-ledger/x"), "forwards")
	commit("third")
	for _, ref := range []string{"refs/heads/main", "refs/heads/other", "refs/tags/v1", "refs/heads/pawl", "refs/heads/pawlx", "refs/pawl-ledgers", "refs/notes/x", "refs/meta/x"} {
		require.Error(t, push(workers, "HEAD:"+ref), ref)
		require.Error(t, push(workers, "+HEAD:"+ref, "HEAD:refs/heads/pawl/y"), "together with one that may: %s", ref)
	}
	require.Error(t, push(workers, ":refs/heads/main"), "deleted")
	require.Error(t, push(workers, ":refs/pawl-ledger/x"), "a ledger only grows")
	require.Error(t, push(workers, "+HEAD~2:refs/pawl-ledger/x"))
	require.NoError(t, push(workers, "+HEAD~2:refs/heads/pawl/x"), "a branch goes back to what the ledger has")

	// A hook that somebody gets into a repository does not run.
	canary := filepath.Join(t.TempDir(), "canary")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "project.git", "hooks", "post-receive"), []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o755))
	require.NoError(t, push(workers, "HEAD:refs/pawl-ledger/x"))
	require.NoError(t, push(people, "HEAD:refs/heads/main"))
	require.NoFileExists(t, canary)
}

func TestTheGitRemoteMakesNothingOutsideOfItsRoot(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../out", ".hidden", "a/b"} {
		code, out := newStubs(t).run("git.sh", "GIT_ROOT="+filepath.Join(dir, "root"), "GIT_DAEMON_PORT=0", "GIT_REPOSITORIES="+name)
		require.Equal(t, 2, code)
		require.Contains(t, out, name)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Only a worker that has the lock is healthy.
func TestHealthIsTheWorkersLock(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		if os.Getenv("PAWL_TEST_ALL") != "" {
			t.Fatal("there is no flock")
		}
		t.Skip("there is no flock")
	}
	home := t.TempDir()
	code, _ := newStubs(t).run("health.sh", "PAWL_HOME="+filepath.Join(home, "none"))
	require.Equal(t, 1, code, "there never was a worker")
	lock, err := os.Create(filepath.Join(home, "worker.lock"))
	require.NoError(t, err)
	code, out := newStubs(t).run("health.sh", "PAWL_HOME="+home)
	require.Equal(t, 1, code)
	require.Contains(t, out, "no worker runs")
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	code, out = newStubs(t).run("health.sh", "PAWL_HOME="+home)
	require.Equal(t, 0, code, out)
	require.NoError(t, lock.Close())
	code, _ = newStubs(t).run("health.sh", "PAWL_HOME="+home)
	require.Equal(t, 1, code)
}

func git(t *testing.T, args ...string) error {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	return cmd.Run()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// until waits for a condition.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 20*time.Millisecond)
}
