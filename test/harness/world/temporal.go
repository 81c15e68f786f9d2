package world

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of temporal_test.go run loops as people with a Temporal cluster do. The server is the dev server of the
// real Temporal CLI, the worker is the program in worker/, and both are separate processes. The CLI, the program in
// starter/ or pawl does everything else.

// cli is the path of the Temporal CLI, set when a test first asks for it.
var (
	CLI     string
	findCLI sync.Once
)

// NeedCLI skips a test if there is no Temporal CLI. If every tool must be there, the test fails.
func NeedCLI(t testing.TB) {
	t.Helper()
	path := TemporalCLI(t)
	findCLI.Do(func() { CLI = path })
}

// TryTemporal runs the Temporal CLI. If the server was too busy and did nothing, it tries again, as a person would.
func (w *World) TryTemporal(args ...string) (s Said) {
	w.T.Helper()
	for range 5 {
		s = w.Output(exec.Command(CLI, append(args, "--color", "never")...))
		if !strings.Contains(s.Err, "Workflow is busy") {
			break
		}
	}
	return s
}

// Temporal runs the Temporal CLI, which must succeed, and returns what it prints.
func (w *World) Temporal(args ...string) string {
	w.T.Helper()
	s := w.TryTemporal(args...)
	require.Equal(w.T, 0, s.Code, "temporal %s\n%s%s", strings.Join(args, " "), s.Out, s.Err)
	return s.Out
}

// Starter runs the program in starter/.
func (w *World) Starter(args ...string) Said {
	w.T.Helper()
	path, err := BuildStarter()
	require.NoError(w.T, err)
	return w.Output(exec.Command(path, args...))
}

// Begin starts the world's loop with the Temporal CLI, from its spec as a JSON file.
func (w *World) Begin(more ...string) {
	w.T.Helper()
	w.Temporal(append([]string{"workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.Loop,
		"--task-timeout", "2s", "--input-file", w.JSONFile()}, more...)...)
}

// JSONFile writes the spec as JSON and returns its path.
func (w *World) JSONFile() string {
	w.T.Helper()
	b, err := json.MarshalIndent(w.Spec, "", "  ")
	require.NoError(w.T, err)
	w.Write("loop.json", string(b))
	return filepath.Join(w.Dir, "loop.json")
}

// Query asks the loop through the Temporal CLI, with an argument if the query takes one.
func (w *World) Query(name string, out any, argument ...string) {
	w.T.Helper()
	args := []string{"workflow", "query", "--workflow-id", w.Loop, "--type", name, "--output", "json"}
	if len(argument) > 0 {
		args = append(args, "--input", argument[0])
	}
	var answer struct{ QueryResult []json.RawMessage }
	Decode(w.T, w.Temporal(args...), &answer)
	require.Len(w.T, answer.QueryResult, 1)
	require.NoError(w.T, json.Unmarshal(answer.QueryResult[0], out))
}

// Stands waits until the loop has a status, according to the Temporal CLI, and returns its state.
func (w *World) Stands(status string) (st State) {
	w.T.Helper()
	w.Until(status, func() bool {
		s := w.TryTemporal("workflow", "query", "--workflow-id", w.Loop, "--type", "state", "--output", "json")
		var answer struct{ QueryResult []State }
		if s.Code != 0 || json.Unmarshal([]byte(s.Out), &answer) != nil || len(answer.QueryResult) != 1 {
			return false
		}
		st = answer.QueryResult[0]
		return st.Status == status
	})
	return st
}

// TemporalCLI returns the path of the Temporal CLI, from the PATH or from where `go install` puts it.
func TemporalCLI(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("temporal"); err == nil {
		return path
	}
	out, err := exec.Command("go", "env", "GOPATH").Output()
	require.NoError(t, err)
	path := filepath.Join(strings.TrimSpace(string(out)), "bin", "temporal")
	if _, err := os.Stat(path); err != nil {
		Lacks(t, "there is no Temporal CLI: go install github.com/temporalio/cli/cmd/temporal@v1.5.1")
	}
	return path
}

// Describe returns what Temporal shows of a loop, with or without a worker.
func (w *World) Describe() (d struct {
	ExecutionConfig struct {
		UserMetadata struct{ Summary, Details string }
	}
	WorkflowExecutionInfo struct {
		Execution        struct{ RunID string }
		Status           string
		Memo             struct{ Fields map[string]any }
		SearchAttributes struct {
			IndexedFields map[string]struct{ Data []byte }
		}
	}
}) {
	w.T.Helper()
	Decode(w.T, w.Temporal("workflow", "describe", "--workflow-id", w.Loop, "--output", "json"), &d)
	return d
}

// Listed returns the IDs that `temporal workflow list` finds.
func (w *World) Listed(query string) (ids []string) {
	w.T.Helper()
	var rows []struct{ Execution struct{ WorkflowID string } }
	Decode(w.T, w.Temporal("workflow", "list", "--query", query, "--output", "json"), &rows)
	for _, r := range rows {
		ids = append(ids, r.Execution.WorkflowID)
	}
	return ids
}

// Tell sends a message, as a signal or as an update.
func (w *World) Tell(way, name, payload string) Said {
	w.T.Helper()
	args := []string{"workflow", "signal", "--workflow-id", w.Loop, "--name", name}
	if way == "update" {
		args = []string{"workflow", "update", "execute", "--workflow-id", w.Loop, "--name", name}
	}
	if payload != "" {
		args = append(args, "--input", payload)
	}
	return w.TryTemporal(args...)
}

// Approves approves the loop's contract.
func (w *World) Approves() {
	w.T.Helper()
	s := w.Tell("update", "approve", `{"by":"ann","hash":"`+w.Stands("waiting").Gate.Hash+`"}`)
	require.Equal(w.T, 0, s.Code, s.Err)
}

// Result returns the workflow's result, which may be a failure.
func (w *World) Result() (r struct {
	Status     string
	Result     struct{ ExitStatus, ErrorCode, Reason, Branch, Head string }
	CloseEvent struct {
		WorkflowExecutionFailedEventAttributes struct{ Failure Failure }
	}
}) {
	w.T.Helper()
	s := w.TryTemporal("workflow", "result", "--workflow-id", w.Loop, "--output", "json")
	Decode(w.T, s.Out, &r)
	return r
}

// Failure is what Temporal shows of a failed workflow.
type Failure struct {
	Message                string
	ApplicationFailureInfo struct{ Type string }
}

// Fails waits until the workflow has failed.
func (w *World) Fails() Failure {
	w.T.Helper()
	w.Until("it has failed", func() bool { return w.Describe().WorkflowExecutionInfo.Status == "WORKFLOW_EXECUTION_STATUS_FAILED" })
	return w.Result().CloseEvent.WorkflowExecutionFailedEventAttributes.Failure
}

// Auto makes the loop start without asking.
func (w *World) Auto() *World { return w.Set(Doc{"approvals": Doc{"plan": "auto"}}) }
