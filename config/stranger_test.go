package config_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"pawl/config"
	"pawl/internal/engine/auth"
)

// asking is a service that answers only callers with its key, if it wants one.
type asking struct {
	workflowservice.UnimplementedWorkflowServiceServer
	key string
}

func (a asking) GetSystemInfo(ctx context.Context, _ *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	if md, _ := metadata.FromIncomingContext(ctx); a.key != "" && (len(md["authorization"]) != 1 || md["authorization"][0] != "Bearer "+a.key) {
		return nil, status.Error(codes.PermissionDenied, "no")
	}
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func serveAsking(t *testing.T, a asking, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(options...)
	workflowservice.RegisterWorkflowServiceServer(s, a)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// A stranger has the address and nothing else: neither key nor certificate of the settings.
func TestE6_AStrangerBringsNothingAlong(t *testing.T) {
	p, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		address string
		env     map[string]string
		asks    bool
	}{
		"asks nobody":     {serveAsking(t, asking{}), nil, false},
		"an API key":      {serveAsking(t, asking{key: "k"}), map[string]string{"API_KEY": "k", "TLS": "false"}, true},
		"an API key, TLS": {serveAsking(t, asking{key: "k"}, grpc.Creds(credentials.NewTLS(p.Server()))), map[string]string{"API_KEY": "k", "TLS_SERVER_CA_CERT_DATA": p.Certificate, "TLS_SERVER_NAME": auth.ServerName}, true},
		"a header":        {serveAsking(t, asking{key: "k"}), map[string]string{"GRPC_META_AUTHORIZATION": "Bearer k"}, true},
		"a certificate": {serveAsking(t, asking{}, grpc.Creds(credentials.NewTLS(p.Inner()))), map[string]string{
			"TLS_CLIENT_CERT_DATA": p.Certificate, "TLS_CLIENT_KEY_DATA": p.Key, "TLS_SERVER_CA_CERT_DATA": p.Certificate, "TLS_SERVER_NAME": auth.ServerName,
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv("TEMPORAL_ADDRESS", c.address)
			for key, value := range c.env {
				t.Setenv("TEMPORAL_"+key, value)
			}
			s, err := config.Connect()
			require.NoError(t, err)
			known, err := config.Dial(t.Context(), s, "test", slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			known.Close()
			stranger, err := config.Dial(t.Context(), s.Stranger(), "test", slog.New(slog.DiscardHandler))
			if err == nil {
				stranger.Close()
			}
			require.Equal(t, c.asks, err != nil)
			again, err := config.Dial(t.Context(), s, "test", slog.New(slog.DiscardHandler))
			require.NoError(t, err, "the settings stay as they are")
			again.Close()
		})
	}
}

// A client with the engine's pass reaches it. Without the pass, the same client does not.
func TestE6_ThePassIsBroughtAlong(t *testing.T) {
	clean(t)
	p, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	address := serveAsking(t, asking{key: p.Token}, grpc.Creds(credentials.NewTLS(p.Server())))
	s, err := config.Connect()
	require.NoError(t, err)
	c, err := config.Dial(t.Context(), s.At(address, p, "", func() string { return address }), "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c.Close()
	_, err = config.Dial(t.Context(), s.At(address, p, "", func() string { return address }).Stranger(), "test", slog.New(slog.DiscardHandler))
	require.Error(t, err)
}

func TestE6_TheUIOfAServiceIsClosedWithIt(t *testing.T) {
	for ui, want := range map[string]struct {
		services []string
		ports    []int
	}{
		"":                                {[]string{"temporal.example:7233"}, []int{7233}},
		"https://ui.example/":             {[]string{"temporal.example:7233", "ui.example:443"}, []int{7233}},
		"http://ui.example:8080/temporal": {[]string{"temporal.example:7233", "ui.example:8080"}, []int{7233, 8080}},
		"http://[::1]:8233":               {[]string{"temporal.example:7233", "[::1]:8233"}, []int{7233, 8233}},
	} {
		clean(t)
		t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
		t.Setenv("PAWL_TEMPORAL_UI", ui)
		c, err := config.Connect()
		require.NoError(t, err)
		require.Equal(t, want.services, c.Services(), ui)
		require.Equal(t, want.ports, c.Ports(), ui)
		require.False(t, len(c.UI) > 0 && c.UI[len(c.UI)-1] == '/', ui)
	}
	for _, wrong := range []string{"ui.example", "ui.example:8080", "ftp://ui.example", "http://", "http://ui example"} {
		t.Setenv("PAWL_TEMPORAL_UI", wrong)
		_, err := config.Connect()
		require.ErrorContains(t, err, "PAWL_TEMPORAL_UI", wrong)
	}
}

func TestE6_KeysOfAServiceAreHidden(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.toml"), []byte("[profile.default]\naddress = \"127.0.0.1:1\"\ntls.client_cert_path = \"c\"\ntls.client_key_path = \"key\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(dir, "temporal.toml"))
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "settings"))
	settings, err := os.UserConfigDir()
	require.NoError(t, err)
	t.Chdir(dir)
	p, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("c", []byte(p.Certificate), 0o600))
	require.NoError(t, os.WriteFile("key", []byte(p.Key), 0o600))
	here, err := os.Getwd()
	require.NoError(t, err)
	c, err := config.Connect()
	require.NoError(t, err)
	usual := []string{filepath.Join(settings, "temporalio", "temporal.toml"), filepath.Join(settings, "temporalio", "temporal.yaml")}
	require.Equal(t, append(append([]string{filepath.Join(dir, "temporal.toml")}, usual...), filepath.Join(here, "key")), c.Keys())
	t.Setenv("TEMPORAL_CONFIG_FILE", "")
	for _, address := range []string{"127.0.0.1:1", ""} { // the settings may have keys of other services than the embedded one
		t.Setenv("TEMPORAL_ADDRESS", address)
		c, err = config.Connect()
		require.NoError(t, err)
		require.Equal(t, usual, c.Keys())
	}
}
