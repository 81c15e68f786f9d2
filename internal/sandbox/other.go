//go:build !linux

package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// Probe says that this system has nothing that pawl uses as a sandbox.
func Probe() Machine { return Machine{} }

// Main does nothing here.
func Main() {}

// HandStrangers hands over nothing here.
func HandStrangers(*exec.Cmd, Means) uintptr { return 0 }

// TakeStrangers keeps nothing here.
func TakeStrangers(uintptr) {}

// Supervisor returns no attributes here.
func Supervisor(Means) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// Settle does nothing here.
func Settle() error { return nil }

// Enter always fails here.
func Enter(Policy) (net.Listener, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Key returns "" here.
func (p Policy) Key() string { return "" }

// Begun always fails here.
func Begun(*os.File) (net.Listener, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Answer returns nothing here.
func Answer([]Question) []Finding { return nil }

// AnswerIn always fails here.
func AnswerIn(Policy, []Question) ([]Finding, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Bounds limit nothing here.
type Bounds struct{}

// NewBounds always fails here.
func NewBounds(string, Limits) (*Bounds, error) {
	return &Bounds{}, errors.New("this system has no cgroups")
}

// Join does nothing here.
func (*Bounds) Join() error { return nil }

// Begin does nothing here.
func (*Bounds) Begin(*syscall.SysProcAttr) {}

// Relieved does nothing here.
func (*Bounds) Relieved() {}

// Limits returns no limits here.
func (*Bounds) Limits() Limits { return Limits{} }

// Reached counts nothing here.
func (*Bounds) Reached() Reached { return Reached{} }

// Close does nothing here.
func (*Bounds) Close() {}

// RemoveBounds does nothing here.
func RemoveBounds(string) error { return nil }

// Outgrows is always true here.
func Outgrows(string, string) bool { return true }

func opaque(string) bool { return false }

func asMade(string, string) bool { return false }

// mountPoint always fails here.
func mountPoint(string, string, bool) error { return errors.New("there is no sandbox on this system") }
