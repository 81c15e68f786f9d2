//go:build !linux

package world

import "os/exec"

// TieToParent does nothing: only Linux can tie a process to its parent.
func TieToParent(*exec.Cmd) {}

// Survivors returns nothing: it needs /proc.
func Survivors(string) []string { return nil }
