package client_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/steward"
)

// patience is how long a program that was killed may take to end.
const patience = 20 * time.Second

// works starts a program in the desk of a record, and returns a function that reports whether it was ended.
func works(t *testing.T, c *client.Client, r hostrecord.Record) (wasEnded func() bool) {
	t.Helper()
	require.NoError(t, os.MkdirAll(r.Desk(c.Home), 0o700))
	program := exec.Command("sleep", "600")
	program.Dir = r.Desk(c.Home)
	require.NoError(t, program.Start())
	ended := make(chan struct{})
	go func() {
		_ = program.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = program.Process.Kill()
		<-ended
	})
	return func() bool {
		select {
		case <-ended:
			return true
		case <-time.After(patience):
			return false
		}
	}
}

// isStopped makes this host's engine one whose process is stopped.
func isStopped(c *client.Client) {
	c.SDK = nil
	c.Bring = func(context.Context) error {
		return fault.New(fault.EngineUnreachable, "process 7 runs the engine of this host, and it is stopped").Advise("Let it continue.")
	}
}

// An engine whose process is stopped takes no message. The halt ends what runs of the loop, and is noted for the worker.
func TestAHaltEndsALoopWhoseEngineIsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		message loop.Message
		reason  string
	}{
		loop.MessageHalt:    {loop.Message{By: "ann"}, "halted by ann"},
		loop.MessageSetMode: {loop.Message{By: "ann", Mode: "plan"}, "the mode was changed to plan by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			host := reach(t, &service{})
			waits(t, host, hostrecord.Record{})
			isStopped(host)
			r, _ := host.Record("here")
			wasEnded := works(t, host, r)

			_, err := host.Send(t.Context(), "here", loop.MessagePause, loop.Message{})
			require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err), "only an end needs no engine")
			sent, err := host.Send(t.Context(), "here", name, c.message)
			require.NoError(t, err)
			require.Equal(t, []string{"record", name}, []string{sent.Via, sent.Message})
			require.True(t, wasEnded())

			rows, err := host.Listed(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"halted", c.reason}, []string{rows[0].Status, rows[0].Reason})
			end, _ := hostrecord.NotedEnd(host.Home, r)
			require.Equal(t, name, end.Untold.Name)
			var m loop.Message
			require.NoError(t, json.Unmarshal(end.Untold.Payload, &m))
			require.Equal(t, c.message.By, m.By)
			require.True(t, hostrecord.Awaits(host.Home, r))
			_, err = host.Send(t.Context(), "here", loop.MessageHalt, loop.Message{})
			require.Equal(t, fault.GateClosed, fault.CodeOf(err), "it has ended")

			host.SDK = &service{status: 1, silent: true} // it answers again, and the worker has not sent it yet
			rows, err = host.Listed(t.Context())
			require.NoError(t, err)
			require.Equal(t, "halted", rows[0].Status)
		})
	}
}

// A halt that can be neither sent nor noted ends at least what runs of the loop.
func TestAHaltThatCantBeNotedEndsWhatRuns(t *testing.T) {
	c := reach(t, &service{})
	waits(t, c, hostrecord.Record{})
	isStopped(c)
	r, _ := c.Record("here")
	wasEnded := works(t, c, r)
	require.NoError(t, os.Chmod(c.Home.Loop("here"), 0o500))
	t.Cleanup(func() { require.NoError(t, os.Chmod(c.Home.Loop("here"), 0o700)) })
	if os.Geteuid() == 0 { // who may write everywhere
		require.NoError(t, os.Chmod(c.Home.Loop("here"), 0o700))
		require.NoError(t, exec.Command("mount", "--bind", "-o", "ro", c.Home.Loop("here"), c.Home.Loop("here")).Run())
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", c.Home.Loop("here")).Run()) })
	}
	_, err := c.Send(t.Context(), "here", loop.MessageHalt, loop.Message{})
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
	require.ErrorContains(t, err, "Nothing of it runs any more, but its end can't be noted")
	require.True(t, wasEnded())
}

