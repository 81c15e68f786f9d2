package steward_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/internal/loop"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// nobody returns a Temporal client that knows no loop.
func nobody(t *testing.T) *mocks.Client {
	c := &mocks.Client{}
	c.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(nil, serviceerror.NewNotFound("no such workflow"))
	t.Cleanup(func() { c.AssertExpectations(t) })
	return c
}

func names(drift []task.Drift) (all []string) {
	for _, d := range drift {
		all = append(all, d.Name+" "+d.What)
	}
	return all
}

// recorded validates and records what was found.
func recorded(s *actest.Steward, children ...stewardapi.Child) []task.Drift {
	v := s.ValidateWith(children...)
	for _, d := range v.Drift {
		s.Append(loop.Event{Type: loop.DriftFound, Drift: &d, Gate: &loop.Gate{}})
	}
	return v.Drift
}

// TestS12_EachKindOfDriftHasItsName has a case for each kind, except those of the ledger and of artifacts, which have
// their own tests.
func TestS12_EachKindOfDriftHasItsName(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	require.Empty(t, s.ValidateWith().Drift)

	s.Client = nobody(t)
	gone := stewardapi.Child{Loop: "shop-one-gone", Status: "running"}
	require.Equal(t, []string{"engine shop-one-gone"}, names(recorded(s, gone)))
	require.Empty(t, s.ValidateWith(gone).Well)

	o := s.Child("shop-one-x", "shop")
	x := stewardapi.Child{Loop: "shop-one-x", Status: "running", Head: o.Base}
	v := s.ValidateWith(x)
	require.Equal(t, []string{"engine shop-one-x"}, names(v.Drift), "its ledger knows it, and Temporal does not")
	require.Equal(t, []string{"engine shop-one-gone"}, names(v.Well), "the steward does not wait for it any more")
	s.Child("other", "somebody")
	require.Equal(t, []string{"engine other", "child other"}, names(s.ValidateWith(stewardapi.Child{Loop: "other", Status: "running"}).Drift))

	lost := strings.Repeat("1", 40)
	require.Contains(t, names(s.ValidateWith(stewardapi.Child{Loop: "shop-one-x", Status: "running", Head: lost}).Drift), "branch "+o.Branch)
	gittest.Git(t, s.User, "commit", "-qm", "theirs", "--allow-empty")
	gittest.Git(t, s.User, "update-ref", "refs/heads/"+o.Branch, "HEAD")
	found := recorded(s, x)
	require.Equal(t, []string{"engine shop-one-x", "branch " + o.Branch}, names(found))
	require.Contains(t, found[1].Text, "moved by somebody else")
}

// What is right again is said to be, also about a loop that has done its step meanwhile.
func TestS12_DriftOfLoopsAndTheirBranchesThatHasPassedIsSaid(t *testing.T) {
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Client = nobody(t)
	s.Submit("one", `{"goal": "g"}`)
	o := s.Child("shop-one-x", "somebody")
	x := stewardapi.Child{Loop: "shop-one-x", Status: "running", Head: o.Base}
	require.Equal(t, []string{"engine shop-one-x", "child shop-one-x"}, names(recorded(s, x)))
	require.Empty(t, s.ValidateWith(x).Well)

	o = s.Child("shop-one-x", "shop") // it is the steward's own now
	v := s.ValidateWith(x)
	require.Equal(t, []string{"engine shop-one-x"}, names(v.Drift))
	require.Equal(t, []string{"child shop-one-x"}, names(v.Well))
	require.Equal(t, "the loop shop-one-x is again the one that this steward started", v.Well[0].Text)
	require.Equal(t, []string{"engine shop-one-x", "child shop-one-x"}, names(s.ValidateWith().Well), "the steward does not wait for it any more")

	gittest.Git(t, s.User, "commit", "-qm", "theirs", "--allow-empty")
	gittest.Git(t, s.User, "update-ref", "refs/heads/"+o.Branch, "HEAD")
	require.Contains(t, names(recorded(s, x)), "branch "+o.Branch)
	require.NotContains(t, names(s.ValidateWith(x).Well), "branch "+o.Branch)
	plan := s.Plan("one", nil).Plan
	step := plan.Steps[0].ID
	s.Append(
		loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: plan},
		loop.Event{Type: loop.TaskStateChanged, Task: "one", To: task.Executing},
		loop.Event{Type: loop.StepBegun, Task: "one", Step: step, LoopID: "shop-one-x"},
		loop.Event{Type: loop.ChildReported, Task: "one", Child: &task.ChildEvent{Loop: "shop-one-x", Event: task.ChildEnded, Result: &task.ChildResult{Head: o.Base, Branch: o.Branch}}},
		loop.Event{Type: loop.ActionTaken, Task: "one", Action: &task.Action{Step: step, Loop: "shop-one-x", Milestone: true}},
	)
	require.NotContains(t, names(s.ValidateWith().Well), "branch "+o.Branch, "the loop is over, and its branch is still another")
	gittest.Git(t, s.User, "update-ref", "refs/heads/"+o.Branch, o.Base)
	for _, children := range [][]stewardapi.Child{{x}, nil} {
		require.Contains(t, names(s.ValidateWith(children...).Well), "branch "+o.Branch)
	}
}

