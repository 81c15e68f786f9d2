//go:build !linux

package remove

func clearFlags(int) {}
