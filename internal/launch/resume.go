package launch

// Resume is the second, optional argument of a workflow: where it continues.
type Resume[C any] struct {
	// Ledger is a ledger commit in the store or the repository.
	Ledger string `json:"ledger,omitempty"`
	// Carry is what a run hands to the next one at continue-as-new.
	Carry *C `json:"carry,omitempty"`
}

// From resumes a workflow of any kind from a ledger commit.
func From(ledger string) Resume[struct{}] { return Resume[struct{}]{Ledger: ledger} }