func TestS12_ARewrittenProjectBranchIsDrift(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	gittest.Git(t, s.User, "commit", "-qm", "further", "--allow-empty")
	v := s.ValidateWith()
	require.Empty(t, v.Drift)
	require.Equal(t, gittest.Git(t, s.User, "rev-parse", "HEAD"), v.Base, "work that went on is no difference")
	gittest.Git(t, s.User, "commit", "-q", "--amend", "-m", "another past", "--allow-empty")
	gittest.Git(t, s.User, "update-ref", "refs/heads/main", gittest.Git(t, s.User, "commit-tree", "-m", "another past", "HEAD^{tree}"))
	v = s.ValidateWith()
	require.Equal(t, []string{"branch main"}, names(v.Drift))
	require.Equal(t, s.Opened.Base, v.Drift[0].Ours)

	// It stays so although the steward goes on from the branch as it is, until it is set back.
	s.Append(loop.Event{Type: loop.StewardValidated, Head: v.Base}, loop.Event{Type: loop.DriftFound, Drift: &v.Drift[0]})
	v = s.ValidateWith()
	require.Equal(t, []string{"branch main"}, names(v.Drift))
	require.Empty(t, v.Well)
	gittest.Git(t, s.User, "update-ref", "refs/heads/main", s.Opened.Base)
	v = s.ValidateWith()
	require.Empty(t, v.Drift)
	require.Equal(t, []string{"branch main"}, names(v.Well))
}

func TestS12_TheRemotesBranchAndItsCIAreDrift(t *testing.T) {
	t.Parallel()
	head, state := "", "success"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/repos/acme/shop/issues":
			fmt.Fprint(w, `[{"number": 2, "title": "Crash"}, {"number": 1, "title": "Mend it", "pull_request": {"url": "https://x"}}]`)
		case "/repos/acme/shop/commits/main/status":
			fmt.Fprintf(w, `{"sha": %q, "state": %q, "statuses": [{"context": "build", "state": %q}]}`, head, state, state)
		default:
			fmt.Fprint(w, `{"total_count": 0, "check_runs": []}`)
		}
	}))
	defer server.Close()
	s := actest.BeginSteward(t, nil, func(doc map[string]any) { doc["remote"] = map[string]any{"api": server.URL + "/repos/acme/shop"} })
	head = s.Opened.Base
	v := s.ValidateWith()
	require.Empty(t, v.Drift)
	require.Empty(t, v.Well, "nothing was found before")
	require.Equal(t, "1 issue and 1 pull request are open, CI of main: success", v.Remote)
	head, state = strings.Repeat("2", 40), "failure"
	require.Equal(t, []string{"remote main", "ci main"}, names(recorded(s)))
	v = s.ValidateWith()
	require.Equal(t, []string{"remote main", "ci main"}, names(v.Drift))
	require.Contains(t, v.Drift[1].Text, "build")
	require.Equal(t, "1 issue and 1 pull request are open, CI of main: failure (build)", v.Remote)
	require.NotContains(t, names(v.Well), "ci main")
	state = "pending"
	v = s.ValidateWith()
	require.Equal(t, []string{"remote main"}, names(v.Drift))
	require.NotContains(t, names(v.Well), "ci main", "CI that has no result yet is not well")
	head, state = s.Opened.Base, "success"
	require.Subset(t, names(s.ValidateWith().Well), []string{"remote main", "ci main"})
	server.Close()
	require.NotContains(t, names(s.ValidateWith().Well), "ci main", "of a remote that does not answer nothing is known")
}

