package test

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
)

// Several pawl processes of one machine share the engine, and each that is killed hands it on: the
// loop, and whoever follows it, notice a pause.
func TestTheEngineOutlivesEveryProcessThatOwnsIt(t *testing.T) {
	w := newWorldOfItsOwn(t, waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 3}})
	t.Parallel()
	owner, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(t, err)
	w.until("the owner is the worker", func() bool { return strings.Contains(readFile(owner.log), "the worker is ready") })
	ups := map[int]*command{}
	for range 2 { // before the follower: who waits longest for the engine is the next to own it
		c := w.start("up", "--json")
		w.until("it serves", func() bool { return strings.HasSuffix(readFile(c.out), "}\n") })
		ups[c.cmd.Process.Pid] = c
	}
	follower := w.start("run", "--yes", "--json", w.specFile())
	w.at(1)

	address := w.engine().Address
	kill := func(pid int) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		w.until("another owns the engine", func() bool { return w.engine().PID != pid })
		w.until("the loop takes messages", func() bool { return w.pawl("steer", w.loop, "go on").code == 0 })
	}
	kill(owner.cmd.Process.Pid)
	<-owner.gone
	w.at(2) // the agent ended with its worker, and begins again
	w.write("go-1", "")
	w.at(3)
	next := ups[w.engine().PID]
	require.NotNil(t, next)
	kill(next.cmd.Process.Pid)
	next.wait()
	delete(ups, next.cmd.Process.Pid)
	w.write("go-2", "")
	w.write("go-3", "")
	s := follower.wait()
	require.Equal(t, 0, s.code, s.err)
	var r report
	decode(t, s.out, &r)
	require.Equal(t, "completed", r.Status)
	require.Equal(t, 3, r.Result.KeptCount)
	require.Equal(t, "13", w.kept("work/n"))
	require.Equal(t, address, w.engine().Address, "clients of the first owner reach the last one")
	for _, line := range strings.Split(strings.TrimSpace(w.read("at")), "\n") {
		n := strings.Fields(line)
		require.Equal(t, map[string]string{"1": "10", "2": "11", "3": "12"}[n[0]], n[1], "no iteration begins from anything but what was kept: %s", line)
	}
	require.NotContains(t, s.err, "UNREACHABLE")
	for _, last := range ups {
		last.interrupt()
		require.Equal(t, 0, last.wait().code)
	}
}

// engine is what engine.json says of the running engine.
func (w *world) engine() (e struct {
	Address string
	PID     int
}) {
	_ = json.Unmarshal([]byte(readFile(filepath.Join(w.home, "engine", "engine.json"))), &e)
	return e
}

// elsewhere is a world whose Temporal is a process of its own: the stock dev server. What runs
// there is told by Temporal's own settings where it is.
type elsewhere struct {
	*world
	bin     string // of worker and starter
	address string
	env     []string
}

// newElsewhere starts the server. It needs the Temporal CLI.
func newElsewhere(t *testing.T, agent string) *elsewhere {
	t.Helper()
	w := newWorldOfItsOwn(t, agent)
	e := &elsewhere{world: w, bin: filepath.Join(w.dir, "bin"), address: freeAddress(t)}
	build := exec.Command("go", "build", "-o", e.bin+"/", "./worker", "./starter")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	host, port, _ := net.SplitHostPort(e.address)
	server := exec.Command(temporalCLI(t), "server", "start-dev", "--headless", "--ip", host, "--port", port, "--log-level", "error",
		"--db-filename", filepath.Join(w.dir, "temporal.db"))
	server.Env = environ(w.home, w.dir)
	tieToParent(server)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	e.env = []string{"TEMPORAL_ADDRESS=" + e.address}
	w.until("the server answers", func() bool { return e.run("starter", "list").code == 0 })
	return e
}

