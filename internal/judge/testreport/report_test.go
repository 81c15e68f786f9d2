package testreport_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/testreport"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

// TestReadUnderstandsWhatRunnersPrint reads the output of the real programs for tests that fail on purpose: go 1.26,
// node 20, Perl 5, tape, Python 3.11, pytest 7.2, cargo 1.95, mocha, jest, vitest and uvu of 2026, automake 1.16, ctest
// 3.25, meson 1.0, busted 2.1, RSpec 3.12, Minitest 5.15, PHPUnit 9.6,
// test-unit 3.5, JUnit 4.13, the console of JUnit's platform 1.9, shunit2 of 2021, and the harness of jsmn.
func TestReadUnderstandsWhatRunnersPrint(t *testing.T) {
	goTests := []string{"ex/a TestBad", "ex/a TestSub/x/y", "ex/b", "ex/c TestPanics"}
	goText := []string{"ex/a TestBad", "ex/a TestSub/x/y", "ex/c TestPanics", "ex/b"}
	unit := []string{"test_x.T test_err", "test_x.T test_bad", "test_x.T test_sub (i=0)", "test_x.T test_sub (i=2)"}
	pytest := []string{
		"test_x.py T::test_bad", "test_x.py T::test_err", "test_x.py T::test_sub", "test_y.py test_bad", "test_y.py TestC::test_m",
		"test_y.py test_p[x y]", "test_y.py test_e",
	}
	pytestV := append([]string{}, pytest...)
	pytestV[5], pytestV[6] = pytest[6], pytest[5]
	for _, c := range []struct {
		files                   []string
		format                  string
		passed, failed, skipped int
		broken                  bool
		failing                 []string
		says                    string // a text in the message of the first failing test
	}{
		{[]string{"prove.txt", "prove.txt.err"}, "prove", 3, 4, 1, true, []string{"t/a.t two is three", "t/a.t at t/a.t line 1", "t/a.t sub", "t/c.t"}, "expected: '3'"},
		{[]string{"provetodo.txt", "provetodo.txt.err"}, "prove", 6, 1, 0, false, []string{"t/bad.t two is three"}, "expected: '3'"}, // tests that pass too early are in the summary, too
		{[]string{"ctest.txt"}, "ctest", 1, 5, 1, false, []string{"bad.one", "with", "slow", "gone", "crash"}, "a.c:5: expected 2 got 3"},
		{[]string{"meson.txt"}, "meson", 2, 3, 1, false, []string{"x:net / bad one", "x / xp", "x / slow"}, "build/a 1"},
		{[]string{"busted.txt"}, "busted", 1, 2, 1, false, []string{"spec/a_spec.lua sum fails", "spec/a_spec.lua sum raises"}, "Expected objects to be equal"},
		{[]string{"gtest.txt"}, "gtest", 1, 2, 1, false, []string{"spec/a_spec.lua sum fails", "spec/a_spec.lua sum raises"}, "Expected objects to be equal"},
		{[]string{"rspec.txt"}, "rspec", 1, 3, 1, false, []string{"Sum fails", "Sum raises", "Sum when deep fails too"}, "expected: 3"},
		{[]string{"minitest.txt"}, "minitest", 1, 2, 1, false, []string{"SumTest test_bad", "SumTest test_err"}, "Expected: 2"},
		{[]string{"phpunit.txt"}, "phpunit", 2, 3, 1, false, []string{`Foo\SumTest testErr`, `Foo\SumTest testBad`, `Foo\SumTest testData with data set #1 ('three')`}, "RuntimeException: boom"},
		{[]string{"testunit.txt"}, "test-unit", 1, 3, 2, false, []string{"SumTest test_bad", "SumTest test_data[three]", "SumTest test_err"}, "<3> expected but was"},
		{[]string{"junit4.txt"}, "junit4", 1, 2, 0, false, []string{"CalendarTest parses", "CalendarTest addsMonths"}, `For input string: "x"`},
		{[]string{"junit-platform.txt"}, "junit-platform", 2, 2, 1, false, []string{"RangeTest:contains(int):[2] 2", "RangeTest:ends()"}, "expected: <1> but was: <2>"},
		{[]string{"shunit2.txt", "shunit2.txt.err"}, "shunit2", 2, 2, 0, false, []string{"testSubtracts", "testDivides"}, "three less one expected:<1> but was:<2>"},
		{[]string{"go.json"}, "go-json", 3, 4, 1, true, goTests, "got 1, want 2"},
		{[]string{"go.txt", "go.txt.err"}, "go", 0, 4, 0, true, goText, "got 1, want 2"},
		{[]string{"gov.txt"}, "go", 3, 4, 1, true, goText, "got 1, want 2"},
		{[]string{"node.tap"}, "tap", 2, 2, 2, false, []string{"bad", "suite > inner bad"}, "error: '1 == 2'"},
		{[]string{"perl.tap", "perl.tap.err"}, "tap", 2, 2, 1, false, []string{"two", "grp > out"}, "expected: '2'"},
		{[]string{"tape.tap"}, "tap", 1, 2, 0, false, []string{"math > should be two", "throws > should be deeply equivalent"}, "operator: equal"},
		{[]string{"node.junit.xml"}, "junit", 2, 2, 2, false, []string{"test bad", "test inner bad"}, "1 == 2"},
		{[]string{"pytest.junit.xml"}, "junit", 2, 4, 2, false, []string{"test_y test_bad", "test_y.TestC test_m", "test_y test_e", "test_y test_p[x y]"}, "maps differ"},
		{[]string{"pytest.txt"}, "pytest", 3, 7, 3, false, pytest, "1 != 2"},
		{[]string{"pytestv.txt"}, "pytest", 3, 7, 3, false, pytestV, "1 != 2"},
		{[]string{"pytestq.txt"}, "pytest", 2, 4, 2, false, pytest[3:], "maps differ"},
		{[]string{"unittest.txt"}, "unittest", 1, 4, 1, false, unit, "boom"},
		{[]string{"unittestv.txt"}, "unittest", 1, 4, 1, false, unit, "boom"},
		{[]string{"cargo.txt"}, "cargo", 1, 2, 1, false, []string{"src/lib.rs tests::panics", "src/lib.rs tests::bad"}, "did not panic"},
		{[]string{"jsmn.txt"}, "tally", 13, 4, 0, false, []string{"test in docker", "test partial JSON string parsing", "test issue #27", "test for unmatched brackets"}, "at line 340"},
		{[]string{"automake.txt"}, "automake", 3, 3, 1, false, []string{"tests bad.sh", "tests surprise.sh", "tests broken.sh"}, "FAIL: bad.sh"},
		{[]string{"mocha.txt"}, "mocha", 1, 2, 1, false, []string{"outer > bad", "outer > inner > throws"}, "1 == 2"},
		{[]string{"node.spec"}, "node", 2, 2, 2, false, []string{"bad", "suite > inner bad"}, "1 == 2"},
		{[]string{"jest.txt"}, "jest", 1, 4, 1, true, []string{"a.test.js outer › bad", "a.test.js outer › inner › throws", "b.test.js syntax", "c.test.js Test suite failed to run"}, "Received:"},
		{[]string{"uvu.txt"}, "uvu", 33, 3, 1, false, []string{"x.js math > adds > one and one", "x.js math > adds > throws", `x.js "quoted" name`}, "they are three"},
		{[]string{"vitest.txt"}, "vitest", 1, 2, 1, false, []string{"v/v.test.ts outer > bad", "v/v.test.ts outer > inner > throws"}, "expected 1 to be 2"},
		{[]string{"vitestp.txt", "vitestp.txt.err"}, "vitest", 1, 2, 0, false, []string{"test/sum.test.js sum", "test/sum.test.js twice"}, "expected -1 to be 3"}, // printed into pipes: the names come after the counts
	} {
		t.Run(strings.Join(c.files, "+"), func(t *testing.T) {
			var outputs [][]byte
			for _, f := range c.files {
				outputs = append(outputs, sample(t, f))
			}
			r := testreport.Read(outputs...)
			require.Equal(t, c.format, r.Format)
			require.Equal(t, c.failing, r.IDs())
			require.Equal(t, []int{c.passed, c.failed, c.skipped}, []int{r.Passed, r.Failed, r.Skipped}, "passed, failed, skipped")
			require.Equal(t, c.broken, r.Broken)
			require.Contains(t, r.Failing[0].Message, c.says)
			require.Empty(t, r.Tail)
			for _, test := range r.Failing {
				require.NotEmpty(t, test.Message, test.ID())
			}
		})
	}
}

