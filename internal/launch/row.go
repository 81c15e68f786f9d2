package launch

import (
	"time"

	"pawl/internal/evidence"
	"pawl/internal/kind"
	"pawl/internal/loop"
)

// Row is a loop in a list, as its search attributes and memo, or its ledger, tell of it. Times are RFC 3339 UTC in data.
type Row struct {
	Loop      string            `json:"loop"`
	Run       string            `json:"run,omitempty"`
	Kind      string            `json:"kind,omitempty"`
	Status    string            `json:"status"`
	Phase     string            `json:"phase,omitempty"`
	Gate      string            `json:"gate,omitempty"`
	Gates     int               `json:"gates,omitempty"` // of a steward: how many are open
	Iteration int               `json:"iteration"`
	Best      *evidence.Decimal `json:"best"`
	Repo      string            `json:"repo,omitempty"`
	Branch    string            `json:"branch,omitempty"`
	Goal      string            `json:"goal,omitempty"`
	StartedBy string            `json:"startedBy,omitempty"`
	StartedAt *time.Time        `json:"startedAt,omitempty"`
	EndedAt   *time.Time        `json:"endedAt,omitempty"`
	Usage     *loop.Usage       `json:"usage,omitempty"`    // as the ledger on this host last recorded it
	Proposal  string            `json:"proposal,omitempty"` // open, approved, rejected or applied; likewise
	Source    string            `json:"source"`             // temporal or ledger
	// Trouble is what keeps it from going on though nobody is asked anything, "" for nothing.
	Trouble string `json:"trouble,omitempty"`
	// Mended says when this host's files of it were damaged, how, and what was done about that.
	Mended []string `json:"mended,omitempty"`
}

// Steward reports whether it is a steward, and no loop.
func (r Row) Steward() bool { return r.Kind == kind.Steward.Name }
