package failures_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/test/harness/world"
)

// A halt ends a loop where nobody can answer. Whoever runs it finds the end when it can go on, and records it: no agent
// is called again.
func TestAHaltWhereNoEngineAnswers(t *testing.T) {
	cases := map[string]func(w *world.World, pid int) (mend func()){
		"the engine is stopped": func(w *world.World, pid int) func() {
			require.NoError(w.T, syscall.Kill(pid, syscall.SIGSTOP))
			return func() { require.NoError(w.T, syscall.Kill(pid, syscall.SIGCONT)) }
		},
		"the disk is full": func(w *world.World, _ int) func() { return fill(w) },
	}
	for name, breaks := range cases {
		t.Run(name, func(t *testing.T) {
			w := world.Alone(t, world.WaitsFor("never")).Set(doc{"limits": doc{"iterations": 3}})
			t.Parallel()
			disk(w, 48<<10)
			c := w.Prepare("run", "--yes", w.SpecFile())
			c.Cmd.SysProcAttr.Setpgid = true // as a shell does it for a job
			c.Begin()
			w.At(1)
			mend := breaks(w, c.Cmd.Process.Pid)

			s := w.Pawl("halt", w.Loop, "--json")
			require.Equal(t, 0, s.Code, s.Err)
			require.Contains(t, s.Out, `"via": "record"`)
			require.NotContains(t, strings.Join(world.Survivors(w.Dir), "\n"), "agent.sh")
			require.Contains(t, w.Pawl("list", "--all").Out, "halted")
			require.NotEqual(t, 0, w.Pawl("pause", w.Loop).Code, "it has ended")

			mend()
			s = c.Wait()
			require.Equal(t, 5, s.Code, s.Err)
			require.Equal(t, 1, strings.Count(w.Read("at"), "\n"), "no agent was called again")
			events, _ := w.Events()
			require.Contains(t, world.Types(events), "autonomy_halted")
			r, err := hostrecord.Read(home.Home{Dir: w.Home}, w.Loop)
			require.NoError(t, err)
			require.False(t, hostrecord.Awaits(home.Home{Dir: w.Home}, r))
		})
	}
}

// Nothing of a loop that waits for a person runs, so only the worker's own look finds that it was halted.
func TestAHaltOfALoopThatWaitsIsSentWhenTheEngineAnswers(t *testing.T) {
	w := world.Alone(t, world.WaitsFor("never"))
	t.Parallel()
	up := w.Prepare("up")
	up.Cmd.SysProcAttr.Setpgid = true // as a shell does it for a job
	up.Begin()
	w.Until("the engine answers", func() bool { return w.Pawl("start", w.SpecFile()).Code == 0 })
	w.Waits("waiting")

	require.NoError(t, syscall.Kill(up.Cmd.Process.Pid, syscall.SIGSTOP))
	s := w.Pawl("halt", w.Loop, "--json")
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Out, `"via": "record"`)

	require.NoError(t, syscall.Kill(up.Cmd.Process.Pid, syscall.SIGCONT))
	w.Until("the halt is recorded", func() bool {
		r, err := hostrecord.Read(home.Home{Dir: w.Home}, w.Loop)
		return err == nil && r.Closed
	})
	require.NoFileExists(t, w.Dir+"/at", "no agent was called")
	up.Interrupt()
	require.Equal(t, 0, up.Wait().Code)
}
