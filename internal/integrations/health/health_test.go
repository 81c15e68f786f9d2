package health_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/integrations/health"
	"pawl/internal/steward/charter"
)

func TestS5_AHealthCheckIsACommandOrAnAddress(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	dir := t.TempDir()
	check := func(c charter.Trigger) string {
		return health.Check(t.Context(), c, []string{"PATH=/usr/bin:/bin"}, dir)
	}
	require.Empty(t, check(charter.Trigger{URL: server.URL}))
	status = http.StatusServiceUnavailable
	require.Contains(t, check(charter.Trigger{URL: server.URL}), "503")
	require.Empty(t, check(charter.Trigger{Command: "test \"$(pwd)\" = " + dir}))
	ill := check(charter.Trigger{Command: "echo the disk is full; exit 3"})
	require.Contains(t, ill, "exit status 3")
	require.Contains(t, ill, "the disk is full")
	secret := "http://127.0.0.1:1/token-abc"
	require.NotContains(t, check(charter.Trigger{URL: secret}), "token-abc", "an address may hold a secret")
}
