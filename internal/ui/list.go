package ui

import (
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
)

// Row is a loop in a list. Times are RFC 3339 UTC in data.
type Row struct {
	Loop      string            `json:"loop"`
	Run       string            `json:"run,omitempty"`
	Kind      string            `json:"kind,omitempty"`
	Status    string            `json:"status"`
	Phase     string            `json:"phase,omitempty"`
	Gate      string            `json:"gate,omitempty"`
	Iteration int               `json:"iteration"`
	Best      *evidence.Decimal `json:"best"`
	Repo      string            `json:"repo,omitempty"`
	Branch    string            `json:"branch,omitempty"`
	Goal      string            `json:"goal,omitempty"`
	StartedBy string            `json:"startedBy,omitempty"`
	StartedAt *time.Time        `json:"startedAt,omitempty"`
	EndedAt   *time.Time        `json:"endedAt,omitempty"`
	Source    string            `json:"source"` // temporal or ledger
}

// List renders loops as a table.
func (s Style) List(rows []Row) string {
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