// TestWhatFailingTestsOfTheSamplesSay has name, file and message of each; of a long message the first and the last lines.
func TestWhatFailingTestsOfTheSamplesSay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	require.NoError(t, err)
	var b strings.Builder
	for _, file := range files {
		if name := filepath.Base(file); !strings.HasSuffix(name, ".err") && !strings.HasSuffix(name, ".golden") {
			outputs := [][]byte{sample(t, name)}
			if slices.Contains(files, file+".err") {
				outputs = append(outputs, sample(t, name+".err"))
			}
			fmt.Fprintf(&b, "== %s\n", name)
			for _, test := range testreport.Read(outputs...).Failing {
				lines := strings.Split(test.Message, "\n")
				if len(lines) > 9 {
					lines = slices.Concat(lines[:4], []string{fmt.Sprintf("(%d lines, %d bytes)", len(lines), len(test.Message))}, lines[len(lines)-4:])
				}
				fmt.Fprintf(&b, "-- %s (%s)\n%s\n", test.ID(), test.File, strings.Join(lines, "\n"))
			}
		}
	}
	const golden = "testdata/failing.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	require.Equal(t, string(sample(t, filepath.Base(golden))), b.String())
}

func TestPassesAreCountedWithoutNames(t *testing.T) {
	for out, passed := range map[string]int{
		"running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n":                            3,
		"running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n": 2,
		"ok  \tex/a\t0.1s\nok  \tex/b\t0.1s [no tests to run]\n?   \tex/c\t[no test files]\n":                                                              1,
	} {
		require.Equal(t, passed, testreport.Read([]byte(out)).Passed, out)
	}
}

