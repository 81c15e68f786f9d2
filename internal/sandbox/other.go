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

// Answer returns nothing here: no thread gets into a sandbox.
func Answer(Policy, []Question) ([]Finding, error) { return nil, nil }

// Begin does nothing here.
func (*Bounds) Begin(*syscall.SysProcAttr) {}

func opaque(string) bool { return false }

func asMade(string, string) bool { return false }

// mountPoint always fails here.
func mountPoint(string, string, bool) error { return errors.New("there is no sandbox on this system") }
