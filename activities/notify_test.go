package activities_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"pawl/activities"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

func TestACommandThatTellsRunsInTheRepositoryWithoutSecrets(t *testing.T) {
	h, repository := home.Home{Dir: t.TempDir()}, t.TempDir()
	t.Setenv("SLACK_TOKEN", "hush")
	t.Setenv("PAWL_HOME", "/elsewhere")
	require.NoError(t, os.MkdirAll(h.Loop("demo-1"), 0o700))
	require.NoError(t, hostrecord.Write(h, hostrecord.Record{Loop: "demo-1", Ref: "demo-1", FirstRun: "run-1", Repo: repository}))
	a := activities.New(h, "host", "", "default", false)
	in := api.Notify{Ref: "demo-1", To: `env >seen`, Notice: api.Notice{Loop: "demo-1", Event: loop.GateOpened}}
	require.NoError(t, a.Notify(t.Context(), in))
	seen, err := os.ReadFile(filepath.Join(repository, "seen"))
	require.NoError(t, err)
	require.Contains(t, string(seen), "PAWL_LOOP=demo-1\n")
	require.NotContains(t, string(seen), "hush")
	require.NotContains(t, string(seen), "PAWL_HOME")

	in.Ref = "" // the loop has no workspace yet
	require.NoError(t, a.Notify(t.Context(), in))
	require.FileExists(t, filepath.Join(h.Dir, "seen"))
}

func TestWhoRefusesToBeToldIsNotAskedAgain(t *testing.T) {
	a := activities.New(home.Home{Dir: t.TempDir()}, "host", "", "default", false)
	for status, again := range map[int]bool{http.StatusNotFound: false, http.StatusServiceUnavailable: true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		err := a.Notify(t.Context(), api.Notify{To: server.URL})
		server.Close()
		require.Error(t, err)
		var app *temporal.ApplicationError
		if again {
			require.NotErrorAs(t, err, &app)
			continue
		}
		require.ErrorAs(t, err, &app)
		require.True(t, app.NonRetryable())
	}
}
