package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
)

func TestACommandThatTimesOutWhileItWaitsForChangesIsSaidToWatch(t *testing.T) {
	for _, printed := range []string{
		"Watch Usage\n › Press a to run all tests.", "Tests  3 passed (3)\n PASS  Waiting for file changes...\n       press h to show help, press q to quit",
		"10:31:02 - Found 0 errors. Watching for file changes.", "ℹ [mocha] waiting for changes...", "[nodemon] clean exit - waiting for changes before restart",
		"dotnet watch ⌚ Waiting for a file to change before restarting dotnet...", "[Finished running. Exit status: 0]", "[watch] build finished, watching for changes...",
		"INFO [karma-server]: Karma v6.4.2 server started at http://localhost:9876/", "<=============> 100% EXECUTING\nWaiting for changes to input files...",
	} {
		require.Contains(t, rules.WatchAdvice("npm test", printed), "never ends", printed)
		require.NotContains(t, rules.SlowAdvice("guard.timeout", "npm test", printed), "raise", printed)
	}
	require.Equal(t, "It waits for changes and never ends. Use `npx tsc`.", rules.WatchAdvice("npx tsc -w", ""))
	for _, printed := range []string{"", "ok  pkg/watch 3.1s", "waiting for the database", "--- PASS: TestWatcher", "7 tests, watching the clock"} {
		require.Empty(t, rules.WatchAdvice("npm test", printed), printed)
	}
	require.Equal(t, "Have it do less, or raise verify.timeout.", rules.SlowAdvice("verify.timeout", "make bench", "1 of 9"))
}
