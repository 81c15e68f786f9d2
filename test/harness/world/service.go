package world

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Service is a process that serves until it is told to stop.
type Service struct {
	cmd  *exec.Cmd
	Log  string
	gone chan struct{}
}

// Serve starts a service and returns once its log, stdout and stderr together, contains ready.
func Serve(cmd *exec.Cmd, log, ready string) (*Service, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before := strings.Count(ReadFile(log), ready)
	s := &Service{cmd: cmd, Log: log, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = f, f
	TieToParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait()
		close(s.gone)
	}()
	for end := time.Now().Add(Patience); strings.Count(ReadFile(log), ready) == before; {
		select {
		case <-s.gone:
			return nil, fmt.Errorf("%s ended: %s\n%s", filepath.Base(cmd.Path), cmd.ProcessState, ReadFile(log))
		case <-time.After(20 * time.Millisecond): // the pace of looking
		}
		if time.Now().After(end) {
			s.Stop(syscall.SIGKILL)
			return nil, fmt.Errorf("%s does not come up\n%s", filepath.Base(cmd.Path), ReadFile(log))
		}
	}
	return s, nil
}

// Stop ends the service with a signal and waits for it.
func (s *Service) Stop(sig syscall.Signal) error {
	s.cmd.Process.Signal(sig)
	select {
	case <-s.gone:
		return nil
	case <-time.After(Patience):
		s.cmd.Process.Kill()
		return fmt.Errorf("%s does not stop\n%s", filepath.Base(s.cmd.Path), ReadFile(s.Log))
	}
}

// FreeAddress returns an address of this machine on which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
