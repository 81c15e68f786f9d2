//go:build !linux

package trees

func clearFlags(int) {}
