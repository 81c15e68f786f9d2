package actest

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/test/harness/gittest"
	"pawl/workflows/placement"
)

// Remote is a repository at a URL. A network may keep others from it.
type Remote struct {
	URL  string
	Away atomic.Int32 // how many more requests for its refs find no way to it
}

// NewRemote serves a bare clone of a repository.
func NewRemote(t *testing.T, user string) *Remote {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, user, "clone", "-q", "--bare", user, filepath.Join(dir, "project.git"))
	gittest.Git(t, filepath.Join(dir, "project.git"), "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(gittest.Git(t, user, "--exec-path")), "git-http-backend"), InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + dir},
	}
	r := &Remote{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		if strings.HasSuffix(asked.URL.Path, "/info/refs") && r.Away.Add(-1) >= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		backend.ServeHTTP(w, asked)
	}))
	t.Cleanup(s.Close)
	r.URL = s.URL + "/project.git"
	return r
}

// Retried calls an activity until it needs no further attempt, as Temporal would. It skips the time in between.
func Retried(t *testing.T, f, in, out any) error {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterActivity(f)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		o := workflow.ActivityOptions{StartToCloseTimeout: placement.Bookkeeping, RetryPolicy: placement.Retries}
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), f, in).Get(ctx, out)
	})
	require.True(t, env.IsWorkflowCompleted())
	return env.GetWorkflowError()
}
