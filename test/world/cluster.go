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
	flags                  []string // more of the server's
	Env                    []string // more of the worker's
	Server, Worker         *Service
}

// startCluster starts a server with a database of its own. The flags are more of the server's.
func startCluster(t testing.TB, dir string, flags ...string) (*Cluster, error) {
	c := &Cluster{Dir: dir, Home: filepath.Join(dir, "home"), Address: FreeAddress(t), UI: FreeAddress(t), flags: flags}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return c, c.StartServer()
}

// StartServer starts the server where it was, or for the first time.
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

// Stop ends the worker, where there is one, as Ctrl-C does, and the server.
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

// Another is a second host of the cluster, without a worker yet.
func (c *Cluster) Another(t *testing.T) *Cluster {
	t.Helper()
	dir := filepath.Join(c.Dir, "other")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return &Cluster{Dir: dir, Home: filepath.Join(dir, "home"), Address: c.Address, Env: c.Env}
}

// NewServer is a cluster without a worker that a test has to itself.
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

// NewCluster is a cluster that a test has to itself.
func NewCluster(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	c := NewServer(t, flags...)
	require.NoError(t, c.StartWorker(c.Address))
	return c
}

// On moves the world to a cluster: everything that it runs from now on meets that.
func (w *World) On(c *Cluster) *World {
	w.Home, w.Env = c.Home, []string{"TEMPORAL_ADDRESS=" + c.Address}
	return w
}
