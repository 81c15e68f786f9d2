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
	"pawl/internal/held"
	"pawl/internal/pass"
)

// Report is what can be told of the engine of a directory without starting or touching it. Its fields are
// those of doctor.Engine, which this package does not import.
type Report struct {
	Running                   bool
	Address, UI               string // where it is, or was last; "" if it never ran
	Held                      bool   // a process has the lock, whether or not its engine answers
	Owner                     int    // that process
	Database, Version, Wanted string // the file, its schema ("" for no file) and the one of this program
	Damaged                   bool   // it is no database that an engine made
	Unread                    string // rows of it that can't be read
	Size                      int64
	Taken                     []string   // those of Temporal's own addresses that other programs listen on
	Pass                      *pass.Pass // what it asks for, nil where it asks nobody
	ID                        string     // which engine it is
}

// Look examines the engine of a directory.
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
	if fi, err := os.Stat(held.At(r.Database)); err == nil {
		r.Size = fi.Size()
	}
	if bad, err := (database{r.Database}).bad("ro"); err == nil && r.Version == r.Wanted { // one that can't be read now is in use
		r.Unread = described(bad)
	}
	return r, nil
}
