package testreport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/testreport"
)

// runners has what each runner prints about n tests that pass: after its documentation, or as in testdata.
var runners = map[string]func(n int) string{
	"go-json": func(n int) string { return each(n, `{"Action":"pass","Package":"p","Test":"T%d"}`) },
	"junit":   func(n int) string { return "<testsuite>" + each(n, `<testcase name="t%d"/>`) + "</testsuite>" },
	"ctrf": func(n int) string {
		test := `{"name":"adds %d","status":"passed","duration":1,"suite":["sums"]},`
		return `{"reportFormat":"CTRF","specVersion":"1.0.0","results":{"tool":{"name":"x"},"summary":{"tests":6},"tests":[` + "\n" +
			strings.TrimSuffix(each(n, test), ",\n") + "\n]}}\n"
	},
	"jest-json": func(n int) string {
		test := `{"ancestorTitles":["sums"],"title":"adds %d","status":"passed"},`
		tests := strings.TrimSuffix(strings.ReplaceAll(each(n, test), "\n", ""), ",")
		return `{"numFailedTestSuites":0,"testResults":[{"name":"a.test.js","status":"passed","assertionResults":[` + tests + "]}]}\n"
	},
	"tap":      func(n int) string { return each(n, "ok %d - adds") + fmt.Sprintf("1..%d\n", n) },
	"go":       func(n int) string { return each(n, "--- PASS: TestA%d (0.00s)") + "PASS\nok  \tex/a\t0.1s\n" },
	"pytest":   counts("===== %d passed, 1 skipped in 0.05s ====="),
	"unittest": counts(strings.Repeat("-", 70) + "\nRan %d tests in 0.001s\n\nOK"),
	"cargo":    counts("test result: ok. %d passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"),
	"jest":     counts("Test Suites: 1 passed, 1 total\nTests:       %[1]d passed, %[1]d total"),
	"vitest":   counts(" Test Files  1 passed (1)\n      Tests  %[1]d passed (%[1]d)"),
	"uvu":      counts("  Total:     %[1]d\n  Passed:    %[1]d\n  Skipped:   0"),
	"mocha":    counts("\n  %d passing (3ms)"),
	"node":     counts("ℹ tests %[1]d\nℹ suites 0\nℹ pass %[1]d\nℹ fail 0"),
	"automake": counts("# TOTAL: %[1]d\n# PASS:  %[1]d\n# SKIP:  0\n# XFAIL: 0\n# FAIL:  0\n# XPASS: 0\n# ERROR: 0"),
	"tally":    counts("\nPASSED: %d\nFAILED: 0"),
	"prove":    counts("t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=%d,  0 wallclock secs\nResult: PASS"),
	"ctest":    counts("100%% tests passed, 0 tests failed out of %d"),
	"meson":    counts("Ok:                 %d\nFail:               0"),
	"gtest":    counts("[==========] Running tests.\n[  PASSED  ] %d tests."),
	"busted":   counts("%d successes / 0 failures / 0 errors / 0 pending : 0.001 seconds"),
	"rspec":    counts("Finished in 0.01 seconds (files took 0.1 seconds to load)\n%d examples, 0 failures"),
	"minitest": counts("%d runs, 6 assertions, 0 failures, 0 errors, 0 skips"),

	"test-unit": counts("%d tests, 6 assertions, 0 failures, 0 errors, 0 pendings, 0 omissions, 0 notifications"),
	"junit4":    counts("OK (%d tests)"), "shunit2": counts("Ran %d tests.\n\nOK"),
	"junit-platform": counts("[         %d tests successful      ]\n[         0 tests failed          ]"),
	"phpunit":        counts("OK (%d tests, 6 assertions)"),

	"exunit":       counts("Running ExUnit with seed: 0, max_cases: 4\n\n......\nFinished in 0.03 seconds (0.00s async, 0.03s sync)\n%d tests, 0 failures, 1 excluded"),
	"pytest-sugar": counts("Test session starts (platform: linux, Python 3.11, pytest 7.2, pytest-sugar 0.9.7)\n\n test_a.py ✓✓✓    100%% ██████████\n\nResults (0.05s):\n       %d passed"),
	"bun":          counts("bun test v1.1.8 (89f25807)\n\na.test.ts:\n(pass) adds [0.12ms]\n\n %d pass\n 0 fail\n 6 expect() calls\nRan 6 tests across 1 files. [8.00ms]"),
	"deno":         counts("running 6 tests from ./a_test.ts\nadds ... ok (5ms)\n\nok | %d passed | 0 failed (12ms)"),
	"dotnet":       counts("Passed!  - Failed:     0, Passed:     %[1]d, Skipped:     0, Total:     %[1]d, Duration: 5 ms - x.dll (net8.0)"),
	"nextest":      counts("    Starting 6 tests across 1 binary\n        PASS [   0.004s] app tests::a\n------------\n     Summary [   0.006s] %[1]d tests run: %[1]d passed, 0 skipped"),
	"ava":          counts("\n  ✔ adds\n  ─\n\n  %d tests passed"),
	"jasmine":      counts("Randomized with seed 1\nStarted\n......\n\n\n%d specs, 0 failures\nFinished in 0.01 seconds"),
	"playwright":   counts("\nRunning 6 tests using 2 workers\n\n  ✓  1 a.spec.ts:3:5 › adds (5ms)\n\n  %d passed (1.2s)"),
	"catch2":       counts("===============================================================================\nAll tests passed (12 assertions in %d test cases)"),
	"doctest":      counts("[doctest] test cases: %[1]d | %[1]d passed | 0 failed | 0 skipped\n[doctest] assertions: 6 | 6 passed | 0 failed |\n[doctest] Status: SUCCESS!"),
	"pest":         counts("   PASS  Tests\\Unit\\ExampleTest\n  ✓ adds                     0.01s\n\n  Tests:    %d passed (6 assertions)\n  Duration: 0.05s"),
	"sbt":          counts("[info] - should add\n[info] Tests: succeeded %[1]d, failed 0, canceled 0, ignored 0, pending 0\n[info] All tests passed.\n[info] Passed: Total %[1]d, Failed 0, Errors 0, Passed %[1]d"),
	"scalatest":    counts("Run completed in 12 milliseconds.\nTests: succeeded %d, failed 0, canceled 0, ignored 0, pending 0\nAll tests passed."),
	"surefire":     counts("[INFO] Tests run: %[1]d, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.01 s - in AppTest\n[INFO] \n[INFO] Results:\n[INFO] \n[INFO] Tests run: %[1]d, Failures: 0, Errors: 0, Skipped: 0"),
	"ginkgo":       counts("Ran %[1]d of 6 Specs in 0.001 seconds\nSUCCESS! -- %[1]d Passed | 0 Failed | 0 Pending | 0 Skipped\nPASS"),
	"gotestsum":    counts("✓  a (4ms)\n\nDONE %d tests in 0.371s"),
	"cucumber":     counts("......\n\n%[1]d scenarios (%[1]d passed)\n12 steps (12 passed)\n0m00.032s (executing steps: 0m00.002s)"),
	"behave":       counts("1 feature passed, 0 failed, 0 skipped\n%d scenarios passed, 0 failed, 0 skipped\n12 steps passed, 0 failed, 0 skipped, 0 undefined"),
	"dart":         counts("00:00 +0: loading test/a_test.dart\n00:00 +0: adds\n00:01 +%d: All tests passed!"),
	"testthat":     counts("[ FAIL 0 | WARN 0 | SKIP 0 | PASS %d ]"),
	"clojure":      counts("Testing app.core-test\n\nRan %d tests containing 12 assertions.\n0 failures, 0 errors."),
	"bazel":        counts("//a:a_test   (cached) PASSED in 0.3s\n\nExecuted 1 out of %[1]d tests: %[1]d tests pass."),
	"zig":          counts("All %d tests passed."),
	"elm-test":     counts("TEST RUN PASSED\n\nDuration: 10 ms\nPassed:   %d\nFailed:   0"),
	"tasty":        counts("All %d tests passed (0.01s)"),
	"crystal":      counts("Finished in 1.2 milliseconds\n%d examples, 0 failures, 0 errors, 0 pending"),
	"alcotest":     counts("Test Successful in 0.001s. %d tests run."),
	"swift": func(n int) string {
		return "Test Suite 'All tests' started at 2026-11-28\n" + each(n, "Test Case 'AppTests.test%d' passed (0.01 seconds)") + fmt.Sprintf("\t Executed %d tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\n", n)
	},
}

