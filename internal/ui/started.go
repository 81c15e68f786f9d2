package ui

import "pawl/internal/shell"

// Started is a loop that was started and left to a worker.
type Started struct {
	Loop, Run, Temporal, UI string
	Asks                    bool // its contract waits for approval
}

// Started renders it, with the next commands.
func (s Style) Started(v Started) string {
	id := Clean(shell.Quote(v.Loop))
	follow := []string{"pawl show " + id, "pawl log -f " + id}
	if v.Asks {
		follow = append(follow, "pawl approve "+id+"  once its contract is drawn")
	}
	return s.started("loop", v, "follow", follow)
}

// StewardStarted is Started for a steward.
func (s Style) StewardStarted(v Started) string {
	id := Clean(shell.Quote(v.Loop))
	return s.started("steward", v, "next", []string{"pawl steward submit " + id + " FILE", "pawl steward show " + id, "pawl inbox"})
}

func (s Style) started(word string, v Started, label string, lines []string) string {
	f := s.fields(11)
	f.add(word, Clean(v.Loop))
	f.add("run", v.Run)
	f.add("Temporal", v.Temporal)
	f.add("Temporal UI", v.UI)
	f.add(label, lines...)
	return f.String()
}
