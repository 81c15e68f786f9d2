package loop_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	hostworker "pawl/internal/worker"
)

// TestHistoriesReplay runs the workflows on the histories of loops that ran on earlier code: a loop that was started
// then must be able to continue now. These commands record them:
//
//	go test ./test/e2e/crash -run 'Paths|Deliveries|ContinueAsNew|StewardsHistory' -update
//	go test ./test/e2e/service -run 'TestALoopGoesOnByItself' -update
//
// A change that breaks one needs a version. A new history is recorded under the next number, and
// the old one stays.
func TestHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.json*")
	require.NoError(t, err)
	require.NotEmpty(t, files, "there must be histories to replay")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".gz"), func(t *testing.T) {
			require.NoError(t, replay(readHistory(t, file)))
		})
	}
}

// TestReplayNotices makes sure that the test above can fail.
func TestReplayNotices(t *testing.T) {
	const file = "testdata/histories/keep-and-discard-v1.json"
	for name, change := range map[string]func(*historypb.HistoryEvent){
		"another activity": func(e *historypb.HistoryEvent) {
			if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "Commit" {
				a.ActivityType.Name = "Settle"
			}
		},
		"no timer": func(e *historypb.HistoryEvent) {
			if e.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
				e.GetTimerStartedEventAttributes().TimerId = "another"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := readHistory(t, file)
			for _, e := range h.GetEvents() {
				change(e)
			}
			require.ErrorContains(t, replay(h), "nondeterministic")
		})
	}
}

func replay(h *historypb.History) error {
	r := worker.NewWorkflowReplayer()
	hostworker.Register(r)
	id := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: id},
	})
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		in, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	h, err := client.HistoryFromJSON(in, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}
