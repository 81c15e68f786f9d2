package supervisor

import (
	"testing"
	"time"
)

// Clearable is tested without Reap: a broken Reap must not run on what Clearable refuses.
var Clearable = clearable

// Pid returns the process ID of the supervisor.
func (s *Supervisor) Pid() int { return s.cmd.Process.Pid }

// SetCloseWithin shortens the time that a supervisor has to end everything.
func SetCloseWithin(t *testing.T, d time.Duration) {
	before := closeWithin
	closeWithin = d
	t.Cleanup(func() { closeWithin = before })
}