// each returns a line for each test.
func each(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line+"\n", i+1)
	}
	return b.String()
}

func counts(text string) func(n int) string {
	return func(n int) string { return fmt.Sprintf(text+"\n", n) }
}

// TestTestsThatVanishAreNoticed: of six tests, three are left. No other reader takes the output for its own.
func TestTestsThatVanishAreNoticed(t *testing.T) {
	for _, name := range testreport.FormatNames() {
		printed := runners[name]
		require.NotNil(t, printed, "no sample of %s", name)
		for _, n := range []int{6, 3} {
			r := read(printed(n))
			require.Equal(t, name, r.Format, printed(n))
			require.Equal(t, n, r.Passed, printed(n))
			require.Zero(t, r.Failed, printed(n))
		}
	}
}

func TestFurtherRunnersNameWhatFails(t *testing.T) {
	for _, c := range []struct {
		format, out             string
		passed, failed, skipped int
		failing                 []string
	}{
		{"exunit", file(t, "exunit.txt"), 2, 1, 1, []string{"AppTest test bad"}},
		{"catch2", file(t, "catch2.txt"), 2, 1, 0, []string{"c.cpp:5"}},
		{"doctest", file(t, "doctest.txt"), 2, 1, 0, []string{"bad"}},
		{"pytest-sugar", "Results (0.05s):\n       4 passed\n       1 failed\n         - test_a.py:5 test_bad\n       1 skipped\n", 4, 1, 1, []string{"test_a.py test_bad"}},
		{"bun", "a.test.ts:\n(pass) adds [0.12ms]\nerror: no\n(fail) outer > bad [1.20ms]\n(skip) later\n\n 1 pass\n 1 skip\n 1 fail\n 2 expect() calls\nRan 3 tests across 1 files. [8.00ms]\n", 1, 1, 1, []string{"a.test.ts outer > bad"}},
		{"deno", "running 3 tests from ./a_test.ts\nadds ... ok (5ms)\nbad ... FAILED (2ms)\nlater ... ignored (0ms)\n\n ERRORS \n\nbad => ./a_test.ts:5:6\nerror: AssertionError: no\n\n FAILURES \n\nbad => ./a_test.ts:5:6\n\nFAILED | 1 passed | 1 failed | 1 ignored (4ms)\n", 1, 1, 1, []string{"./a_test.ts bad"}},
		{"dotnet", "  Failed App.Tests.Bad [12 ms]\n  Error Message:\n   Assert.Equal() Failure\nFailed!  - Failed:     1, Passed:     4, Skipped:     1, Total:     6, Duration: 5 ms - x.dll (net8.0)\n", 4, 1, 1, []string{"App.Tests.Bad"}},
		{"dotnet", "Test summary: total: 6, failed: 1, succeeded: 4, skipped: 1, duration: 1.2s\n", 4, 1, 1, nil},
		{"dotnet", "  Passed App.Tests.A [< 1 ms]\nTest Run Failed.\nTotal tests: 6\n     Passed: 4\n     Failed: 1\n    Skipped: 1\n Total time: 1.2 Seconds\n", 4, 1, 1, nil},
		{"dotnet", "  Passed App.Tests.A [1 m 2 s]\n  Failed App.Tests.Bad [1 h 2 m]\n  Error Message:\n   no\n\nTest Run Failed.\nTotal tests: 2\n     Passed: 1\n     Failed: 1\n Total time: 1.0 Hours\n", 1, 1, 0, []string{"App.Tests.Bad"}},
		{"nextest", "        PASS [   0.004s] app tests::a\n        FAIL [   0.004s] app tests::bad\n------------\n     Summary [   0.006s] 3 tests run: 1 passed, 1 failed, 1 timed out, 1 skipped\n        FAIL [   0.004s] app tests::bad\n", 1, 2, 1, []string{"app tests::bad"}},
		{"ava", "\n  ✔ adds\n  ✘ [fail]: bad Error thrown in test\n  - later\n  ─\n\n  1 test failed\n  4 tests passed\n  1 test skipped\n", 4, 1, 1, []string{"bad"}},
		{"jasmine", "Started\n.F*\n\nFailures:\n1) Sum bad\n  Message:\n    Expected 1 to equal 2.\n\n6 specs, 1 failure, 1 pending spec\nFinished in 0.01 seconds\n", 4, 1, 1, []string{"Sum bad"}},
		{"playwright", "Running 6 tests using 2 workers\n  ✓  1 a.spec.ts:3:5 › adds (5ms)\n  1) a.spec.ts:7:5 › bad ─────\n\n    Error: no\n\n  1 failed\n    a.spec.ts:7:5 › bad ─────\n  1 skipped\n  4 passed (1.2s)\n", 4, 1, 1, []string{"a.spec.ts bad"}},
		{"catch2", "-------------------------------------------------------------------------------\nbad\n-------------------------------------------------------------------------------\na.cpp:7\n...............................................................................\n\na.cpp:8: FAILED:\n  CHECK( 1 == 2 )\n\n===============================================================================\ntest cases: 6 | 4 passed | 1 failed | 1 skipped\nassertions: 6 | 5 passed | 1 failed\n", 4, 1, 1, []string{"a.cpp:8"}},
		{"pest", "   FAIL  Tests\\Unit\\ExampleTest\n  ✓ adds\n  ⨯ bad\n\n  Tests:    1 failed, 1 skipped, 4 passed (6 assertions)\n", 4, 1, 1, []string{`Tests\Unit\ExampleTest bad`}},
		{"sbt", "[info] - should be bad *** FAILED ***\n[info]   1 did not equal 2 (A.scala:7)\n[error] Failed: Total 6, Failed 1, Errors 0, Passed 4, Ignored 1\n", 4, 1, 1, []string{"should be bad"}},
		{"ginkgo", file(t, "ginkgo.txt"), 4, 0, 4, nil},
		{"go, ginkgo", "Summarizing 1 Failure:\n  [FAIL] b [It] two\n  /app/b/x_test.go:6\n\nRan 2 of 4 Specs in 0.007 seconds\nFAIL! -- 1 Passed | 1 Failed | 1 Pending | 1 Skipped\n--- FAIL: TestX (0.01s)\nFAIL\n", 1, 2, 2, []string{"TestX", "b [It] two"}},
		{"ginkgo", "\x1b[1mRan 2 of 4 Specs in 0.005 seconds\x1b[0m\n\x1b[1mSUCCESS!\x1b[0m -- \x1b[1m2 Passed\x1b[0m | 0 Failed | 1 Flaked | 1 Pending | 1 Skipped\n", 2, 0, 2, nil},
		{"gotestsum", file(t, "gotestsum.txt"), 3, 1, 1, []string{"b TestB"}},
		{"gotestsum", "✖  b\n\n=== Failed\n=== FAIL: b  (0.00s)\nb/b_test.go:2:9: expected ')', found '{'\n\nDONE 4 tests, 1 skipped, 1 failure, 1 error in 0.613s\n", 2, 1, 1, []string{"b"}},
		{"go", "ok  \tex/a\t(cached)\nok  \tex/b\t(cached)\n\nDONE 5 tests, 1 skipped in 0.003s\n", 2, 0, 0, nil},
		{"cucumber", file(t, "cucumber.txt"), 2, 2, 1, []string{"features/a.feature three", "features/a.feature four"}},
		{"behave", "\nFailing scenarios:\n  a.feature:5  bad\n\n0 features passed, 1 failed, 0 skipped\n4 scenarios passed, 1 failed, 1 skipped\n", 4, 1, 1, []string{"a.feature bad"}},
		{"dart", "00:00 +1 -1: bad [E]\n  Expected: <2>\n00:01 +4 ~1 -1: Some tests failed.\n", 4, 1, 1, []string{"bad"}},
		{"testthat", "[ FAIL 1 | WARN 2 | SKIP 1 | PASS 4 ]\n", 4, 1, 1, nil},
		{"clojure", "FAIL in (bad) (core_test.clj:7)\nexpected: (= 1 2)\n\nRan 6 tests containing 6 assertions.\n1 failures, 0 errors.\n", 5, 1, 0, []string{"bad"}},
		{"bazel", "//a:a_test   PASSED in 0.3s\n//a:b_test   FAILED in 0.1s\n\nExecuted 2 out of 2 tests: 1 test passes and 1 fails locally.\n", 1, 1, 0, []string{"//a:b_test"}},
		{"zig", "4 passed; 1 skipped; 1 failed.\n", 4, 1, 1, nil},
		{"elm-test", "TEST RUN FAILED\n\nDuration: 10 ms\nPassed:   4\nFailed:   1\n", 4, 1, 0, nil},
		{"tasty", "1 out of 6 tests failed (0.00s)\n", 5, 1, 0, nil},
		{"crystal", "Failures:\n\n  1) bad\n\n     Expected: 2\n\nFinished in 1.2 milliseconds\n6 examples, 1 failures, 0 errors, 1 pending\n", 4, 1, 1, []string{"bad"}},
		{"alcotest", "1 failure! in 0.001s. 6 tests run.\n", 5, 1, 0, nil},
		{"pytest", ".\r..\r...\r6 passed in 0.1s\r\n", 6, 0, 0, nil},
		{"pytest", strings.Repeat("working\r", 50_000) + "6 passed in 0.1s\n", 6, 0, 0, nil},
		{"tap", "t/a.t .. \nok 1 - a\nok 2 - b\n1..2\nok\nt/b.t .. \n1..1\nok 1 - c\nok\nAll tests successful.\nFiles=2, Tests=3,  0 wallclock secs\nResult: PASS\n", 3, 0, 0, nil},
		{"tap", "1..2\nok\nok\n", 2, 0, 0, nil},
		{"scalatest", "Tests: succeeded 4, failed 1, canceled 0, ignored 1, pending 0\n*** 1 TEST FAILED ***\n", 4, 1, 1, nil},
		{"swift", "\t Executed 2 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\n\t Executed 6 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.1) seconds\n", 4, 1, 1, nil},
		{"swift", "✔ Test run with 6 tests passed after 0.002 seconds.\n", 6, 0, 0, nil},
		{"bun", "6 pass\n0 fail\nRan 6 tests across 1 files. [12.00ms]\n", 6, 0, 0, nil},
		{"surefire", "[ERROR] bad(x.AppTest)  Time elapsed: 0.01 s  <<< FAILURE!\norg.junit.ComparisonFailure: no\n[INFO] \n[INFO] Results:\n[INFO] \n[ERROR] Failures: \n[ERROR]   AppTest.bad:12 no\n[INFO] \n[ERROR] Tests run: 6, Failures: 1, Errors: 0, Skipped: 1\n", 4, 1, 1, []string{"bad(x.AppTest)"}},
		{"swift", "Test Case '-[AppTests.AppTests testA]' passed (0.010 seconds).\nTest Case '-[AppTests.AppTests testBad]' failed (0.010 seconds).\n\t Executed 2 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds\n", 1, 1, 0, []string{"-[AppTests.AppTests testBad]"}},
		{"swift", "◇ Test run started.\n✔ Test adds() passed after 0.001 seconds.\n✘ Test bad() recorded an issue at A.swift:3:5: no\n✘ Test bad() failed after 0.001 seconds with 1 issue.\n✘ Test run with 2 tests failed after 0.002 seconds with 1 issue.\n", 1, 1, 0, []string{"bad()"}},
	} {
		r := read(c.out)
		require.Equal(t, c.format, r.Format, c.out)
		require.Equal(t, []int{c.passed, c.failed, c.skipped}, []int{r.Passed, r.Failed, r.Skipped}, c.out)
		require.Equal(t, c.failing, append([]string(nil), r.IDs()...), c.out)
	}
}

