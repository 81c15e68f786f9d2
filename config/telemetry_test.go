package config_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/telemetry"
)

// unset removes the machine's settings of telemetry and logs.
func unset(t *testing.T) {
	for _, name := range []string{"PAWL_METRICS_LISTEN", "PAWL_TRACES", "PAWL_LOG", "PAWL_LOG_FORMAT", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		t.Setenv(name, "")
	}
}

func TestTelemetryIsOffUnlessAskedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want telemetry.Settings
	}{
		{"nothing is set", nil, telemetry.Settings{}},
		{"OpenTelemetry's variables alone", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}, telemetry.Settings{}},
		{"none", map[string]string{"PAWL_METRICS_LISTEN": "none", "PAWL_TRACES": "none"}, telemetry.Settings{}},
		{"a port is one of this machine's own", map[string]string{"PAWL_METRICS_LISTEN": "9464"}, telemetry.Settings{Listen: "127.0.0.1:9464"}},
		{"so is one behind a colon", map[string]string{"PAWL_METRICS_LISTEN": ":9464"}, telemetry.Settings{Listen: "127.0.0.1:9464"}},
		{"a host is the user's", map[string]string{"PAWL_METRICS_LISTEN": "0.0.0.0:9464"}, telemetry.Settings{Listen: "0.0.0.0:9464"}},
		{"of either kind", map[string]string{"PAWL_METRICS_LISTEN": "[::1]:9464"}, telemetry.Settings{Listen: "[::1]:9464"}},
		{"traces by OTLP", map[string]string{"PAWL_TRACES": "otlp"}, telemetry.Settings{Traces: telemetry.OTLP}},
		{"traces to a file", map[string]string{"PAWL_TRACES": "/tmp/traces"}, telemetry.Settings{Traces: "/tmp/traces"}},
		{"switched off", map[string]string{"PAWL_METRICS_LISTEN": "9464", "PAWL_TRACES": "otlp", "OTEL_SDK_DISABLED": "true"}, telemetry.Settings{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			unset(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			got, err := config.Telemetry()
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestTelemetrySettingsThatMeanNothingAreNamed(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"PAWL_METRICS_LISTEN", "yes"}, {"PAWL_METRICS_LISTEN", "1.2.3.4"}, {"PAWL_METRICS_LISTEN", "x:70000"}, {"PAWL_METRICS_LISTEN", "a:b:c"},
		{"PAWL_TRACES", "grpc"}, {"PAWL_TRACES", "traces.jsonl"},
	} {
		unset(t)
		t.Setenv(c.name, c.value)
		_, err := config.Telemetry()
		require.ErrorContains(t, err, c.name+" is")
		require.ErrorContains(t, err, c.value)
	}
	unset(t)
	t.Setenv("PAWL_TRACES", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	_, err := config.Telemetry()
	require.ErrorContains(t, err, "http/protobuf")
}

func TestLogsAreOfTheLevelAndFormatAskedFor(t *testing.T) {
	for _, c := range []struct{ level, format, want string }{
		{"", "", `level=INFO msg=said`}, {"debug", "text", `level=DEBUG msg=more`}, {"info", "json", `"level":"INFO","msg":"said"`}, {"warn", "", ""},
	} {
		unset(t)
		t.Setenv("PAWL_LOG", c.level)
		t.Setenv("PAWL_LOG_FORMAT", c.format)
		var out bytes.Buffer
		logger, err := config.Logger(&out)
		require.NoError(t, err)
		logger.Debug("more")
		logger.Info("said")
		require.Contains(t, out.String(), c.want)
		require.Equal(t, c.want == "", out.Len() == 0)
	}
	for _, name := range []string{"PAWL_LOG", "PAWL_LOG_FORMAT"} {
		unset(t)
		t.Setenv(name, "loud")
		_, err := config.Logger(&bytes.Buffer{})
		require.ErrorContains(t, err, name+` is "loud"`)
	}
}
