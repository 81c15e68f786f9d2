package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// TestCommandsFindTheirBaseAndANameOfTheirOwn: a command may compare with the base branch, name what it shares with
// other loops by its folder, and bind a socket below it.
func TestCommandsFindTheirBaseAndANameOfTheirOwn(t *testing.T) {
	t.Setenv("CI", "") // is put back afterwards
	require.NoError(t, os.Unsetenv("CI"))
	l := actest.Begin(t, spec.Deny)
	guard := func(ref, base, command string) []string {
		t.Helper()
		env := actest.Environment(l.Activities)
		env.RegisterActivity(l.Guard)
		step := api.Step{Ref: ref, Key: api.Key{Iteration: 1, Attempt: 1, Name: "guard"}, Head: base, LimitMs: 10000}
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: command})
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		require.True(t, out.OK(), out.Tail)
		printed, err := workspace.ReadFile(filepath.Join(out.Log, "stdout"), workspace.MaxOutput)
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(printed)), "\n")
	}
	const command = `git diff --name-only origin/main...HEAD && git diff --name-only main...HEAD &&
		git rev-parse origin/main && basename "$PWD" && echo "$COMPOSE_PROJECT_NAME" && echo "CI=$CI"`
	first := guard(l.Opened.Ref, l.Opened.Base, command)
	require.Equal(t, l.Opened.Base, first[0])
	require.Equal(t, first[1], first[2])
	require.Equal(t, "CI=1", first[3])
	require.LessOrEqual(t, len("/trees/")+len(first[1]), 27, "below $PAWL_HOME, whatever the loop's name is")

	other, err := l.Open(t.Context(), api.Open{Loop: "a-long-name-such-as-those-of-the-steps-of-a-stewards-task", FirstRun: "second", Spec: l.Spec})
	require.NoError(t, err)
	second := guard(other.Ref, other.Base, command)
	require.NotEqual(t, first[1], second[1])
	require.Len(t, second[1], len(first[1]))
}
