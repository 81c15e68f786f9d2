package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/sandbox"
	"pawl/internal/testbin"
)

// scratch is the folder of this test run.
var scratch string

func TestMain(m *testing.M) {
	sandbox.Main()
	testbin.Main()
	if err := os.Chdir(".."); err != nil { // everything is named from the module's root
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testbin.Parallel(6)
	var err error
	if scratch, err = os.MkdirTemp("", "pawl-"); err == nil {
		scratch, err = filepath.EvalSymlinks(scratch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, stop := range []func() error{stopShared, stopCluster} {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.RemoveAll(scratch)
	os.Exit(code)
}

// program builds the program once per test run and returns its path.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = building("pawl", ".")

// building returns what builds a program of ours.
func building(name, pkg string) func() (string, error) {
	return testbin.Building(".", pkg, func() string { return filepath.Join(scratch, name) })
}

// up is a `pawl up` that serves.
type up struct {
	cmd     *exec.Cmd
	gone    chan error
	log     string
	stopped bool
}

// The `pawl up` that most tests share: its engine and its worker, as a user's would be shared by
// all that they run.
var (
	sharedHome = func() string { return filepath.Join(scratch, "home") }
	shared     = sync.OnceValues(func() (*up, error) { return startUp(sharedHome(), filepath.Join(scratch, "up")) })
	sharedUp   *up
	sharedMu   sync.Mutex
)

func share(t testing.TB) {
	t.Helper()
	program(t)
	u, err := shared()
	require.NoError(t, err)
	sharedMu.Lock()
	defer sharedMu.Unlock()
	sharedUp = u
}

func stopShared() error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if sharedUp == nil {
		return nil
	}
	return sharedUp.stop()
}

// startUp starts `pawl up` and returns when it serves.
func startUp(home, dir string, env ...string) (*up, error) {
	path, err := build()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	u := &up{cmd: exec.Command(path, "up", "--json"), gone: make(chan error, 1), log: filepath.Join(dir, "up.log")}
	u.cmd.Dir, u.cmd.Env = dir, append(environ(home, dir), env...)
	tieToParent(u.cmd)
	stderr, err := os.Create(u.log)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	u.cmd.Stderr = stderr
	stdout, err := u.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := u.cmd.Start(); err != nil {
		return nil, err
	}
	serves := make(chan error, 1)
	go func() {
		var serving struct{ Address, Engine string }
		err := json.NewDecoder(stdout).Decode(&serving)
		if err == nil && (serving.Address == "" || serving.Engine != "ours") {
			err = fmt.Errorf("it serves at %q an engine that is %q", serving.Address, serving.Engine)
		}
		serves <- err
		io.Copy(io.Discard, stdout)
		u.gone <- u.cmd.Wait()
	}()
	select {
	case err = <-serves:
	case <-time.After(patience):
		err = context.DeadlineExceeded
	}
	if err != nil {
		said, _ := os.ReadFile(u.log)
		u.cmd.Process.Kill()
		return nil, fmt.Errorf("starting pawl up: %w\n%s", err, said)
	}
	return u, nil
}

// stop interrupts it as Ctrl-C does, and waits for its end.
func (u *up) stop() error {
	if u.stopped {
		return nil
	}
	u.stopped = true
	if err := u.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case err := <-u.gone:
		if err != nil {
			said, _ := os.ReadFile(u.log)
			return fmt.Errorf("pawl up: %w\n%s", err, said)
		}
		return nil
	case <-time.After(patience):
		u.cmd.Process.Kill()
		return errors.New("pawl up does not stop")
	}
}

// caches are where go keeps what it has built, which must not be built anew in each test's $HOME.
var caches = sync.OnceValue(func() []string {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if f := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil && len(f) == 2 {
		return []string{"GOCACHE=" + f[0], "GOMODCACHE=" + f[1]}
	}
	return nil
})

// environ is a user's environment without anything that would lead out of the test.
func environ(home, dir string) []string {
	env := slices.Clone(caches())
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "PAWL_") && !strings.HasPrefix(name, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "PAWL_HOME="+home)
}
