package proc

import (
	"testing"
	"time"
)

// Clearable is tested without Reap: what it refuses, a broken Reap must not be let loose on.
var Clearable = clearable

// Pid is the process ID of the supervisor.
func (s *Supervisor) Pid() int { return s.cmd.Process.Pid }

// SetCloseWithin shortens the time that a supervisor has for ending everything.
func SetCloseWithin(t *testing.T, d time.Duration) {
	before := closeWithin
	closeWithin = d
	t.Cleanup(func() { closeWithin = before })
}
