package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"

	"pawl/internal/lib/list"
)

// serverLogger passes the server's warnings and errors to slog. The server logs several lines a second at Info, so
// Info is dropped. While it stops, it reports every interrupted request as an error, so everything after the
// beginning of a stop is Debug.
type serverLogger struct {
	out   *slog.Logger
	stage *stage
	tags  []tag.Tag // of With; the server calls that for each request, and hardly ever logs anything
}

// stage is the stage of a server's life; the meaning of a log line depends on it.
type stage struct {
	building atomic.Bool
	stopping atomic.Bool
	alarm    chan struct{} // has room for one: the server has logged an error
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

// DPanic means "panic in development" for the server. This is not its development, so it logs an error.
func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

func (l serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(describe(msg, tags))
}

// Fatal never ends the process, although the server expects that: loops run in this process, and their work is worth
// more than the engine. While the server is being built (for example, a port is taken), the caller can't continue, so
// Fatal panics and build recovers. Later, only goroutines call Fatal, as their last statement.
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	if l.stage.building.Load() {
		panic(fatalError{describe(msg, tags)})
	}
	l.log(slog.LevelError, msg, tags)
}

func (l serverLogger) With(tags ...tag.Tag) log.Logger {
	return serverLogger{out: l.out, stage: l.stage, tags: slices.Concat(l.tags, tags)}
}

// SLog serves the parts of the server that use slog themselves (its Nexus and SDK workers).
func (l serverLogger) SLog() *slog.Logger {
	return slog.New(quietHandler{Handler: l.out.With(attributes(l.tags)...).Handler(), stage: l.stage})
}

func (l serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	level = l.stage.level(level)
	if harmless(msg, tags) {
		level = slog.LevelDebug
	}
	if level >= slog.LevelError { // its cause may be a damaged database, for which Engine.watch looks
		select {
		case l.stage.alarm <- struct{}{}:
		default:
		}
	}
	if !l.out.Enabled(context.Background(), level) {
		return
	}
	l.out.Log(context.Background(), level, msg, attributes(slices.Concat(l.tags, tags))...)
}

// harmless reports whether a line is normal for a good start, or comes from a stranger's request.
func harmless(msg string, tags []tag.Tag) bool {
	switch {
	// serverConfig says why there is no HTTP API.
	case strings.HasPrefix(msg, "HTTP API port has not been set"):
		return true
	// Anybody who reaches the port could fill the log with it.
	case msg == "Authorization error":
		return true
	// On a busy machine the queues look for work before they have their shard. They try again.
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

// quietHandler applies the same rules to records that come through slog.
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
	return list.Map(tags, func(t tag.Tag) any { return slog.Any(t.Key(), t.Value()) })
}

func describe(msg string, tags []tag.Tag) string {
	for _, t := range tags {
		if t.Key() == "error" {
			return fmt.Sprintf("%s: %v", msg, t.Value())
		}
	}
	return msg
}
