package sandbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/sandbox"
)

// The contract must not promise what a machine has not.
func TestE6_ProtectionsSayWhatHoldsAndWhatDoesNot(t *testing.T) {
	ports := []int{8233, 7233}
	for name, c := range map[string]struct {
		machine               sandbox.Machine
		closed, open          []int
		files, ports, signals bool
		covers                bool
	}{
		"everything":                       {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 7}, ports, nil, true, true, true, true},
		"an ordinary user":                 {sandbox.Machine{Files: sandbox.ByUserNamespace, Landlock: 6}, ports, nil, true, true, true, true},
		"Landlock without signals":         {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 4}, ports, nil, true, true, false, true},
		"Landlock without ports":           {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 3}, ports, nil, true, false, false, false},
		"bubblewrap without Landlock":      {sandbox.Machine{Files: sandbox.ByBwrap}, ports, nil, true, false, true, false},
		"Landlock alone":                   {sandbox.Machine{Landlock: 7}, ports, nil, false, true, true, false},
		"nothing":                          {sandbox.Machine{}, ports, nil, false, false, false, false},
		"a port that everybody needs":      {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 7}, nil, nil, true, false, true, false},
		"ports that the spec opens":        {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 7}, ports, ports, true, false, true, true},
		"one port that the spec leaves so": {sandbox.Machine{Files: sandbox.ByNamespace, Landlock: 7}, ports, ports[:1], true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			lines := c.machine.Protections(c.closed, c.open)
			require.Len(t, lines, 3)
			require.Equal(t, c.files, strings.HasPrefix(lines[0], "sandbox"), lines[0])
			require.Equal(t, c.ports, strings.HasPrefix(lines[1], "sandbox"), lines[1])
			require.Equal(t, c.signals, strings.Contains(lines[2], "no signals"), lines[2])
			require.Equal(t, c.covers, c.machine.Covers(c.closed), c.machine.Lacks(c.closed))
		})
	}
}
