package ui

import (
	"pawl/internal/shell"
)

// Started is a loop that was started and left to a worker.
type Started struct {
	Loop, Run, Temporal, UI string
	Asks                    bool // its contract waits for approval
}

// Started renders it, with how to go on.
func (s Style) Started(v Started) string {
	f := s.fields(11)
	f.add("loop", Clean(v.Loop))
	f.add("run", v.Run)
	f.add("Temporal", v.Temporal)
	f.add("Temporal UI", v.UI)
	id := Clean(shell.Quote(v.Loop))
	follow := []string{"pawl show " + id, "pawl log -f " + id}
	if v.Asks {
		follow = append(follow, "pawl approve "+id+"  once its contract is drawn")
	}
	f.add("follow", follow...)
	return f.String()
}
