//go:build !linux

package security_test

import (
	"testing"

	"pawl/test/harness/world"
)

// The ways that there are here.
const (
	byRoot, byOrdinary, byNobody = "a sandbox", "", "no sandbox"
)

func deedsHere() []string { return []string{byRoot, byNobody} }

func needsWay(t *testing.T, way string) {
	t.Helper()
	if way != byNobody {
		needsSandbox(t)
	}
}

// newVictim is not reached: no way that there is here needs a world of its own.
func newVictim(t *testing.T, way string) (*world.World, map[string]string) {
	t.Helper()
	t.Fatalf("commands can't be confined by %q here", way)
	return nil, nil
}

func serves(*testing.T, *world.World, string) *world.Command { return nil }

// hostile does nothing where there is no sandbox to try.
func hostile() {}
