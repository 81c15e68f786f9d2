package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// A loop's trees have submodules only if setup fetches them. Who sees a command fail there has to know that.
func TestAFailureOnTheUnchangedCodeNamesEmptySubmodules(t *testing.T) {
	t.Parallel()
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		head := gittest.Git(t, user, "rev-parse", "HEAD")
		require.NoError(t, os.Mkdir(filepath.Join(user, "lib"), 0o755))
		gittest.Git(t, user, "update-index", "--add", "--cacheinfo", "160000,"+head+",lib")
		gittest.Git(t, user, "commit", "-qm", "a submodule")
	})
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	for _, c := range []struct {
		command   string
		iteration int
		ending    string
	}{
		{"cat lib/x", 0, "exit 1; submodules are empty there: lib"},
		{"echo >lib/x; exit 3", 0, "exit 3"},
		{"cat lib/x", 1, "exit 1"},
		{"true", 0, "ok"},
	} {
		step := api.Step{Ref: l.Opened.Ref, Key: api.Key{Iteration: c.iteration, Attempt: 1, Name: "guard " + c.command}, Head: l.Opened.Base, LimitMs: 10000}
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: c.command})
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		require.Equal(t, c.ending, out.Ending(), c.command)
	}
}
