package ui

import (
	"pawl/internal/launch"
	"pawl/internal/loop"
)

// List renders loops as a table.
func (s Style) List(rows []launch.Row) string {
	var cells [][]string
	for _, r := range rows {
		doing := r.Phase
		switch {
		case r.Gate != "":
			doing = "waits: " + r.Gate
		case loop.Status(r.Status).Ended():
			doing = ""
		}
		best := ""
		if r.Best != nil {
			best = r.Best.String()
		}
		started := ""
		if r.StartedAt != nil {
			started = s.when(*r.StartedAt)
		}
		cells = append(cells, []string{Clean(r.Loop), r.Status, doing, itoa(r.Iteration), best, started, Clean(r.Goal)})
	}
	return s.table([]string{"LOOP", "STATUS", "DOING", "ITERATION", "BEST", "STARTED", "GOAL"}, cells)
}
