package launch

import (
	"time"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// Row is a loop or steward in a list, made from its search attributes and memo, or from its ledger.
type Row struct {
	Loop      string          `json:"loop"`
	Run       string          `json:"run,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status"`
	Phase     string          `json:"phase,omitempty"`
	Gate      string          `json:"gate,omitempty"`
	Gates     int             `json:"gates,omitempty"` // only for a steward: how many gates are open
	Tasks     *Tasks          `json:"tasks,omitempty"` // of a steward, as last recorded in this host's ledger
	Mode      string          `json:"mode,omitempty"`  // of a steward
	Iteration int             `json:"iteration"`
	Best      *metric.Decimal `json:"best"`
	Repo      string          `json:"repo,omitempty"`
	Branch    string          `json:"branch,omitempty"`
	Goal      string          `json:"goal,omitempty"`
	StartedBy string          `json:"startedBy,omitempty"`
	StartedAt *time.Time      `json:"startedAt,omitempty"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
	Usage     *loop.Usage     `json:"usage,omitempty"`    // as last recorded in this host's ledger
	Proposal  string          `json:"proposal,omitempty"` // open, approved, rejected or applied, as last recorded there
	Source    string          `json:"source"`             // temporal or ledger
	Reason    string          `json:"reason,omitempty"`   // why it failed
	// Refused says that it was refused at its start, and has done nothing.
	Refused bool `json:"refused,omitempty"`
	// Trouble says why it can't continue although it asks nobody anything, "" for no trouble.
	Trouble string `json:"trouble,omitempty"`
	// Mended says when its files on this host were damaged, how, and what was done about it.
	Mended []string `json:"mended,omitempty"`
}

// Tasks counts the tasks of a steward.
type Tasks struct {
	All       int `json:"all"`
	Done      int `json:"done"`
	Cancelled int `json:"cancelled,omitempty"`
}

// Steward reports whether the row is a steward, not a loop.
func (r Row) Steward() bool { return r.Kind == kind.Steward.Name }
