package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
)

func TestWhatWasTestedIsOneLine(t *testing.T) {
	for want, tested := range map[string]*loop.Tested{
		"":                             nil,
		"6 passed, 1 skipped (pytest)": {Format: "pytest", Passed: 6, Skipped: 1},
		"0 tests (pytest)":             {Format: "pytest"},
		"2 packages passed (go)":       {Format: "go", Passed: 2, Packages: true},
		"1 package passed (go)":        {Format: "go", Passed: 1, Packages: true},
		"its tests are not counted: no output that pawl reads": {},
		"exits 0 but names failures: 2 failed, 3 passed (tap)": {Format: "tap", Passed: 3, Failed: 2},

		"3 passed (tap); a part of the output was left out, so tests may be missing":               {Format: "tap", Passed: 3, Partial: true},
		"3 passed (tap); flaky: it failed on the unchanged code (TestA, TestB), then passed twice": {Format: "tap", Passed: 3, Flaky: []string{"TestA", "TestB"}},

		"3 passed (tap); canary not tried: no code that pawl can break": {Format: "tap", Passed: 3, Unbreakable: true},
		"3 passed (tap); still passes with a syntax error in your code": {Format: "tap", Passed: 3, Misses: "a syntax error in your code"},
	} {
		require.Equal(t, want, tested.String())
	}
}
