//go:build !e2e && !nightly

package tier

// The tiers of this binary.
const (
	EndToEnd = false
	Nightly  = false
)
