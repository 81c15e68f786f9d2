//go:build !linux

package testdir

// InMemory does nothing here.
func InMemory() {}
