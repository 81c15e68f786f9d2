package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/act"
	"pawl/internal/durable"
	"pawl/internal/loop"
	"pawl/internal/testreport"
)

// Test runs test.command in the judge and reads which tests failed.
func (a *Activities) Test(ctx context.Context, in act.Test) (act.Tested, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Tested, error) { return w.test(ctx, in) })
}

func (w *work) test(ctx context.Context, in act.Test) (out act.Tested, err error) {
	if out.Outcome, err = w.judged(ctx, in.Command); err == nil && !out.Interrupted {
		out.Tests, err = readTests(out.OK(), in.Before, w.dir)
	}
	return out, err
}

// What a run of the tests leaves beside its output: the whole report, and what a fixer is told.
const (
	reportFile = "report.json"
	digestFile = "digest.txt"
)

const (
	maxDigest = 12 << 10 // bytes of a digest
	maxTests  = 20       // tests that are named in history
)

// readTests takes which tests failed from the output of a test command, and what became of them
// since the run whose log is before.
func readTests(passed bool, before, dir string) (*loop.Tests, error) {
	outputs, err := outputsOf(dir)
	if err != nil {
		return nil, err
	}
	report := testreport.Read(outputs...)
	var earlier testreport.Report
	if before != "" {
		err := durable.ReadJSON(filepath.Join(before, reportFile), &earlier)
		if errors.Is(err, durable.ErrTorn) {
			var told [][]byte
			told, err = outputsOf(before)
			earlier = testreport.Read(told...)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the report of the run before: %w", err)
		}
	}
	change := testreport.Compare(earlier, report).Short(maxTests)
	if before == "" { // nothing is new where there was nothing before
		change.New, change.Fixed = nil, nil
	}
	tests := &loop.Tests{
		Passed: report.Passed, Failed: report.Failed, Skipped: report.Skipped, Broken: report.Broken,
		Failing: change.Failing, New: change.New, Fixed: change.Fixed, Worse: change.Worse && before != "",
	}
	if !passed {
		tests.Signature = testreport.Signature(report)
		if err := durable.WriteFile(filepath.Join(dir, digestFile), []byte(testreport.Digest(report, maxDigest, outputs...)), 0o600); err != nil {
			return nil, fmt.Errorf("writing the digest: %w", err)
		}
	}
	return tests, durable.WriteJSON(filepath.Join(dir, reportFile), report)
}

// outputsOf is what a test command has printed.
func outputsOf(dir string) (outputs [][]byte, err error) {
	for _, name := range []string{"stdout", "stderr"} {
		b, err := readFile(filepath.Join(dir, name), maxOutput)
		if err != nil {
			return nil, fmt.Errorf("reading the tests' output: %w", err)
		}
		outputs = append(outputs, b)
	}
	return outputs, nil
}

// evidenceIn is what shows an agent why it is asked again: the digest of a test run, else the end
// of what a command said.
func evidenceIn(dir string) string {
	if b, err := os.ReadFile(filepath.Join(dir, digestFile)); err == nil {
		return string(b)
	}
	return tailOf(dir)
}
