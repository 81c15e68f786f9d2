package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
)

func TestAFragmentIsMadeAsSetsAre(t *testing.T) {
	for want, sets := range map[string][]string{
		`{"iterations": 20, "activeTime": "20m", "costUSD": 2.50}`:                           {"iterations=20", "activeTime=20m", "costUSD=2.50"},
		`{"verify": {"command": "echo a=b # c", "timeout": "1m"}, "check": {"command": ""}}`: {"verify.command=echo a=b # c", "verify.timeout=1m", `check.command=""`},
		`{"verify": {"command": "./weigh.sh: fast"}}`:                                        {"verify.command=./weigh.sh: fast"},
		`{}`: nil,
	} {
		fragment, err := config.Fragment("--set", sets)
		require.NoError(t, err)
		require.JSONEq(t, want, string(fragment))
	}
	for _, wrong := range [][]string{{"iterations"}, {"=20"}, {"a=1", "a.b=2"}} {
		_, err := config.Fragment("--limit", wrong)
		require.ErrorContains(t, err, "--limit")
	}
	exact, err := config.Fragment("--limit", []string{"costUSD=2.50"})
	require.NoError(t, err)
	require.Equal(t, `{"costUSD":2.50}`, string(exact), "numbers keep their decimals")
}
