//go:build nightly

package tier

// The tiers of this binary.
const (
	EndToEnd = true
	Nightly  = true
)
