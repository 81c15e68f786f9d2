package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"pawl/activities/proposal"
	"pawl/activities/workspace"
	"pawl/config"
	"pawl/internal/client"
	"pawl/internal/engine/auth"
	"pawl/internal/exec/sandbox"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/telemetry"
	hostworker "pawl/internal/worker"
)

// session is a command's connection: a client for loops, and what this process provides itself.
type session struct {
	*client.Client
	app      *app
	hostID   string
	temporal config.Temporal
	engine   Engine              // nil unless this process shares the embedded engine
	page     func(string) string // returns the address of a page of the Temporal UI, "" if that isn't known
	logger   *slog.Logger
	logFile  *os.File
	shown    *telemetry.Telemetry // nil if nobody asked for it
	worker   *localWorker
}

// reach connects for a command that starts loops, or works on them. If no other service is configured, it starts the
// embedded engine.
func (a *app) reach(ctx context.Context, works bool) (*session, error) {
	return a.newSession(true, works && !a.deps.Thin, func(s *session) error {
		if s.temporal.Explicit {
			return s.dial(ctx)
		}
		return s.share(ctx)
	})
}

// share connects to the embedded engine. This process runs the engine if no other one does.
func (s *session) share(ctx context.Context) (err error) {
	if s.app.deps.Embedded == nil {
		return fault.New(fault.EngineUnreachable, "no Temporal service is configured, and this program has no engine of its own").
			Advise("Set TEMPORAL_ADDRESS, or a profile in temporal.toml.")
	}
	wish := s.app.auth
	if wish == auth.AsBefore && exposed() {
		wish = auth.Wanted
	}
	s.engine, err = s.app.deps.Embedded.Share(ctx, s.Home.Engine(), wish, s.logger)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if fault.CodeOf(err) == fault.EngineUnreachable { // it says all
			return err
		}
		if reason := s.Home.Unwritable(); reason != "" {
			err = fmt.Errorf("%w; %s", err, reason)
		}
		return fmt.Errorf("starting the engine: %w", err)
	}
	s.reached(s.engine.Found())
	if err := s.asked(); err != nil {
		return err
	}
	s.app.noteEngine(s.engine)
	return s.dial(ctx)
}

// reached records the address of the embedded engine.
func (s *session) reached(e Found) {
	location := func() string {
		if s.engine != nil {
			return s.engine.Found().Address
		}
		return e.Address
	}
	s.temporal, s.page = s.temporal.At(e.Address, e.Pass, e.ID, location), e.Link
}

// exposed reports whether agents can reach the engine but could not read its token: on this host the sandbox
// restricts files, but not the network.
func exposed() bool {
	m := sandbox.Probe()
	return m.Files != sandbox.ByNothing && !m.Network
}

// asked reports that the engine requires a token although nobody asked for one, and returns an error if the engine
// does not do what this process was told.
func (s *session) asked() error {
	needsToken := s.engine.Found().Pass != nil
	const advice = "End that one first: `pawl doctor` says which process it is."
	switch {
	case s.app.auth == auth.Wanted && !needsToken:
		return fault.New(fault.PreconditionFailed, "another pawl runs the engine, and that engine requires no token").Advise(advice)
	case s.app.auth == auth.Unwanted && needsToken:
		return fault.New(fault.PreconditionFailed, "another pawl runs the engine, and that engine requires a token").Advise(advice)
	case s.app.auth == auth.AsBefore && needsToken && exposed():
		s.app.say("agents have no network of their own on this machine, so the engine requires a token; `--auth=false` turns that off")
	}
	return nil
}

// noteEngine reports what is unusual about the engine.
func (a *app) noteEngine(e Engine) {
	if old := e.Replaced(); old != "" {
		a.say("the engine's database was damaged or of another version, so pawl moved it aside: %s. This host's loops continue from their ledgers", old)
	}
	if f := e.Found(); e.Moved() && e.Owner() {
		a.say("Temporal's own port is taken, so the engine listens at %s", f.Address)
	}
}

