package config_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/fault"
)

// clean takes away whatever Temporal settings the machine has.
func clean(t *testing.T) {
	for _, name := range []string{"ADDRESS", "NAMESPACE", "API_KEY", "PROFILE", "TLS"} {
		t.Setenv("TEMPORAL_"+name, "") // puts it back afterwards
		os.Unsetenv("TEMPORAL_" + name)
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

func TestWithoutSettingsTheEngineIsEmbedded(t *testing.T) {
	clean(t)
	c, err := config.Connect()
	require.NoError(t, err)
	require.False(t, c.Explicit)
	require.Equal(t, "default", c.Namespace)
	require.Equal(t, "127.0.0.1:9", c.At("127.0.0.1:9", nil, "", nil).Address)
}

func TestAnAddressInTheEnvironmentIsExplicit(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	t.Setenv("TEMPORAL_NAMESPACE", "loops")
	c, err := config.Connect()
	require.NoError(t, err)
	require.True(t, c.Explicit)
	require.Equal(t, "temporal.example:7233", c.Address)
	require.Equal(t, "loops", c.Namespace)
	require.Equal(t, "temporal.example:7233", c.At("127.0.0.1:9", nil, "", nil).Address, "an explicit address stays")
}

func TestAnAddressInAProfileIsExplicit(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_CONFIG_FILE", write(t, "temporal.toml", "[profile.work]\naddress = \"there:7233\"\n"))
	t.Setenv("TEMPORAL_PROFILE", "work")
	c, err := config.Connect()
	require.NoError(t, err)
	require.True(t, c.Explicit)
	require.Equal(t, "there:7233", c.Address)
}

func TestANamespaceWithoutAnAddressIsRefused(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_NAMESPACE", "loops")
	_, err := config.Connect()
	require.ErrorContains(t, err, "unset TEMPORAL_NAMESPACE")
}

func TestAMissingProfileIsAClearError(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_PROFILE", "nope")
	_, err := config.Connect()
	require.ErrorContains(t, err, "nope")
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
}

func TestAServiceThatDoesNotAnswerIsAClearError(t *testing.T) {
	clean(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	t.Setenv("TEMPORAL_ADDRESS", address)
	c, err := config.Connect()
	require.NoError(t, err)
	_, err = config.Dial(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "TEMPORAL_ADDRESS")
}
