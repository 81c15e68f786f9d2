package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

func TestAPersonIsAskedAboutToolsOfARoleThatMayEdit(t *testing.T) {
	ask, deny := spec.Ask, spec.Deny
	with := func(onDenied *string, writer ...string) (s spec.Spec) {
		s.Approvals.OnDenied, s.Permissions = onDenied, map[string][]string{spec.RoleWriter: append(writer, spec.CanExecuteTasks)}
		return s
	}
	asked := func(s spec.Spec, role string, in phase.Phase, tools ...string) bool {
		return rules.AfterDenial(s, role, string(in), tools) != ""
	}
	may := with(&ask, spec.CanEditSource)
	require.True(t, asked(may, spec.RoleWriter, phase.Modify, "Bash"))
	require.False(t, asked(may, spec.RoleWriter, phase.Modify))
	require.False(t, asked(may, spec.RoleReviewer, phase.Review, "Edit"), "a reviewer has tools that look alone")
	require.False(t, asked(may, spec.RoleWriter, phase.Ideate, "Edit"), "so has a writer there")
	require.False(t, asked(with(&ask), spec.RoleWriter, phase.Modify, "Edit"), "nor may this writer edit")
	require.False(t, asked(with(&deny, spec.CanEditSource), spec.RoleWriter, phase.Modify, "Bash"))
	require.False(t, asked(with(nil, spec.CanEditSource), spec.RoleWriter, phase.Modify, "Bash"))
}
