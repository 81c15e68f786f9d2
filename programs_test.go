package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