func TestReadOfSmallOutputs(t *testing.T) {
	for _, c := range []struct {
		name, out string
		format    string
		failed    int
		failing   []string
		broken    bool
	}{
		{"nothing", "", "", 0, nil, false},
		{"something else", "make: *** [all] Error 2\n", "", 0, nil, false},
		{"TAP 12 without a version", "1..3\nok 1\nnot ok 2 - two\n#   Failed test 'two'\nok 3 # skip no network\n", "tap", 1, []string{"two"}, false},
		{"TAP with a todo", "TAP version 14\n1..2\nnot ok 1 - later # TODO\nok 2 - x\n", "tap", 0, nil, false},
		{"TAP whose plan is not kept", "1..3\nok 1 - a\n", "tap", 1, []string{"(plan)"}, true},
		{"TAP that bails out", "1..3\nok 1 - a\nBail out! no database\n", "tap", 2, []string{"Bail out!", "(plan)"}, true},
		{"TAP with subtests as Perl writes them", "    # Subtest: foo\n    ok 1 - in\n    not ok 2 - out\n    1..2\nnot ok 1 - foo\n1..1\n", "tap", 1, []string{"foo > out"}, false},
		{"TAP with an escaped hash", "ok 1 - a\nnot ok 2 - issue \\#7 # time=12ms\n1..2\n", "tap", 1, []string{"issue #7"}, false},
		{"go test ok is not TAP", "ok  \tex/a\t0.1s\n", "go", 0, nil, false},
		{"a cached package", "ok  \tex/a\t(cached)\nFAIL\tex/b\t0.1s\n", "go", 1, []string{"ex/b"}, false},
		{"a timeout without a verdict", "panic: test timed out after 1s\nrunning tests:\n\tTestX (1s)\nFAIL\tex/b\t1.0s\n", "go", 1, []string{"ex/b"}, false},
		{"json whose test never ended", `{"Action":"run","Package":"p","Test":"T"}` + "\n" + `{"Action":"fail","Package":"p"}`, "go-json", 1, []string{"p T"}, true},
		{"json that breaks off", `{"Action":"run","Package":"p","Test":"T"}` + "\n" + `{"Action":"out`, "go-json", 1, []string{"p T"}, true},
		{"json with a part left out", `{"Action":"run","Package":"p","Test":"T"}` + "\n[pawl: 7 bytes left out here]\nx\"}\n" + `{"Action":"pass","Package":"p","Test":"U"}`, "go-json", 0, nil, false},
		{"XML in other output", "building\n<testsuite name='s'><testcase name='a'/><testcase name='b' classname='c'><error message='x'/></testcase></testsuite>\ndone", "junit", 1, []string{"c b"}, false},
		{"half an XML", "<testsuites><testsuite><testcase name='a'><failure>no</failure></testcase><testcase name='b'><fail", "junit", 1, []string{"a"}, false},
		{"XML with what no XML may have", "<testsuite><testcase name='a\x01\xff'><failure><![CDATA[x ]] > \x00 <b>]]></failure></testcase></testsuite>", "junit", 1, []string{"a ?"}, false},
		{"a pytest file that can't be loaded", "=== short test summary info ===\nERROR test_z.py - ImportError: no\n=== 1 error in 0.10s ===\n", "pytest", 1, []string{"test_z.py"}, true},
		{"a unittest module that can't be loaded", strings.Repeat("=", 70) + "\nERROR: test_z (unittest.loader._FailedTest.test_z)\n" + strings.Repeat("-", 70) + "\nImportError: no\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n", "unittest", 1, []string{"unittest.loader._FailedTest test_z"}, true},
		{"a cargo that only counts", "running 2 tests\n.F\nfailures:\n\n---- a stdout ----\nboom\n\n\nfailures:\n    a\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", "cargo", 1, []string{"a"}, false},
		{"a cargo without names", "running 3 tests\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", "cargo", 2, nil, false},
		{"cargo that can't build", "error[E0425]: cannot find value `x`\n --> src/lib.rs:2:5\n\nerror: could not compile `a` (lib) due to 1 previous error\n", "cargo", 1, []string{"(build)"}, true},
		{"the same name in two targets of cargo", "     Running unittests src/lib.rs (target/debug/deps/a-1)\ntest t ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;\n     Running tests/it.rs (target/debug/deps/it-1)\ntest t ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored;\n", "cargo", 1, []string{"src/lib.rs t"}, false},
		{"a node that counts more than it names", "✖ a (1ms)\nℹ tests 3\nℹ pass 0\nℹ fail 1\nℹ cancelled 2\n", "node", 3, []string{"a"}, false},
		{"a mocha that counts more than it names", "\n  1 passing (3ms)\n  2 failing\n\n  1) a:\n     Error\n", "mocha", 2, []string{"a"}, false},
		{"a pytest without names", "=== FAILURES ===\n____ test_q ____\nE  x\n1 failed, 2 passed in 0.10s\n", "pytest", 1, []string{"test_q"}, false},
		{"pytest with a dash in a parameter", "=== short test summary info ===\nFAILED a.py::t[x - y] - boom - bang\n1 failed in 0.1s\n", "pytest", 1, []string{"a.py t[x - y]"}, false},
		{"rust that does not compile", "error[E0308]: mismatched types\n --> src/lib.rs:3:5\n  |\n\nerror: could not compile `rs` (lib test) due to 1 previous error\n", "cargo", 1, []string{"(build)"}, true},
		{"cargo test --quiet", "\nrunning 3 tests\n.F.\nfailures:\n\n---- tests::bad stdout ----\n\nthread 'tests::bad' panicked at src/lib.rs:9:9:\nno\n\n\nfailures:\n    tests::bad\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nerror: test failed, to rerun pass `--lib`\n", "cargo", 1, []string{"tests::bad"}, false},
		{"cargo test --quiet, whose failure says nothing", "running 1 test\ntests::bad --- FAILED\n\nfailures:\n\nfailures:\n    tests::bad\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", "cargo", 1, []string{"tests::bad"}, false},
		{"what passing tests say to cargo", "running 2 tests\n..\nsuccesses:\n\n---- tests::a stdout ----\nhello\n\n\nsuccesses:\n    tests::a\n    tests::b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", "cargo", 0, nil, false},
		{"a TAP that is content beside a runner that is not", "TAP version 13\nok 1 - a\n1..1\n FAIL  v.test.ts > outer > bad\nAssertionError: expected 1 to be 2\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n", "tap, vitest", 1, []string{"v.test.ts outer > bad"}, false},
		{"node:test inside of vitest", "TAP version 13\nnot ok 1 - inner\n1..1\n FAIL  v.test.ts > outer > bad\nAssertionError: expected 1 to be 2\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n", "tap, vitest", 2, []string{"inner", "v.test.ts outer > bad"}, false},
		{"two runners in one command", "--- FAIL: TestA (0.00s)\n    a_test.go:1: x\nFAIL\nFAIL\tex\t0.1s\n=== short test summary info ===\nFAILED a.py::t - boom\n1 failed in 0.1s\n", "go, pytest", 2, []string{"ex TestA", "a.py t"}, false},
		{"node that says why only at the end", "▶ s\n  ✖ a (1ms)\n▶ s (2ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.js:1:1\n✖ a (1ms)\n  Error: x\n", "node", 1, []string{"s > a"}, false},
		{"only a count", "Tests: 2 failed, 3 passed, 5 total\n", "jest", 2, nil, false},
		{"a file that vitest can't load", " FAIL  a.test.ts [ a.test.ts ]\nError: no\n\n      Tests  no tests\n", "vitest", 1, []string{"a.test.ts"}, true},
		{"a file that jest can't load", "FAIL ./a.test.js\n  ● Test suite failed to run\n\n    no\n\nTests: 0 total\n", "jest", 1, []string{"a.test.js Test suite failed to run"}, true},
		{"no test of uvu passes", " FAIL  \"a\"\n no\n\n  Total:     2\n  Passed:    0\n  Skipped:   1\n", "uvu", 2, []string{"a"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testreport.Read([]byte(c.out))
			require.Equal(t, c.format, r.Format)
			require.Equal(t, c.failed, r.Failed)
			require.ElementsMatch(t, c.failing, r.IDs())
			require.Equal(t, c.broken, r.Broken)
			if c.failed == 0 {
				require.Equal(t, strings.TrimSpace(c.out), strings.ReplaceAll(r.Tail, "\r", ""))
			}
		})
	}
}

