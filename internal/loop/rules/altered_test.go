package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
)

func TestALockFileThatACommandRewritesIsLeftAlone(t *testing.T) {
	require.Equal(t, "Commit the lock file as guard.command writes it, or have the command leave it alone: cargo --locked, npm ci.",
		rules.AlteredAdvice("guard", []string{"Cargo.lock", "web/package-lock.json", "api/package-lock.json"}))
	require.Contains(t, rules.AlteredAdvice("guard", []string{"Cargo.lock", "src/a.rs"}), "must have judged the commit")
	require.Equal(t, "as usual", rules.AdviceFor("guard", nil, "as usual"))
}
