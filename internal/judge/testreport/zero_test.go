package testreport_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/testreport"
)

// TestThatNoTestRanIsSaid: the format is known, and 0 tests are not the same as an output that no reader knows.
func TestThatNoTestRanIsSaid(t *testing.T) {
	for _, name := range testreport.FormatNames() {
		if !slices.Contains([]string{"go-json", "go", "pytest"}, name) { // below: their samples have no run without tests
			require.Contains(t, read(runners[name](0)).Tested().String(), "0 tests ("+name, runners[name](0))
		}
	}
	for out, want := range map[string]string{
		"\nno tests ran in 0.01s\n":                   "0 tests (pytest)",
		"======= no tests ran in 0.01s =======\n":     "0 tests (pytest)",
		"======= 3 deselected in 0.01s =======\n":     "0 tests (pytest)",
		"1..0 # SKIP no database\n":                   "0 tests (tap)",
		"?   \tex/a\t[no test files]\n":               "0 tests (go)",
		"Ran 0 tests in 0.000s\n\nNO TESTS RAN\n":     "0 tests (unittest)",
		"No tests found, exiting with code 0\n":       "0 tests (jest)",
		"No test files found, exiting with code 0\n":  "0 tests (vitest)",
		"Test project /x\nNo tests were found!!!\n":   "0 tests (ctest)",
		"No tests defined.\n":                         "0 tests (meson)",
		"No test is available in /x/a.dll. Make sure": "0 tests (dotnet)",
		"There are no tests to run\n":                 "0 tests (exunit)",
		"[INFO] No tests to run.\n":                   "0 tests (surefire)",
		"No tests executed!\n":                        "0 tests (phpunit)",
		"[info] No tests were executed\n":             "0 tests (sbt)",
		"No tests executed!\n\n  6 passing (3ms)\n":   "6 passed (mocha)",
		"<testsuites/>\n":                             "0 tests (junit)",
		"all is well\n":                               "its tests are not counted: no output that pawl reads",
		"1..0\n[pawl: 9 bytes left out here]\n":       "its tests are not counted: no output that pawl reads; a part of the output was left out, so tests may be missing",
		"1..0\n\n  6 passing (3ms)\n":                 "6 passed (mocha)",
		`{"Action":"start","Package":"ex/a"}` + "\n":  "0 tests (go-json)",
	} {
		r := read(out)
		require.Equal(t, want, r.Tested().String(), out)
	}
}
