package activities_test

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

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/task"
)

func (s *looked) validate(children ...act.Child) act.Validated {
	s.Helper()
	v, err := s.a.Validate(ctx, act.Validate{Ref: s.o.Ref, Ledger: s.ledger, Charter: s.charter, Children: children})
	require.NoError(s, err)
	return v
}

// child opens a loop of that steward on this host, of which Temporal knows nothing.
func (s *looked) child(id, steward string) act.Opened {
	s.Helper()
	sp, err := spec.Parse(fmt.Appendf(nil, `{"name": %q, "goal": "g", "repo": {"path": %q}, "scope": ["work/**"], "verify": {"command": "true"},
		"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}, "session": {"steward": %q}}`, id, s.user, steward))
	require.NoError(s, err)
	o, err := s.a.Open(ctx, act.Open{Loop: id, FirstRun: id, Spec: sp})
	require.NoError(s, err)
	events := []loop.Event{
		{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Goal: "g", Repo: o.Repo, Branch: o.Branch, Base: o.Base, Host: o.Host}},
		{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: o.Contract, Base: o.Base, Sealed: o.Sealed}},
	}
	for i := range events {
		events[i].Seq, events[i].Loop, events[i].Time = int64(i+1), id, when
	}
	_, err = s.a.Record(ctx, act.Record{Entry: act.Entry{Ref: o.Ref, Events: events}})
	require.NoError(s, err)
	return o
}

// nobody is a Temporal that knows no loop.
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

// TestS12_EachKindOfDriftHasItsName has one row for each; that of a ledger and of artifacts have tests of their own.
func TestS12_EachKindOfDriftHasItsName(t *testing.T) {
	s := looksAfter(t, nil, nil)
	require.Empty(t, s.validate().Drift)

	s.a.Connect(nobody(t))
	require.Equal(t, []string{"engine shop-one-gone"}, names(s.validate(act.Child{Loop: "shop-one-gone", Status: "running"}).Drift))

	o := s.child("shop-one-x", "shop")
	require.Equal(t, []string{"engine shop-one-x"}, names(s.validate(act.Child{Loop: "shop-one-x", Status: "running", Head: o.Base}).Drift),
		"its ledger knows it, and Temporal does not")
	s.child("other", "somebody")
	require.Equal(t, []string{"engine other", "child other"}, names(s.validate(act.Child{Loop: "other", Status: "running"}).Drift))

	lost := strings.Repeat("1", 40)
	require.Contains(t, names(s.validate(act.Child{Loop: "shop-one-x", Status: "running", Head: lost}).Drift), "branch "+o.Branch)
	git(t, s.user, "commit", "-qm", "theirs", "--allow-empty")
	git(t, s.user, "update-ref", "refs/heads/"+o.Branch, "HEAD")
	found := s.validate(act.Child{Loop: "shop-one-x", Status: "running", Head: o.Base}).Drift
	require.Contains(t, names(found), "branch "+o.Branch)
	require.Contains(t, found[1].Text, "moved by somebody else")
}

func TestS12_ARewrittenProjectBranchIsDrift(t *testing.T) {
	s := looksAfter(t, nil, nil)
	git(t, s.user, "commit", "-qm", "further", "--allow-empty")
	v := s.validate()
	require.Empty(t, v.Drift)
	require.Equal(t, git(t, s.user, "rev-parse", "HEAD"), v.Base, "work that went on is no difference")
	git(t, s.user, "commit", "-q", "--amend", "-m", "another past", "--allow-empty")
	git(t, s.user, "update-ref", "refs/heads/main", git(t, s.user, "commit-tree", "-m", "another past", "HEAD^{tree}"))
	v = s.validate()
	require.Equal(t, []string{"branch main"}, names(v.Drift))
	require.Equal(t, s.o.Base, v.Drift[0].Ours)
}