func read(out string) testreport.Report { return testreport.Read([]byte(out)) }

func tap(lines ...string) string {
	return fmt.Sprintf("1..%d\n%s\n", len(lines), strings.Join(lines, "\n"))
}

func TestATAPPlanThatIsNotKeptIsSaidInNumbers(t *testing.T) {
	for out, want := range map[string]string{
		"TAP version 13\n1..1\nBail out!\n": "1 test planned, 0 run", "1..3\nok 1 - a\n": "3 tests planned, 1 run",
	} {
		require.Contains(t, fmt.Sprint(read(out).Failing), want)
	}
}

func TestCompareTellsNewFailuresFromOldOnes(t *testing.T) {
	before := read(tap("ok 1 - a", "not ok 2 - b", "not ok 3 - c", "not ok 4 - d"))
	after := read(tap("not ok 1 - a", "ok 2 - b", "not ok 3 - c"))
	stored, err := json.Marshal(before)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(stored, &before), "the earlier report may come from JSON")
	require.Equal(t, testreport.Change{
		Failing: []string{"a", "c"}, New: []string{"a"}, Fixed: []string{"b"}, Still: []string{"c"},
	}, testreport.Compare(before, after))
	require.True(t, testreport.Compare(after, before).Worse, "more tests fail than before")

	t.Run("a test that was removed is not fixed", func(t *testing.T) {
		require.Empty(t, testreport.Compare(read(tap("not ok 1 - b")), read(tap("ok 1 - other"))).Fixed)
	})
	t.Run("a build that breaks is worse although fewer tests fail", func(t *testing.T) {
		many := read("--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\tex\t0.1s\n")
		broken := read("FAIL\tex [build failed]\n")
		c := testreport.Compare(many, broken)
		require.True(t, c.Worse)
		require.Empty(t, c.Fixed)
		require.Equal(t, []string{"ex"}, testreport.Compare(broken, many).Fixed, "it builds again")
	})
	t.Run("a package that passes as a whole fixes its tests", func(t *testing.T) {
		require.Equal(t, []string{"ex TestA"}, testreport.Compare(read("--- FAIL: TestA (0.00s)\nFAIL\tex\t0.1s\n"), read("ok  \tex\t0.1s\n")).Fixed)
	})
	t.Run("output that says nothing fixes nothing", func(t *testing.T) {
		require.Empty(t, testreport.Compare(read(tap("not ok 1 - b")), read("")).Fixed)
	})
}

