package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLogger hands the server's warnings and errors to slog. The server logs several lines a
// second at Info, and while it stops it calls every interrupted request an error, so Info is
// dropped and all that happens after stopping began is Debug.
type serverLogger struct {
	out   *slog.Logger
	stage *stage
}

// stage is where in its life a server is; what a log line means depends on it.
type stage struct {
	building atomic.Bool
	stopping atomic.Bool
	alarm    chan struct{} // has room for one: the server has logged an error
}

// raise has somebody look for what may be behind an error.
func (s *stage) raise(level slog.Level) {
	if level < slog.LevelError {
		return
	}
	select {
	case s.alarm <- struct{}{}:
	default:
	}
}

// fatalError is what a Fatal log line becomes while the server is being built.
type fatalError struct{ msg string }

func (e fatalError) Error() string { return e.msg }

var (
	_ log.Logger      = serverLogger{}
	_ log.WithLogger  = serverLogger{}
	_ log.SLogWrapper = serverLogger{}
)

func (l serverLogger) Debug(string, ...tag.Tag) {}
func (l serverLogger) Info(string, ...tag.Tag)  {}

func (l serverLogger) Warn(msg string, tags ...tag.Tag)  { l.log(slog.LevelWarn, msg, tags) }
func (l serverLogger) Error(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// DPanic is the server's word for "a panic in development"; this is not its development.
func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

func (l serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(describe(msg, tags))
}

// Fatal never ends the process, as the server means it to: loops run in this process whose work
// is worth more than the engine. While the server is being built (a port is taken) the caller
// cannot go on, and build recovers this panic; later, Fatal is logged by goroutines whose last
// statement it is.
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	if l.stage.building.Load() {
		panic(fatalError{describe(msg, tags)})
	}
	l.log(slog.LevelError, msg, tags)
}

func (l serverLogger) With(tags ...tag.Tag) log.Logger {
	return serverLogger{out: l.out.With(attributes(tags)...), stage: l.stage}
}

// SLog serves the parts of the server that log by slog themselves (its Nexus and SDK workers).
func (l serverLogger) SLog() *slog.Logger {
	return slog.New(quietHandler{Handler: l.out.Handler(), stage: l.stage})
}

func (l serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	level = l.stage.level(level)
	if harmless(msg, tags) {
		level = slog.LevelDebug
	}
	l.stage.raise(level)
	if !l.out.Enabled(context.Background(), level) {
		return
	}
	l.out.Log(context.Background(), level, msg, attributes(tags)...)
}

// harmless tells what the server reports in the course of a start that goes well, and of a stranger.
func harmless(msg string, tags []tag.Tag) bool {
	switch {
	// serverConfig says why there is none.
	case strings.HasPrefix(msg, "HTTP API port has not been set"):
		return true
	// Whoever reaches the port could fill the log with it.
	case msg == "Authorization error":
		return true
	// On a busy machine the queues look for work before their shard is acquired; they look again.
	case strings.HasSuffix(describe("", tags), "shard status unknown"):
		return true
	}
	return false
}

func (s *stage) level(level slog.Level) slog.Level {
	if s.stopping.Load() {
		return slog.LevelDebug
	}
	return level
}

// quietHandler applies the same rules to records that come by slog.
type quietHandler struct {
	slog.Handler
	stage *stage
}

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, h.stage.level(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = h.stage.level(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs), h.stage}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name), h.stage}
}

func attributes(tags []tag.Tag) []any {
	attrs := make([]any, 0, len(tags))
	for _, t := range tags {
		attrs = append(attrs, slog.Any(t.Key(), t.Value()))
	}
	return attrs
}

func describe(msg string, tags []tag.Tag) string {
	for _, t := range tags {
		if t.Key() == "error" {
			return fmt.Sprintf("%s: %v", msg, t.Value())
		}
	}
	return msg
}
