package crash_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"pawl/test/harness/world"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// node is one process of pawl.
type node struct {
	name    string
	cmd     *exec.Cmd
	log     string // the file with its stderr
	started time.Time
	engine  chan string     // gets its engine's address, once
	worker  chan struct{}   // closed when its worker polls
	polled  time.Time       // the time of its first poll
	gone    chan struct{}   // closed when it has ended
	living  context.Context // cancelled when it has ended
}

// The roles of a node.
var (
	engineRole = []string{"-engine"}
	workerRole = []string{"-worker"}
	bothRoles  = []string{"-engine", "-worker"}
)

// start starts a node and returns when it serves its roles. The environment may say where it is to crash.
func (w *machine) start(role []string, env ...string) *node {
	w.T.Helper()
	n := w.launch(role, env...)
	if role[0] == "-engine" {
		select {
		case address := <-n.engine:
			w.connect(address)
		case <-n.gone:
			w.T.Fatalf("the %s ended while it was starting:\n%s", n.name, n.tail())
		case <-time.After(world.Patience):
			w.T.Fatalf("the engine does not answer:\n%s", n.tail())
		}
	}
	return n
}

// launch starts a node without waiting for anything.
func (w *machine) launch(role []string, env ...string) *node {
	w.T.Helper()
	w.nodes++
	n := &node{
		name: strings.TrimPrefix(strings.Join(role, ""), "-") + strconv.Itoa(w.nodes), started: time.Now(),
		engine: make(chan string, 1), worker: make(chan struct{}), gone: make(chan struct{}),
	}
	var died context.CancelFunc
	n.living, died = context.WithCancel(w.T.Context())
	n.log = filepath.Join(w.Dir, n.name+".log")
	args := append([]string{"-port", strconv.Itoa(w.port)}, role...)
	if role[0] == "-worker" {
		args = append(args, "-address", w.address)
	}
	n.cmd = exec.Command(program(w.T), args...)
	n.cmd.Env = append(world.Environ(w.Home, w.Dir), env...)
	world.TieToParent(n.cmd)
	n.cmd.SysProcAttr.Setpgid = true
	stderr, err := os.Create(n.log)
	require.NoError(w.T, err)
	defer stderr.Close()
	n.cmd.Stderr = stderr
	stdout, err := n.cmd.StdoutPipe()
	require.NoError(w.T, err)
	n.started = time.Now()
	require.NoError(w.T, n.cmd.Start())
	go func() {
		defer died()
		defer close(n.gone)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			what, rest, _ := strings.Cut(s.Text(), " ")
			switch what {
			case "engine":
				n.engine <- rest
			case "worker":
				n.polled = time.Now()
				close(n.worker)
			}
		}
		n.cmd.Wait()
	}()
	w.T.Cleanup(func() { n.kill() })
	return n
}

// kill ends the node as a power cut would.
func (n *node) kill() {
	n.cmd.Process.Signal(syscall.SIGKILL)
	<-n.gone
}

// stop asks the node to end and waits for it.
func (n *node) stop(t testing.TB) {
	t.Helper()
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.gone:
	case <-time.After(world.Patience):
		t.Fatalf("%s does not end when it is asked to:\n%s", n.name, n.tail())
	}
}

// polls waits until the node's worker polls.
func (n *node) polls(t testing.TB) {
	t.Helper()
	select {
	case <-n.worker:
	case <-n.gone:
		t.Fatalf("%s ended before its worker polled:\n%s", n.name, n.tail())
	case <-time.After(world.Patience):
		t.Fatalf("%s's worker does not poll:\n%s", n.name, n.tail())
	}
}

// killed reports whether SIGKILL ended the node.
func (n *node) killed() bool {
	s, ok := n.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// tail returns the end of the node's output, for the message of a failure.
func (n *node) tail() string {
	b, _ := os.ReadFile(n.log)
	all := lines(b)
	return n.name + ": " + strings.Join(all[max(0, len(all)-25):], "\n")
}