func file(t *testing.T, name string) string { return string(sample(t, name)) }

// TestNoReaderTakesAnothersOutput reads every sample with all readers: one format is found in it.
func TestNoReaderTakesAnothersOutput(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, ".golden") || strings.HasSuffix(name, ".err") {
			continue
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, testreport.Read(b).Format, ", ", name)
	}
}

// TestCTRF reads documents after the specification of CTRF (ctrf.io): pretty and in one line, of 1.0 and before.
func TestCTRF(t *testing.T) {
	const pretty = `{
  "reportFormat": "CTRF",
  "specVersion": "1.0.0",
  "results": {
    "tool": { "name": "example" },
    "summary": { "tests": 5, "passed": 1, "failed": 2, "pending": 1, "skipped": 1, "other": 0 },
    "tests": [
      { "name": "signs in", "status": "passed", "duration": 3, "suite": ["auth", "login"] },
      { "name": "pays", "status": "failed", "duration": 5, "suite": ["shop"], "message": "no route", "trace": "Error: no route\n    at pay.js:3" },
      { "name": "loads", "status": "failed", "duration": 5, "filePath": "a.test.js", "message": "too late" },
      { "name": "later", "status": "pending", "duration": 0 },
      { "name": "never", "status": "skipped", "duration": 0 }
    ]
  }
}
`
	const before = `{"results":{"tool":{"name":"jest"},"summary":{"tests":1},"tests":[{"name":"pays","status":"failed","duration":1,"suite":"shop"}]}}` + "\n"
	const other = `{"results": {"tests": [{"name": "x", "status": "failed"}]}}` + "\n"

	r := read("{ npm said\n{}\n" + pretty + "done\n")
	require.Equal(t, "ctrf", r.Format)
	require.Equal(t, []int{1, 2, 2}, []int{r.Passed, r.Failed, r.Skipped})
	require.Equal(t, []string{"shop pays", "a.test.js loads"}, r.IDs())
	require.Equal(t, "Error: no route\n    at pay.js:3", strings.TrimPrefix(r.Failing[0].Message, "no route\n"))

	require.Equal(t, []string{"shop pays"}, read(before).IDs())
	require.Equal(t, []string{"shop pays", "a.test.js loads"}, read(before+pretty).IDs(), "two files, one after the other")
	for _, none := range []string{other, pretty[:len(pretty)/2], strings.Repeat("{\"results\":{\n", 10_000), "[" + before} {
		r := read(none)
		require.Empty(t, r.Format, none[:10])
		require.Zero(t, r.Failed)
	}
}

