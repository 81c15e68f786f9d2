package engine

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	sqliteschema "go.temporal.io/server/schema/sqlite"

	"pawl/internal/durable"
)

// Report is what can be told of the engine of a directory without starting or touching it.
type Report struct {
	Running  bool
	Endpoint Endpoint // where it is, or was last; zero if it never ran
	Held     bool     // a process has the lock, whether or not its engine answers
	Owner    int      // that process
	// Database is the file; Version is its schema's, "" where there is no file yet, and Wanted the
	// one of this program.
	Database, Version, Wanted string
	Damaged                   bool // it is no database that an engine made
	Size                      int64
	Taken                     []string // those of Temporal's own addresses that other programs listen on
}

// Look examines the engine of a directory.
func Look(ctx context.Context, dir string) (Report, error) {
	r := Report{Database: filepath.Join(dir, databaseFile), Wanted: sqliteschema.Version}
	r.Endpoint, r.Running = Find(ctx, dir)
	if !r.Running {
		r.Endpoint, _ = readEndpoint(dir)
		for _, port := range []int{defaultPort, defaultPort + uiOffset} {
			l, err := net.Listen("tcp", hostPort(port))
			if err != nil {
				r.Taken = append(r.Taken, hostPort(port))
				continue
			}
			l.Close()
		}
	}
	var err error
	if r.Held, err = durable.Locked(lockPath(dir)); err != nil {
		return r, err
	}
	if r.Held {
		r.Owner = owner(dir)
	}
	version, err := database{r.Database}.version()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case errors.Is(err, errNotOurs):
		r.Damaged = true
	case err != nil:
		return r, err
	}
	r.Version = version
	if fi, err := os.Stat(r.Database); err == nil {
		r.Size = fi.Size()
	}
	return r, nil
}
