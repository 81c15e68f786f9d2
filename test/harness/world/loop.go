package world

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proposal is a loop's proposal in the form of the contract.
type Proposal struct{ Hash, Base, Head, State, By, Branch, Commit string }

// Proposal returns the loop's proposal.
func (w *World) Proposal() Proposal {
	w.T.Helper()
	s := w.Pawl("show", "--json", w.Loop)
	require.Equal(w.T, 0, s.Code, s.Err)
	var st struct{ Proposal Proposal }
	Decode(w.T, s.Out, &st)
	return st.Proposal
}

// Event is a line of `pawl log --json`.
type Event struct {
	Seq                      int64
	Time, Loop, Type, Reason string
	Iteration                int
	Phase, Message           string
}

// Events returns the events of the loop's log, and the output of the command.
func (w *World) Events() ([]Event, Said) {
	w.T.Helper()
	s := w.Pawl("log", "--json", w.Loop)
	var events []Event
	for _, line := range strings.Split(strings.TrimSpace(s.Out), "\n") {
		if line == "" {
			continue
		}
		var e Event
		require.NoError(w.T, json.Unmarshal([]byte(line), &e), line)
		require.Equal(w.T, int64(len(events)+1), e.Seq, "no event is missing, none comes twice")
		require.Equal(w.T, w.Loop, e.Loop)
		events = append(events, e)
	}
	return events, s
}

// Types returns the events' types in order.
func Types(events []Event) (all []string) {
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

// ReadHome reads a file of $PAWL_HOME.
func (w *World) ReadHome(name string) string {
	w.T.Helper()
	b, err := os.ReadFile(filepath.Join(w.Home, name))
	require.NoError(w.T, err)
	return string(b)
}

// Report is the output of `pawl run --json`.
type Report struct {
	Loop, Run, Status string
	Gate              *Gate
	Result            *struct {
		ExitStatus, ErrorCode, Reason, Recovery, Branch, Head, Recommendation string
		Iterations, KeptCount, Discarded                                      int
		Baseline, Best, Delta                                                 *json.Number
		Kept                                                                  []struct{ Commit, Description string }
		Proposal                                                              *struct{ Hash, Base, Head, State string }
		Usage                                                                 struct{ ToolCalls, AgentCalls int }
		Claim                                                                 *Claim
	}
}

// Claim is how much better the loop says its head is than its baseline.
type Claim struct {
	Estimate, Low, High, Bound, FalseKeeps float64
	Pairs                                  int
	Unit                                   string
	TooNoisy                               bool
	Holdout                                *Claim
}

// Gate is what waits for a person.
type Gate struct {
	ID, Kind, Summary, Hash string
	Answers, Choices        []string
}

// State is the output of `pawl show --json`, as far as tests read it.
type State struct {
	Loop, Goal, Status, Phase, Branch, Head, Ledger, Desk, ErrorCode, ExitStatus, Reason, PauseReason, Recovery string
	Iteration, Attempt, DiscardsInARow                                                                          int
	Gate                                                                                                        *Gate
	Baseline, Best                                                                                              *json.Number
	Budget                                                                                                      map[string]struct{ Limit, Used, Remaining *json.Number }
	Contract                                                                                                    *struct {
		Hash, ApprovedBy string
		Sealed           []struct{ Path string }
	}
	LastGuard *struct {
		Passed, Blocked bool
		Reason, Policy  string
		Violations      []string
	}
	ChangedFiles []string
	Iterations   []struct {
		N                           int
		Description, Reason, Commit string
		Metric                      json.Number
		Kept                        bool
		Attempts                    int
		Files                       []string
	}
	Host     string
	Proposal *Proposal
}

// Run runs the loop to its end, with its contract approved in advance, and expects an exit code.
func (w *World) Run(code int, args ...string) Report {
	w.T.Helper()
	s := w.Pawl(append([]string{"run", "--json", "--yes", w.SpecFile()}, args...)...)
	require.Equal(w.T, code, s.Code, "%s%s", s.Out, s.Err)
	var r Report
	Decode(w.T, s.Out, &r)
	return r
}

// Show returns the loop's state.
func (w *World) Show() State {
	w.T.Helper()
	s := w.Pawl("show", "--json", w.Loop)
	require.Equal(w.T, 0, s.Code, s.Err)
	var st State
	Decode(w.T, s.Out, &st)
	return st
}

// Decode reads a text as one JSON value.
func Decode(t testing.TB, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	require.NoError(t, d.Decode(v), text)
	require.False(t, d.More(), "more than one value: %s", text)
}

// Waits waits until the loop has a status, and returns its state.
func (w *World) Waits(status string) (st State) {
	w.T.Helper()
	w.Until(status, func() bool {
		s := w.Pawl("show", "--json", w.Loop)
		st = State{}
		return s.Code == 0 && json.Unmarshal([]byte(s.Out), &st) == nil && st.Status == status
	})
	return st
}

// StepLog returns what a step of the loop wrote to a stream.
func (w *World) StepLog(step, stream string) []byte {
	w.T.Helper()
	b, err := os.ReadFile(filepath.Join(w.Home, "loops", w.Loop, "steps", step, stream))
	require.NoError(w.T, err)
	return bytes.TrimSpace(b)
}