// TestGone names the tests that passed before and are not there any more, where both runs name what passes.
func TestGone(t *testing.T) {
	t.Parallel()
	goJSON := func(tests ...string) string {
		text := `{"Action":"pass","Package":"p"}` + "\n"
		for _, name := range tests {
			text += fmt.Sprintf(`{"Action":"pass","Package":"p","Test":%q}`+"\n", name)
		}
		return text
	}
	for _, c := range []struct {
		before, after string
		gone          []string
	}{
		{goJSON("A", "B"), goJSON("A", "B"), nil},
		{goJSON("A", "B"), goJSON("B", "A", "C"), nil},
		{goJSON("A", "B"), goJSON("A", "C"), []string{"p B"}},
		{goJSON("A 0xc01", "B"), goJSON("A 0xc02", "B"), nil}, // only noise differs
		{goJSON("A", "B"), goJSON("A") + `{"Action":"fail","Package":"p","Test":"B"}` + "\n", nil},
		{goJSON("A", "B"), goJSON("A", "C") + "[pawl: 9 bytes left out here]\n", nil},
		{goJSON("A", "B"), "ok 1 - C\nok 2 - D\n1..2\n", nil}, // another format
		{"ok  \tex/a\t0.1s\nok  \tex/b\t0.1s\n", "ok  \tex/a\t0.1s\nok  \tex/c\t0.1s\n", []string{"ex/b"}},
		{
			"  Passed App.A [< 1 ms]\n  Passed App.B [1 m 2 s]\n\nTotal tests: 2\n     Passed: 2\n", // dotnet test --logger "console;verbosity=normal"
			"  Passed App.A [2 ms]\n  Passed App.C [3 ms]\n\nTotal tests: 2\n     Passed: 2\n", []string{"App.B"},
		},
		{"===== 2 passed in 0.05s =====\n", "===== 2 passed in 0.05s =====\n", nil}, // no names
		{"", goJSON("A"), nil},
	} {
		gone := testreport.Gone(testreport.Read([]byte(c.before)), testreport.Read([]byte(c.after)))
		require.ElementsMatch(t, c.gone, gone, "%s\nthen\n%s", c.before, c.after)
	}
}