func TestATestThatFailsAndThenPassesIsFixed(t *testing.T) {
	first := read(tap("not ok 1 - a", "not ok 2 - b", "not ok 3 - c"))
	require.Equal(t, []string{"a"}, testreport.Compare(first, read(tap("ok 1 - a", "not ok 2 - b"))).Fixed)
	require.Empty(t, testreport.Compare(first, first).Fixed)
	require.Empty(t, testreport.Compare(first, read("Killed")).Fixed)
}

func TestSignatureIsTheSameForTheSameFailure(t *testing.T) {
	failure := func(message string, ms int) string {
		return testreport.Signature(read(fmt.Sprintf("--- FAIL: TestA (%d.00s)\n%s\nFAIL\tex\t0.%ds\n", ms, message, ms)))
	}
	same := [][2]string{
		{"    a_test.go:12: got 1", "    a_test.go:19: got 1"},
		{"panic at 0xc000123", "panic at 0xdeadbeef"},
		{"open /tmp/TestA123/001/x: no such file", "open /tmp/TestA987/001/x: no such file"},
		{"timeout after 1.203s", "timeout after 1.9s"},
		{"goroutine 8 [running]:", "goroutine 17 [running]:"},
		{"dial 127.0.0.1:4711: refused", "dial 127.0.0.1:4712: refused"},
		{"2026-11-21T02:40:08.68Z failed", "2026-11-22 03:41:09.01Z failed"},
		{"id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"},
		{`File "/home/x/test_x.py", line 5, in t`, `File "/home/x/test_x.py", line 7, in t`},
		{"at Object.equal (a.test.js:2:70)", "at Object.equal (a.test.js:3:1)"},
		{"thread 'tests::bad' (20007) panicked at src/lib.rs:4:20:", "thread 'tests::bad' (3) panicked at src/lib.rs:5:2:"},
	}
	for _, pair := range same {
		require.Equal(t, failure(pair[0], 1), failure(pair[1], 2), pair[0])
	}
	require.NotEqual(t, failure("got 1, want 2", 1), failure("got 3, want 2", 1), "another value is another failure")
	require.NotEqual(t, failure("got 1", 1), testreport.Signature(read(tap("not ok 1 - TestA"))))
	require.Equal(t, testreport.Signature(read(tap("not ok 1 - a", "not ok 2 - b"))), testreport.Signature(read(tap("not ok 1 - b", "not ok 2 - a"))), "order does not matter")
	require.Equal(t, testreport.Signature(read("make: *** died at 0x12\n")), testreport.Signature(read("make: *** died at 0x13\n")))
	require.NotEqual(t, testreport.Signature(read("make: *** one\n")), testreport.Signature(read("make: *** two\n")))
	require.Empty(t, testreport.Signature(read("")))
}

