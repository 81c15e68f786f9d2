//go:build !linux

package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// This system has nothing that pawl uses as a sandbox. Probe says so, and what could only work in one fails.

var errNone = errors.New("there is no sandbox on this system")

func Main()                                        {}
func Probe() Machine                               { return Machine{} }
func Supervisor(Means) *syscall.SysProcAttr        { return &syscall.SysProcAttr{} }
func HandStrangers(*exec.Cmd, Means) uintptr       { return 0 }
func TakeStrangers(uintptr)                        {}
func Settle() error                                { return nil }
func (p Policy) Key() string                       { return "" }
func Enter(Policy) (net.Listener, error)           { return nil, errNone }
func Begun(*os.File) (net.Listener, error)         { return nil, errNone }
func Answer(Policy, []Question) ([]Finding, error) { return nil, errNone }
func (*Bounds) Begin(*syscall.SysProcAttr)         {}
func mountPoint(string, string, bool) error        { return errNone }
func opaque(string) bool                           { return false }
func asMade(string, string) bool                   { return false }