// TestJestAndMochaNameTheirTests: where the output names passing tests, those that vanish are named, with their suites.
func TestJestAndMochaNameTheirTests(t *testing.T) {
	before := file(t, "jestv.txt")
	r := read(before)
	require.Equal(t, "jest", r.Format)
	require.Equal(t, []int{10, 2, 3}, []int{r.Passed, r.Failed, r.Skipped})
	require.Equal(t, []string{"t/c.test.js outer › bad", "t/d.test.js Test suite failed to run"}, r.IDs())

	const passing = "PASS t/a.test.js\n  ✓ top (1 ms)\n  outer\n    ✓ ok (1 ms)\n    ○ skipped later\n    inner\n      ✓ deep (12 ms)\n      ✓ %s\n  other\n    ✓ ok\n\nPASS t/b.test.js\n  ✓ bee (2 ms)\n%s\nTests:       1 skipped, %d passed, 9 total\n"
	one := read(fmt.Sprintf(passing, "slow (3 ms)", "", 6))
	require.Empty(t, testreport.Gone(one, read(fmt.Sprintf(passing, "slow (171 ms)", "  ✓ cee\n", 7))))
	require.Equal(t, []string{"t/a.test.js outer › inner › slow"}, testreport.Gone(one, read(fmt.Sprintf(passing, "quick", "  ✓ cee\n", 7))))

	plain := read("PASS t/a.test.js\nPASS t/b.test.js\n\nTests:       6 passed, 6 total\n")
	require.Empty(t, testreport.Gone(one, plain), "plain jest names only files")
	require.Empty(t, testreport.Gone(plain, one))

	const quoted = "FAIL t/a.test.js\n  ✓ ok\n  ✕ lists (3 ms)\n\n  ● lists\n\n    it printed\n      ✓ not a test\n\n      at x (t/a.test.js:1:1)\n\nTests:       1 failed, 1 passed, 2 total\n"
	require.Contains(t, read(quoted).Failing[0].Message, "✓ not a test")

	spec := file(t, "mochaspec.txt")
	r = read(spec)
	require.Equal(t, "mocha", r.Format)
	require.Equal(t, []int{4, 0, 1}, []int{r.Passed, r.Failed, r.Skipped})
	renamed := strings.Replace(strings.Replace(spec, "deep", "shallow", 1), "slow (", "slow (9", 1)
	require.Equal(t, []string{"outer > inner > deep"}, testreport.Gone(r, read(renamed)))
	require.Empty(t, testreport.Gone(r, read(strings.Replace(spec, "✔", "✓", -1))), "older ones print another mark")
	require.Empty(t, testreport.Gone(r, read("  ․․․․\n\n  4 passing (9ms)\n  1 pending\n")), "the dots name none")

	failing := read(file(t, "mocha.txt"))
	fixed := read("  outer\n    ✔ ok\n    ✔ bad\n    - later\n    inner\n      1) throws\n\n  2 passing (8ms)\n  1 pending\n  1 failing\n\n  1) outer\n       inner\n         throws:\n     Error: boom\n")
	require.Equal(t, []string{"outer > bad"}, testreport.Compare(failing, fixed).Fixed)

	const two = "> a@1.0.0 test\n> mocha\n\n  one\n    1) bad\n\n  0 passing (1ms)\n  1 failing\n\n  1) one\n       bad:\n     Error: x\n\n> b@1.0.0 test\n> mocha\n\n  two\n    ✔ good\n\n  1 passing (1ms)\n"
	next := strings.Replace(two, "✔ good", "✔ better", 1)
	require.Equal(t, []string{"two > good"}, testreport.Gone(read(two), read(next)), "one after the other, as npm runs the packages of a workspace")
}

