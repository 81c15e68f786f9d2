package service_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// elsewhere is a world whose Temporal is its own cluster, without a worker yet. Temporal's own settings tell the
// programs where it is.
type elsewhere struct {
	*world.World
	programs map[string]string
	address  string
}

func newElsewhere(t *testing.T, agent string) *elsewhere {
	t.Helper()
	c := world.NewServer(t)
	e := &elsewhere{World: world.Alone(t, agent), address: c.Address, programs: map[string]string{"pawl": world.Program(t)}}
	for name, build := range map[string]func() (string, error){"worker": world.BuildWorker, "starter": world.BuildStarter} {
		path, err := build()
		require.NoError(t, err)
		e.programs[name] = path
	}
	e.Env = []string{"TEMPORAL_ADDRESS=" + e.address}
	return e
}

// begin starts one of the programs. pawl is the one that contains everything.
func (e *elsewhere) begin(name string, args ...string) *world.Command {
	e.T.Helper()
	c := e.Prepare(args...)
	c.Cmd.Path, c.Cmd.Args[0] = e.programs[name], name
	if name == "worker" {
		c.Cmd.Env = append(c.Cmd.Env, "PAWL_HOME="+filepath.Join(e.Dir, "worker-home"))
	}
	return c.Begin()
}

func (e *elsewhere) run(name string, args ...string) world.Said {
	e.T.Helper()
	return e.begin(name, args...).Wait()
}

// serve starts a worker and waits until it takes loops.
func (e *elsewhere) serve() *world.Command {
	e.T.Helper()
	c := e.begin("worker", "--json")
	e.Until("the worker takes loops", func() bool { return strings.Contains(world.ReadFile(c.Err), "the worker is ready") })
	return c
}

// comes waits until the loop has a status.
func (e *elsewhere) comes(loop, status string) (st world.State) {
	e.T.Helper()
	e.Until(loop+" is "+status, func() bool {
		s := e.run("starter", "show", "--json", loop)
		st = world.State{}
		return s.Code == 0 && json.Unmarshal([]byte(s.Out), &st) == nil && st.Status == status
	})
	return st
}

// Server, worker and starter are separate programs. After a worker is killed, another one continues from where it was.
func TestThreeProgramsAndAServerOfItsOwn(t *testing.T) {
	world.Slow(t, "a server and programs of its own")
	e := newElsewhere(t, world.WaitsFor("go"))
	t.Parallel()
	e.Set(doc{"limits": doc{"iterations": 2}})
	for _, name := range []string{"worker", "starter"} {
		m := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*\\| (\\d+) MB \\|$").FindStringSubmatch(world.ReadFile("docs/guides/servers.md"))
		require.NotNil(t, m)
		said, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		built, err := os.Stat(e.programs[name])
		require.NoError(t, err)
		require.InEpsilon(t, said, float64(built.Size())/1e6, 0.05, "docs/guides/servers.md says how large %s is", name)
	}

	var started struct {
		Loop, Run, Address, Namespace string
		Worker                        bool
	}
	s := e.run("starter", "start", "--json", e.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	world.Decode(t, s.Out, &started)
	require.Equal(t, e.Loop, started.Loop)
	require.Equal(t, e.address, started.Address)
	require.NotEmpty(t, started.Run)
	require.False(t, started.Worker)
	require.Contains(t, s.Err, "`worker`")
	require.Contains(t, e.run("starter", "start", e.SpecFile()).Err, "(ALO_LOOP_ALREADY_RUNNING)")

	first := e.serve()
	gate := e.comes(e.Loop, "waiting").Gate
	require.Equal(t, 0, e.run("starter", "approve", e.Loop, "--hash", gate.Hash).Code)
	e.At(1)
	require.NoError(t, first.Cmd.Process.Kill())
	first.Wait()
	second := e.serve()
	e.At(2)
	standby := e.begin("worker", "--json")
	e.Until("it stands by", func() bool {
		return strings.Contains(world.ReadFile(standby.Err), "another pawl is this host's worker")
	})
	require.Equal(t, 0, e.run("starter", "pause", e.Loop).Code)
	e.comes(e.Loop, "paused")
	require.NoError(t, second.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, second.Wait().Code)
	e.Until("the other takes over", func() bool { return strings.Contains(world.ReadFile(standby.Err), "the worker is ready") })
	e.Write("go", "")
	require.Equal(t, 0, e.run("starter", "continue", e.Loop).Code)
	e.comes(e.Loop, "completed")
	require.Equal(t, "12", e.Kept("work/n"))

	// The same ID again, followed from here, in the worker elsewhere.
	s = e.run("starter", "run", "--json", "--yes", e.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	var r world.Report
	world.Decode(t, s.Out, &r)
	require.Equal(t, "pawl/"+e.Loop+".2", r.Result.Branch)
	s = e.run("starter", "list", "--json")
	var rows []struct{ Loop, Run, StartedBy, Goal, Branch string }
	world.Decode(t, s.Out, &rows)
	require.Len(t, rows, 2)
	require.Equal(t, started.Run, rows[1].Run)
	require.NotEmpty(t, rows[1].StartedBy)
	standby.Interrupt()
	require.Equal(t, 0, standby.Wait().Code)
}

// With an address, nothing is embedded: pawl's own commands use that cluster, whether a variable or a profile names it.
func TestWithAnAddressPawlEmbedsNothing(t *testing.T) {
	world.Slow(t, "a server and programs of its own")
	e := newElsewhere(t, world.Raises)
	t.Parallel()
	e.Write("temporal.toml", "[profile.there]\naddress = \""+e.address+"\"\n")
	e.Env = []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(e.Dir, "temporal.toml"), "TEMPORAL_PROFILE=there"}

	s := e.run("pawl", "run", "--json", "--yes", e.SpecFile()) // it starts a worker, and nothing else
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "on Temporal at "+e.address)
	up := e.begin("pawl", "up", "--json")
	e.Until("it serves", func() bool { return strings.Contains(world.ReadFile(up.Err), "the worker is ready") })
	require.Equal(t, 0, e.run("pawl", "start", e.SpecFile(), "--id", e.Loop+"-b").Code)
	hash := e.comes(e.Loop+"-b", "waiting").Gate.Hash
	for _, args := range [][]string{{"list"}, {"show"}, {"log"}, {"steer", "look"}, {"approve", "--hash", hash}} {
		if args[0] != "list" {
			args = append(args, "")
			copy(args[2:], args[1:])
			args[1] = e.Loop + "-b"
		}
		s := e.run("pawl", args...)
		require.Equal(t, 0, s.Code, "%v: %s", args, s.Err)
	}
	e.comes(e.Loop+"-b", "completed")
	up.Interrupt()
	require.Equal(t, 0, up.Wait().Code)
	require.NoDirExists(t, filepath.Join(e.Home, "engine"))
	require.NotContains(t, world.ReadFile(filepath.Join(e.Home, "logs", "pawl.log")), "panic")
}
