package config_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
)

const charterFile = `kind: steward
name: shop
defaults:
  agent: {command: ["./agent.sh"]}
  limits: {costUSD: 2.50}
schedules:
  - name: nightly
    cron: "0 2 * * *"
    task: {title: Nightly, body: Update the dependencies}
`

func TestAStewardsFileIsReadAsALoopsIs(t *testing.T) {
	path := write(t, "steward.yaml", charterFile)
	t.Setenv("PAWL_SPEC_VALIDATEEVERY", "5m")
	c, err := config.LoadCharter(path, []string{"limits.actions=7"})
	require.NoError(t, err)
	require.NoError(t, c.ValidateInput(), "the repository is named absolutely")
	require.Equal(t, filepath.Dir(path), c.Repo.Path)
	require.Equal(t, 7, c.Limits.Actions)
	require.Equal(t, "5m", c.ValidateEvery.String())
	require.JSONEq(t, `{"agent":{"command":["./agent.sh"]},"limits":{"costUSD":2.50}}`, string(c.Defaults))
}

func TestWhatIsWrongInAStewardsFileIsSaidWithItsLine(t *testing.T) {
	path := write(t, "steward.yaml", charterFile+"triggers:\n  - name: ci\n    from: github\n    secretFile: x\n    task:\n      title: '{{.Titel}}'\nqueue: 5\n")
	_, err := config.LoadCharter(path, nil)
	require.ErrorContains(t, err, path+":14: triggers[0].task: ")
	require.ErrorContains(t, err, path+":16: queue: is not a key of a spec; want: limits: {queue: …} (did you mean it?)")
}

func TestAFileOfTheOtherKindIsRefusedWithTheCommandForIt(t *testing.T) {
	steward, loop := write(t, "steward.yaml", charterFile), write(t, "pawl.yaml", yamlSpec)
	_, err := config.LoadSpec(steward, nil)
	require.ErrorContains(t, err, steward+`:1: kind: is "steward"; want: improve or deliver here; a steward is started with`+" `pawl steward up FILE`")
	_, err = config.LoadCharter(loop, nil)
	require.ErrorContains(t, err, "want: steward here; a loop is started with `pawl run FILE`")
	f, err := config.Open(steward, nil)
	require.NoError(t, err)
	require.Equal(t, "Steward", f.Kind.Workflow)
	_, err = config.LoadSpec(write(t, "pawl.yaml", "kind: stewart\n"), nil)
	require.ErrorContains(t, err, `kind: is "stewart"; want: improve or deliver, or steward for`)
}
