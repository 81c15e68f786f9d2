//go:build e2e && !nightly

package tier

// The tiers of this binary.
const (
	EndToEnd = true
	Nightly  = false
)