// visit connects for a command that only reads or answers. If no engine runs, the session has no client.
func (a *app) visit(ctx context.Context, do func(*session) error) error {
	s, err := a.attach(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return do(s)
}

// attach connects for visit. The caller closes the session.
func (a *app) attach(ctx context.Context) (*session, error) {
	return a.newSession(false, false, func(s *session) error {
		if !s.temporal.Explicit {
			if a.deps.Embedded == nil {
				return nil
			}
			e, ok := a.deps.Embedded.Find(ctx, s.Home.Engine())
			if !ok {
				s.Unanswered = a.deps.Embedded.Unanswered(s.Home.Engine())
				return nil
			}
			s.reached(e)
		}
		return s.dial(ctx)
	})
}

// newSession returns a session that connect has connected; nil connects nothing.
func (a *app) newSession(logs, works bool, connect func(*session) error) (*session, error) {
	h, err := home.Open()
	if err != nil {
		return nil, err
	}
	id, err := h.HostID()
	if err != nil {
		return nil, err
	}
	t, err := config.Connect()
	if err != nil {
		return nil, err
	}
	s := &session{app: a, hostID: id, temporal: t, logger: slog.New(slog.DiscardHandler), worker: &localWorker{}}
	s.page = func(page string) string {
		if t.UI == "" {
			return ""
		}
		return t.UI + page
	}
	s.Client = &client.Client{
		Home: h, Address: t.Address, Namespace: t.Namespace, Explicit: t.Explicit, Now: a.deps.Now,
		// Work on a proposal of this host needs no engine: store and repository are here.
		Proposals: &proposal.Proposals{Workspaces: workspace.New(h, id, "", t.Namespace, false)},
	}
	if a.deps.Embedded != nil {
		s.Bring = s.share
	}
	if logs {
		err = s.openLog()
	}
	if err == nil {
		err = s.observe(works)
	}
	if err == nil && connect != nil {
		err = connect(s)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// observe starts the metrics and traces that the settings ask for. Only a process that runs loops serves metrics;
// others would serve them just for a moment.
func (s *session) observe(works bool) error {
	settings, err := config.Telemetry()
	if err != nil {
		return usage(err.Error())
	}
	if !works {
		settings.Listen = ""
	}
	if s.shown, err = telemetry.Start(context.Background(), settings, hostworker.Identity(s.hostID), s.logger); err != nil {
		return usage(err.Error())
	}
	s.temporal.Telemetry = s.shown
	return nil
}

func (s *session) dial(ctx context.Context) error {
	c, err := s.app.deps.Dial(ctx, s.temporal, hostworker.Identity(s.hostID), s.logger)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	s.SDK, s.Address, s.Namespace = c, s.temporal.Address, s.temporal.Namespace
	return nil
}

// deliverTimeout limits how long sending the last traces may take.
const deliverTimeout = 2 * time.Second

// closeTimeout limits how long the engine may take to stop; everything that it has confirmed is on disk.
const closeTimeout = 10 * time.Second

func (s *session) close() {
	s.worker.stop(s.app.stopTimeout())
	if s.SDK != nil {
		s.SDK.Close()
	}
	if s.engine != nil {
		done := make(chan error, 1)
		go func() { done <- s.engine.Close() }()
		select {
		case err := <-done:
			if err != nil {
				s.logger.Warn("the engine did not stop cleanly", "error", err)
			}
		case <-time.After(closeTimeout):
			s.logger.Warn("the engine takes too long to stop; leaving")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), deliverTimeout)
	defer cancel()
	if err := s.shown.Shutdown(ctx); err != nil {
		s.logger.Warn("not all traces could be delivered", "error", err)
	}
	s.logFile.Close() // which does nothing without a file
}

// maxLog is the size, in bytes, at which a new log file begins. One old file is kept.
const maxLog = 10 << 20

// openLog sends the messages of worker, SDK and engine to a file, because on the terminal they would tear the
// progress line. A program without such a line sends them to the writer that it names.
func (s *session) openLog() error {
	out := s.app.logs
	if out == nil {
		if err := os.MkdirAll(s.Home.Logs(), 0o700); err != nil {
			return home.Unusable("making the folder for logs", err)
		}
		path := s.logPath()
		if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
			_ = os.Rename(path, path+".1")
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return home.Unusable("opening the log", err)
		}
		s.logFile, out = f, f
	}
	logger, err := config.Logger(out)
	if err != nil {
		return usage(err.Error())
	}
	if s.logFile != nil {
		logger = logger.With("pid", os.Getpid())
	}
	s.logger = logger
	return nil
}

// logPath returns where to read the log.
func (s *session) logPath() string {
	if s.app.logs != nil {
		return "stderr"
	}
	return filepath.Join(s.Home.Logs(), "pawl.log")
}

// link returns the address of a loop in the Temporal UI, "" if that isn't known.
func (s *session) link(loop string) string {
	return s.page("/namespaces/" + url.PathEscape(s.temporal.Namespace) + "/workflows/" + url.PathEscape(loop))
}
