//go:build !linux

package egress

// inner reports whether the network of an interface exists on this host only. Only Linux has a sandbox with a
// network of its own.
func inner(string) bool { return false }
