package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
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
)

// The tests of temporal_test.go drive loops as people with a Temporal cluster do: the server is the
// dev server of the real Temporal CLI, the worker is the program in worker/, both processes of their
// own, and everything else is done by the CLI, by the program in starter/ or by pawl.

// cli is the Temporal CLI, once a test has asked for it.
var (
	cli     string
	findCLI sync.Once
)

// needCLI skips a test where there is no Temporal CLI, unless every tool has to be there.
func needCLI(t *testing.T) {
	t.Helper()
	path := temporalCLI(t)
	findCLI.Do(func() { cli = path })
}

var (
	buildWorker  = building("worker", "./worker")
	buildStarter = building("starter", "./starter")
)

// service is a process that serves until it is told to stop.
type service struct {
	cmd  *exec.Cmd
	log  string
	gone chan struct{}
}

// serve starts a service and returns once its log, stdout and stderr together, has what ready says.
func serve(cmd *exec.Cmd, log, ready string) (*service, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before := strings.Count(readFile(log), ready)
	s := &service{cmd: cmd, log: log, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = f, f
	tieToParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait()
		close(s.gone)
	}()
	for end := time.Now().Add(patience); strings.Count(readFile(log), ready) == before; {
		select {
		case <-s.gone:
			return nil, fmt.Errorf("%s ended: %s\n%s", filepath.Base(cmd.Path), cmd.ProcessState, readFile(log))
		case <-time.After(20 * time.Millisecond): // the pace of looking
		}
		if time.Now().After(end) {
			s.stop(syscall.SIGKILL)
			return nil, fmt.Errorf("%s does not come up\n%s", filepath.Base(cmd.Path), readFile(log))
		}
	}
	return s, nil
}

// stop ends the service with a signal and waits for it.
func (s *service) stop(sig syscall.Signal) error {
	s.cmd.Process.Signal(sig)
	select {
	case <-s.gone:
		return nil
	case <-time.After(patience):
		s.cmd.Process.Kill()
		return fmt.Errorf("%s does not stop\n%s", filepath.Base(s.cmd.Path), readFile(s.log))
	}
}

// cluster is a Temporal service with a worker of pawl's.
type cluster struct {
	dir, home, address, ui string
	flags                  []string // more of the server's
	env                    []string // more of the worker's
	server, worker         *service
}

// startCluster starts a server with a database of its own, and a worker. The flags are more of the
// server's.
func startCluster(dir, address, ui string, flags ...string) (*cluster, error) {
	c := &cluster{dir: dir, home: filepath.Join(dir, "home"), address: address, ui: ui, flags: flags}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.startServer(); err != nil {
		return nil, err
	}
	return c, c.startWorker(c.address)
}

func (c *cluster) startServer() (err error) {
	_, port, _ := net.SplitHostPort(c.address)
	_, ui, _ := net.SplitHostPort(c.ui)
	args := append([]string{"server", "start-dev", "--db-filename", filepath.Join(c.dir, "temporal.db"),
		"--ip", "127.0.0.1", "--port", port, "--ui-port", ui, "--log-level", "error"}, c.flags...)
	cmd := exec.Command(cli, args...)
	cmd.Dir, cmd.Env = c.dir, environ(c.home, c.dir)
	c.server, err = serve(cmd, filepath.Join(c.dir, "server.log"), "Metrics:")
	return err
}

// startWorker starts the worker on the service at an address.
func (c *cluster) startWorker(address string) error {
	path, err := buildWorker()
	if err != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = c.dir, append(append(environ(c.home, c.dir), "TEMPORAL_ADDRESS="+address), c.env...)
	c.worker, err = serve(cmd, filepath.Join(c.dir, "worker.log"), "the worker is ready")
	return err
}

// stop ends the worker as Ctrl-C does, and the server.
func (c *cluster) stop() error {
	if err := c.worker.stop(syscall.SIGINT); err != nil {
		return err
	}
	return c.server.stop(syscall.SIGINT)
}

// The cluster that most tests share.
var (
	clusterOnce sync.Once
	clusterUp   *cluster
	clusterErr  error
)

func stopCluster() error {
	if clusterUp == nil || clusterUp.worker == nil {
		return nil
	}
	return clusterUp.stop()
}