func TestDigestNamesTheFailingTestsFirst(t *testing.T) {
	out := sample(t, "go.json")
	r := testreport.Read(out)
	d := testreport.Digest(r, 8<<10, out, []byte("exit status 1\n"))
	order := []string{"4 failed, 3 passed, 1 skipped", "- ex/a TestBad (a_test.go)", "- ex/c TestPanics", "\nex/a TestBad:\n", "got 1, want 2", "\nex/b:\n", "undefined: undefined", "The output ends with:\nexit status 1"}
	at := 0
	for _, want := range order {
		i := strings.Index(d[at:], want)
		require.GreaterOrEqual(t, i, 0, "%q after byte %d of\n%s", want, at, d)
		at += i
	}
	require.NotContains(t, d, `"Action"`)

	t.Run("many tests leave room for the first message", func(t *testing.T) {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, "not ok %d - test %d ü\n  ---\n  error: 'message %d %s'\n  ...\n", i, i, i, strings.Repeat("ä", 1000))
		}
		d := testreport.Digest(read(b.String()), 4000)
		require.LessOrEqual(t, len(d), 4000)
		require.Contains(t, d, "5000 failed")
		require.Contains(t, d, "more\n")
		require.Contains(t, d, "\ntest 0 ü:\n")
		require.Contains(t, d, "message 0")
	})
	t.Run("what is said of each test, and of what is missing", func(t *testing.T) {
		r := testreport.Report{Format: "tap", Failed: 4, Passed: 1, Broken: true, Partial: true, Failing: []testreport.Test{
			{Name: "a", File: "a.js", Message: "boom"}, {Package: "b.js", Name: "x", File: "b.js", Message: "boom"}, {Name: "c"},
		}}
		require.Equal(t, `4 failed, 1 passed, 0 skipped (tap); something could not be built, loaded or finished, so tests are missing; a part of the output was left out

- a (a.js)
- b.js x
- c
… and 1 more

a:
boom

b.js x:
as a

The output ends with:
out
err`, testreport.Digest(r, 1000, []byte("out\n"), []byte("err\n")))
	})
	t.Run("what is not understood is shown by its end", func(t *testing.T) {
		d := testreport.Digest(read("boom\n"), 1000, []byte("a.c:3: error: no such type\n"+strings.Repeat("noise\n", 10000)+"boom\n"))
		require.Contains(t, d, "no test results were recognised")
		require.Contains(t, d, "\nThe output begins with:\na.c:3: error: no such type\nnoise\n")
		require.NotContains(t, testreport.Digest(read("boom\n"), 1000, []byte("boom\n")), "begins with", "it is all there")
		require.Equal(t, "The test command failed and printed nothing.", testreport.Digest(read(""), 1000, nil, []byte(" \n")))
		require.True(t, strings.HasSuffix(d, "\nboom"), d)
	})
	t.Run("it is never longer than it may be, and always valid", func(t *testing.T) {
		for limit := range 600 {
			d := testreport.Digest(r, limit, out, []byte("\xff\xfeä"))
			require.LessOrEqual(t, len(d), limit)
			require.True(t, utf8.ValidString(d))
		}
	})
}

// TestWhatEntersHistoryIsShort checks that Short limits a copy of the lists.
func TestWhatEntersHistoryIsShort(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "not ok %d - test %d\n# %s\n", i, i, strings.Repeat("ä", 1000))
	}
	r := read(b.String())
	c := testreport.Compare(read(""), r)
	require.Equal(t, []string{"test 0", "test 1", "test 2"}, c.Short(3).New)
	require.Len(t, c.New, 500)
}

