package workspace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
	"pawl/internal/exec/sandbox"
	"pawl/internal/spec"
)

// If a machine only lacks cgroups, the advice must not be about namespaces or bubblewrap.
func TestE6_WhatToDoAboutARequiredSandboxIsAboutWhatIsMissing(t *testing.T) {
	claims := sandbox.Claims(sandbox.Facts{Policy: sandbox.Policy{Limits: sandbox.Limits{Memory: 1 << 30, Processes: 10}}})
	var limits []sandbox.Claim
	for _, c := range claims {
		for _, q := range c.Asked {
			if q.Deed == sandbox.Outgrowing {
				limits = append(limits, c)
			}
		}
	}
	require.Len(t, limits, 2)
	machine := sandbox.Machine{Files: sandbox.ByNamespace, Network: true}
	for advice, broken := range map[string][]sandbox.Claim{"cgroups": limits, "bubblewrap": claims} {
		_, lacking := sandbox.Said(broken, nil)
		err := workspace.Ensure(spec.Sandbox{Use: spec.Required, Network: string(sandbox.Filtered)}, machine, nil, lacking)
		require.Error(t, err)
		require.Contains(t, err.Error(), advice)
	}
	require.NoError(t, workspace.Ensure(spec.Sandbox{Use: spec.Required, Network: string(sandbox.Filtered)}, machine, nil, nil))
}
