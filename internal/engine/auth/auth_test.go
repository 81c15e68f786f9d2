package auth_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/contrib/envconfig"

	"pawl/internal/engine/auth"
)

func TestE6_APassIsMadeOnceAndReadByThisUserAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	none, err := auth.Settle(dir, auth.AsBefore)
	require.NoError(t, err)
	require.Nil(t, none, "nobody wanted one")

	first, err := auth.Settle(dir, auth.Wanted)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64}$`, first.Token)
	require.NoError(t, first.WriteProfile(dir, "127.0.0.1:7233", "default"))
	folder, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
	for _, w := range []auth.Wish{auth.AsBefore, auth.Wanted} {
		again, err := auth.Settle(dir, w)
		require.NoError(t, err)
		require.Equal(t, first, again, "it survives a restart")
	}

	gone, err := auth.Settle(dir, auth.Unwanted)
	require.NoError(t, err)
	require.Nil(t, gone)
	files, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestE6_APassThatOthersCouldReadIsMadeAnew(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"open":    func(path string) error { return os.Chmod(path, 0o640) },
		"torn":    func(path string) error { return os.WriteFile(path, []byte(`{"tok`), 0o600) },
		"emptied": func(path string) error { return os.WriteFile(path, []byte(`{}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, err := auth.Settle(dir, auth.Wanted)
			require.NoError(t, err)
			require.NoError(t, harm(filepath.Join(dir, "pass.json")))
			_, err = auth.Read(dir)
			require.Error(t, err)
			again, err := auth.Settle(dir, auth.AsBefore)
			require.NoError(t, err)
			require.NotNil(t, again, "an engine that asked goes on asking")
			require.NotEqual(t, first.Token, again.Token)
			_, err = auth.Read(dir)
			require.NoError(t, err)
		})
	}
}

func TestE6_OnlyTheTokenItselfOpens(t *testing.T) {
	p, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	require.True(t, p.Opens("Bearer "+p.Token))
	for _, other := range []string{"", "Bearer", "Bearer ", p.Token, "bearer " + p.Token, "Bearer " + p.Token[1:], "Bearer " + p.Token + "0"} {
		require.False(t, p.Opens(other), other)
	}
}

// Clients recognise the engine by its certificate, and so do the services one another. Nobody else gets in.
func TestE6_CertificatesTellTheEngineFromOthers(t *testing.T) {
	ours, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	other, err := auth.Settle(t.TempDir(), auth.Wanted)
	require.NoError(t, err)
	stranger := ours.Client()
	stranger.RootCAs, stranger.InsecureSkipVerify = nil, true
	forged := other.Insider()
	forged.RootCAs, forged.InsecureSkipVerify = nil, true
	for name, c := range map[string]struct {
		server, client *tls.Config
		works          bool
	}{
		"pawl's clients at the frontend":           {ours.Server(), ours.Client(), true},
		"the engine at its frontend":               {ours.Server(), ours.Insider(), true},
		"somebody else at the frontend":            {ours.Server(), stranger, true}, // it is then asked for the token
		"the engine at its services":               {ours.Inner(), ours.Insider(), true},
		"pawl's clients in front of another":       {other.Server(), ours.Client(), false},
		"pawl's clients at the services":           {ours.Inner(), ours.Client(), false},
		"somebody else at the services":            {ours.Inner(), stranger, false},
		"another's certificate at the services":    {ours.Inner(), forged, false},
		"another's certificate at the frontend":    {ours.Server(), forged, false},
		"the engine in front of another's service": {other.Inner(), ours.Insider(), false},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", c.server)
			require.NoError(t, err)
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = conn.Write([]byte("x"))
					conn.Close()
				}
			}()
			raw, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			conn := tls.Client(raw, c.client)
			defer conn.Close()
			got, err := io.ReadAll(conn)
			require.Equal(t, c.works, err == nil && string(got) == "x", "%v", err)
		})
	}
}

func TestTheProfileIsTheTemporalCLIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a "b" c`)
	require.NoError(t, os.Mkdir(dir, 0o700))
	p, err := auth.Settle(dir, auth.Wanted)
	require.NoError(t, err)
	require.NoError(t, p.WriteProfile(dir, "127.0.0.1:7300", "default"))
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath: auth.ProfilePath(dir), ConfigFileProfile: auth.Profile, DisableEnv: true, ConfigFileStrict: true,
	})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7300", profile.Address)
	require.Equal(t, p.Token, profile.APIKey)
	_, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	require.NoError(t, err)
}
