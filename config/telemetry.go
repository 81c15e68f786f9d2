package config

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/telemetry"
)

// Telemetry reads what this process reports about itself, nothing by default. PAWL_METRICS_LISTEN is the address of a
// Prometheus endpoint, on 127.0.0.1 if it names no host. PAWL_TRACES is "otlp" or the path of a file. OpenTelemetry's
// own variables (OTEL_*) say how traces are sent, but not whether, because agents and tests use those variables too.
// OTEL_SDK_DISABLED switches everything off. An error names the variable and its possible values.
func Telemetry() (telemetry.Settings, error) {
	var s telemetry.Settings
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return s, nil
	}
	var err error
	if s.Listen, err = listen(os.Getenv("PAWL_METRICS_LISTEN")); err != nil {
		return telemetry.Settings{}, err
	}
	switch destination := os.Getenv("PAWL_TRACES"); {
	case destination == "", destination == "none":
	case destination == telemetry.OTLP:
		if protocol := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
			return telemetry.Settings{}, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; pawl sends http/protobuf only", protocol)
		}
		s.Traces = destination
	case filepath.IsAbs(destination):
		s.Traces = destination
	default:
		return telemetry.Settings{}, fmt.Errorf("PAWL_TRACES is %q; it may be otlp, none or the absolute path of a file", destination)
	}
	return s, nil
}

// listen completes an address to listen on: a port alone is on 127.0.0.1.
func listen(address string) (string, error) {
	if address == "" || address == "none" {
		return "", nil
	}
	whole := address
	if !strings.Contains(address, ":") {
		whole = ":" + address
	}
	host, port, err := net.SplitHostPort(whole)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil {
		return "", fmt.Errorf("PAWL_METRICS_LISTEN is %q; it may be a port, host:port or none", address)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.FormatUint(n, 10)), nil
}

// JSONLog reports whether the log is JSON (PAWL_LOG_FORMAT).
func JSONLog() bool { return os.Getenv("PAWL_LOG_FORMAT") == "json" }

// Logger returns a logger that writes to w, from the level in PAWL_LOG (default info) and in the format in
// PAWL_LOG_FORMAT (default text, or json).
func Logger(w io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if text := os.Getenv("PAWL_LOG"); text != "" {
		var level slog.Level
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("PAWL_LOG is %q; it may be debug, info, warn or error", text)
		}
		options.Level = level
	}
	var handler slog.Handler
	switch format := os.Getenv("PAWL_LOG_FORMAT"); format {
	case "", "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return nil, fmt.Errorf("PAWL_LOG_FORMAT is %q; it may be text or json", format)
	}
	return slog.New(handler), nil
}