// newWorldOnCluster makes a world whose loops run on the shared cluster.
func newWorldOnCluster(t *testing.T, agent string) *world {
	t.Helper()
	needCLI(t)
	t.Parallel()
	w := newWorldOfItsOwn(t, agent)
	clusterOnce.Do(func() {
		clusterUp, clusterErr = startCluster(filepath.Join(scratch, "cluster"), freeAddress(t), freeAddress(t))
	})
	require.NoError(t, clusterErr)
	return w.on(clusterUp)
}

// another is a second host of the cluster, without a worker yet.
func (c *cluster) another(t *testing.T) *cluster {
	t.Helper()
	dir := filepath.Join(c.dir, "other")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return &cluster{dir: dir, home: filepath.Join(dir, "home"), address: c.address, env: c.env}
}

// newCluster is a cluster that a test has to itself.
func newCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	needCLI(t)
	dir, err := os.MkdirTemp(scratch, "c")
	require.NoError(t, err)
	c, err := startCluster(dir, freeAddress(t), freeAddress(t), flags...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.stop()) })
	return c
}

// on moves the world to a cluster: everything that it runs from now on meets that.
func (w *world) on(c *cluster) *world {
	w.home, w.env = c.home, []string{"TEMPORAL_ADDRESS=" + c.address}
	return w
}

// tryTemporal runs the Temporal CLI.
func (w *world) tryTemporal(args ...string) said {
	w.t.Helper()
	return w.output(exec.Command(cli, append(args, "--color", "never")...))
}

// output runs a program as one of the world's.
func (w *world) output(cmd *exec.Cmd) said {
	w.t.Helper()
	var out, stderr strings.Builder
	cmd.Dir = cmp.Or(cmd.Dir, w.dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.environ(), &out, &stderr
	tieToParent(cmd)
	require.NoError(w.t, cmd.Start())
	_ = cmd.Wait()
	if testing.Verbose() && !slices.Contains(cmd.Args, "query") {
		w.t.Logf("$ %s %s\n%s%s[exit %d]", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), clip(out.String()), clip(stderr.String()), cmd.ProcessState.ExitCode())
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// temporal runs the Temporal CLI, which must succeed, and returns what it prints.
func (w *world) temporal(args ...string) string {
	w.t.Helper()
	s := w.tryTemporal(args...)
	require.Equal(w.t, 0, s.code, "temporal %s\n%s%s", strings.Join(args, " "), s.out, s.err)
	return s.out
}

// starter runs the program in starter/.
func (w *world) starter(args ...string) said {
	w.t.Helper()
	path, err := buildStarter()
	require.NoError(w.t, err)
	return w.output(exec.Command(path, args...))
}

// begin starts the world's loop with the Temporal CLI, from its spec as a JSON file.
func (w *world) begin(more ...string) {
	w.t.Helper()
	w.temporal(append([]string{"workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.loop,
		"--task-timeout", "2s", "--input-file", w.jsonFile()}, more...)...)
}

// jsonFile writes the spec as JSON and returns its path.
func (w *world) jsonFile() string {
	w.t.Helper()
	b, err := json.MarshalIndent(w.spec, "", "  ")
	require.NoError(w.t, err)
	w.write("loop.json", string(b))
	return filepath.Join(w.dir, "loop.json")
}

// query asks the loop through the Temporal CLI.
func (w *world) query(name string, out any) {
	w.t.Helper()
	var answer struct{ QueryResult []json.RawMessage }
	decode(w.t, w.temporal("workflow", "query", "--workflow-id", w.loop, "--type", name, "--output", "json"), &answer)
	require.Len(w.t, answer.QueryResult, 1)
	require.NoError(w.t, json.Unmarshal(answer.QueryResult[0], out))
}

// stands waits until the loop that the Temporal CLI asks is in a status, and returns its state.
func (w *world) stands(status string) (st state) {
	w.t.Helper()
	w.until(status, func() bool {
		s := w.tryTemporal("workflow", "query", "--workflow-id", w.loop, "--type", "state", "--output", "json")
		var answer struct{ QueryResult []state }
		if s.code != 0 || json.Unmarshal([]byte(s.out), &answer) != nil || len(answer.QueryResult) != 1 {
			return false
		}
		st = answer.QueryResult[0]
		return st.Status == status
	})
	return st
}
