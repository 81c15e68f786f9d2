package steward_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/steward"
	"pawl/internal/steward/task"
)

// TestS12_WhatIsOnlyUnderWayIsNoDrift: a loop makes a commit between two looks at its branch.
func TestS12_WhatIsOnlyUnderWayIsNoDrift(t *testing.T) {
	t.Parallel()
	edited := task.Drift{Name: task.DriftArtifact, What: "STATUS_LEDGER.md", Theirs: "x"}
	branch := func(at string) task.Drift { return task.Drift{Name: task.DriftBranch, What: "pawl/a", Theirs: at} }
	for name, looks := range map[string][2][]task.Drift{
		"the second look does not find it":    {{branch("1"), edited}, {edited}},
		"the second look finds another state": {{branch("1"), edited}, {branch("2"), edited}},
		"only the second look finds it":       {{edited}, {branch("1"), edited}},
	} {
		n := 0
		found, err := steward.LookTwice(func() []task.Drift { n++; return looks[n-1] })
		require.NoError(t, err)
		require.Equal(t, []task.Drift{edited}, found, name)
	}
}
