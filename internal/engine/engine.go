package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	engineauth "pawl/internal/engine/auth"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

const (
	defaultRetention = 90 * 24 * time.Hour
	// patience is how long Share waits for an owner that has the lock but does not answer.
	patience = 30 * time.Second
	// silence is how long Share waits for an owner whose engine has served before: it does not start, and one that
	// stops is gone sooner.
	silence = 6 * time.Second
	// closeTime limits Close. The server itself takes up to five seconds if clients keep their connections.
	closeTime = 3 * time.Second
)

// Options says where and how the engine runs.
type Options struct {
	// Dir contains temporal.db, lock, engine.json, and the pass of an engine that requires a token. It is created
	// with mode 0700.
	Dir string
	// Port is the preferred port of the frontend, 0 for 7233. The UI's port is 1000 higher.
	Port int
	// Logger gets the server's warnings and errors; nil drops them.
	Logger *slog.Logger
	// Retention is how long the history of a closed loop is kept, 0 for 90 days.
	Retention time.Duration
	// LongHistory is the number of events from which the server suggests that a workflow continues as new, 0 for
	// Temporal's own 4096.
	LongHistory int
	// Auth says whether the engine requires a token. For an engine of another process, see its Endpoint.
	Auth engineauth.Wish
	// SearchAttributes are registered in the namespace "default".
	SearchAttributes map[string]enumspb.IndexedValueType

	clock func() moment
}

// Engine is this process's share in the engine of a directory.
type Engine struct {
	options Options

	// closing ends when Close is called. turn is held while an engine is started or stopped.
	closing context.Context
	leave   context.CancelFunc
	turn    sync.Mutex
	lock    *os.File // guarded by turn; nil unless this process owns the engine

	mu       sync.Mutex // guards what follows
	server   *server    // nil unless this process owns the engine
	endpoint Endpoint
	replaced string
}

// Share finds the running engine of a directory or starts it. The process that gets the lock owns the engine. When
// the owner is another process and exits for any reason, this one takes over in the background on the same port, so
// clients just reconnect. ctx limits the call only.
func Share(ctx context.Context, o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dirfd.At(o.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("create engine directory: %w", err)
	}
	e := &Engine{options: o}
	e.closing, e.leave = context.WithCancel(context.Background())
	if err := e.join(ctx); err != nil {
		e.leave()
		return nil, err
	}
	return e, nil
}

func (o Options) withDefaults() (Options, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return o, fmt.Errorf("engine directory %q: %w", o.Dir, errors.Join(err, os.ErrInvalid))
	}
	o.Dir = dir
	o.Port, o.Retention = cmp.Or(o.Port, defaultPort), cmp.Or(o.Retention, defaultRetention)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Port < 0 || o.Port > lastPort-uiOffset {
		return o, fmt.Errorf("engine port %d is not between 1 and %d", o.Port, lastPort-uiOffset)
	}
	if o.clock == nil {
		o.clock = newMoment
	}
	return o, nil
}

// join starts the engine as its owner, or finds the engine of another process.
func (e *Engine) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for {
		lock, err := durable.TryLock(lockPath(e.options.Dir))
		if err == nil {
			return e.serve(ctx, lock, false)
		}
		if !errors.Is(err, durable.ErrLocked) {
			return home.Unusable("taking the engine's lock", err)
		}
		if endpoint, ok := Find(ctx, e.options.Dir); ok {
			e.endpoint = endpoint
			// The new owner requires the same as the old one: clients are connected already, with the pass or
			// without.
			e.options.Auth = engineauth.AsBefore
			go e.succeed()
			return nil
		}
		// The owner is starting, or about to exit, or it hangs.
		pid := owner(e.options.Dir)
		if hasServed(e.options.Dir, pid) && (isStopped(pid) || time.Since(began) > silence) {
			return unanswered(pid)
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			return fmt.Errorf("process %d owns the engine in %s but it does not answer: %w", pid, e.options.Dir, ctx.Err())
		}
	}
}

// succeed waits for the owner to exit and takes over the engine.
func (e *Engine) succeed() {
	for e.closing.Err() == nil {
		lock, err := durable.Lock(e.closing, lockPath(e.options.Dir))
		if err == nil {
			err = e.serve(e.closing, lock, true)
		}
		if err == nil || e.closing.Err() != nil {
			return
		}
		e.options.Logger.Error("Taking over the engine failed", "dir", e.options.Dir, "error", err)
		_ = pause(e.closing, time.Second) // another process may do better
	}
}

