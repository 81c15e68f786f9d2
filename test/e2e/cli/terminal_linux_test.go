package cli_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/test/harness/world"
)

// terminal is a person at a terminal: the screen and the keyboard.
type terminal struct {
	w    *world.World
	keys *os.File
	cmd  *exec.Cmd
	gone chan error // its end, once the screen is complete

	mu   sync.Mutex
	seen strings.Builder
}

// atTerminal runs a command at a terminal of 40 lines by 100 columns.
func atTerminal(w *world.World, args ...string) *terminal {
	w.T.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(w.T, err)
	w.T.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	require.NoError(w.T, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(w.T, err)
	require.NoError(w.T, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}))
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(w.T, err)
	defer slave.Close()
	c := &terminal{w: w, keys: master, cmd: exec.Command(world.Program(w.T), args...), gone: make(chan error, 1)}
	c.cmd.Dir, c.cmd.Env = w.Dir, append(w.Environ(), "TERM=xterm", "NO_COLOR=")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(w.T, c.cmd.Start())
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf) // an error once the last slave is closed
			c.mu.Lock()
			c.seen.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				c.gone <- c.cmd.Wait()
				return
			}
		}
	}()
	return c
}

func (c *terminal) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.String()
}

// sees waits for a text on the screen, as long as the program runs. The terminal may break its lines elsewhere.
func (c *terminal) sees(text string) {
	c.w.T.Helper()
	c.seesTimes(text, 1)
}

// seesTimes waits until a text has been shown so many times. A line typed before a question is dropped, so whoever
// answers one that comes again waits for it.
func (c *terminal) seesTimes(text string, times int) {
	c.w.T.Helper()
	c.w.Until("on the screen: "+text, func() bool {
		screen, ended := c.screen(), len(c.gone) > 0
		if strings.Count(oneLine(screen), oneLine(text)) >= times {
			return true
		}
		require.False(c.w.T, ended, "the program ended before it showed %q:\n%s", text, screen)
		return false
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (c *terminal) types(keys string) {
	c.w.T.Helper()
	_, err := c.keys.WriteString(keys)
	require.NoError(c.w.T, err)
}

func (c *terminal) exits(code int) {
	c.w.T.Helper()
	<-c.gone
	require.Equal(c.w.T, code, c.cmd.ProcessState.ExitCode(), c.screen())
}

func TestPersonAtATerminal(t *testing.T) {
	t.Run("approves the contract, sees the loop move, interrupts it", func(t *testing.T) {
		w := world.New(t, `[ "$PAWL_ITERATION" = 1 ] && { `+world.Raises+`; exit; }; `+world.WaitsFor("never")).Set(doc{"limits": doc{"iterations": 4}})
		c := atTerminal(w, "run", w.SpecFile())
		c.sees("Approve this contract and start? [y/n] ")
		require.Contains(t, c.screen(), "sh measure.sh")
		c.types("y\n")
		w.At(1)
		c.sees("2/4 modify") // on the progress line
		require.Contains(t, c.screen(), "\r\x1b[J")
		c.types("\x03")
		c.sees("Enter: go on; d: detach; p: pause; end: end it. ")
		c.sees("Ctrl-C again leaves at once")
		c.types("end\n")
		c.exits(5)
		require.Contains(t, c.screen(), "Loop halted: 2 iterations, 1 kept, best metric: 11")
	})
	t.Run("pauses the loop by Ctrl-C, and detaches from it", func(t *testing.T) {
		world.Slow(t, "the other cases type answers, too")
		w := world.New(t, world.WaitsFor("go"))
		c := atTerminal(w, "run", "--yes", w.SpecFile())
		w.At(1)
		c.types("\x03")
		c.sees("p: pause")
		c.types("p\n")
		w.Waits("paused")
		c.sees("pawl continue " + w.Loop)
		c.types("\x03")
		w.Until("it is asked again", func() bool { return strings.Count(c.screen(), "d: detach") == 2 })
		c.types("d\n")
		c.exits(5)
		require.Equal(t, "paused", w.Show().Status, "the loop stays")
		w.Write("go", "")
		require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
		w.Waits("completed")
	})
	t.Run("declines the contract", func(t *testing.T) {
		world.Slow(t, "the other cases type answers, too")
		w := world.New(t, world.Raises)
		w.Set(doc{"verify": doc{"command": "until [ -e " + w.Dir + "/measure ]; do sleep 0.05; done; sh measure.sh"}})
		c := atTerminal(w, "run", w.SpecFile())
		c.sees("Temporal UI")
		c.types("y\n") // before anything is asked: no answer to what was not seen
		w.Write("measure", "")
		c.sees("and start? [y/n] ")
		c.types("n\n")
		c.sees("Why? (for the record; Enter: no reason) ")
		c.types("not tonight\n")
		c.exits(5)
		require.Contains(t, c.screen(), "the contract was rejected by root: not tonight")
		require.Empty(t, w.Subjects())
	})
	t.Run("approves from another terminal", func(t *testing.T) {
		w := world.New(t, world.Raises)
		require.Equal(t, 4, w.Pawl("run", w.SpecFile()).Code)
		c := atTerminal(w, "approve", w.Loop)
		c.sees("Approve? [y/N] ")
		require.Contains(t, c.screen(), w.Show().Contract.Hash)
		c.types("yes\n")
		c.exits(0)
		w.Waits("completed")
	})
	t.Run("answers a question", func(t *testing.T) {
		world.Slow(t, "the other cases type answers, too")
		w := world.New(t, `touch "$WORLD/mute"; echo "$PAWL_ITERATION" >>work/other; echo "change something"`)
		w.Set(doc{
			"verify": doc{"command": "test -e " + w.Dir + "/mute || cat work/n"}, "limits": doc{"iterations": 3},
			"sandbox": doc{"use": "off"}, "agent": doc{"env": doc{"WORLD": w.Dir}},
		})
		c := atTerminal(w, "run", "--yes", w.SpecFile())
		c.sees("Choose retry or halt: ")
		c.types("what?\n")
		w.Until("asked again", func() bool { return strings.Count(c.screen(), "Choose retry or halt: ") == 2 })
		c.types("retry\n")
		c.exits(0)
		require.NotContains(t, c.screen(), "answered: answer retry", "who answers here knows it")
		require.NotContains(t, c.screen(), "pawl answer", "nor is a command named for what is asked here")
	})
}
