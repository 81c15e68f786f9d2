//go:build !linux

package repo

func clearFlags(int) {}
