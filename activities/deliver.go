package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/act"
	"pawl/internal/durable"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/issue"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/testreport"
)

// What a run of the tests leaves beside its output: the whole report, and what a fixer is told.
const (
	reportFile = "report.json"
	digestFile = "digest.txt"
)

const (
	maxDigest = 12 << 10 // bytes of a digest
	maxTests  = 20       // tests that are named in history
	maxPlan   = 64 << 10 // bytes of a plan
	shownPlan = 8 << 10  // bytes of it that enter history, for the person who approves it
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

// planOf takes the planner's plan: what it printed, whole in a file of the loop, its beginning in
// history for the person who approves it.
func (ws *loopWorkspace) planOf(text, dir string) (*loop.Plan, error) {
	text = loop.Clip(text, maxPlan)
	if err := durable.WriteFile(filepath.Join(ws.machine.Home.Loop(ws.Ref), ledger.PlanFile), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return &loop.Plan{Hash: hashOf([]byte(text)), Text: loop.Clip(text, shownPlan), Log: dir}, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// drafted returns a plan that is not in the ledger yet. On a host that has taken the loop up since there
// is no more of it than the state has, which mostly is all of it.
func (ws *loopWorkspace) drafted(plan loop.Plan) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(ws.machine.Home.Loop(ws.Ref), ledger.PlanFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	if hashOf(text) != plan.Hash { // it is missing, or a power cut has damaged it
		text = []byte(plan.Text)
	}
	if hashOf(text) != plan.Hash {
		return nil, refuse(fault.New(fault.PreconditionFailed, "the plan that was drafted is not in %s", ws.machine.Home.Loop(ws.Ref)).
			Advise("Start the loop again."))
	}
	return text, nil
}

// plan returns the loop's plan as it stands in the ledger at head, "" where there is none.
func (ws *loopWorkspace) plan(ctx context.Context, s loop.State, head string) (string, error) {
	if s.Plan == nil {
		return "", nil
	}
	files, err := ws.store.ReadLedger(ctx, head, ledger.PlanFile)
	if err != nil {
		return "", fmt.Errorf("reading the plan: %w", err)
	}
	text := files[ledger.PlanFile]
	if hashOf(text) != s.Plan.Hash {
		return "", fmt.Errorf("the plan in the ledger at %s is not the one that was approved", head)
	}
	return string(text), nil
}

// opinion reads a reviewer's answer on a proposal: of its result file where it wrote one there,
// else of what it printed.
func opinion(p *loop.Proposal, goal string, object json.RawMessage, printed string) *act.Opinion {
	o := govern.ReadReview(p.Hash, issue.Parse([]byte(goal)).Criteria, object, printed)
	return &act.Opinion{Decision: string(o.Decision), Note: loop.Clip(o.Note, 2000), Why: loop.Clip(o.Why, 500), Criteria: o.Criteria}
}

// proposed returns the diff of a proposal as a reviewer is shown it.
func (ws *loopWorkspace) proposed(ctx context.Context, of *loop.Proposal, limit int) (string, error) {
	text, _, err := ws.store.Diff(ctx, of.Base, of.Head, limit)
	if err != nil {
		return "", fmt.Errorf("reading the proposal: %w", err)
	}
	return text, nil
}
