//go:build !linux

package hostile_test

// hostile does nothing where there is no sandbox to try.
func hostile() {}