// temporalCLI is the Temporal CLI, from the PATH or from where `go install` puts it.
func temporalCLI(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("temporal"); err == nil {
		return path
	}
	out, err := exec.Command("go", "env", "GOPATH").Output()
	require.NoError(t, err)
	path := filepath.Join(strings.TrimSpace(string(out)), "bin", "temporal")
	if _, err := os.Stat(path); err != nil {
		const why = "there is no Temporal CLI: go install github.com/temporalio/cli/cmd/temporal@v1.5.1"
		if os.Getenv("PAWL_TEST_ALL") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// begin starts one of the programs; pawl is the one with everything.
func (e *elsewhere) begin(name string, args ...string) *command {
	e.t.Helper()
	c := e.prepare(args...)
	if name != "pawl" {
		c.cmd.Path, c.cmd.Args[0] = filepath.Join(e.bin, name), name
	}
	c.cmd.Env = append(c.cmd.Env, e.env...)
	if name == "worker" {
		c.cmd.Env = append(c.cmd.Env, "PAWL_HOME="+filepath.Join(e.dir, "worker-home"))
	}
	return c.begin()
}

func (e *elsewhere) run(name string, args ...string) said {
	e.t.Helper()
	return e.begin(name, args...).wait()
}

// serve starts a worker and waits until it takes loops.
func (e *elsewhere) serve() *command {
	e.t.Helper()
	c := e.begin("worker", "--json")
	e.until("the worker takes loops", func() bool { return strings.Contains(readFile(c.err), "the worker is ready") })
	return c
}

// comes waits until the loop is in a status.
func (e *elsewhere) comes(loop, status string) (st state) {
	e.t.Helper()
	e.until(loop+" is "+status, func() bool {
		s := e.run("starter", "show", "--json", loop)
		st = state{}
		return s.code == 0 && json.Unmarshal([]byte(s.out), &st) == nil && st.Status == status
	})
	return st
}

// Server, worker and starter are programs of their own; a worker that is killed is followed by one
// that goes on where it was.
func TestThreeProgramsAndAServerOfItsOwn(t *testing.T) {
	e := newElsewhere(t, waitsFor("go"))
	t.Parallel()
	e.set(doc{"limits": doc{"iterations": 2}})
	for _, name := range []string{"worker", "starter"} {
		m := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*\\| (\\d+) MB \\|$").FindStringSubmatch(readFile("docs/operating.md"))
		require.NotNil(t, m)
		said, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		built, err := os.Stat(filepath.Join(e.bin, name))
		require.NoError(t, err)
		require.InEpsilon(t, said, float64(built.Size())/1e6, 0.05, "docs/operating.md says how large %s is", name)
	}

	var started struct {
		Loop, Run, Address, Namespace string
		Worker                        bool
	}
	s := e.run("starter", "start", "--json", e.specFile())
	require.Equal(t, 0, s.code, s.err)
	decode(t, s.out, &started)
	require.Equal(t, e.loop, started.Loop)
	require.Equal(t, e.address, started.Address)
	require.NotEmpty(t, started.Run)
	require.False(t, started.Worker)
	require.Contains(t, s.err, "`worker`")
	require.Contains(t, e.run("starter", "start", e.specFile()).err, "(ALO_LOOP_ALREADY_RUNNING)")

	first := e.serve()
	gate := e.comes(e.loop, "waiting").Gate
	require.Equal(t, 0, e.run("starter", "approve", e.loop, "--hash", gate.Hash).code)
	e.at(1)
	require.NoError(t, first.cmd.Process.Kill())
	first.wait()
	second := e.serve()
	e.at(2)
	standby := e.begin("worker", "--json")
	e.until("it stands by", func() bool { return strings.Contains(readFile(standby.err), "another pawl is this host's worker") })
	require.Equal(t, 0, e.run("starter", "pause", e.loop).code)
	e.comes(e.loop, "paused")
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, second.wait().code)
	e.until("the other takes over", func() bool { return strings.Contains(readFile(standby.err), "the worker is ready") })
	e.write("go", "")
	require.Equal(t, 0, e.run("starter", "continue", e.loop).code)
	e.comes(e.loop, "completed")
	require.Equal(t, "12", e.kept("work/n"))

	// The same ID again, followed from here, in the worker elsewhere.
	s = e.run("starter", "run", "--json", "--yes", e.specFile())
	require.Equal(t, 0, s.code, s.err)
	var r report
	decode(t, s.out, &r)
	require.Equal(t, "pawl/"+e.loop+".2", r.Result.Branch)
	s = e.run("starter", "list", "--json")
	var rows []struct{ Loop, Run, StartedBy, Goal, Branch string }
	decode(t, s.out, &rows)
	require.Len(t, rows, 2)
	require.Equal(t, started.Run, rows[1].Run)
	require.NotEmpty(t, rows[1].StartedBy)
	standby.interrupt()
	require.Equal(t, 0, standby.wait().code)
}

// With an address nothing is embedded: pawl's own commands work against that cluster, be it named
// by a variable or by a profile.
func TestWithAnAddressPawlEmbedsNothing(t *testing.T) {
	e := newElsewhere(t, raises)
	t.Parallel()
	e.write("temporal.toml", "[profile.there]\naddress = \""+e.address+"\"\n")
	e.env = []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(e.dir, "temporal.toml"), "TEMPORAL_PROFILE=there"}

	s := e.run("pawl", "run", "--json", "--yes", e.specFile()) // brings the worker, and nothing else
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "on Temporal at "+e.address)
	up := e.begin("pawl", "up", "--json")
	e.until("it serves", func() bool { return strings.Contains(readFile(up.err), "the worker is ready") })
	require.Equal(t, 0, e.run("pawl", "start", e.specFile(), "--id", e.loop+"-b").code)
	hash := e.comes(e.loop+"-b", "waiting").Gate.Hash
	for _, args := range [][]string{{"list"}, {"show"}, {"log"}, {"steer", "look"}, {"approve", "--hash", hash}} {
		if args[0] != "list" {
			args = append(args, "")
			copy(args[2:], args[1:])
			args[1] = e.loop + "-b"
		}
		s := e.run("pawl", args...)
		require.Equal(t, 0, s.code, "%v: %s", args, s.err)
	}
	e.comes(e.loop+"-b", "completed")
	up.interrupt()
	require.Equal(t, 0, up.wait().code)
	require.NoDirExists(t, filepath.Join(e.home, "engine"))
	require.NotContains(t, readFile(filepath.Join(e.home, "logs", "pawl.log")), "panic")
}