// serve starts the engine under the lock. If that fails, it releases the lock.
func (e *Engine) serve(ctx context.Context, lock *os.File, takeover bool) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	if err := e.closing.Err(); err != nil {
		return errors.Join(err, lock.Close())
	}
	since := e.options.clock() // a start takes a while, and clocks are set when a computer starts
	s, err := start(ctx, e.options, e.Endpoint().ClusterID, lock, takeover)
	if err != nil {
		return errors.Join(fmt.Errorf("start the engine in %s: %w", e.options.Dir, err), lock.Close())
	}
	e.lock = lock
	e.serves(s)
	go e.watch(since)
	return nil
}

// serves records which server runs.
func (e *Engine) serves(s *server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server, e.endpoint = s, s.endpoint
	if s.replaced != "" {
		e.replaced = s.replaced
	}
}

// How long the watch waits after a complaint of the server before it checks the database, and how long between two
// checks.
const (
	lookAfter = time.Second
	lookApart = 20 * time.Second
)

// watch checks the database for damage whenever the server complains, as long as this process owns the engine. If it
// finds damage, it starts the server again without the damaged rows: one row that can't be read keeps all loops
// waiting. It also starts the server again when the clock was set back: until the clock is where it was, no loop would
// continue. since is a moment before the first start.
func (e *Engine) watch(began moment) {
	db := database{filepath.Join(e.options.Dir, databaseFile)}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		e.mu.Lock()
		s := e.server
		e.mu.Unlock()
		if s == nil {
			return
		}
		select {
		case <-e.closing.Done():
			return
		case <-look.C:
			previous := began
			if began = e.options.clock(); began.setBack(previous) > steadyClock {
				e.options.Logger.Warn("The clock was set back: the engine starts again", "by", began.setBack(previous))
				e.again(s)
			}
			continue
		case <-s.stage.alarm:
		}
		if pause(e.closing, lookAfter) != nil {
			return
		}
		bad, err := db.bad("ro")
		if err == nil && len(bad) == 0 {
			err = db.check()
		}
		if len(bad) > 0 || errors.Is(err, errNotOurs) {
			e.options.Logger.Error("The engine's database is damaged: the engine starts again without what can't be read", "rows", described(bad), "error", err)
			e.again(s)
		}
		if pause(e.closing, lookApart) != nil {
			return
		}
	}
}

// again restarts the server until that works.
func (e *Engine) again(s *server) {
	for err := e.restart(s); err != nil && e.closing.Err() == nil; err = e.restart(s) {
		e.options.Logger.Error("The engine could not be started again", "dir", e.options.Dir, "error", err)
		_ = pause(e.closing, lookAfter)
	}
}

// restart stops the server and starts another one on the readable part of the database.
func (e *Engine) restart(s *server) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	if e.closing.Err() != nil {
		return nil
	}
	s.stop()
	next, err := start(e.closing, e.options, s.endpoint.ClusterID, e.lock, true)
	if err != nil {
		return err
	}
	e.serves(next)
	return nil
}

// Close gives up this process's share. An owner stops the engine and releases the lock last. If that takes longer
// than closeTime, Close returns an error and stopping goes on in the background.
func (e *Engine) Close() error {
	e.leave()
	e.turn.Lock()
	defer e.turn.Unlock()
	e.mu.Lock()
	s := e.server
	e.server = nil
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	stopped := make(chan error, 1)
	go func() {
		s.stop()
		s.endpoint.Stopped = true
		stopped <- errors.Join(s.endpoint.write(e.options.Dir), e.lock.Close())
	}()
	select {
	case err := <-stopped:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("the engine in %s is still stopping after %s", e.options.Dir, closeTime)
	}
}

// Owner reports whether the engine runs in this process.
func (e *Engine) Owner() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server != nil
}

// Endpoint returns where the engine is now. That changes when another process takes the engine over.
func (e *Engine) Endpoint() Endpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil && e.closing.Err() == nil {
		if current, err := openEndpoint(e.options.Dir); err == nil {
			e.endpoint = current
		}
	}
	return e.endpoint
}

// Moved reports whether the engine is on another port than the one asked for, because something else listened there.
// The Temporal CLI then needs `--address`.
func (e *Engine) Moved() bool { return e.Endpoint().Port != e.options.Port }

// Replaced returns the path of the database that this process moved aside because it was damaged or of another
// version, "" for none. The loops in it continue only from their ledgers.
func (e *Engine) Replaced() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replaced
}