func TestS12_TheRemotesBranchAndItsCIAreDrift(t *testing.T) {
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
	s := looksAfter(t, nil, func(doc map[string]any) { doc["remote"] = map[string]any{"api": server.URL + "/repos/acme/shop"} })
	head = s.o.Base
	v := s.validate()
	require.Empty(t, v.Drift)
	require.Subset(t, names(v.Well), []string{"remote main", "ci main"})
	require.Equal(t, "1 issue and 1 pull request are open, CI of main: success", v.Remote)
	head, state = strings.Repeat("2", 40), "failure"
	v = s.validate()
	require.Equal(t, []string{"remote main", "ci main"}, names(v.Drift))
	require.Contains(t, v.Drift[1].Text, "build")
	require.NotContains(t, names(v.Well), "ci main")
	state = "pending"
	v = s.validate()
	require.Equal(t, []string{"remote main"}, names(v.Drift))
	require.NotContains(t, names(v.Well), "ci main", "CI that has no result yet is not well")
	head, state = s.o.Base, "success"
	require.Subset(t, names(s.validate().Well), []string{"remote main", "ci main"})
	server.Close()
	require.NotContains(t, names(s.validate().Well), "ci main", "of a remote that does not answer nothing is known")
}

// nights is a service whose schedule has two slots, both too late for its catch-up window.
type nights struct {
	workflowservice.WorkflowServiceClient
}

func (nights) ListScheduleMatchingTimes(context.Context, *workflowservice.ListScheduleMatchingTimesRequest, ...grpc.CallOption) (*workflowservice.ListScheduleMatchingTimesResponse, error) {
	slots := []*timestamppb.Timestamp{timestamppb.New(when.Add(-48 * time.Hour)), timestamppb.New(when.Add(-24 * time.Hour))}
	return &workflowservice.ListScheduleMatchingTimesResponse{StartTime: slots}, nil
}

func TestS5_MissedSlotsAndHealthChecksAreLookedAt(t *testing.T) {
	s := looksAfter(t, nil, func(doc map[string]any) {
		doc["schedules"] = []any{map[string]any{"name": "nightly", "cron": "0 2 * * *", "task": map[string]any{"title": "Update"}}}
		doc["triggers"] = []any{map[string]any{"name": "builds", "from": "health", "command": "test -e well || { echo it is ill; exit 1; }", "task": map[string]any{}}}
	})
	handle := &mocks.ScheduleHandle{}
	handle.On("Describe", mock.Anything).Return(&sdk.ScheduleDescription{Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"pawl": {}}}, Info: sdk.ScheduleInfo{NumActions: 3, NumActionsMissedCatchupWindow: 2, NextActionTimes: []time.Time{when}}}, nil)
	schedules := &mocks.ScheduleClient{}
	schedules.On("GetHandle", mock.Anything, "shop/nightly").Return(handle)
	c := &mocks.Client{}
	c.On("ScheduleClient").Return(schedules)
	c.On("WorkflowService").Return(nights{})
	s.a.Connect(c)
	v := s.validate()
	require.Equal(t, map[string]int{"nightly": 2}, v.Missed)
	require.Len(t, v.Health, 1)
	require.Contains(t, v.Health[0].Ill, "it is ill")
	require.NoError(t, os.WriteFile(filepath.Join(s.user, "well"), nil, 0o600))
	require.Equal(t, []act.Health{{Name: "builds"}}, s.validate().Health, "it runs in the project's folder")
}

// TestS12_GovernanceFilesAreLookedAtBeforeAStepBegins commits a rule between two steps: the entry after which the
// second would begin says that the files are others.
func TestS12_GovernanceFilesAreLookedAtBeforeAStepBegins(t *testing.T) {
	s := looksAfter(t, map[string]string{"RULES.md": "Be kind.\n"}, func(doc map[string]any) { doc["governance"] = []any{"RULES.md"} })
	s.submit("a", `{}`)
	milestone := loop.Event{Type: loop.MilestoneReached, Task: "a", Step: "one"}
	before := s.record(milestone).Governance
	require.NotEmpty(t, before)
	require.Equal(t, before, s.record(milestone).Governance)
	require.Empty(t, s.record(loop.Event{Type: loop.MessageReceived, Message: "hold"}).Governance, "no step begins after that")
	write(t, s.user+"/RULES.md", "Be strict.\n")
	git(t, s.user, "commit", "-qam", "another rule")
	require.NotEqual(t, before, s.record(milestone).Governance)
}