// TestMessagesAreBounded has a test that prints without end.
func TestMessagesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("=== RUN   TestA\nfirst words\n")
	for range 100_000 {
		b.WriteString("more and more words\n")
	}
	b.WriteString("last words\n--- FAIL: TestA (0.00s)\nFAIL\tex\t0.1s\n")
	m := read(b.String()).Failing[0].Message
	require.Less(t, len(m), 4<<10)
	require.Contains(t, m, "first words")
	require.Contains(t, m, "last words")
}

// A report of TAP may have more points than are kept until it is known of which test they are parts.
func TestTheLastOfVeryManyPointsHasItsMessage(t *testing.T) {
	r := read(strings.Repeat("ok 1 - a\n", 10_000) + "not ok 2 - b\n# boom\n")
	require.Equal(t, []testreport.Test{{Name: "b", Message: "boom"}}, r.Failing)
}

// TestMemoryDoesNotGrowWithTheOutput reads a lot of everything that could be held in memory. 100 MB of each leave no
// more in memory than this.
func TestMemoryDoesNotGrowWithTheOutput(t *testing.T) {
	const size = 2 << 20
	fill := func(start, again, end string) []byte {
		b := bytes.NewBuffer(make([]byte, 0, size+1<<20))
		b.WriteString(start)
		for b.Len() < size {
			b.WriteString(again)
		}
		b.WriteString(end)
		return b.Bytes()
	}
	for name, output := range map[string]func() []byte{
		"noise":    func() []byte { return fill("", "some words of a build that says much\n", "") },
		"one line": func() []byte { return fill("", "xxxxxxxxxxxxxxxx", "") },
		"json": func() []byte {
			return fill("", `{"Action":"output","Package":"p","Test":"T","Output":"words\n"}`+"\n", "")
		},
		"xml text": func() []byte {
			return fill("<testsuite><testcase name='a'><failure>", "words &lt; ", "</failure></testcase></testsuite>")
		},
		"xml nested": func() []byte { return fill("<testsuite>", "<a>", "") },
		"xml tag":    func() []byte { return fill("<testsuite><testcase ", "a='b' ", "/>") },
		"tap":        func() []byte { return fill("TAP version 14\n", "        not ok 1 - deep\n", "") },
	} {
		t.Run(name, func(t *testing.T) {
			out := output()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			r := testreport.Read(out)
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(r)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(size), "what stays in memory")
			require.Less(t, len(r.Failing), testreport.MaxTests+1)
		})
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	require.NoError(f, err)
	for _, name := range files {
		if st, err := os.Stat(name); err == nil && !st.IsDir() {
			f.Add(sample(f, filepath.Base(name)), 500)
		}
	}
	f.Add([]byte("    not ok\n  ---\n1..9\nok 1 # TODO"), 10)
	f.Fuzz(func(t *testing.T, out []byte, limit int) {
		r := testreport.Read(out)
		require.LessOrEqual(t, len(r.Failing), testreport.MaxTests)
		require.LessOrEqual(t, len(r.Failing), r.Failed)
		for _, test := range r.Failing {
			require.True(t, utf8.ValidString(test.Message) && utf8.ValidString(test.ID()) && utf8.ValidString(test.File))
			require.LessOrEqual(t, len(test.Message), 8<<10)
			require.LessOrEqual(t, len(test.ID()), 700)
		}
		require.LessOrEqual(t, len(r.Tail), 2<<10)
		limit %= 4096
		require.LessOrEqual(t, len(testreport.Digest(r, limit, out)), max(limit, 0))
		require.True(t, utf8.ValidString(testreport.Digest(r, limit, out)))
		require.Equal(t, testreport.Signature(r), testreport.Signature(testreport.Read(out)))
		c := testreport.Compare(r, r)
		require.Empty(t, c.New)
		require.Empty(t, c.Fixed)
		require.Equal(t, len(r.Failing), len(c.Still))
	})
}

