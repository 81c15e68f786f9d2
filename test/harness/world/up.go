package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Up is a `pawl up` that serves.
type Up struct {
	Cmd     *exec.Cmd
	Gone    chan error
	Log     string
	Serving Serving
	stopped bool
}

// Serving is what it prints about where it serves.
type Serving struct{ Address, UI, CLI, Engine string }

// The `pawl up` that most tests share, as all runs of a user share an engine and a worker.
var (
	sharedHome = func() string { return filepath.Join(Scratch, "home") }
	shared     = sync.OnceValues(func() (*Up, error) { return StartUp(sharedHome(), filepath.Join(Scratch, "up")) })
	sharedUp   *Up
	sharedMu   sync.Mutex
)

func share(t testing.TB) {
	t.Helper()
	Program(t)
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
	return sharedUp.Stop()
}

// StartUp starts `pawl up` and returns when it serves.
func StartUp(home, dir string, env ...string) (*Up, error) {
	return StartUpWith(nil, home, dir, env...)
}

// StartUpWith is StartUp with flags.
func StartUpWith(flags []string, home, dir string, env ...string) (*Up, error) {
	path, err := build()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	u := &Up{Cmd: exec.Command(path, append([]string{"up", "--json"}, flags...)...), Gone: make(chan error, 1), Log: filepath.Join(dir, "up.log")}
	u.Cmd.Dir, u.Cmd.Env = dir, append(Environ(home, dir), env...)
	TieToParent(u.Cmd)
	stderr, err := os.Create(u.Log)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	u.Cmd.Stderr = stderr
	stdout, err := u.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := u.Cmd.Start(); err != nil {
		return nil, err
	}
	serves := make(chan error, 1)
	go func() {
		err := json.NewDecoder(stdout).Decode(&u.Serving)
		if err == nil && (u.Serving.Address == "" || u.Serving.Engine != "ours") {
			err = fmt.Errorf("it serves at %q an engine that is %q", u.Serving.Address, u.Serving.Engine)
		}
		serves <- err
		io.Copy(io.Discard, stdout)
		u.Gone <- u.Cmd.Wait()
	}()
	select {
	case err = <-serves:
	case <-time.After(Patience):
		err = context.DeadlineExceeded
	}
	if err != nil {
		said, _ := os.ReadFile(u.Log)
		u.Cmd.Process.Kill()
		return nil, fmt.Errorf("starting pawl up: %w\n%s", err, said)
	}
	return u, nil
}

// Stop interrupts it as Ctrl-C does, and waits for its end.
func (u *Up) Stop() error {
	if u.stopped {
		return nil
	}
	u.stopped = true
	if err := u.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case err := <-u.Gone:
		if err != nil {
			said, _ := os.ReadFile(u.Log)
			return fmt.Errorf("pawl up: %w\n%s", err, said)
		}
		return nil
	case <-time.After(Patience):
		u.Cmd.Process.Kill()
		return errors.New("pawl up does not stop")
	}
}

// Engine returns the content of engine.json of the running engine.
func (w *World) Engine() (e struct {
	Address string
	PID     int
}) {
	_ = json.Unmarshal([]byte(ReadFile(filepath.Join(w.Home, "engine", "engine.json"))), &e)
	return e
}

// Up starts a `pawl up` for this world, until the test's end.
func (w *World) Up(flags ...string) *Up {
	w.T.Helper()
	u, err := StartUpWith(flags, w.Home, filepath.Join(w.Dir, "up"), w.Env...)
	require.NoError(w.T, err)
	w.T.Cleanup(func() { assert.NoError(w.T, u.Stop()) })
	return u
}
