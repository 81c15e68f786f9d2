//go:build !linux

package sandbox

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// Room is what a thread has in a sandbox beside its restrictions.
type Room struct{ Proxy net.Listener }

// Probe says that this system has nothing that pawl uses as a sandbox.
func Probe() Machine { return Machine{} }

// Main does nothing here.
func Main() {}

// Supervisor are no attributes here.
func Supervisor(Means) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// Settle does nothing here.
func Settle() error { return nil }

// Enter is never called where Probe finds nothing.
func Enter(Policy) (Room, error) { return Room{}, errors.New("there is no sandbox on this system") }

// Key tells policies apart.
func (p Policy) Key() string { return "" }

// Hands is never true where Probe finds nothing.
func (p Policy) Hands() bool { return false }

// Begun is never called where Probe finds nothing.
func Begun(*os.File) (net.Listener, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Answer is never called where Probe finds nothing.
func Answer([]Question) []Finding { return nil }

// AnswerIn is never called where Probe finds nothing.
func AnswerIn(Policy, []Question) ([]Finding, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Bounds are none here.
type Bounds struct{}

// NewBounds says that there are none.
func NewBounds(string, Limits) (*Bounds, error) {
	return &Bounds{}, errors.New("this system has no cgroups")
}

// Join does nothing here.
func (*Bounds) Join() error { return nil }

// Begin does nothing here.
func (*Bounds) Begin(*syscall.SysProcAttr) {}

// Relieved does nothing here.
func (*Bounds) Relieved() {}

// Limits are none.
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

// mountPoint is never called where Probe finds nothing.
func mountPoint(string, string, bool) error { return errors.New("there is no sandbox on this system") }
