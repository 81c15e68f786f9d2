package commands_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// All measurements of docs/reference/numbers.md can still be made, but the simulated ones, which have tests of their own. The
// amounts are as small as they get, and nobody looks at what comes out.
func TestTheNumbersPageCanBeMeasured(t *testing.T) {
	world.Slow(t, "nothing: no other code uses the programs in bench")
	c := exec.Command("go", "run", "./bench", "-rounds=1", "-iterations=3", "-long=3", "-paused=3", "-tasks=3", "-waiting=2",
		"-only=call|overhead|start|worker|recovery|approval|governance|parallel|steps|paused|steward|long")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
