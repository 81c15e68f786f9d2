package engine

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	sqliteschema "go.temporal.io/server/schema/sqlite"

	engineauth "pawl/internal/engine/auth"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// Report describes the engine of a directory as seen from outside, without starting or changing it. It has the fields
// of doctor.Engine, a type that this package does not import.
type Report struct {
	Running                   bool
	Address, UI               string // where it is, or was last; "" if it never ran
	Held                      bool   // a process has the lock, even if its engine does not answer
	Owner                     int    // the ID of that process
	Database, Version, Wanted string // the file, its schema ("" for no file) and the schema of this program
	Damaged                   bool   // it is not a database that an engine made
	Unread                    string // rows of it that can't be decoded
	Size                      int64
	Taken                     []string         // those of Temporal's own addresses on which other programs listen
	Pass                      *engineauth.Pass // the pass that it requires, nil if it requires none
	ID                        string           // the ID of the engine: its cluster ID
}

// Look examines the engine of a directory. It returns an error if the lock or the database can't be read.
func Look(ctx context.Context, dir string) (Report, error) {
	r := Report{Database: filepath.Join(dir, databaseFile), Wanted: sqliteschema.Version}
	endpoint, running := Find(ctx, dir)
	if !running {
		endpoint, _ = readEndpoint(dir)
		for _, port := range []int{defaultPort, defaultPort + uiOffset} {
			if l, err := net.Listen("tcp", hostPort(port)); err != nil {
				r.Taken = append(r.Taken, hostPort(port))
			} else {
				l.Close()
			}
		}
	}
	r.Running, r.Address, r.UI, r.Pass, r.ID = running, endpoint.Address, endpoint.Link(""), endpoint.pass, endpoint.ClusterID
	var err error
	if r.Held, err = durable.Locked(lockPath(dir)); err != nil {
		return r, err
	}
	if r.Held {
		r.Owner = owner(dir)
	}
	r.Version, err = database{r.Database}.version()
	if r.Damaged = errors.Is(err, errNotOurs); err != nil && !r.Damaged {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return r, err
	}
	if fi, err := os.Stat(dirfd.At(r.Database)); err == nil {
		r.Size = fi.Size()
	}
	if bad, err := (database{r.Database}).bad("ro"); err == nil && r.Version == r.Wanted { // a database that can't be read now is in use
		r.Unread = described(bad)
	}
	return r, nil
}
