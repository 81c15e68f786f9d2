//go:build !crashtest

// Package crash is the test-only hook that kills the process before or after a side effect.
// Without the build tag `crashtest` it is empty and the compiler removes it. Start at At.
package crash

// At kills the process here when a test asked for it.
func At(string) {}