// A loop that is being opened, and has recorded nothing, is ended by the worker when the engine answers.
func TestAHaltOfALoopThatBeginsUnderAStoppedEngineIsNoted(t *testing.T) {
	c := reach(t, &service{})
	require.NoError(t, c.NoteStarted("here", "run-1", "improve", "/src"))
	isStopped(c)
	_, err := c.Send(t.Context(), "here", loop.MessageHalt, loop.Message{})
	require.NoError(t, err)
	rows, err := c.Listed(t.Context())
	require.NoError(t, err)
	require.Equal(t, "halted", rows[0].Status)
}

// A worker that asked for tasks a moment ago gets the time to end the loop itself, which then records its own end.
func TestAHaltLeavesTheEndToAWorkerThatIsOnlyBusy(t *testing.T) {
	s := &service{silent: true, taken: true, polls: true, ends: true}
	c := reach(t, s)
	waits(t, c, hostrecord.Record{})
	sent, err := c.Send(t.Context(), "here", loop.MessageHalt, loop.Message{})
	require.NoError(t, err)
	require.Equal(t, []string{"workflow", "halted"}, []string{sent.Via, sent.Reply})
	r, _ := c.Record("here")
	_, noted := hostrecord.NotedEnd(c.Home, r)
	require.False(t, noted)
}

// hasTown makes this host hold the steward town, for which the loop here works.
func hasTown(t *testing.T, c *client.Client) {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store.git")
	script := exec.Command("sh", "-ec", `git init --quiet --object-format=sha1 --bare "$0"; cd "$0"
		task=$(printf '100644 blob %s\tstate.json\n' "$(echo '{"id": "a", "steps": [{"id": "s", "loop": "here", "status": "running"}]}' | git hash-object -w --stdin)" | git mktree)
		tasks=$(printf '040000 tree %s\ta\n' "$task" | git mktree)
		tree=$(printf '100644 blob %s\tstate.json\n040000 tree %s\ttasks\n' "$(echo '{"steward": "town", "status": "running", "tasks": ["a"]}' | git hash-object -w --stdin)" "$tasks" | git mktree)
		git update-ref refs/pawl-ledger/town "$(git -c user.name=x -c user.email=x commit-tree -m x "$tree")"`, store)
	out, err := script.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, hostrecord.Write(c.Home, hostrecord.Record{
		Loop: "town", Ref: "town", Kind: "steward", FirstRun: "first", Store: store, Ledger: "refs/pawl-ledger/town",
	}))
}

// Who halts a loop does not end a steward of that name, nor the other way round, also where no engine can say what it is.
func TestAHaltOfALoopEndsNoSteward(t *testing.T) {
	c := reach(t, &service{})
	waits(t, c, hostrecord.Record{})
	hasTown(t, c)
	isStopped(c)
	_, err := c.Send(t.Context(), "town", loop.MessageHalt, loop.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	_, err = c.SendTask(t.Context(), "here", loop.MessageHalt, steward.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	town, _ := c.Record("town")
	require.NoError(t, os.RemoveAll(town.Store)) // now only this host's record says what town is
	_, err = c.Send(t.Context(), "town", loop.MessageHalt, loop.Message{})
	require.Error(t, err)
	for _, id := range []string{"here", "town"} {
		r, _ := c.Record(id)
		require.False(t, hostrecord.Over(c.Home, r), id)
	}
}

// A steward that is ended ends its loops, whether a service runs without a worker or the engine is stopped.
func TestAStewardThatIsHaltedEndsItsLoops(t *testing.T) {
	for name, stopped := range map[string]bool{"no worker runs": false, "its engine is stopped": true} {
		t.Run(name, func(t *testing.T) {
			s := &service{silent: true, taken: true}
			c := reach(t, s)
			waits(t, c, hostrecord.Record{})
			r, _ := c.Record("here")
			wasEnded := works(t, c, r)
			hasTown(t, c)
			if stopped {
				isStopped(c)
			}
			sent, err := c.SendTask(t.Context(), "town", loop.MessageHalt, steward.Message{})
			require.NoError(t, err)
			require.Equal(t, "record", sent.Via)
			require.True(t, wasEnded())
			end, noted := hostrecord.NotedEnd(c.Home, r)
			require.True(t, noted)
			require.Contains(t, end.Reason, "its steward was ended")
		})
	}
}
