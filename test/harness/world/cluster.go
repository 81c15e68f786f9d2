package world

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	BuildWorker  = Building("worker", "./worker")
	BuildStarter = Building("starter", "./starter")
)

// Cluster is a Temporal service with a worker of pawl's.
type Cluster struct {
	Dir, Home, Address, UI string
	flags                  []string // more flags for the server
	Env                    []string // more variables for the worker
	Server, Worker         *Service
}

// startCluster starts a server with its own database and these additional flags.
func startCluster(t testing.TB, dir string, flags ...string) (*Cluster, error) {
	c := &Cluster{Dir: dir, Home: filepath.Join(dir, "home"), Address: FreeAddress(t), UI: FreeAddress(t), flags: flags}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return c, c.StartServer()
}

// StartServer starts the server, again at the same address if it ran before.
func (c *Cluster) StartServer() (err error) {
	_, port, _ := net.SplitHostPort(c.Address)
	_, ui, _ := net.SplitHostPort(c.UI)
	args := append([]string{"server", "start-dev", "--db-filename", filepath.Join(c.Dir, "temporal.db"),
		"--ip", "127.0.0.1", "--port", port, "--ui-port", ui, "--log-level", "error"}, c.flags...)
	cmd := exec.Command(CLI, args...)
	cmd.Dir, cmd.Env = c.Dir, Environ(c.Home, c.Dir)
	c.Server, err = Serve(cmd, filepath.Join(c.Dir, "server.log"), "Metrics:")
	return err
}

// StartWorker starts the worker on the service at an address.
func (c *Cluster) StartWorker(address string) error {
	path, err := BuildWorker()
	if err != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = c.Dir, append(append(Environ(c.Home, c.Dir), "TEMPORAL_ADDRESS="+address), c.Env...)
	c.Worker, err = Serve(cmd, filepath.Join(c.Dir, "worker.log"), "the worker is ready")
	return err
}

// Stop ends the worker, if there is one, as Ctrl-C does, and then the server.
func (c *Cluster) Stop() error {
	if c.Worker != nil {
		if err := c.Worker.Stop(syscall.SIGINT); err != nil {
			return err
		}
	}
	return c.Server.Stop(syscall.SIGINT)
}

// The cluster that most tests share.
var (
	clusterOnce sync.Once
	ClusterUp   *Cluster
	clusterErr  error
)

func stopCluster() error {
	if ClusterUp == nil || ClusterUp.Server == nil {
		return nil
	}
	return ClusterUp.Stop()
}

// OnCluster makes a world whose loops run on the shared cluster.
func OnCluster(t *testing.T, agent string) *World {
	t.Helper()
	NeedCLI(t)
	t.Parallel()
	w := Alone(t, agent)
	clusterOnce.Do(func() {
		if ClusterUp, clusterErr = startCluster(t, filepath.Join(Scratch, "cluster")); clusterErr == nil {
			clusterErr = ClusterUp.StartWorker(ClusterUp.Address)
		}
	})
	require.NoError(t, clusterErr)
	return w.On(ClusterUp)
}

// Another returns a second host of the cluster, without a worker yet.
func (c *Cluster) Another(t *testing.T) *Cluster {
	t.Helper()
	dir := filepath.Join(c.Dir, "other")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return &Cluster{Dir: dir, Home: filepath.Join(dir, "home"), Address: c.Address, Env: c.Env}
}

// NewServer returns a cluster for one test, without a worker.
func NewServer(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	Slow(t, "a cluster of its own")
	NeedCLI(t)
	dir, err := os.MkdirTemp(Scratch, "c")
	require.NoError(t, err)
	c, err := startCluster(t, dir, flags...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return c
}

// NewCluster returns a cluster for one test.
func NewCluster(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	c := NewServer(t, flags...)
	require.NoError(t, c.StartWorker(c.Address))
	return c
}

// On moves the world to a cluster: all its commands use that from now on.
func (w *World) On(c *Cluster) *World {
	w.Home, w.Env = c.Home, []string{"TEMPORAL_ADDRESS=" + c.Address}
	return w
}
