package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"pawl/activities/workspace"
	"pawl/internal/judge/testreport"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
)

// Test runs test.command in the judge and reads which tests failed.
func (a *Runner) Test(ctx context.Context, input api.Test) (api.Tested, error) {
	return Do(ctx, a, input.Step, func(ctx context.Context, w *Work) (api.Tested, error) { return w.Test(ctx, input) })
}

// Test runs the tests in the judge and reads their results, as the activity of the same name does.
func (w *Work) Test(ctx context.Context, input api.Test) (out api.Tested, err error) {
	if out.Outcome, err = w.Judged(ctx, input.Command, input.Reports...); err != nil || out.Interrupted {
		return out, err
	}
	out.Tests, err = readTests(&out.Outcome, input, w.Dir)
	return out, err
}

// The files of a test run besides its output: the whole report, and its description for a fixer.
const (
	reportFile = "report.json"
	digestFile = "digest.txt"
)

const (
	maxDigest = 12 << 10 // bytes of a digest
	maxTests  = 20       // names of tests in history
)

// readTests reads which tests failed from the output of a test command, and what changed since the run before. It
// marks the tests that already failed on the unchanged code. The run fails if fewer tests pass than there.
func readTests(out *api.Outcome, input api.Test, dir string) (*loop.Tests, error) {
	unchanged, ok, err := reportOf(input.Known)
	if err != nil {
		return nil, fmt.Errorf("reading the report of the unchanged code: %w", err)
	}
	outputs, err := outputsOf(dir)
	if err != nil {
		return nil, err
	}
	report := testreport.Read(outputs...)
	if out.OK() {
		out.Tested = report.Tested()
	}
	if ok && out.OK() && !input.Fewer && !report.Partial {
		out.Failure = fewer(report.Passed, unchanged.Passed)
	}
	if ok && input.Strict && out.OK() && report.Failed > unchanged.Failed {
		out.Failure = namesFailures(report)
	}
	earlier, _, err := reportOf(input.Before)
	if err != nil {
		return nil, fmt.Errorf("reading the report of the run before: %w", err)
	}
	change := testreport.Compare(earlier, report).Short(maxTests)
	if input.Before == "" { // without an earlier run, nothing is new
		change.New, change.Fixed = nil, nil
	}
	tests := &loop.Tests{
		Passed: report.Passed, Failed: report.Failed, Skipped: report.Skipped, Broken: report.Broken,
		Failing: change.Failing, New: change.New, Fixed: change.Fixed, Worse: change.Worse && input.Before != "",
	}
	if ok { // if the report is missing, its host is gone, and all failures count
		change := testreport.Compare(unchanged, report)
		tests.Known = change.Short(maxTests).Still
		tests.Progress = len(change.Fixed) > 0 || report.Passed > unchanged.Passed
		tests.Excused = !out.OK() && report.Failed > 0 && report.Failed == len(change.Still) && report.Passed >= unchanged.Passed &&
			!report.Partial && (unchanged.Broken || !report.Broken)
	}
	if !out.OK() && report.Passed+report.Failed+report.Skipped == 0 {
		tests.Printed = firstLine(outputs)
	}
	if !out.OK() {
		tests.Signature = testreport.Signature(report)
		if err := durable.WriteFile(filepath.Join(dir, digestFile), []byte(testreport.Digest(report, maxDigest, outputs...)), 0o600); err != nil {
			return nil, fmt.Errorf("writing the digest: %w", err)
		}
	}
	return tests, durable.WriteJSON(filepath.Join(dir, reportFile), report)
}

// maxLine is how many characters of a line enter history.
const maxLine = 200

// firstLine returns the first line that a command printed, of its errors if there are any.
func firstLine(outputs [][]byte) string {
	for _, output := range [][]byte{outputs[1], outputs[0]} {
		text := secretscan.Redact(strings.ToValidUTF8(string(metric.Plain(output)), "?"))
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				return string([]rune(line)[:min(maxLine, utf8.RuneCountInString(line))])
			}
		}
	}
	return ""
}

// reportOf returns the report of a run by its log; ok is false if there is none.
func reportOf(log string) (r testreport.Report, ok bool, err error) {
	if log == "" {
		return r, false, nil
	}
	err = durable.ReadJSON(filepath.Join(log, reportFile), &r)
	if errors.Is(err, durable.ErrTorn) {
		var reports [][]byte
		reports, err = outputsOf(log)
		r = testreport.Read(reports...)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return testreport.Report{}, false, nil
	}
	return r, err == nil, err
}

// outputsOf returns the output of a test command, and the reports that it wrote.
func outputsOf(dir string) (outputs [][]byte, err error) {
	for _, name := range []string{"stdout", "stderr", reportsFile} {
		b, err := workspace.ReadFile(filepath.Join(dir, name), workspace.MaxOutput)
		if err != nil {
			return nil, fmt.Errorf("reading the tests' output: %w", err)
		}
		outputs = append(outputs, b)
	}
	return outputs, nil
}

// EvidenceIn returns what shows an agent why it is asked again: a digest of tests, else the ends of an output.
func EvidenceIn(dir string) string {
	if b, err := os.ReadFile(dirfd.At(filepath.Join(dir, digestFile))); err == nil {
		return string(b)
	}
	return workspace.Excerpt(dir, maxDigest)
}