// nights is a service whose schedule has two slots, both too late for its catch-up window.
type nights struct {
	workflowservice.WorkflowServiceClient
}

func (nights) ListScheduleMatchingTimes(context.Context, *workflowservice.ListScheduleMatchingTimesRequest, ...grpc.CallOption) (*workflowservice.ListScheduleMatchingTimesResponse, error) {
	slots := []*timestamppb.Timestamp{timestamppb.New(actest.When.Add(-48 * time.Hour)), timestamppb.New(actest.When.Add(-24 * time.Hour))}
	return &workflowservice.ListScheduleMatchingTimesResponse{StartTime: slots}, nil
}

func TestS5_MissedSlotsAndHealthChecksAreLookedAt(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	s.Charter = s.Chartered(func(doc map[string]any) {
		doc["schedules"] = []any{map[string]any{"name": "nightly", "cron": "0 2 * * *", "task": map[string]any{"title": "Update"}}}
		doc["triggers"] = []any{map[string]any{"name": "builds", "from": "health", "command": "test -e well || { echo it is ill; exit 1; }", "task": map[string]any{}}}
	})
	handle := &mocks.ScheduleHandle{}
	handle.On("Describe", mock.Anything).Return(&sdk.ScheduleDescription{Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"pawl": {}}}, Info: sdk.ScheduleInfo{NumActions: 3, NumActionsMissedCatchupWindow: 2, NextActionTimes: []time.Time{actest.When}}}, nil)
	schedules := &mocks.ScheduleClient{}
	schedules.On("GetHandle", mock.Anything, "shop/nightly").Return(handle)
	c := &mocks.Client{}
	c.On("ScheduleClient").Return(schedules)
	c.On("WorkflowService").Return(nights{})
	s.Client = c
	v := s.ValidateWith()
	require.Equal(t, map[string]int{"nightly": 2}, v.Missed)
	require.Len(t, v.Health, 1)
	require.Contains(t, v.Health[0].Ill, "it is ill")
	require.NoError(t, os.WriteFile(filepath.Join(s.User, "well"), nil, 0o600))
	require.Equal(t, []stewardapi.Health{{Name: "builds"}}, s.ValidateWith().Health, "it runs in the project's folder")
}

// TestS12_GovernanceFilesAreLookedAtBeforeAStepBegins commits a rule between two steps. The entry after which the
// second step would begin reports that the files have changed.
func TestS12_GovernanceFilesAreLookedAtBeforeAStepBegins(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, map[string]string{"RULES.md": "Be kind.\n"}, func(doc map[string]any) { doc["governance"] = []any{"RULES.md"} })
	s.Submit("a", `{}`)
	milestone := loop.Event{Type: loop.MilestoneReached, Task: "a", Step: "one"}
	before := s.Append(milestone).Governance
	require.NotEmpty(t, before)
	require.Equal(t, before, s.Append(milestone).Governance)
	require.Empty(t, s.Append(loop.Event{Type: loop.MessageReceived, Message: "hold"}).Governance, "no step begins after that")
	gittest.Write(t, s.User+"/RULES.md", "Be strict.\n")
	gittest.Git(t, s.User, "commit", "-qam", "another rule")
	require.NotEqual(t, before, s.Append(milestone).Governance)
}