// TestJestJSON reads what `jest --json --outputFile` writes: the same tests, by the same names, as jest prints.
func TestJestJSON(t *testing.T) {
	text, whole := read(file(t, "jestv.txt")), read(file(t, "jest.json"))
	require.Equal(t, "jest-json", whole.Format)
	require.Equal(t, []int{text.Passed, text.Failed, text.Skipped}, []int{whole.Passed, whole.Failed, whole.Skipped})
	require.ElementsMatch(t, text.IDs(), whole.IDs())
	require.True(t, whole.Broken)
	require.Empty(t, testreport.Compare(text, whole).New)

	document := func(name, title string) string {
		return `{"numFailedTestSuites":0,"numPassedTests":1,"testResults":[{"name":"` + name + `","status":"passed","assertionResults":[{"ancestorTitles":["s"],"title":"` + title + `","status":"passed"}]}]}` + "\n"
	}
	require.Equal(t, []string{"a.test.js s › x"}, testreport.Gone(read(document("a.test.js", "x")), read(document("a.test.js", "y"))))
	require.Empty(t, testreport.Gone(read(document("/judge/1/a.test.js", "x")), read(document("/judge/2/a.test.js", "x"))))
	require.Equal(t, 2, read("npm said\n"+document("a.js", "x")+"\n"+document("b.js", "x")).Passed)
	require.Empty(t, read(`{"numFailedTestSuites":0,"testRes`+"\n").Format, "cut off")
	require.Equal(t, 1, read(document("a.js", "x")+"\nTests:       2 failed, 2 total\n").Passed)
	require.Equal(t, 2, read(document("a.js", "x")+"\nTests:       2 failed, 2 total\n").Failed, "another run of the same command")
}
