package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/headers"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	engineauth "pawl/internal/engine/auth"
	"pawl/internal/home/repairlog"
	"pawl/internal/lib/fsutil/durable"
)

const (
	// startTries is how often a start is tried. Another program may take a port between choosing and binding it.
	startTries = 3
	// bindPatience is how long a start waits for the port of the last owner.
	bindPatience = 500 * time.Millisecond
)

// start brings the database up to date, starts a server on it and writes its endpoint. engineID is that of the engine to
// which this process's clients are connected, "" for none.
func start(ctx context.Context, o Options, engineID string, lock *os.File, takeover bool) (*server, error) {
	began := time.Now()
	// From here on the lock file names this process, so the endpoint that the last owner left is no longer valid.
	if err := own(lock); err != nil {
		return nil, err
	}
	last, err := readEndpoint(o.Dir)
	if errors.Is(err, durable.ErrTorn) {
		o.Logger.Warn("The engine's endpoint can't be read and is written anew", "error", err)
	}
	if err != nil {
		last = Endpoint{ClusterID: cmp.Or(engineID, uuid.NewString())}
	}
	key, err := engineauth.Settle(o.Dir, o.Auth)
	if err != nil {
		return nil, err
	}
	db := database{filepath.Join(o.Dir, databaseFile)}
	ready, err := db.prepare(o.clock().wall)
	if err != nil {
		return nil, err
	}
	if ready.replaced != "" {
		o.Logger.Warn("The engine's database could not be used and was moved aside", "to", ready.replaced)
	}
	if ready.rewound {
		o.Logger.Warn("The clock was set back: timers that wait until it is where it was are made again")
	}
	switch {
	case ready.created && !last.StartedAt.IsZero():
		repairlog.Note(o.Dir, "the database was gone: loops continue from their ledgers")
	case ready.damaged:
		repairlog.Note(o.Dir, "the database could not be read and was moved aside to "+ready.replaced+": loops continue from their ledgers")
	case ready.amended != "":
		o.Logger.Error("The engine's database was damaged: what could not be read was taken out", "rows", ready.amended)
		repairlog.Note(o.Dir, "rows of the database could not be read and were taken out ("+ready.amended+"): their loops continue from their ledgers")
	}
	sql := db.config()
	pool, err := db.connect(sql)
	if err != nil {
		return nil, err
	}
	if err := o.ensureNamespace(ctx, sql, pool); err != nil {
		return nil, fmt.Errorf("set up namespace %q: %w", namespaceName, err)
	}
	identifyBinary()

	port, wait := preferredPort(o, last, takeover)
	var (
		s *server
		p ports
	)
	for try := range startTries {
		if p, err = choosePorts(ctx, port, wait); err != nil {
			break
		}
		s, err = startServer(ctx, serverConfig(sql, p, last.ClusterID), p, o, Endpoint{
			Address:       p.address(),
			UI:            "http://" + p.ui.Addr().String(),
			PID:           os.Getpid(),
			ServerVersion: headers.ServerVersion,
			SchemaVersion: sqliteschema.Version,
			StartedAt:     began.UTC(),
			Port:          p.frontend,
			Preferred:     o.Port,
			Ports:         []int{p.frontend, p.frontend + uiOffset, p.history, p.matching},
			Auth:          key != nil,
			pass:          key,
		})
		if err == nil || !errors.As(err, new(fatalError)) {
			break
		}
		o.Logger.Warn("Starting the engine failed", "try", try+1, "error", err)
	}
	if err != nil {
		return nil, err
	}
	if err := db.opened(); err != nil {
		s.stop()
		return nil, err
	}
	s.replaced = ready.replaced
	if err := s.refresh(ctx, ready.goingOn); err != nil {
		o.Logger.Warn("Not all tasks of the loops that continue could be made again", "error", err)
	}
	if key != nil {
		err = key.WriteProfile(o.Dir, p.address(), namespaceName)
	}
	if err = errors.Join(err, s.endpoint.write(o.Dir)); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// preferredPort returns the port to try first, and how long to wait for it. If an engine was killed, or another
// process had it, its clients come back to its last port. An engine that was closed starts at the port that it was
// asked to use, so it does not stay on another port for good.
func preferredPort(o Options, last Endpoint, takeover bool) (port int, wait time.Duration) {
	if last.Port != 0 && (takeover || !last.Stopped && last.Preferred == o.Port) {
		return last.Port, bindPatience
	}
	return o.Port, 0
}

// identifyBinary gives the SDK a name for this binary. Otherwise the SDK would hash the whole file, 200 MB in 0.4 s,
// when the first worker of the process starts, the server's own or the caller's. Size and time of the file
// distinguish builds as well.
func identifyBinary() {
	path, _ := os.Executable()
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	worker.SetBinaryChecksum(fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano()))
}