// A host that may run one agent at a time runs one: the other loop waits for its turn, goes on with
// everything else and takes messages.
func TestAgentsHaveSlotsApartFromTheRest(t *testing.T) {
	w := newWorldOfItsOwn(t, `echo "$PAWL_LOOP" >>"$WORLD/by"; mkdir "$WORLD/working" || echo "$PAWL_LOOP" >>"$WORLD/two-at-once"; `+waitsFor("go")+`; rmdir "$WORLD/working"`)
	t.Parallel()
	u, err := startUp(w.home, filepath.Join(w.dir, "up"), "PAWL_WORKER_AGENTS=1")
	require.NoError(t, err)
	for _, id := range []string{w.loop, w.loop + "-b", w.loop + "-c"} {
		require.Equal(t, 0, w.pawl("start", "--yes", w.specFile(), "--id", id).code)
	}
	phase := func(id string) string {
		s := w.pawl("show", "--json", id)
		var st state
		_ = json.Unmarshal([]byte(s.out), &st)
		return st.Status + " " + st.Phase
	}
	for _, id := range []string{w.loop, w.loop + "-b", w.loop + "-c"} {
		w.until(id+" wants its agent", func() bool { return phase(id) == "running modify" })
	}
	w.at(1)
	by, _, _ := strings.Cut(w.read("by"), "\n")
	waits := w.loop + "-b"
	if by == waits {
		waits = w.loop
	}
	require.Equal(t, 0, w.pawl("halt", waits).code, "also where its agent waits for its turn")
	w.until("it ends", func() bool { return strings.HasPrefix(phase(waits), "halted") })
	w.write("go", "")
	for _, id := range []string{w.loop, w.loop + "-b", w.loop + "-c"} {
		if id != waits {
			w.until(id+" ends", func() bool { return strings.HasPrefix(phase(id), "completed") })
		}
	}
	require.Empty(t, w.read("two-at-once"))
	require.Equal(t, 2, strings.Count(w.read("at"), "\n"), "the one that was halted never had an agent")

	urgency := w.urgency(by)
	require.Less(t, urgency["Commit"], urgency["Step verify"], "what takes milliseconds before what takes minutes")
	require.Less(t, urgency["Step verify"], urgency["Step modify"])
	require.Less(t, urgency["Record"], urgency["Open"], "loops under way before new ones")
	require.NoError(t, u.stop())
}

// urgency is the priority of each kind of activity in a loop's history.
func (w *world) urgency(id string) map[string]int32 {
	w.t.Helper()
	c, err := client.Dial(client.Options{HostPort: w.engine().Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(w.t, err)
	defer c.Close()
	found := map[string]int32{}
	for events := c.GetWorkflowHistory(w.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(w.t, err)
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		name := a.GetActivityType().GetName()
		if name == "Step" {
			var step struct{ Key struct{ Name string } }
			require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &step))
			name += " " + step.Key.Name
		}
		found[name] = a.GetPriority().GetPriorityKey()
	}
	return found
}
