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

// Listener is never called where Probe finds nothing.
func Listener(*os.File) (net.Listener, error) {
	return nil, errors.New("there is no sandbox on this system")
}

// Answer is never called where Probe finds nothing.
func Answer([]Question) []Finding { return nil }

// AnswerIn is never called where Probe finds nothing.
func AnswerIn(Policy, []Question) ([]Finding, error) {
	return nil, errors.New("there is no sandbox on this system")
}

func opaque(string) bool { return false }