// TestDigestHasTheEndOfALongMessage: Python's error comes last, after a traceback through its own library.
func TestDigestHasTheEndOfALongMessage(t *testing.T) {
	const trace = "/usr/lib/python3.11/importlib/__init__.py:126: in import_module\n    return _bootstrap._gcd_import(name[level:], package, level)\n"
	var r testreport.Report
	for i := range 4 {
		r.Failing = append(r.Failing, testreport.Test{Package: fmt.Sprintf("tests/test_%d.py", i), Message: fmt.Sprintf("ImportError in %d\n%sE   ModuleNotFoundError: No module named 'm%d'", i, strings.Repeat(trace, 20), i)})
	}
	digest := testreport.Digest(r, 4000)
	require.LessOrEqual(t, len(digest), 4000)
	require.Contains(t, digest, "ImportError in 0\n"+trace)
	require.Contains(t, digest, "\n[…]\n")
	require.Contains(t, digest, "E   ModuleNotFoundError: No module named 'm0'")
}

func TestARunOfUvuInWhichNothingPasses(t *testing.T) {
	r := read(" FAIL  \"a\"\n no\n\n  Total:     2\n  Passed:    0\n  Skipped:   1\n")
	require.Equal(t, []int{0, 2, 1}, []int{r.Passed, r.Failed, r.Skipped})
}

// Tests that have ended, and packages, leave room for what later ones print.
func TestAMessageComesAfterMuchOutput(t *testing.T) {
	var b strings.Builder
	event := func(pkg, test, action, output string) {
		require.NoError(t, json.NewEncoder(&b).Encode(map[string]string{"Action": action, "Package": pkg, "Test": test, "Output": output}))
	}
	for i := range 9000 { // more than 16 MB
		pkg, test := fmt.Sprintf("p%d", i/3), []string{"T", "U", ""}[i%3]
		event(pkg, test, "run", "")
		event(pkg, test, "output", strings.Repeat("words ", 500))
		event(pkg, test, map[string]string{"T": "pass", "": "pass"}[test], "") // U never ends
	}
	event("last", "T", "run", "")
	event("last", "T", "output", "a_test.go:3: boom")
	event("last", "T", "fail", "")
	r := read(b.String())
	require.Equal(t, "a_test.go:3: boom", r.Failing[0].Message)
}

func TestTheCompilersErrorsAreTheMessageOfABuildThatFails(t *testing.T) {
	r := read("   Compiling a v0.1.0\nwarning: unused variable\n\nerror[E0425]: cannot find value `x`\n --> src/lib.rs:2:5\n\nfor more information\nerror: could not compile `a` (lib) due to 1 previous error\nwarning: build failed\n")
	require.Equal(t, "error[E0425]: cannot find value `x`\n --> src/lib.rs:2:5\nerror: could not compile `a` (lib) due to 1 previous error", r.Failing[0].Message)
	require.Equal(t, "src/lib.rs", r.Failing[0].File)
}

// A test that failed before has passed if the runner says so by name, and not because it is missing.
func TestWhatPassesIsKnownByName(t *testing.T) {
	for file, test := range map[string]testreport.Test{
		"go.json": {Package: "ex/a", Name: "TestSub/good"}, "gov.txt": {Package: "ex/a", Name: "TestOK"}, "cargo.txt": {Package: "src/lib.rs", Name: "tests::ok"},
		"unittestv.txt": {Package: "test_x.T", Name: "test_ok"}, "pytestv.txt": {Package: "test_y.py", Name: "test_ok"}, "node.spec": {Name: "suite > inner ok"}, "node.tap": {Name: "suite > inner ok"},
		"perl.tap": {Name: "one"}, "node.junit.xml": {Package: "test", Name: "fine"}, "automake.txt": {Package: "tests", Name: "good.sh"}, "gtest.txt": {Package: "spec/a_spec.lua", Name: "sum adds"},
		"ctest.txt": {Name: "good"}, "meson.txt": {Name: "x / good"},
	} {
		other := testreport.Test{Package: test.Package, Name: test.Name + " other"}
		before := testreport.Report{Failed: 2, Failing: []testreport.Test{test, other}}
		require.Equal(t, []string{test.ID()}, testreport.Compare(before, testreport.Read(sample(t, file))).Fixed, file)
	}
}

// A command may run two test runners, and the first writes what machines read.
func TestAFailureOfASecondRunnerIsRead(t *testing.T) {
	const mocha = "\n  1 passing (3ms)\n  1 failing\n\n  1) a:\n     Error: boom\n"
	for status, want := range map[string]string{"pass": "mocha, go-json 1 failed, 2 passed: a", "fail": "go-json 1 failed, 0 passed: p T"} {
		r := read(`{"Action":"run","Package":"p","Test":"T"}` + "\n" + `{"Action":"` + status + `","Package":"p","Test":"T"}` + "\n" + mocha)
		require.Equal(t, want, fmt.Sprintf("%s %d failed, %d passed: %s", r.Format, r.Failed, r.Passed, strings.Join(r.IDs(), ", ")))
	}
}
