//go:build !linux

package sandbox

import "errors"

// Probe says that this system has nothing that pawl uses as a sandbox.
func Probe() Machine { return Machine{} }

// Main does nothing here.
func Main() {}

// Enter is never called where Probe finds nothing.
func Enter(Policy) error { return errors.New("there is no sandbox on this system") }

// Key tells policies apart.
func (p Policy) Key() string { return "" }
