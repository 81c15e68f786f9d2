package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/service/history/tasks"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Opened returns an error if this process has not opened the database at a path.
func Opened(path string) error { return database{path}.opened() }

// WithClock returns options for an engine whose wall clock is set back by what back holds.
func (o Options) WithClock(back *atomic.Int64) Options {
	o.clock = func() moment {
		m := newMoment()
		m.wall = m.wall.Add(-time.Duration(back.Load()))
		return m
	}
	return o
}

// WithClockSetBackAtStart returns options for an engine whose wall clock is set back by an hour while it starts.
func (o Options) WithClockSetBackAtStart() Options {
	var looks atomic.Int64
	o.clock = func() moment {
		m := newMoment()
		if looks.Add(1) > 1 {
			m.wall = m.wall.Add(-time.Hour)
		}
		return m
	}
	return o
}

// TimersReadTo makes a database say that its timers have been read to a point in time.
func TimersReadTo(t *testing.T, db *sql.DB, to time.Time) {
	t.Helper()
	require.NoError(t, change(context.Background(), db, "shards", "", &persistencespb.ShardInfo{}, func(shard *persistencespb.ShardInfo) (bool, error) {
		shard.QueueStates = map[int32]*persistencespb.QueueState{
			int32(tasks.CategoryIDTimer): {ExclusiveReaderHighWatermark: &persistencespb.TaskKey{FireTime: timestamppb.New(to)}},
		}
		return true, nil
	}))
}

// SqliteConn is what the driver's connections can do.
type SqliteConn = sqliteConn

// Pool returns a pool of the server's connections to a database. opened returns what is used of a connection that the
// driver has opened.
func Pool(path string, opened func(SqliteConn) SqliteConn) *sql.DB {
	db, _ := sql.Open("sqlite", "")
	pool := sql.OpenDB(connector{opening{db.Driver(), opened}, database{path}.dsn() + "?_pragma=journal_mode(wal)&_pragma=" + syncAll})
	pool.SetMaxOpenConns(1)
	return pool
}

type opening struct {
	driver.Driver
	opened func(SqliteConn) SqliteConn
}

func (o opening) Open(dsn string) (driver.Conn, error) {
	c, err := o.Driver.Open(dsn)
	if err != nil {
		return nil, err
	}
	return o.opened(c.(sqliteConn)), nil
}

// MaxKept is how many statements a connection keeps.
const MaxKept = maxKept

// Kept returns how many statements the connection of a pool has kept.
func Kept(pool *sql.DB) (kept int, err error) {
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return kept, conn.Raw(func(c any) error { kept = len(c.(*connection).kept); return nil })
}
